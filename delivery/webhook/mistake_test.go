package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"

	"mybots/delivery"
)

func TestDiagnoseVectors(t *testing.T) {
	t.Parallel()
	for _, c := range readVectors(t).Cases {
		t.Run("K-07 "+c.Name, func(t *testing.T) {
			t.Parallel()
			got := Diagnose(Paste{delivery.Secret(c.Secret), c.Header, []byte(c.Body), time.Unix(c.Now, 0)})
			if (got.Mistake == MistakeNone) != c.Valid {
				t.Errorf("got %+v, want valid %t", got, c.Valid)
			}
		})
	}
}

// The signature of these tests, and what a bot's author does with them.
const (
	ownerSecret = "swh1_abcdefghijklmnopqrstuvwxyz234567abcdefghijklmnopqrst"
	ownerBody   = `{"update_id":"7","type":"message","message":{"text":"Tea <for> 2 & \/ — 🍰","n":[1.50,[],{}]}}`
)

var ownerNow = time.Date(2026, 9, 26, 10, 0, 0, 0, time.UTC)

func macOf(key, message string) []byte {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(message))
	return mac.Sum(nil)
}

func headerOf(mac []byte) string { return "t=1790416800,v1=" + hex.EncodeToString(mac) }

// signed is the header of a program that signs message with key.
func signedBy(key, message string) string { return headerOf(macOf(key, message)) }

