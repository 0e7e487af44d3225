package examples

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"strconv"
	"strings"
	"testing"

	"mybots/delivery"
	"mybots/delivery/webhook"
)

// The vector that every kit's tests share. The secret is nobody's.
const (
	vectorSecret = delivery.Secret("swh1_thissecretisanexampleanditsignsnothingreal234567abcd")
	vectorTime   = 1790416800 // 2026-09-26T10:00:00Z
	vectorBody   = `{"update_id":"42","event_id":"7d3f7a52-4f0e-4b64-9d2a-2c1f8e5b6a10","type":"message",` +
		`"date":"2026-09-26T10:00:00Z","message":{"message_id":"7301","chat":{"id":"550","type":"private"},` +
		`"from":{"id":"812","display_name":"Аня","is_bot":false},"date":"2026-09-26T10:00:00Z",` +
		`"text":"Tea <for> two & cake 🍰 caf\u00e9 1.50 \/ 12345678901234567890\n"}}`
)

var updateVectors = flag.Bool("update", false, "write testdata/signature.json anew")

// vectors is testdata/signature.json: one request that is right in all, and
// requests that a receiver with the secret must take or refuse.
type vectors struct {
	Secret string       `json:"secret"`
	Time   int64        `json:"t"`
	Body   string       `json:"body"`
	Digest string       `json:"v1"`
	Header string       `json:"header"`
	Cases  []vectorCase `json:"cases"`
}

type vectorCase struct {
	Name   string `json:"name"`
	Secret string `json:"secret"` // what the receiver has
	Header string `json:"header"`
	Body   string `json:"body"`
	Now    int64  `json:"now"` // the receiver's clock, Unix seconds
	Valid  bool   `json:"valid"`
}

// vectorCases makes the cases for a receiver whose clock says now and whose
// requests carry body. Those about t keep margin seconds away from the edge of
// five minutes.
func vectorCases(now int64, body string, margin int64) []vectorCase {
	sign := func(t int64, body string) string { return webhook.Sign(vectorSecret, t, []byte(body)) }
	good := sign(now, body)
	at := strconv.FormatInt(now, 10)
	v1 := digits(good)
	other := digits(webhook.Sign("swh1_another", now, []byte(body)))
	// signedAt signs with t written as the text says, which Sign never would.
	signedAt := func(text string) string { return "t=" + text + ",v1=" + digest(text+"."+body) }

	var cases []vectorCase
	add := func(name string, valid bool, header, body string) {
		cases = append(cases, vectorCase{name, string(vectorSecret), header, body, now, valid})
	}
	add("valid", true, good, body)
	add("a space after the comma", true, "t="+at+", v1="+v1, body)
	add("v1 before t", true, "v1="+v1+",t="+at, body)
	add("several v1, the first matches", true, good+",v1="+other, body)
	add("several v1, the last matches", true, "t="+at+",v1="+other+",v1=zz,v1="+v1, body)
	add("several v1, none matches", false, "t="+at+",v1="+other+",v1="+other, body)
	add("a field of a later version", true, "t="+at+",v1="+v1+",v2=later", body)

	add("t at the edge, old", true, sign(now-300+margin, body), body)
	add("t at the edge, ahead", true, sign(now+300-margin, body), body)
	add("old t", false, sign(now-301-margin, body), body)
	add("future t", false, sign(now+301+margin, body), body)
	add("t of another request", false, "t="+strconv.FormatInt(now-1, 10)+",v1="+v1, body)

	add("upper-case hex", false, "t="+at+",v1="+strings.ToUpper(v1), body)
	add("base64", false, "t="+at+",v1="+base64Of(v1), body)
	add("not hex", false, "t="+at+",v1="+strings.Repeat("z", 64), body)
	add("not ASCII", false, "t="+at+",v1="+strings.Repeat("é", 32), body)
	add("one digit short", false, "t="+at+",v1="+v1[:63], body)
	add("one digit more", false, "t="+at+",v1="+v1+"0", body)
	add("quoted", false, "t="+at+`,v1="`+v1+`"`, body)

	add("re-serialised body", false, good, strings.ReplaceAll(body, `":"`, `": "`))
	add("newline added to the body", false, good, body+"\n")
	add("one letter changed", false, good, strings.Replace(body, "Tea", "Pea", 1))
	add("wrong secret", false, webhook.Sign("swh1_another", now, []byte(body)), body)
	add("secret without its prefix", false, webhook.Sign(vectorSecret[5:], now, []byte(body)), body)
	add("signed without t", false, "t="+at+",v1="+digest(body), body)

	add("empty header", false, "", body)
	add("only the digits", false, v1, body)
	add("another product's header", false, "sha256="+v1, body)
	add("semicolon", false, "t="+at+";v1="+v1, body)
	add("names in capitals", false, "T="+at+",V1="+v1, body)
	add("missing t", false, "v1="+v1, body)
	add("missing v1", false, "t="+at, body)
	add("empty t", false, signedAt(""), body)
	add("t with a plus sign", false, signedAt("+"+at), body)
	add("t with a minus sign", false, signedAt("-"+at), body)
	add("t with a space", false, signedAt(" "+at), body)
	add("t with a fraction", false, signedAt(at+".0"), body)
	add("t in hexadecimal", false, signedAt("0x"+strconv.FormatInt(now, 16)), body)
	add("t in milliseconds", false, signedAt(at+"000"), body)
	add("t of twelve digits", true, signedAt("00"+at), body)
	add("t of thirteen digits", false, signedAt("000"+at), body)
	add("t in other digits", false, signedAt(strings.Map(func(r rune) rune { return r - '0' + '٠' }, at)), body)
	add("duplicate t", false, "t="+at+",t="+at+",v1="+v1, body)
	add("two different t", false, "t=1,t="+at+",v1="+v1, body)
	add("a bare t beside the right one", false, "t,t="+at+",v1="+v1, body)
	return cases
}

func digits(header string) string {
	_, v1, _ := strings.Cut(header, "v1=")
	return v1
}

// digest is the signature of a message that Sign wouldn't sign.
func digest(message string) string {
	mac := hmac.New(sha256.New, []byte(vectorSecret))
	mac.Write([]byte(message))
	return hex.EncodeToString(mac.Sum(nil))
}

func base64Of(hexDigits string) string {
	raw, err := hex.DecodeString(hexDigits)
	if err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(raw)
}

func TestVectors(t *testing.T) {
	t.Parallel()
	header := webhook.Sign(vectorSecret, vectorTime, []byte(vectorBody))
	var want bytes.Buffer
	enc := json.NewEncoder(&want)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(vectors{
		Secret: string(vectorSecret), Time: vectorTime, Body: vectorBody, Digest: digits(header), Header: header,
		Cases: vectorCases(vectorTime, vectorBody, 0),
	}); err != nil {
		t.Fatal(err)
	}
	const file = "testdata/signature.json"
	if *updateVectors {
		if err := os.WriteFile(file, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s isn't what vectorCases makes; if the change is meant: go test ./examples -run TestVectors -update", file)
	}
}
