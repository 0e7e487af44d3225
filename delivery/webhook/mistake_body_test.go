package webhook

import (
	"slices"
	"strings"
	"testing"

	"mybots/delivery"
)

// What libraries make of ownerBody, written down from their own output.
func TestDiagnoseRewrittenBody(t *testing.T) {
	t.Parallel()
	raw := `{"update_id":"7","type":"message","message":{"text":"Tea <for> 2 & / — 🍰","n":[1.50,[],{}]}}`
	tests := map[string]struct {
		signed, pasted string
		want           []Detail
	}{
		"the paste is Python's": {raw,
			`{"update_id": "7", "type": "message", "message": {"text": "Tea <for> 2 & / \u2014 \ud83c\udf70", "n": [1.50, [], {}]}}`,
			[]Detail{DetailCompact, DetailUnescaped}},
		"Python's json.dumps": {
			`{"update_id": "7", "type": "message", "message": {"text": "Tea <for> 2 & / \u2014 \ud83c\udf70", "n": [1.50, [], {}]}}`,
			raw, []Detail{DetailSpaced, DetailASCII}},
		"Python, keys sorted": {
			`{"message": {"n": [1.50, [], {}], "text": "Tea <for> 2 & / \u2014 \ud83c\udf70"}, "type": "message", "update_id": "7"}`,
			raw, []Detail{DetailSpaced, DetailASCII, DetailSorted}},
		"JSON.stringify": {raw, ownerBody, []Detail{DetailCompact, DetailUnescaped}},
		"JSON.stringify with two spaces": {
			"{\n  \"update_id\": \"7\",\n  \"type\": \"message\",\n  \"message\": {\n    \"text\": \"Tea <for> 2 & / — 🍰\",\n    \"n\": [\n      1.50,\n      [],\n      {}\n    ]\n  }\n}",
			raw, []Detail{DetailIndented}},
		"jq -S": {
			"{\n  \"message\": {\n    \"n\": [\n      1.50,\n      [],\n      {}\n    ],\n    \"text\": \"Tea <for> 2 & / — 🍰\"\n  },\n  \"type\": \"message\",\n  \"update_id\": \"7\"\n}\n",
			raw, []Detail{DetailIndented, DetailSorted, DetailNewline}},
		"Go's encoding/json": {
			`{"message":{"n":[1.50,[],{}],"text":"Tea \u003cfor\u003e 2 \u0026 / — 🍰"},"type":"message","update_id":"7"}`,
			raw, []Detail{DetailCompact, DetailHTML, DetailSorted}},
		"PHP's json_encode": {
			`{"update_id":"7","type":"message","message":{"text":"Tea <for> 2 & \/ \u2014 \ud83c\udf70","n":[1.50,[],{}]}}`,
			raw, []Detail{DetailCompact, DetailSlashes}},
		"a newline was cut":     {raw + "\n", raw, []Detail{DetailNewline}},
		"a newline was added":   {raw, raw + "\n", []Detail{DetailSpaceAround}},
		"a mark of byte order":  {raw, "\ufeff" + raw, []Detail{DetailSpaceAround}},
		"a form's line ends":    {"{\n\"a\":1}", "{\r\n\"a\":1}", []Detail{DetailLineEnds}},
		"half a pair":           {`{"a":"\ud83c!\b"}`, `{"a": "\uD83C!\u0008"}`, []Detail{DetailCompact, DetailUnescaped}},
		"empty ones and spaces": {`{"a":{},"b":[]}`, `{ "a" : { } , "b" : [ ] }`, []Detail{DetailCompact}},
	}
	for name, c := range tests {
		t.Run("K-07 "+name, func(t *testing.T) {
			t.Parallel()
			got := Diagnose(Paste{ownerSecret, signedBy(ownerSecret, "1790416800."+c.signed), []byte(c.pasted), ownerNow})
			if got.Mistake != MistakeBody || !slices.Equal(got.Details, c.want) {
				t.Errorf("got %s %v, want %s %v", got.Mistake, got.Details, MistakeBody, c.want)
			}
		})
	}
}

// FuzzDiagnose looks for a panic, and for work that the limits don't bound.
func FuzzDiagnose(f *testing.F) {
	for _, body := range []string{ownerBody, "", "[", `{"a":"\ud83c\udf70\u0000"}`, `"\\"`, "\xff", " 1 ", "[{}]\r\n", "b'"} {
		for _, h := range []string{signedBy(ownerSecret, "x"), "t=,v1=", "v1,t", "sha256=", "X-SMeet-Signature:", "t=1,v1=" + strings.Repeat("A", 43)} {
			f.Add(ownerSecret, h, []byte(body))
		}
	}
	f.Add("_", "t=0,v1="+strings.Repeat("0", 64), []byte("{}"))
	f.Fuzz(func(t *testing.T, secret, h string, body []byte) {
		p := Paste{delivery.Secret(secret), h, body, ownerNow}
		if got := Diagnose(p); got.Mistake == MistakeNone || got.Mistake == "" {
			t.Errorf("got %q for a signature that nobody made", got.Mistake)
		}
		if secret == "" || len(secret) > maxPastedSecret || len(body) > MaxPastedBody {
			return
		}
		p.Header = Sign(p.Secret, ownerNow.Unix(), body)
		if got := Diagnose(p); got.Mistake != MistakeNone {
			t.Errorf("got %s %v for a right signature", got.Mistake, got.Details)
		}
	})
}
