package main_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestPayloads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve(t)
	deep := func(n int) string { return strings.Repeat(`{"a":[`, n) + "0" + strings.Repeat(`]}`, n) }
	payloads := map[string]string{
		"an empty object":                 `{}`,
		"keys out of order":               `{"z":1,"a":2,"m":{"y":1,"b":2}}`,
		"a key that comes twice":          `{"a":1,"a":2,"b":{"c":1,"c":1},"a":1}`,
		"keys that differ in case":        `{"Text":1,"text":2,"TEXT":3}`,
		"empty and odd keys":              `{"":1," ":2,"\u0000":3,"__proto__":4,"a.b":5,"$1":6,"%s":7,"é":8}`,
		"keys named like the update's":    `{"update_id":"9","event_id":"x","type":"y","date":1,"message":{"message":1},"ok":false,"lease":null}`,
		"20-digit numbers":                `{"n":12345678901234567890,"m":-98765432109876543210}`,
		"numbers' own text":               `{"a":1.0,"b":1.00,"c":1e5,"d":1E+5,"e":-0,"f":-0.0,"g":1e400,"h":1e-400,"i":0.1000000000000000055511151231257827}`,
		"a 1000-digit number":             `{"n":` + strings.Repeat("7", 1000) + `}`,
		"escapes as they are":             `{"a":"\u0041\u00e9\/\\\"\b\f\n\r\t","\u0062":"b"}`,
		"upper-case escapes":              `{"a":"\u00E9\u00AB"}`,
		"characters that HTML fears":      `{"a":"<script>&amp;'</script>"}`,
		"emoji, raw and escaped":          `{"a":"😀👩‍👩‍👧‍👦🇷🇺","b":"\ud83d\ude00"}`,
		"U+2028 and U+2029, raw":          "{\"a\":\"\u2028\u2029\",\"b\":\"\\u2028\"}",
		"U+FEFF and noncharacters":        "{\"a\":\"\ufeff\uffff\U0010ffff\u0085\u007f\u200f\"}",
		"unpaired surrogates":             `{"a":"\ud800","b":"\udc00x","c":"\ude00\ud83d","\ud800":1}`,
		"NUL escapes":                     `{"a":"\u0000","b":"x\u0000y\u0000"}`,
		"other control escapes":           `{"a":"\u0001\u001f\u007f"}`,
		"what the database might read":    `{"a":"'; DROP TABLE updates; --","b":"\\x00","c":"$$","d":"\\000","e":"{1,2}"}`,
		"white space inside strings":      `{"a":"  x \\t  "}`,
		"true, false, null, empty arrays": `{"a":[true,false,null,[],{},""]}`,
		"deep nesting":                    `{"a":` + deep(400) + `}`,
		"not normalised":                  "{\"a\":\"e\u0301\",\"b\":\"\u00e9\",\"c\":\"ﬁ\"}",
	}
	for name, payload := range payloads {
		t.Run("U-03 "+name, func(t *testing.T) {
			t.Parallel()
			b := w.bot(t)
			s.write(t, event{bot: b, payload: payload})
			got := s.poll(t, b, `{"consumer_id":"a","timeout":0}`)
			if len(got.Updates) != 1 || got.Updates[0].payload != payload {
				t.Fatalf("got %.400q, want %.400q", got.outline()+" "+got.Updates[0].payload, payload)
			}
			again := s.poll(t, b, fmt.Sprintf(`{"consumer_id":"a","timeout":0,"epoch":"%s"}`, got.Lease.Epoch))
			if len(again.Updates) != 1 || again.Updates[0].raw != got.Updates[0].raw {
				t.Errorf("P-12 again: got other bytes: %.400q, want %.400q", again.Updates[0].raw, got.Updates[0].raw)
			}
		})
	}
	t.Run("U-03 insignificant white space goes, nothing else", func(t *testing.T) {
		t.Parallel()
		b := w.bot(t)
		s.write(t, event{bot: b, payload: " {\t\"a\" :\n\r [ 1 , { } , \" x \" ] ,\"b\":\"\u00a0\" } "})
		got := s.poll(t, b, `{"consumer_id":"a","timeout":0}`)
		if want := "{\"a\":[1,{},\" x \"],\"b\":\"\u00a0\"}"; got.Updates[0].payload != want {
			t.Errorf("got %q, want %q", got.Updates[0].payload, want)
		}
		if n := s.info(t, b).PendingBytes; n != int64(len("{\"a\":[1,{},\" x \"],\"b\":\"\u00a0\"}")) {
			t.Errorf("Q-02 got pending_bytes %d, want the bytes as stored", n)
		}
	})
	t.Run("U-01 the payload's field is named by the type, known or not", func(t *testing.T) {
		t.Parallel()
		b := w.bot(t)
		kinds := []string{"message", "message_edited", "message_deleted", "callback_query", "chat_access_changed", "file_status_changed",
			"poll_closed", "X", "тип", "a b", `a"b\c`, "<b>&", "😀", "\u2028", "updates", "ok", "payload", strings.Repeat("t", 64), "$1", "null"}
		var events []event
		for i, kind := range kinds {
			events = append(events, event{bot: b, kind: kind, payload: fmt.Sprintf(`{"n":%d}`, i)})
		}
		events = s.write(t, events...)
		got := s.poll(t, b, `{"consumer_id":"a","timeout":0}`)
		if len(got.Updates) != len(kinds) {
			t.Fatalf("got %s, want %d updates", got.outline(), len(kinds))
		}
		for i, u := range got.Updates {
			if u.Type != kinds[i] || u.payload != fmt.Sprintf(`{"n":%d}`, i) || u.EventID != events[i].id || u.Date != "2026-09-26T10:00:00Z" || u.ReplayOf != "" {
				t.Errorf("got %s, want type %q with payload %d", u.raw, kinds[i], i)
			}
		}
	})
	t.Run("U-02 update_id grows from 1 in each bot", func(t *testing.T) {
		t.Parallel()
		one, two := w.bot(t), w.bot(t)
		s.write(t, event{bot: one}, event{bot: two}, event{bot: one}, event{bot: two}, event{bot: two})
		for b, want := range map[*bot]string{one: "1 2 | | 1..3", two: "1 2 3 | | 1..4"} {
			if got := s.poll(t, b, `{"consumer_id":"a","timeout":0}`).outline(); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	})
	t.Run("U-04 P-12 a redelivery has the same bytes, over leases too", func(t *testing.T) {
		t.Parallel()
		b := w.bot(t)
		s.write(t, some(b, 3)...)
		first := s.poll(t, b, `{"consumer_id":"a","timeout":0,"limit":2}`)
		again := s.poll(t, b, fmt.Sprintf(`{"consumer_id":"a","epoch":"%s","timeout":0}`, first.Lease.Epoch))
		if again.outline() != "1 2 3 | | 1..4" || again.Updates[0].raw != first.Updates[0].raw || again.Updates[1].raw != first.Updates[1].raw {
			t.Errorf("got %s and then %s", first.outline(), again.outline())
		}
	})
	t.Run("I-01 U-03 nesting that is too deep harms its own event only", func(t *testing.T) {
		t.Parallel()
		for _, depth := range []int{2000, 4990, 6000, 40000} {
			b := w.bot(t)
			payload := `{"a":` + deep(depth) + `}`
			results := s.writeRaw(t, event{bot: b, payload: payload}.filled().json(), event{bot: b}.filled().json())
			if results[1].Error != nil {
				t.Errorf("depth %d: got %v for the event beside it", depth, results[1])
			}
			got := s.poll(t, b, `{"consumer_id":"a","timeout":0}`)
			if results[0].Error == nil && got.Updates[0].payload != payload {
				t.Errorf("depth %d: the payload was taken and changed", depth)
			}
		}
	})
}
