package main_test

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestWebhookBreaker(t *testing.T) {
	t.Parallel()
	w, e := newHookWorld(t)
	s := w.serve(t)
	again := func() *server { return w.serve(t) } // ends with this test, not with its parts
	var o *owner
	// opened is a bot whose breaker has just opened, with n updates that wait.
	opened := func(t *testing.T, n int) *ladder {
		t.Helper()
		o = s.signIn(t) // a session doesn't last over all these hours
		h := o.hooked(t, e)
		h.does(says(500))
		s.sends(t, h.bot, 3+n)
		l := &ladder{s: s, h: h}
		for id := range 3 {
			l.useUp(t, fmt.Sprint(id+1))
		}
		s.stands(t, h.bot, fmt.Sprintf("circuit_open HTTP_500, %d waiting, 3 failed, at 4", n))
		return l
	}

	t.Run("W-12 after three used-up budgets 1, 5, 15, 30, 60, 60 min, one probe after each, over restarts", func(t *testing.T) {
		l := opened(t, 2)
		for n, minutes := range []time.Duration{1, 5, 15, 30, 60, 60} {
			i := l.failed(t, "HTTP_500", minutes*time.Minute)
			s.stands(t, l.h.bot, "circuit_open HTTP_500, 2 waiting, 3 failed, at 4")
			if n == 1 {
				s.kill()
				s = again()
				l.s = s
				if got := s.hookInfo(t, l.h.bot); got.State != "circuit_open" || !got.NextAttempt.Equal(*i.NextAttempt) {
					t.Errorf("after kill -9: got %+v, want the probe at %v", got, i.NextAttempt)
				}
			}
			l.due(t, i, "4", n+1)
		}
		i := l.failed(t, "HTTP_500", time.Hour)
		l.h.does(says(200))
		l.fast(t, i, "4", 7)
		l.h.gets(t, "5", 1)
		s.stands(t, l.h.bot, "active HTTP_500, 0 waiting, 3 failed, at 6")

		o = s.signIn(t)
		if got := o.reasons(t, l.h.bot); len(got) != 3 || slices.ContainsFunc(got, func(r string) bool { return r[2:] != "HTTP_5XX 5" }) {
			t.Errorf("F-01 got %q", got)
		}
		l.h.does(says(500)) // all counters are as if nothing had been
		s.sends(t, l.h.bot, 3)
		l.useUp(t, "6")
		l.useUp(t, "7")
		l.h.gets(t, "8", 1)
		l.failed(t, "HTTP_500", 5*time.Second)
		s.stands(t, l.h.bot, "retrying HTTP_500, 1 waiting, 5 failed, at 8")
		l.h.check(t)
	})
	t.Run("W-12 the owner's probe goes out at once, and a failed one leaves the schedule", func(t *testing.T) {
		l := opened(t, 2)
		i := l.failed(t, "HTTP_500", time.Minute)
		for n, answer := range []struct {
			does script
			code string
		}{ // none on a kept connection, where the broken one would cost nothing
			{says(500, "Connection: close"), "HTTP_500"}, {says(429, "Retry-After: 3000", "Connection: close"), "HTTP_429"}, {breaks, "CONNECTION_LOST"},
		} {
			l.h.queue(answer.does)
			o.act(t, l.h.bot, "connection/probe")
			l.h.gets(t, "4", n+1)
			l.failed(t, answer.code, i.NextAttempt.Sub(s.nextError(t, l)))
		}
		o.act(t, l.h.bot, "connection/resume") // while open it sends one, too
		l.h.gets(t, "4", 4)
		i = l.failed(t, "HTTP_500", i.NextAttempt.Sub(s.nextError(t, l)))
		l.due(t, i, "4", 5)
		i = l.failed(t, "HTTP_500", 5*time.Minute) // the second pause of the schedule
		l.h.does(says(200))
		o.act(t, l.h.bot, "connection/probe")
		l.h.gets(t, "4", 6)
		l.h.gets(t, "5", 1)
		s.stands(t, l.h.bot, "active HTTP_500, 0 waiting, 3 failed, at 6")
	})
	t.Run("W-12 probes that can't connect or get 429 are failed ones; a 422 fails its update and the next is probed at once", func(t *testing.T) {
		l := opened(t, 3)
		i := l.failed(t, "HTTP_500", time.Minute)
		l.h.queue(says(429, "Retry-After: 5"))
		l.fast(t, i, "4", 1)
		i = l.failed(t, "HTTP_429", 5*time.Minute)
		s.stands(t, l.h.bot, "circuit_open HTTP_429, 3 waiting, 3 failed, at 4")
		e.names.lead(l.h.host, "127.0.0.2")
		s.reach(t, *i.NextAttempt, 0)
		i = l.failed(t, "CONNECTION_FAILED", 15*time.Minute)
		e.names.lead(l.h.host, "127.0.0.1")
		l.h.queue(says(422), says(400), says(500))
		l.fast(t, i, "4", 3)
		l.h.gets(t, "5", 1)
		l.h.gets(t, "6", 1)
		s.stands(t, l.h.bot, "circuit_open HTTP_500, 1 waiting, 5 failed, at 6")
		l.last = s.nextError(t, l).Add(-time.Microsecond)
		l.failed(t, "HTTP_500", 30*time.Minute)
		o = s.signIn(t)
		l.h.does(says(200))
		o.rehook(t, l.h, "keep") // M-04 closes the breaker
		l.h.gets(t, "6", 2).signed(t, l.h.secret)
		s.stands(t, l.h.bot, "active HTTP_500, 0 waiting, 5 failed, at 7")
	})
	t.Run("W-12 W-11 a probe that is answered with a pause pauses; Resume sends one probe", func(t *testing.T) {
		l := opened(t, 2)
		i := l.failed(t, "HTTP_500", time.Minute)
		l.h.queue(says(401))
		l.fast(t, i, "4", 1)
		if i := s.stands(t, l.h.bot, "paused HTTP_401, 2 waiting, 3 failed, at 4"); i.NextAttempt != nil {
			t.Errorf("paused: got next_attempt_date %v", i.NextAttempt)
		}
		s.advance(t, 10*time.Minute)
		l.h.quiet(t, 700*time.Millisecond)
		o.act(t, l.h.bot, "connection/resume")
		l.h.gets(t, "4", 2)
		s.stands(t, l.h.bot, "circuit_open HTTP_500, 2 waiting, 3 failed, at 4")
		l.h.quiet(t, 300*time.Millisecond)
		l.h.does(says(200))
		o.act(t, l.h.bot, "connection/probe")
		l.h.gets(t, "4", 3)
		l.h.gets(t, "5", 1)
		s.stands(t, l.h.bot, "active HTTP_500, 0 waiting, 3 failed, at 6")
	})
	t.Run("W-12 a 422 between used-up budgets resets nothing", func(t *testing.T) {
		o = s.signIn(t)
		h := o.hooked(t, e)
		l := &ladder{s: s, h: h}
		h.does(says(500))
		s.sends(t, h.bot, 5)
		l.useUp(t, "1")
		l.useUp(t, "2")
		eventually(t, dueTime, "the first attempt of the third", func() bool { return h.total() == 11 })
		h.gets(t, "3", 1)
		h.queue(says(422))
		l.fast(t, l.failed(t, "HTTP_500", 5*time.Second), "3", 2)
		l.useUp(t, "4")
		s.stands(t, h.bot, "circuit_open HTTP_500, 1 waiting, 4 failed, at 5")
	})
}

// nextError waits until another attempt has failed and returns when.
func (s *server) nextError(t testing.TB, l *ladder) time.Time {
	t.Helper()
	var at time.Time
	eventually(t, 8*time.Second, "the next attempt fails", func() bool {
		i := s.hookInfo(t, l.h.bot)
		if i.LastError != nil {
			at = i.LastError.Date
		}
		return at.After(l.last)
	})
	return at
}
