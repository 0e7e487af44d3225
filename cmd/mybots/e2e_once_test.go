package main_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// message is a message as sendMessage gives it back.
type message struct {
	MessageID string `json:"message_id"`
	Chat      struct {
		ID   string `json:"id"`
		Type string `json:"type"`
	} `json:"chat"`
	From struct {
		ID          string `json:"id"`
		DisplayName string `json:"display_name"`
		Username    string `json:"username"`
		IsBot       bool   `json:"is_bot"`
	} `json:"from"`
	Date    string `json:"date"`
	Text    string `json:"text"`
	ReplyTo string `json:"reply_to_message_id"`
	Buttons [][]struct {
		Text string `json:"text"`
		Data string `json:"data"`
	} `json:"buttons"`
}

// chatting adds a bot to which chat 550 has written.
func (s *server) chatting(t testing.TB) *bot {
	t.Helper()
	b := s.w.bot(t)
	s.write(t, event{bot: b, chat: "550", message: "1"})
	return b
}

// messageID is the id of the message that sendMessage gave back.
func messageID(t testing.TB, a answer) int64 {
	t.Helper()
	id, err := number(decode[message](t, a.result).MessageID)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func sent(a answer) (replayed bool, err error) {
	switch v := a.header.Values("Idempotent-Replayed"); {
	case len(v) == 0:
		return false, nil
	case len(v) == 1 && v[0] == "true":
		return true, nil
	default:
		return false, fmt.Errorf("A-06: got Idempotent-Replayed %q", v)
	}
}

// replayed calls a method that must succeed, and tells whether the answer was stored.
func (s *server) replayed(t testing.TB, b *bot, method, body, key string) (answer, bool) {
	t.Helper()
	a := s.call(t, b, method, body, "Idempotency-Key: "+key)
	again, err := sent(a)
	if a.code != "" || err != nil {
		t.Fatalf("%s %s with key %.40q: got %s (%s) %v", method, body, key, a.code, a.message, err)
	}
	return a, again
}

func TestIdempotency(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, other := w.serve(t), w.serve(t)

	t.Run("A-06 a repeat gives the stored answer and does nothing", func(t *testing.T) {
		t.Parallel()
		b := s.chatting(t)
		const body = `{"chat_id":"550","text":"Hé"}`
		first, again := s.replayed(t, b, "sendMessage", body, "k")
		if again {
			t.Error("the first call says Idempotent-Replayed")
		}
		// The same field values, written otherwise, are the same call.
		for _, same := range []string{body, `{ "text": "H\u00e9" , "chat_id": "550" }`, `{"chat_id":"550","text":"Hé","reply_to_message_id":null,"buttons":null,"new":1}`} {
			for _, s := range []*server{s, other} {
				a, again := s.replayed(t, b, "sendMessage", same, "k")
				if !again || string(a.result) != string(first.result) {
					t.Errorf("%s: got %s (replayed %v), want the stored %s", same, a.result, again, first.result)
				}
			}
		}
		next, _ := s.replayed(t, b, "sendMessage", body, "k2")
		if one, two := messageID(t, first), messageID(t, next); two != one+1 {
			t.Errorf("got message ids %d and %d: repeats wrote messages", one, two)
		}
	})
	t.Run("A-06 of equal calls that race one does it and all get its answer", func(t *testing.T) {
		t.Parallel()
		b := s.chatting(t)
		before, _ := s.replayed(t, b, "sendMessage", `{"chat_id":"550","text":"before"}`, "before")
		last := messageID(t, before)
		for round := range 5 {
			var wg sync.WaitGroup
			answers, errs := make([]answer, 8), make([]error, 8)
			for i := range answers {
				wg.Go(func() {
					answers[i], errs[i] = []*server{s, other}[i%2].try(b, "sendMessage", `{"chat_id":"550","text":"race"}`, fmt.Sprintf("Idempotency-Key: race-%d", round))
				})
			}
			wg.Wait()
			fresh := 0
			for i, a := range answers {
				again, err := sent(a)
				if errs[i] != nil || err != nil || a.code != "" || string(a.result) != string(answers[0].result) {
					t.Fatalf("call %d of round %d: got %s %s %v %v, want %s", i, round, a.code, a.result, errs[i], err, answers[0].result)
				}
				if !again {
					fresh++
				}
			}
			if last++; fresh != 1 || messageID(t, answers[0]) != last {
				t.Errorf("round %d: got %d answers that aren't stored ones and message %d, want 1 and %d", round, fresh, messageID(t, answers[0]), last)
			}
		}
	})
	t.Run("A-06 of other calls that race with one key one succeeds", func(t *testing.T) {
		t.Parallel()
		b := s.chatting(t)
		var wg sync.WaitGroup
		codes := make([]string, 8)
		for i := range codes {
			wg.Go(func() {
				a, err := []*server{s, other}[i%2].try(b, "sendMessage", fmt.Sprintf(`{"chat_id":"550","text":"race %d"}`, i), "Idempotency-Key: same")
				if codes[i] = a.code; err != nil {
					codes[i] = err.Error()
				}
			})
		}
		wg.Wait()
		count := map[string]int{}
		for _, c := range codes {
			count[c]++
		}
		if count[""] != 1 || count["IDEMPOTENCY_KEY_REUSED"] != 7 {
			t.Errorf("got %v, want one success and 7 IDEMPOTENCY_KEY_REUSED", count)
		}
	})
	t.Run("A-06 a key that was used for another call is refused", func(t *testing.T) {
		t.Parallel()
		b := s.chatting(t)
		s.replayed(t, b, "sendMessage", `{"chat_id":"550","text":"x"}`, "k")
		for _, body := range []string{`{"chat_id":"550","text":"y"}`, `{"chat_id":"550","text":"x "}`, `{"chat_id":"551","text":"x"}`, `{"chat_id":"550","text":"x","reply_to_message_id":"1"}`,
			`{"chat_id":"550","text":"x","buttons":[[{"text":"a","data":"b"}]]}`} {
			s.refused(t, "IDEMPOTENCY_KEY_REUSED", b, "sendMessage", body, "Idempotency-Key: k")
		}
		s.refused(t, "IDEMPOTENCY_KEY_REUSED", b, "answerCallbackQuery", `{"callback_query_id":"550","text":"x"}`, "Idempotency-Key: k")
		s.refused(t, "IDEMPOTENCY_KEY_REUSED", b, "rejectUpdate", `{"update_id":"1","reason":"x","consumer_id":"a","epoch":"1"}`, "Idempotency-Key: k")
		stranger := s.chatting(t)
		if _, again := s.replayed(t, stranger, "sendMessage", `{"chat_id":"550","text":"y"}`, "k"); again {
			t.Error("another bot's key gave a stored answer")
		}
	})
	t.Run("A-06 only successes are stored", func(t *testing.T) {
		t.Parallel()
		b := w.bot(t)
		const body = `{"chat_id":"77","text":"x"}`
		s.refused(t, "CHAT_NOT_FOUND", b, "sendMessage", body, "Idempotency-Key: k")
		s.refused(t, "CHAT_NOT_FOUND", b, "sendMessage", `{"chat_id":"78","text":"x"}`, "Idempotency-Key: k")
		s.write(t, event{bot: b, chat: "77"})
		if _, again := s.replayed(t, b, "sendMessage", body, "k"); again {
			t.Error("a refusal was stored")
		}
	})
	t.Run("A-06 a key is 1 to 255 visible ASCII characters, where one is needed", func(t *testing.T) {
		t.Parallel()
		b := s.chatting(t)
		calls := map[string]string{
			"sendMessage":         `{"chat_id":"550","text":"x"}`,
			"answerCallbackQuery": `{"callback_query_id":"1"}`,
			"rejectUpdate":        `{"update_id":"1","reason":"r","consumer_id":"a","epoch":"1"}`,
		}
		for method, body := range calls {
			s.refused(t, "IDEMPOTENCY_KEY_REQUIRED", b, method, body)
			for _, key := range []string{strings.Repeat("k", 256), "a b", "a\tb", "é", "a\u00a0b", strings.Repeat("k", 5000)} {
				s.refused(t, "INVALID_REQUEST", b, method, body, "Idempotency-Key: "+key)
			}
		}
		for _, key := range []string{"k", strings.Repeat("k", 255), "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"} {
			s.replayed(t, b, "sendMessage", calls["sendMessage"], key)
		}
		for _, key := range []string{"k", "é", strings.Repeat("k", 300)} { // ignored
			s.ok(t, b, "getMe", "{}", "Idempotency-Key: "+key)
			s.ok(t, b, "getDeliveryInfo", "{}", "Idempotency-Key: "+key)
			if a := s.call(t, b, "getMe", "{}", "Idempotency-Key: "+key); a.header.Get("Idempotent-Replayed") != "" {
				t.Error("getMe gave a stored answer")
			}
		}
	})
	t.Run("A-06 an empty key is none or a bad one", func(t *testing.T) {
		t.Parallel()
		b := s.chatting(t)
		req := s.request(http.MethodPost, "/bot-api/v1/sendMessage", b.token, `{"chat_id":"550","text":"x"}`)
		req.Header["Idempotency-Key"] = []string{""}
		a, err := s.send(req)
		if err != nil || a.code != "IDEMPOTENCY_KEY_REQUIRED" && a.code != "INVALID_REQUEST" {
			t.Errorf("got %q %v, want a refusal", a.code, err)
		}
	})
}

func TestIdempotencyTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testClock)
	s := w.serve(t)
	t.Run("A-06 a key is kept for 7 days", func(t *testing.T) {
		b := s.chatting(t)
		const body = `{"chat_id":"550","text":"x"}`
		first, _ := s.replayed(t, b, "sendMessage", body, "k")
		for range 7 { // a day at a time, over the turn of a week
			s.advance(t, 24*time.Hour-time.Minute)
			if a, again := s.replayed(t, b, "sendMessage", body, "k"); !again || string(a.result) != string(first.result) {
				t.Fatalf("within 7 days: got %s, replayed %v", a.result, again)
			}
			s.refused(t, "IDEMPOTENCY_KEY_REUSED", b, "sendMessage", `{"chat_id":"550","text":"y"}`, "Idempotency-Key: k")
		}
		s.advance(t, 8*time.Minute)
		a, again := s.replayed(t, b, "sendMessage", `{"chat_id":"550","text":"y"}`, "k")
		if again || messageID(t, a) != messageID(t, first)+1 {
			t.Errorf("after 7 days: got %s, replayed %v, want a new message", a.result, again)
		}
	})
	t.Run("A-06 a stored answer comes before the lease is looked at", func(t *testing.T) {
		b := w.bot(t)
		s.write(t, some(b, 2)...)
		lease := s.poll(t, b, `{"consumer_id":"a","timeout":0}`).Lease
		body := fmt.Sprintf(`{"update_id":"1","reason":"bad","consumer_id":"a","epoch":"%s"}`, lease.Epoch)
		first, _ := s.replayed(t, b, "rejectUpdate", body, "k")
		s.advance(t, 2*time.Minute)
		s.poll(t, b, `{"consumer_id":"b","timeout":0}`)
		if a, again := s.replayed(t, b, "rejectUpdate", body, "k"); !again || string(a.result) != string(first.result) {
			t.Errorf("got %s, replayed %v, want the stored %s", a.result, again, first.result)
		}
		s.refused(t, "CONSUMER_CONFLICT", b, "rejectUpdate", body, "Idempotency-Key: k2")
	})
}
