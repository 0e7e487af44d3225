package main_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

func TestWebhookCrashOfPostgres(t *testing.T) {
	t.Parallel()
	e := newSite(t)
	w := ownWorld(t, append(e.settings(t), testClock)...)
	s := w.serve(t)
	s.trouble = true
	o := s.signIn(t)
	// crashed kills PostgreSQL and waits until the server works again.
	crashed := func(t *testing.T, meanwhile func()) {
		t.Helper()
		pid := w.postmaster(t)
		signalTo(t, pid, syscall.SIGKILL)
		eventually(t, 10*time.Second, "PostgreSQL is gone", func() bool { return !alive(pid) })
		meanwhile()
		eventually(t, 30*time.Second, "the server works again", func() bool { return s.status(t, "/readyz") == 200 })
	}
	t.Run("W-10 W-12 G-02 budgets, waits and the breaker survive kill -9 of PostgreSQL", func(t *testing.T) {
		budget, breaker, refused := o.hooked(t, e), o.hooked(t, e), o.hooked(t, e)
		budget.does(says(500))
		breaker.does(says(500))
		e.names.lead(refused.host, "127.0.0.2")
		lb, lr, l := &ladder{s: s, h: breaker}, &ladder{s: s, h: refused}, &ladder{s: s, h: budget}
		s.sends(t, breaker.bot, 4)
		for id := range 3 {
			lb.useUp(t, fmt.Sprint(id+1))
		}
		lb.fast(t, lb.failed(t, "HTTP_500", time.Minute), "4", 1)
		open := lb.failed(t, "HTTP_500", 5*time.Minute)
		s.sends(t, budget.bot, 1)
		budget.gets(t, "1", 1)
		l.fast(t, l.failed(t, "HTTP_500", 5*time.Second), "1", 2)
		l.fast(t, l.failed(t, "HTTP_500", 20*time.Second), "1", 3)
		s.sends(t, refused.bot, 1)
		for _, seconds := range []time.Duration{5, 10, 20} {
			s.reach(t, *lr.failed(t, "CONNECTION_FAILED", seconds*time.Second).NextAttempt, 0)
		}
		wait := lr.failed(t, "CONNECTION_FAILED", 40*time.Second)
		third := l.failed(t, "HTTP_500", time.Minute) // as long ago as the waits took
		crashed(t, func() {})
		for _, c := range []struct {
			h     *hooked
			state string
			due   hookInfo
		}{{budget, "retrying", third}, {refused, "retrying", wait}, {breaker, "circuit_open", open}} {
			if got := s.hookInfo(t, c.h.bot); got.State != c.state || !got.NextAttempt.Equal(*c.due.NextAttempt) {
				t.Errorf("got %s until %v, want %s until %v", got.State, got.NextAttempt, c.state, c.due.NextAttempt)
			}
		}
		l.due(t, third, "1", 4)
		l.failed(t, "HTTP_500", 3*time.Minute)
		s.reach(t, *wait.NextAttempt, 0)
		lr.failed(t, "CONNECTION_FAILED", 80*time.Second)
		lb.due(t, open, "4", 2)
		lb.failed(t, "HTTP_500", 15*time.Minute)
	})
	t.Run("W-05 A-07 a 200 that comes while PostgreSQL is down is confirmed, once it is back, and nothing comes twice", func(t *testing.T) {
		h := o.hooked(t, e)
		h.does(waits)
		s.sends(t, h.bot, 3)
		v := h.gets(t, "1", 1)
		crashed(t, func() {
			h.does(says(200))
			v.let <- says(200)
			receive(t, 3*time.Second, "the request ends", v.ended)
		})
		for id := 2; id <= 3; id++ {
			if v := h.visited(t, claimTime); v.update.UpdateID != fmt.Sprint(id) || v.attempt != 1 {
				t.Errorf("got update %s attempt %d, want %d and 1", v.update.UpdateID, v.attempt, id)
			}
		}
		s.stands(t, h.bot, "active, 0 waiting, 0 failed, at 4")
		h.check(t)
	})
}
