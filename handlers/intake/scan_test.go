package intake

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mybots/delivery"
)

func TestObject(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		in   string
		want string // keys and values, or the error
	}{
		"plain":                       {` { "a" : 1 , "b":"x,}" } `, `a=1 b="x,}"`},
		"empty":                       {`{}`, ``},
		"escapes":                     {`{"\u0061":"\"}{","b":[{"c":"]"}]}`, `a="\"}{" b=[{"c":"]"}]`},
		"a key that comes twice":      {`{"a":1,"\u0061":2}`, `! the key "a" comes twice`},
		"no object":                   {`[1]`, `! its syntax is wrong`},
		"nothing":                     {``, `! its syntax is wrong`},
		"something follows":           {`{} x`, `! its syntax is wrong`},
		"two objects":                 {`{}{}`, `! its syntax is wrong`},
		"a comma at the end":          {`{"a":1,}`, `! its syntax is wrong`},
		"no comma":                    {`{"a":1 "b":2}`, `! its syntax is wrong`},
		"no value":                    {`{"a":}`, `! its syntax is wrong`},
		"no colon":                    {`{"a" 1}`, `! its syntax is wrong`},
		"an open string":              {`{"a`, `! its syntax is wrong`},
		"an open object":              {`{"a":{"b":1}`, `! its syntax is wrong`},
		"a word that is none":         {`{"a":tru}`, `! its syntax is wrong`},
		"brackets of the wrong sort":  {`{"a":[1}}`, `! its syntax is wrong`},
		"a key without quotes":        {`{a:1}`, `! its syntax is wrong`},
		"a lone surrogate in a value": {`{"a":"\ud800"}`, `a="\ud800"`},
	}
	for name, tt := range tests {
		t.Run("I-01 "+name, func(t *testing.T) {
			t.Parallel()
			fields, err := object([]byte(tt.in), "payload")
			got := ""
			for _, key := range []string{"a", "b"} {
				if v, ok := fields[key]; ok {
					got += key + "=" + string(v) + " "
				}
			}
			if got = strings.TrimSpace(got); err != nil {
				got = "! " + err.Error()
			}
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// TestCutAgreesWithTheLibrary: for any valid JSON object the parts are those
// that encoding/json finds.
func TestCutAgreesWithTheLibrary(t *testing.T) {
	t.Parallel()
	var value func(t *rapid.T, depth int) any
	value = func(t *rapid.T, depth int) any {
		kind := rapid.IntRange(0, 5).Draw(t, "kind")
		switch {
		case kind == 0 && depth > 0:
			m := map[string]any{}
			for range rapid.IntRange(0, 3).Draw(t, "n") {
				m[rapid.String().Draw(t, "key")] = value(t, depth-1)
			}
			return m
		case kind == 1 && depth > 0:
			list := []any{}
			for range rapid.IntRange(0, 3).Draw(t, "n") {
				list = append(list, value(t, depth-1))
			}
			return list
		case kind == 2:
			return rapid.Float64().Draw(t, "number")
		case kind == 3:
			return nil
		case kind == 4:
			return rapid.Bool().Draw(t, "bool")
		}
		return rapid.String().Draw(t, "text")
	}
	rapid.Check(t, func(t *rapid.T) {
		m := map[string]any{}
		for range rapid.IntRange(0, 4).Draw(t, "n") {
			m[rapid.String().Draw(t, "key")] = value(t, 3)
		}
		text, err := json.MarshalIndent(m, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		got, err := object(text, "\xff")
		if err != nil || len(got) != len(want) {
			t.Fatalf("got %v %v, want %v", got, err, want)
		}
		for key, v := range want {
			if string(got[key]) != string(v) {
				t.Fatalf("%q: got %s, want %s", key, got[key], v)
			}
		}
	})
}

// FuzzObject: whatever the bytes, it ends, and takes only what the library
// takes too.
func FuzzObject(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, `{"a":"\\"}`, `{"a":[}`, `{"a"`, `{"a":"`, `{"a":1,}`, "{\"a\":\"\\", `{"":{}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if _, err := object(in, "\xff"); err == nil && !json.Valid(in) {
			t.Errorf("object takes %q, which is no JSON", in)
		}
	})
}

func TestEventOf(t *testing.T) {
	t.Parallel()
	const good = `{"bot_id":"1","event_id":"7D3F7A52-4F0E-4B64-9D2A-2C1F8E5B6A10","type":"message","date":"2026-09-26T13:00:00.1234567+03:00","payload":{}}`
	with := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	tests := map[string]struct {
		in   string
		code delivery.Code
	}{
		"good":                           {good, ""},
		"null counts as absent":          {with(`"payload"`, `"chat_id":null,"payload"`), ""},
		"unknown fields are ignored":     {with(`"payload"`, `"x":[1],"payload"`), ""},
		"an id as a number":              {with(`"1"`, `1`), delivery.InvalidEvent},
		"an id with a leading zero":      {with(`"1"`, `"01"`), delivery.InvalidEvent},
		"a chat id as a number":          {with(`"payload"`, `"chat_id":5,"payload"`), delivery.InvalidEvent},
		"no UUID":                        {with(`7D3F7A52`, `7D3F`), delivery.InvalidEvent},
		"a UUID in braces":               {with(`"7D3F7A52-4F0E-4B64-9D2A-2C1F8E5B6A10"`, `"{7D3F7A52-4F0E-4B64-9D2A-2C1F8E5B6A10}"`), delivery.InvalidEvent},
		"a type named like a field":      {with(`"type":"message"`, `"type":"update_id"`), delivery.InvalidEvent},
		"no type":                        {with(`"type":"message"`, `"type":""`), delivery.InvalidEvent},
		"a type with NUL":                {with(`"type":"message"`, `"type":"a\u0000"`), delivery.InvalidEvent},
		"a date without a zone":          {with(`+03:00`, ``), delivery.InvalidEvent},
		"a date with a comma":            {with(`00.123`, `00,123`), delivery.InvalidEvent},
		"a year past 9999 in UTC":        {with(`2026-09-26T13:00:00.1234567+03:00`, `9999-12-31T23:59:59-01:00`), delivery.InvalidEvent},
		"a payload that is no object":    {with(`"payload":{}`, `"payload":[]`), delivery.InvalidEvent},
		"no payload":                     {with(`,"payload":{}`, ``), delivery.InvalidEvent},
		"no object":                      {`7`, delivery.InvalidEvent},
		"a key that comes twice":         {with(`"bot_id":"1"`, `"bot_id":"1","bot_id":"1"`), delivery.InvalidEvent},
		"nested 20,000 deep":             {with(`{}}`, strings.Repeat(`{"a":`, 20_000)+"1"+strings.Repeat("}", 20_000)+"}"), delivery.InvalidEvent},
		"256 KiB behind its white space": {with(`{}}`, `{   "t":"`+strings.Repeat("x", 256<<10-8)+`"   }}`), ""},
		"a byte over 256 KiB":            {with(`{}}`, `{"t":"`+strings.Repeat("x", 256<<10-7)+`"}}`), delivery.PayloadTooLarge},
	}
	for name, tt := range tests {
		t.Run("I-01 Q-03 "+name, func(t *testing.T) {
			t.Parallel()
			e, id, refusal := eventOf([]byte(tt.in))
			switch {
			case refusal == nil && tt.code == "":
				if e.EventID != "7d3f7a52-4f0e-4b64-9d2a-2c1f8e5b6a10" || *id != e.EventID || delivery.FormatTime(e.Date) != "2026-09-26T10:00:00.123456Z" {
					t.Errorf("got %+v %v", e, *id)
				}
			case refusal == nil || refusal.Code != tt.code:
				t.Errorf("got %v, want %q", refusal, tt.code)
			}
		})
	}
	t.Run("U-03 only insignificant white space goes", func(t *testing.T) {
		t.Parallel()
		e, _, refusal := eventOf([]byte(with(`{}}`, `{ "b" : 1.50 , "a":1e400,"a":"\ud800\u0000 \/ <&>"  }}`)))
		if want := `{"b":1.50,"a":1e400,"a":"\ud800\u0000 \/ <&>"}`; refusal != nil || string(e.Payload) != want {
			t.Errorf("got %s %v, want %s", e.Payload, refusal, want)
		}
	})
}
