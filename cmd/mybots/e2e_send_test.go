package main_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestSend(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve(t)
	var keys int
	key := func() string { keys++; return fmt.Sprintf("Idempotency-Key: k%d", keys) }

	t.Run("I-06 sendMessage gives the message back", func(t *testing.T) {
		b := s.chatting(t)
		m := decode[message](t, s.ok(t, b, "sendMessage", `{"chat_id":"550","text":"Привет <b>&\" 😀\u2028\n","reply_to_message_id":"7301","buttons":[[{"text":"Да","data":"y"},{"text":"No","data":"n"}],[{"text":"?","data":"{}"}]]}`, key()))
		if m.Chat.ID != "550" || m.Chat.Type != "private" || m.From.ID != b.id || m.From.Username != b.name || !m.From.IsBot || m.Text != "Привет <b>&\" 😀\u2028\n" || m.ReplyTo != "7301" {
			t.Errorf("got %+v", m)
		}
		if len(m.Buttons) != 2 || len(m.Buttons[0]) != 2 || m.Buttons[0][0].Text != "Да" || m.Buttons[1][0].Data != "{}" {
			t.Errorf("got the buttons %+v", m.Buttons)
		}
		if n, err := number(m.MessageID); err != nil || n < 1 {
			t.Errorf("got message_id %q", m.MessageID)
		}
	})
	t.Run("I-06 CHAT_NOT_FOUND for a chat that hasn't written to this bot", func(t *testing.T) {
		b, stranger := s.chatting(t), w.bot(t)
		s.refused(t, "CHAT_NOT_FOUND", b, "sendMessage", `{"chat_id":"551","text":"x"}`, key())
		s.refused(t, "CHAT_NOT_FOUND", b, "sendMessage", `{"chat_id":"0","text":"x"}`, key())
		s.refused(t, "CHAT_NOT_FOUND", b, "sendMessage", `{"chat_id":"9223372036854775807","text":"x"}`, key())
		s.refused(t, "CHAT_NOT_FOUND", stranger, "sendMessage", `{"chat_id":"550","text":"x"}`, key())
	})
	t.Run("I-06 the text is 1 to 4096 characters", func(t *testing.T) {
		b := s.chatting(t)
		for _, text := range []string{"x", strings.Repeat("a", 4096), strings.Repeat("😀", 4096), " "} {
			if m := decode[message](t, s.ok(t, b, "sendMessage", `{"chat_id":"550","text":"`+text+`"}`, key())); m.Text != text {
				t.Errorf("got %.20q of %d bytes, want %.20q of %d", m.Text, len(m.Text), text, len(text))
			}
		}
		for _, text := range []string{`""`, `"` + strings.Repeat("a", 4097) + `"`, `"` + strings.Repeat("😀", 4097) + `"`, `null`, `5`, `"a\u0000b"`} {
			if a := s.refused(t, "INVALID_REQUEST", b, "sendMessage", `{"chat_id":"550","text":`+text+`}`, key()); !strings.Contains(a.message, "text") {
				t.Errorf("text %.20s: got %q, want it named", text, a.message)
			}
		}
		if a := s.refused(t, "INVALID_REQUEST", b, "sendMessage", `{"chat_id":"550"}`, key()); !strings.Contains(a.message, "text") {
			t.Errorf("got %q", a.message)
		}
	})
	t.Run("I-06 buttons that aren't buttons are refused", func(t *testing.T) {
		b := s.chatting(t)
		for _, buttons := range []string{`5`, `"x"`, `{}`, `[5]`, `[[]]`, `[[5]]`, `[[{}]]`, `[[{"text":"","data":"x"}]]`, `[[{"text":"x","data":""}]]`, `[[{"text":"x"}]]`, `[[{"text":5,"data":"x"}]]`,
			`[[{"text":"x","data":"a\u0000"}]]`, `[[{"text":"` + strings.Repeat("x", 5000) + `","data":"x"}]]`, `[` + strings.Repeat(`[{"text":"x","data":"x"}],`, 100) + `[{"text":"x","data":"x"}]]`} {
			if a := s.refused(t, "INVALID_REQUEST", b, "sendMessage", `{"chat_id":"550","text":"x","buttons":`+buttons+`}`, key()); !strings.Contains(a.message, "buttons") {
				t.Errorf("buttons %.40s: got %q, want them named", buttons, a.message)
			}
		}
	})
	t.Run("I-06 answerCallbackQuery answers a press that came to this bot", func(t *testing.T) {
		b, stranger := s.chatting(t), s.chatting(t)
		m := decode[message](t, s.ok(t, b, "sendMessage", `{"chat_id":"550","text":"Really?","buttons":[[{"text":"Yes","data":"y"}]]}`, key()))
		press := func(field, id string) event {
			return event{bot: b, kind: "callback_query", chat: "550", message: m.MessageID,
				payload: fmt.Sprintf(`{"%s":"%s","from":{"id":"812"},"message":{"message_id":"%s","chat":{"id":"550"}},"data":"y"}`, field, id, m.MessageID)}
		}
		s.write(t, press("callback_query_id", "cb-1"), press("callback_query_id", `é\"😀`))
		body := `{"callback_query_id":"cb-1","text":"Thanks"}`
		s.refused(t, "IDEMPOTENCY_KEY_REQUIRED", b, "answerCallbackQuery", body)
		a, again := s.replayed(t, b, "answerCallbackQuery", body, "answer")
		stored, repeated := s.replayed(t, b, "answerCallbackQuery", body, "answer")
		if again || !repeated || string(stored.result) != string(a.result) {
			t.Errorf("got %s and %s, replayed %v and %v", a.result, stored.result, again, repeated)
		}
		if !strings.Contains(string(a.result), `"Really?"`) {
			t.Errorf("got %s, want the message given back", a.result)
		}
		s.ok(t, b, "answerCallbackQuery", `{"callback_query_id":"é\"😀"}`, key())
		for _, c := range []struct {
			b  *bot
			id string
		}{{stranger, "cb-1"}, {b, "cb-2"}, {b, "CB-1"}} {
			if a := s.call(t, c.b, "answerCallbackQuery", `{"callback_query_id":"`+c.id+`"}`, key()); a.status != 404 {
				t.Errorf("%s: got %d %s, want 404", c.id, a.status, a.code)
			}
		}
		for _, bad := range []string{`{}`, `{"callback_query_id":""}`, `{"callback_query_id":"` + strings.Repeat("x", 5000) + `"}`, `{"callback_query_id":"a\u0000"}`, `{"callback_query_id":"cb-1","text":5}`,
			`{"callback_query_id":"cb-1","text":"` + strings.Repeat("x", 5000) + `"}`} {
			s.refused(t, "INVALID_REQUEST", b, "answerCallbackQuery", bad, key())
		}
	})
	t.Run("I-05 what chat_access_changed says passes through, whatever its shape", func(t *testing.T) {
		b := w.bot(t)
		payloads := []string{`{"chat":{"id":"5"},"access":"stopped"}`, `{"chat":{"id":"5"},"access":"allowed"}`, `{"chat":{"id":"5"},"access":"blocked"}`, `{"chat":{"id":"5"},"access":"left"}`,
			`{"chat":{"id":5},"access":"stopped"}`, `{"chat":{"id":"x"},"access":"stopped"}`, `{"chat":[],"access":7}`, `{"access":"new"}`, `{}`, `{"chat":{"id":"99999999999999999999"},"access":"left"}`}
		var events []event
		for _, p := range payloads {
			events = append(events, event{bot: b, kind: "chat_access_changed", payload: p})
		}
		s.write(t, events...)
		got := s.poll(t, b, at("a", "", "", now))
		for i, u := range got.Updates {
			if u.payload != payloads[i] {
				t.Errorf("got %s, want %s", u.payload, payloads[i])
			}
		}
		if len(got.Updates) != len(payloads) {
			t.Errorf("got %s", got.outline())
		}
		s.ok(t, b, "sendMessage", `{"chat_id":"5","text":"x"}`, key()) // an event named the chat
	})
	t.Run("A-02 the ids that are given are accepted back as they are", func(t *testing.T) {
		b := s.chatting(t)
		m := decode[message](t, s.ok(t, b, "sendMessage", `{"chat_id":"550","text":"x"}`, key()))
		reply, err := json.Marshal(map[string]string{"chat_id": m.Chat.ID, "text": "y", "reply_to_message_id": m.MessageID})
		if err != nil {
			t.Fatal(err)
		}
		s.ok(t, b, "sendMessage", string(reply), key())
	})
}