func TestDiagnose(t *testing.T) {
	t.Parallel()
	const secret, body, t0 = ownerSecret, ownerBody, "1790416800."
	good := signedBy(secret, t0+body)
	v1 := strings.TrimPrefix(good, "t=1790416800,v1=")
	ahead := func(d time.Duration, body string) string {
		return Sign(secret, ownerNow.Add(d).Unix(), []byte(body))
	}
	lenient := func(s string) string { return string(fromBase64(s, false)) }

	tests := map[string]struct {
		secret, header, body string // "": the right one
		want                 Mistake
		details              []Detail
	}{
		"valid":                 {"", good, "", MistakeNone, nil},
		"valid, the whole line": {"", "x-smeet-signature: " + good + "\r\n", "", MistakeNone, nil},
		"valid, beside a v1 in capitals": {"", "t=1790416800,v1=" + strings.ToUpper(v1) + ",v1=" + v1, "",
			MistakeNone, nil},

		"a blank secret":  {" ", good, "", MistakeOther, nil},
		"header too long": {"", good + strings.Repeat(" ", MaxPastedHeader), "", MistakeTooLong, nil},
		"body too long":   {"", good, strings.Repeat(" ", MaxPastedBody+1), MistakeTooLong, nil},

		"header empty":            {"", " \n", "", MistakeHeader, []Detail{DetailEmpty}},
		"header of others":        {"", "sha256=" + v1, "", MistakeHeader, []Detail{DetailForeign}},
		"header of only hex":      {"", v1, "", MistakeHeader, []Detail{DetailOnlyHex}},
		"header without t":        {"", "v1=" + v1, "", MistakeHeader, []Detail{DetailNoTime}},
		"header without v1":       {"", "t=1790416800", "", MistakeHeader, []Detail{DetailNoDigest}},
		"header with two t":       {"", "t=1," + good, "", MistakeHeader, []Detail{DetailTwoTimes}},
		"header with signed t":    {"", "t=+1790416800,v1=" + v1, "", MistakeHeader, []Detail{DetailBadTime}},
		"header in milliseconds":  {"", "t=1790416800000,v1=" + v1, "", MistakeHeader, []Detail{DetailBadTime}},
		"header cut":              {"", good[:60], "", MistakeHeader, []Detail{DetailBadV1}},
		"header without anything": {"", "Bearer x", "", MistakeHeader, []Detail{DetailShape}},

		"old":                {"", ahead(-301*time.Second, body), "", MistakeOld, nil},
		"old, at the edge":   {"", ahead(-300*time.Second, body), "", MistakeNone, nil},
		"future":             {"", ahead(301*time.Second, body), "", MistakeFuture, nil},
		"future at the edge": {"", ahead(300*time.Second, body), "", MistakeNone, nil},
		"old and re-written": {"", ahead(-time.Hour, body), body + "\n", MistakeBody, []Detail{DetailSpaceAround}},

		"upper-case hex": {"", "t=1790416800,v1=" + strings.ToUpper(v1), "", MistakeEncoding, []Detail{DetailUpperCase}},
		"base64": {"", "t=1790416800,v1=" + base64.StdEncoding.EncodeToString(macOf(secret, t0+body)), "",
			MistakeEncoding, []Detail{DetailBase64}},
		"base64 for addresses": {"", "t=1790416800,v1=" + base64.RawURLEncoding.EncodeToString(macOf(secret, t0+body)), "",
			MistakeEncoding, []Detail{DetailBase64}},

		"key with a newline":        {"", signedBy(secret+"\n", t0+body), "", MistakeKey, []Detail{DetailKeySpace}},
		"key pasted with space":     {secret + " \n", good, "", MistakeKey, []Detail{DetailKeySpace}},
		"key without prefix":        {"", signedBy(secret[5:], t0+body), "", MistakeKey, []Detail{DetailKeyPrefix}},
		"key pasted without prefix": {secret[5:], good, "", MistakeKey, []Detail{DetailKeyPrefix}},
		"key decoded from base64":   {"", signedBy(lenient(secret), t0+body), "", MistakeKey, []Detail{DetailKeyBase64}},
		"key without prefix, decoded from base64": {"", signedBy(lenient(secret[5:]), t0+body), "", MistakeKey,
			[]Detail{DetailKeyBase64}},
		"key decoded from base64 for addresses": {"", signedBy(string(fromBase64(secret, true)), t0+body), "", MistakeKey,
			[]Detail{DetailKeyBase64}},
		"key decoded from hex": {"abcdef012345", signedBy("\xab\xcd\xef\x01\x23\x45", t0+body), "", MistakeKey,
			[]Detail{DetailKeyHex}},
		"key decoded from hex behind the prefix": {"swh1_abcdef01q", signedBy("\xab\xcd\xef\x01", t0+body), "", MistakeKey,
			[]Detail{DetailKeyHex}},
		"key encoded":     {"", signedBy(base64.StdEncoding.EncodeToString([]byte(secret)), t0+body), "", MistakeKey, []Detail{DetailKeyEncoded}},
		"key in capitals": {"", signedBy(strings.ToUpper(secret), t0+body), "", MistakeKey, []Detail{DetailKeyCase}},
		"key in quotes":   {`"` + secret + `"`, good, "", MistakeKey, []Detail{DetailKeyQuoted}},
		"key empty":       {"", signedBy("", t0+body), "", MistakeKey, []Detail{DetailKeyNone}},

		"body alone":              {"", signedBy(secret, body), "", MistakeMessage, []Detail{DetailBodyAlone}},
		"joined by nothing":       {"", signedBy(secret, "1790416800"+body), "", MistakeMessage, []Detail{DetailJoined}},
		"joined by a colon":       {"", signedBy(secret, "1790416800:"+body), "", MistakeMessage, []Detail{DetailJoined}},
		"joined the other way":    {"", signedBy(secret, body+".1790416800"), "", MistakeMessage, []Detail{DetailJoined}},
		"joined in milliseconds":  {"", signedBy(secret, "1790416800000."+body), "", MistakeMessage, []Detail{DetailMillisecond}},
		"body read before":        {"", signedBy(secret, t0), "", MistakeMessage, []Detail{DetailEmptyBody}},
		"text of Python's bytes":  {"", signedBy(secret, t0+`b'{"a":"\xc3\xa9\'"}'`), `{"a":"é'"}`, MistakeMessage, []Detail{DetailBytesText}},
		"text of Python's quotes": {"", signedBy(secret, t0+`b"it's\n"`), "it's\n", MistakeMessage, []Detail{DetailBytesText}},
		"text of an object":       {"", signedBy(secret, t0+"[object Object]"), "", MistakeMessage, []Detail{DetailObjectText}},

		"another secret":    {"", signedBy("swh1_another", t0+body), "", MistakeOther, nil},
		"another body":      {"", good, strings.Replace(body, "Tea", "Pea", 1), MistakeOther, nil},
		"no JSON":           {"", good, "text=Tea", MistakeOther, nil},
		"deep JSON":         {"", good, strings.Repeat("[", 9_999) + strings.Repeat("]", 9_999), MistakeOther, nil},
		"JSON all too deep": {"", good, strings.Repeat("[", 100_000), MistakeOther, nil},
	}
	for name, c := range tests {
		t.Run("K-07 "+name, func(t *testing.T) {
			t.Parallel()
			p := Paste{Secret: ownerSecret, Header: c.header, Body: []byte(ownerBody), Now: ownerNow}
			if c.secret != "" {
				p.Secret = delivery.Secret(c.secret)
			}
			if c.body != "" {
				p.Body = []byte(c.body)
			}
			got := Diagnose(p)
			if got.Mistake != c.want || !slices.Equal(got.Details, c.details) {
				t.Errorf("got %s %v, want %s %v", got.Mistake, got.Details, c.want, c.details)
			}
			if got.Time.IsZero() != (c.want == MistakeHeader || c.want == MistakeTooLong) {
				t.Errorf("got the time %v with the mistake %s", got.Time, got.Mistake)
			}
		})
	}

	t.Run("K-07 an empty secret", func(t *testing.T) {
		t.Parallel()
		if got := Diagnose(Paste{Header: good, Body: []byte(body), Now: ownerNow}); got.Mistake != MistakeNoSecret {
			t.Errorf("got %s, want %s", got.Mistake, MistakeNoSecret)
		}
	})
	t.Run("K-07 an old t is told beside another mistake", func(t *testing.T) {
		t.Parallel()
		got := Diagnose(Paste{ownerSecret, ahead(-time.Hour, body), []byte("{}"), ownerNow})
		if got.Mistake != MistakeOther || got.Off != -time.Hour || !got.Stale() {
			t.Errorf("got %+v, stale %t; want other, an hour ago, stale", got, got.Stale())
		}
	})
}
