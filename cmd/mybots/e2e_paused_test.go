package main_test

import (
	"fmt"
	"net/url"
	"testing"
	"time"
)

func TestPaused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testClock)
	s, other := w.serve(t), w.serve(t)
	o := s.signIn(t)
	pause := func(t *testing.T, b *bot, word string) {
		t.Helper()
		o.act(t, b, "pause", "paused", word)
	}

	t.Run("P-16 M-07 a pause ends the waiting poll, in every replica; the epoch stays the last", func(t *testing.T) {
		for _, poller := range []*server{s, other} {
			b := w.bot(t)
			s.write(t, some(b, 2)...)
			epoch := s.poll(t, b, at("a", "", "", now)).Lease.Epoch
			done := poller.waiting(t, b, at("a", epoch, "3", `,"timeout":25`))
			pause(t, b, "on")
			if e := receive(t, 3*time.Second, "the poll ends", done); e.err != nil || e.code != "BOT_PAUSED" {
				t.Errorf("got %q %v, want BOT_PAUSED", e.code, e.err)
			}
			poller.pollFails(t, "BOT_PAUSED", b, at("a", epoch, "3", now))
			if lease := s.info(t, b).Lease; lease == nil || lease.Waiting || lease.ExpiresAt.After(w.now().Add(61*time.Second)) {
				t.Errorf("got the lease %+v, want it to end 60 s after the poll's answer", lease)
			}
			s.advance(t, 30*time.Second)
			poller.pollFails(t, "BOT_PAUSED", b, at("a", epoch, "3", now))
			pause(t, b, "off")
			other.follows(t)
			if got := s.poll(t, b, at("a", epoch, "3", now)); got.Lease.Epoch != epoch || got.outline() != "| | 3..3" {
				t.Errorf("got %s in epoch %s, want epoch %s", got.outline(), got.Lease.Epoch, epoch)
			}
		}
	})
	t.Run("M-07 while paused intake answers BOT_PAUSED and what waits keeps waiting", func(t *testing.T) {
		b, beside := w.bot(t), w.bot(t)
		known := s.write(t, some(b, 3)...)[0]
		pause(t, b, "on")
		e := func(b *bot) string { return event{bot: b}.filled().json() }
		for _, r := range []*server{s, other} {
			if got := fmt.Sprint(r.writeRaw(t, e(b), known.json())); got != "[BOT_PAUSED 1 again]" {
				t.Errorf("got %s, want BOT_PAUSED, and I-03 the duplicate known", got)
			}
		}
		if got := fmt.Sprint(s.writeRaw(t, e(b), e(beside), e(b))); got != "[BOT_PAUSED 1 BOT_PAUSED]" {
			t.Errorf("got %s", got)
		}
		if i := s.info(t, b); i.Pending != 3 {
			t.Errorf("got %d pending, want 3", i.Pending)
		}
		s.ok(t, b, "getMe", "{}")
		pause(t, b, "off")
		if got := s.poll(t, b, at("a", "", "", now)); got.outline() != "1 2 3 | | 1..4" {
			t.Errorf("got %s", got.outline())
		}
		s.write(t, event{bot: b})
	})
	t.Run("A-06 a stored answer comes before the bot's state is looked at", func(t *testing.T) {
		b := s.chatting(t)
		lease := s.poll(t, b, at("a", "", "", now)).Lease
		sendBody, rejectBody := `{"chat_id":"550","text":"x"}`, rejection("1", "r", "a", lease.Epoch)
		sent, _ := s.replayed(t, b, "sendMessage", sendBody, "send")
		rejected, _ := s.replayed(t, b, "rejectUpdate", rejectBody, "reject")
		pause(t, b, "on")
		for method, c := range map[string]struct{ body, key, want string }{
			"sendMessage":  {sendBody, "send", string(sent.result)},
			"rejectUpdate": {rejectBody, "reject", string(rejected.result)},
		} {
			if a, again := other.replayed(t, b, method, c.body, c.key); !again || string(a.result) != c.want {
				t.Errorf("%s: got %s, replayed %v, want the stored answer", method, a.result, again)
			}
			s.refused(t, "BOT_PAUSED", b, method, c.body, "Idempotency-Key: new")
			s.refused(t, "IDEMPOTENCY_KEY_REQUIRED", b, method, c.body)
		}
		s.refused(t, "INVALID_REQUEST", b, "sendMessage", `{"chat_id":"550"}`, "Idempotency-Key: new")
		s.refused(t, "IDEMPOTENCY_KEY_REUSED", b, "sendMessage", `{"chat_id":"550","text":"y"}`, "Idempotency-Key: send")
	})
	t.Run("A-04 the bot's state comes before the lease, 400 and 429 before the state", func(t *testing.T) {
		b := w.bot(t)
		s.poll(t, b, at("a", "", "", now))
		pause(t, b, "on")
		s.pollFails(t, "BOT_PAUSED", b, at("b", "99", "99", now))
		s.pollFails(t, "INVALID_REQUEST", b, at("b", "99", "099", now))
		s.refused(t, "BOT_PAUSED", b, "rejectUpdate", rejection("1", "r", "b", "99"), "Idempotency-Key: k")
		s.refused(t, "BOT_PAUSED", b, "sendMessage", `{"chat_id":"404","text":"x"}`, "Idempotency-Key: k")
		eventually(t, patience, "the bucket of a paused bot runs dry too", func() bool {
			return s.call(t, b, "getUpdates", at("b", "", "", now)).code == "RATE_LIMITED"
		})
	})
	t.Run("M-09 a deleted bot's token dies at once and its waiting poll ends with 401", func(t *testing.T) {
		for _, poller := range []*server{s, other} {
			b := w.bot(t)
			s.write(t, some(b, 2)...)
			got := s.poll(t, b, at("a", "", "", now))
			s.reject(t, b, "1", "a", got.Lease.Epoch)
			done := poller.waiting(t, b, at("a", got.Lease.Epoch, "3", `,"timeout":25`))
			status, _, _ := o.post(t, "/bots/"+b.id+"/delete", url.Values{"username": {"another_bot"}})
			if status < 400 || status > 499 {
				t.Errorf("with another username: got %d, want a refusal", status)
			}
			still(t, "the poll", done)
			o.act(t, b, "delete", "username", b.name)
			if e := receive(t, 3*time.Second, "the poll ends", done); e.err != nil || e.code != "UNAUTHORIZED" {
				t.Errorf("got %q %v, want UNAUTHORIZED", e.code, e.err)
			}
			for _, r := range []*server{s, other} {
				r.refused(t, "UNAUTHORIZED", b, "getMe", "{}")
				if got := fmt.Sprint(r.writeRaw(t, event{bot: b}.filled().json())); got != "[BOT_NOT_FOUND]" {
					t.Errorf("intake: got %s, want BOT_NOT_FOUND", got)
				}
			}
			if status, _ := o.get(t, "/bots/"+b.id+"/connection"); status != 404 {
				t.Errorf("its page: got %d, want 404", status)
			}
		}
	})
}
