package main_test

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

func TestFewConnections(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve(t, "MYBOTS_DB_CONNS=4")
	const n = 25
	bots := make([]*bot, n)
	var adding sync.WaitGroup
	for i := range 5 {
		adding.Go(func() {
			for k := i; k < n; k += 5 {
				bots[k] = w.bot(t)
			}
		})
	}
	if adding.Wait(); t.Failed() {
		return
	}
	t.Run("P-02 P-09 polls that wait hold no connection to the database", func(t *testing.T) {
		var polls []<-chan ended
		for _, b := range bots {
			polls = append(polls, s.waiting(t, b, at("a", "", "", `,"timeout":20`)))
		}
		busy := s.chatting(t)
		began := time.Now()
		for range 10 {
			s.ok(t, busy, "getMe", "{}")
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("with %d polls waiting, 10 calls took %v", n, took)
		}
		var events []event
		for _, b := range bots {
			events = append(events, event{bot: b})
		}
		s.write(t, events...) // all at once
		for _, p := range polls {
			receive(t, 5*time.Second, "a waiting poll ends", p).gave(t, "1 | | 1..2")
		}
	})
	t.Run("A-07 many more calls than connections wait for each other and all succeed", func(t *testing.T) {
		b := s.chatting(t)
		for name, e := range s.everyCall(b, 20) {
			if e.err != nil || e.status >= 500 || e.took > 10*time.Second {
				t.Errorf("%s: got %q %v after %v", name, e.code, e.err, e.took)
			}
		}
	})
	t.Run("I-06 U-02 the greatest ids work everywhere", func(t *testing.T) {
		b := w.bot(t)
		const most = "9223372036854775807"
		s.write(t, event{bot: b, chat: most, message: most, payload: fmt.Sprintf(`{"chat":{"id":"%s"}}`, most)})
		m := decode[message](t, s.ok(t, b, "sendMessage", `{"chat_id":"`+most+`","text":"x","reply_to_message_id":"`+most+`"}`, "Idempotency-Key: k"))
		if m.Chat.ID != most || m.ReplyTo != most {
			t.Errorf("got %+v", m)
		}
	})
}
