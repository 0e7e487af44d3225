package main_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestClock(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testClock)
	s, other := w.serve(t), w.serve(t)
	// clockOf is the product's time as a replica sees it: a lease ends 60 s from now.
	clockOf := func(t *testing.T, s *server, b *bot) time.Time {
		t.Helper()
		return s.poll(t, b, at("a", "", "", now)).Lease.ExpiresAt.Add(-time.Minute)
	}

	t.Run("G-05 a jump ends a wait within a second, and in the other replicas within two", func(t *testing.T) {
		for _, c := range []struct {
			mover, poller *server
			within        time.Duration
		}{{s, s, time.Second}, {s, other, 2 * time.Second}} {
			b := w.bot(t)
			c.poller.follows(t)
			done := c.poller.waiting(t, b, at("a", "", "", `,"timeout":25`))
			c.mover.advance(t, 10*time.Second)
			still(t, "a poll whose time isn't over", done)
			c.mover.advance(t, 20*time.Second)
			began := time.Now()
			receive(t, c.within+500*time.Millisecond, "the poll ends", done).gave(t, "| | 1..1")
			t.Logf("ended after %v", time.Since(began))
		}
	})
	t.Run("G-05 dates and leases go by it, in every replica", func(t *testing.T) {
		one, two := w.bot(t), w.bot(t)
		s.advance(t, 1000*time.Hour)
		if got := clockOf(t, s, one); !about(got, w.now()) {
			t.Errorf("got the time %v, want %v", got, w.now())
		}
		epoch, expires := "", time.Time{}
		eventually(t, 2500*time.Millisecond, "the other replica's time follows", func() bool {
			lease := other.poll(t, two, at("a", epoch, "", now)).Lease
			epoch, expires = lease.Epoch, lease.ExpiresAt
			return about(expires.Add(-time.Minute), w.now())
		})
	})
	t.Run("G-05 a restart keeps it", func(t *testing.T) {
		b := w.bot(t)
		other.kill()
		again := w.serve(t)
		if got := clockOf(t, again, b); !about(got, w.now()) {
			t.Errorf("got the time %v, want %v", got, w.now())
		}
	})
	t.Run("G-05 it goes on from there and never back", func(t *testing.T) {
		b := w.bot(t)
		for _, body := range []string{`{"seconds":-1}`, `{"seconds":"5"}`, `{"seconds":null}`, `{}`, `[]`, ``, `{"seconds":1e300}`, `{"seconds":true}`, `x`} {
			a, err := s.send(s.request(http.MethodPost, "/internal/v1/clock/advance", w.key, body))
			if err != nil || a.code != "INVALID_REQUEST" {
				t.Errorf("%s: got %q %v, want INVALID_REQUEST", body, a.code, err)
			}
		}
		if got := clockOf(t, s, b); !about(got, w.now()) {
			t.Errorf("got the time %v, want %v", got, w.now())
		}
	})
	t.Run("G-05 it needs an intake key and POST", func(t *testing.T) {
		b := w.bot(t)
		for _, key := range []string{"", b.token, "sik1_x"} {
			a, err := s.send(s.request(http.MethodPost, "/internal/v1/clock/advance", key, `{"seconds":60}`))
			if err != nil || a.code != "UNAUTHORIZED" {
				t.Errorf("with key %.6q: got %q %v, want UNAUTHORIZED", key, a.code, err)
			}
		}
		a, err := s.send(s.request(http.MethodGet, "/internal/v1/clock/advance", w.key, ""))
		if err != nil || a.code != "METHOD_NOT_ALLOWED" {
			t.Errorf("GET: got %q %v, want METHOD_NOT_ALLOWED", a.code, err)
		}
	})
	t.Run("G-05 many small jumps at once add up", func(t *testing.T) {
		b := w.bot(t)
		done := make(chan struct{})
		for range 20 {
			go func() { // ends with the answer
				defer func() { done <- struct{}{} }()
				if _, err := s.send(s.request(http.MethodPost, "/internal/v1/clock/advance", w.key, `{"seconds":30}`)); err != nil {
					t.Error(err)
				}
			}()
		}
		for range 20 {
			receive(t, 10*time.Second, "a jump", done)
		}
		w.ahead.Add(int64(600 * time.Second))
		if got := clockOf(t, s, b); !about(got, w.now()) {
			t.Errorf("got the time %v, want %v", got, w.now())
		}
	})
	t.Run("G-05 twenty years at once do no harm", func(t *testing.T) {
		b := s.chatting(t)
		s.advance(t, 20*365*24*time.Hour)
		s.write(t, some(b, 2)...)
		s.replayed(t, b, "sendMessage", `{"chat_id":"550","text":"x"}`, "k")
		if got := s.poll(t, b, at("a", "", "", now)); got.outline() != "2 3 | 1-1 expired | 1..4" || !about(got.Lease.ExpiresAt, w.now().Add(time.Minute)) {
			t.Errorf("got %s with %+v", got.outline(), got.Lease)
		}
	})
	t.Run("G-05 the log shouts about it", func(t *testing.T) {
		if text := s.log.String(); !strings.Contains(text, `"level":"WARN"`) || !strings.Contains(strings.ToUpper(text), "TEST CLOCK") {
			t.Errorf("no warning in the log:\n%s", s.log.tail(5, false))
		}
	})
}

func TestRateOverTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testClock)
	s := w.serve(t)
	t.Run("P-03 the bucket of 5 refills 5 a second on the server's clock", func(t *testing.T) {
		b := w.bot(t)
		through := func() (n int, took time.Duration) {
			began := time.Now()
			for {
				if a := s.call(t, b, "getUpdates", at("a", "1", "", now)); a.code == "RATE_LIMITED" {
					return n, time.Since(began)
				}
				n++
			}
		}
		for _, jump := range []time.Duration{0, time.Second, time.Hour} {
			s.advance(t, jump)
			if n, took := through(); n < 5 || n > 5+int(took.Seconds()*5)+1 {
				t.Errorf("after %v: %d calls went through in %v, want 5 and what refilled", jump, n, took)
			}
		}
		s.advance(t, 200*time.Millisecond)
		if n, took := through(); n < 1 || n > 2+int(took.Seconds()*5)+1 {
			t.Errorf("after 200 ms: %d calls went through in %v, want 1", n, took)
		}
	})
}
