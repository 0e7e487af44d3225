package main_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestEnvelope(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve(t)
	b := w.bot(t)

	t.Run("A-01 success has ok and result, failure has code, message and request_id", func(t *testing.T) {
		t.Parallel()
		a := s.call(t, b, "getMe", "{}")
		if want := `{"ok":true,"result":{`; !strings.HasPrefix(string(a.body), want) {
			t.Errorf("got %s, want it to begin with %s", a.body, want)
		}
		again := s.call(t, b, "getMe", "{}")
		if a.header.Get("X-Request-Id") == again.header.Get("X-Request-Id") {
			t.Error("two calls have one X-Request-Id")
		}
		s.refused(t, "METHOD_NOT_FOUND", b, "getNothing", "{}")
	})
	t.Run("A-01 an empty body counts as an empty object", func(t *testing.T) {
		t.Parallel()
		for _, headers := range [][]string{nil, {"Content-Type:"}} {
			s.ok(t, b, "getMe", "", headers...)
		}
		if a := s.refused(t, "INVALID_REQUEST", b, "getUpdates", ""); !strings.Contains(a.message, "consumer_id") {
			t.Errorf("got %q, want the missing field named", a.message)
		}
	})
	t.Run("A-02 ids are strings in answers", func(t *testing.T) {
		t.Parallel()
		me := decode[struct {
			ID          string `json:"id"`
			Username    string `json:"username"`
			DisplayName string `json:"display_name"`
			IsBot       bool   `json:"is_bot"`
		}](t, s.ok(t, b, "getMe", "{}"))
		if me.ID != b.id || me.Username != b.name || me.DisplayName != "Bot "+b.name || !me.IsBot {
			t.Errorf("getMe gave %+v for bot %s @%s", me, b.id, b.name)
		}
	})

	t.Run("A-01 A-08 errors of the HTTP layer are JSON too", func(t *testing.T) {
		t.Parallel()
		for _, method := range []string{"GET", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE", "PROPFIND"} {
			for _, path := range []string{"/bot-api/v1/getMe", "/bot-api/v1/nothing", "/bot-api/v1/", "/internal/v1/events"} {
				a, err := s.send(s.request(method, path, b.token, ""))
				if err != nil {
					t.Error(err)
					continue
				}
				if a.status != http.StatusMethodNotAllowed || a.header.Get("Allow") != "POST" {
					t.Errorf("%s %s: got %d with Allow %q, want 405 with POST", method, path, a.status, a.header.Get("Allow"))
				}
			}
		}
		for _, path := range []string{"/bot-api/v1/", "/bot-api/v1/getme", "/bot-api/v1/getMe/", "/bot-api/v1/getMe/x", "/bot-api/v2/getMe",
			"/bot-api/v1//getMe", "/bot-api//v1/getMe", "/bot-api/v1/./getMe", "/bot-api/v1/../v1/getMe", "/bot-api/v1/%2e%2e/getMe", "/bot-api/v1/getMe%00", "/bot-api/", "/bot-api"} {
			a, err := s.send(s.request("POST", path, b.token, "{}"))
			if err != nil {
				t.Error(err)
				continue
			}
			if a.code != "METHOD_NOT_FOUND" {
				t.Errorf("POST %s: got %d %s, want 404 METHOD_NOT_FOUND", path, a.status, a.code)
			}
		}
	})
	t.Run("A-09 the methods are these", func(t *testing.T) {
		t.Parallel()
		for _, method := range []string{"getMe", "getUpdates", "rejectUpdate", "getDeliveryInfo", "getWebhookInfo", "sendMessage", "answerCallbackQuery"} {
			if a := s.call(t, b, method, "{}"); a.code != "" && a.code != "INVALID_REQUEST" && a.code != "IDEMPOTENCY_KEY_REQUIRED" {
				t.Errorf("%s: got %q", method, a.code)
			}
		}
		for _, method := range []string{"getupdates", "GetMe", "setWebhook", "deleteWebhook", "close", "logOut"} {
			s.refused(t, "METHOD_NOT_FOUND", b, method, "{}")
		}
	})
	t.Run("A-01 a query string changes nothing", func(t *testing.T) {
		t.Parallel()
		s.ok(t, b, "getMe?x=1&consumer_id=a", "{}")
		s.refused(t, "INVALID_REQUEST", b, "getUpdates?consumer_id=a", "{}")
	})

	t.Run("A-02 unknown fields are ignored", func(t *testing.T) {
		t.Parallel()
		s.ok(t, b, "getMe", `{"x":1,"y":{"deep":[null,"1",{}]},"":true,"token":"z","offset":17}`)
		s.ok(t, b, "getDeliveryInfo", `{"consumer_id":5}`)
	})
	t.Run("A-02 null counts as absent", func(t *testing.T) {
		t.Parallel()
		b := w.bot(t)
		got := s.poll(t, b, `{"consumer_id":"a","epoch":null,"offset":null,"timeout":0,"limit":null}`)
		if got.outline() != "| | 1..1" {
			t.Errorf("got %s", got.outline())
		}
		if a := s.refused(t, "INVALID_REQUEST", b, "getUpdates", `{"consumer_id":null}`); !strings.Contains(a.message, "consumer_id") {
			t.Errorf("got %q, want consumer_id named", a.message)
		}
		s.refused(t, "CHAT_NOT_FOUND", b, "sendMessage", `{"chat_id":"5","text":"x","reply_to_message_id":null,"buttons":null}`, "Idempotency-Key: n")
	})
	t.Run("A-02 a number where a string belongs is refused and names the field", func(t *testing.T) {
		t.Parallel()
		key := "Idempotency-Key: k"
		for _, c := range []struct{ method, field, body string }{
			{"getUpdates", "consumer_id", `{"consumer_id":5}`},
			{"getUpdates", "epoch", `{"consumer_id":"a","epoch":7}`},
			{"getUpdates", "offset", `{"consumer_id":"a","offset":1}`},
			{"getUpdates", "offset", `{"consumer_id":"a","offset":1.0}`},
			{"getUpdates", "offset", `{"consumer_id":"a","offset":["1"]}`},
			{"getUpdates", "offset", `{"consumer_id":"a","offset":false}`},
			{"getUpdates", "timeout", `{"consumer_id":"a","timeout":"5"}`},
			{"rejectUpdate", "update_id", `{"update_id":1,"reason":"r","consumer_id":"a","epoch":"1"}`},
			{"rejectUpdate", "epoch", `{"update_id":"1","reason":"r","consumer_id":"a","epoch":1}`},
			{"rejectUpdate", "reason", `{"update_id":"1","reason":5,"consumer_id":"a","epoch":"1"}`},
			{"sendMessage", "chat_id", `{"chat_id":5,"text":"x"}`},
			{"sendMessage", "text", `{"chat_id":"5","text":5}`},
			{"sendMessage", "reply_to_message_id", `{"chat_id":"5","text":"x","reply_to_message_id":5}`},
			{"answerCallbackQuery", "callback_query_id", `{"callback_query_id":5}`},
		} {
			if a := s.refused(t, "INVALID_REQUEST", b, c.method, c.body, key); !strings.Contains(a.message, c.field) {
				t.Errorf("%s %s: got %q, want %s named", c.method, c.body, a.message, c.field)
			}
		}
	})
	t.Run("A-04 an id is decimal digits up to 2^63-1", func(t *testing.T) {
		t.Parallel()
		b := w.bot(t)
		for _, id := range []string{"", "+1", "-1", "-0", "01", "00", "1.0", "1e3", " 1", "1 ", "1\\n", "1_000", "0x10", "٣", "１", "one",
			"9223372036854775808", "18446744073709551617", "92233720368547758070", strings.Repeat("9", 4000)} {
			for _, field := range []string{"offset", "epoch"} {
				a := s.refused(t, "INVALID_REQUEST", b, "getUpdates", `{"consumer_id":"a","timeout":0,"`+field+`":"`+id+`"}`)
				if !strings.Contains(a.message, field) || len(a.message) > 400 {
					t.Errorf("%s %.30q: got %.500q, want the field named, in short", field, id, a.message)
				}
			}
		}
		lease := s.poll(t, b, `{"consumer_id":"a","timeout":0}`).Lease
		at := func(offset string) string {
			return `{"consumer_id":"a","epoch":"` + lease.Epoch + `","timeout":0,"offset":"` + offset + `"}`
		}
		s.pollFails(t, "OFFSET_NOT_ISSUED", b, at("9223372036854775807"))
		s.pollFails(t, "CURSOR_BEHIND", b, at("0"))
		s.poll(t, b, at("1"))
	})
}
