package main_test

import (
	"slices"
	"testing"
	"time"
)

// ladder follows the attempts that a bot's endpoint gets, by the test clock. The
// process may be another one after each step.
type ladder struct {
	s    *server
	h    *hooked
	last time.Time // of the last failed attempt
}

// failed waits until another attempt has failed with that code, the next one being
// due so much later.
func (l *ladder) failed(t testing.TB, code string, wait time.Duration) hookInfo {
	t.Helper()
	deadline := time.NewTimer(8 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		i := l.s.hookInfo(t, l.h.bot)
		e := i.LastError
		if e != nil && e.Date.After(l.last) && e.Code == code && i.NextAttempt != nil && i.NextAttempt.Sub(e.Date) == wait {
			l.last = e.Date
			return i
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("got %s, last_error %+v, the next attempt at %v, want %s after %v and the next attempt %v later", i.State, e, i.NextAttempt, code, l.last, wait)
		}
	}
}

// due moves the clock to a moment before the next attempt's, and returns the
// request, which may come neither before it nor more than a second after it.
func (l *ladder) due(t testing.TB, i hookInfo, updateID string, attempt int) *visit {
	t.Helper()
	l.s.reach(t, *i.NextAttempt, 300*time.Millisecond)
	v := l.h.gets(t, updateID, attempt)
	l.intime(t, i, v)
	return v
}

func (l *ladder) intime(t testing.TB, i hookInfo, v *visit) {
	t.Helper()
	at := v.at.Add(time.Duration(l.s.w.ahead.Load()))
	if late := at.Sub(*i.NextAttempt); late < 0 || late > 1500*time.Millisecond {
		t.Errorf("update %s attempt %d came %v after it was due, want 0 to 1 s", v.update.UpdateID, v.attempt, late)
	}
}

// fast moves the clock on to the next attempt at once.
func (l *ladder) fast(t testing.TB, i hookInfo, updateID string, attempt int) {
	t.Helper()
	l.s.reach(t, *i.NextAttempt, 0)
	l.intime(t, i, l.h.gets(t, updateID, attempt))
}

// budgetWaits are those of W-10.
var budgetWaits = []time.Duration{5 * time.Second, 20 * time.Second, time.Minute, 3 * time.Minute}

// useUp lets the update that waits use up its budget on 500s, its first request
// being due.
func (l *ladder) useUp(t testing.TB, updateID string) {
	t.Helper()
	l.h.gets(t, updateID, 1)
	for n, wait := range budgetWaits {
		l.fast(t, l.failed(t, "HTTP_500", wait), updateID, n+2)
	}
}

func TestWebhookBudget(t *testing.T) {
	t.Parallel()
	w, e := newHookWorld(t)
	s := w.serve(t)
	o := s.signIn(t)
	again := func(*testing.T) { s = w.serve(t) } // ends with this test, not with its parts

	t.Run("W-10 G-03 G-05 5 s, 20 s, 1 min, 3 min, then FAILED, also when the process is killed between", func(t *testing.T) {
		h := o.hooked(t, e)
		h.does(says(503))
		s.sends(t, h.bot, 2)
		l := &ladder{s: s, h: h}
		h.gets(t, "1", 1)
		l.due(t, l.failed(t, "HTTP_503", 5*time.Second), "1", 2)
		i := l.failed(t, "HTTP_503", 20*time.Second)
		s.kill()
		again(t)
		o = s.signIn(t)
		l.s = s
		if got := s.hookInfo(t, h.bot); got.State != "retrying" || !got.NextAttempt.Equal(*i.NextAttempt) {
			t.Errorf("W-10 after kill -9: got %+v, want retrying at %v", got, i.NextAttempt)
		}
		l.due(t, i, "1", 3)
		l.due(t, l.failed(t, "HTTP_503", time.Minute), "1", 4)
		i = l.failed(t, "HTTP_503", 3*time.Minute)
		if code, _ := s.term(); code != 0 {
			t.Errorf("got exit code %d", code)
		}
		again(t)
		o = s.signIn(t)
		l.s = s
		h.queue(says(502))
		v := l.due(t, i, "1", 5)
		h.does(says(200))
		v.signed(t, h.secret)
		h.visited(t, dueTime) // of the second update, which needs a second attempt if it came before its 200
		s.reach(t, w.now().Add(5*time.Second), 0)
		s.stands(t, h.bot, "active "+s.hookInfo(t, h.bot).LastError.Code+", 0 waiting, 1 failed, at 3")
		if got := o.reasons(t, h.bot); !slices.Equal(got, []string{"1 HTTP_5XX 5"}) {
			t.Errorf("F-01 got %q", got)
		}
		h.check(t)
	})
	t.Run("W-10 the last answer gives the reason: DELIVERY_OUTCOME_UNKNOWN", func(t *testing.T) {
		for name, last := range map[string]script{"408": says(408), "a broken connection": breaks} {
			h := o.hooked(t, e)
			l := &ladder{s: s, h: h}
			closes := says(500, "Connection: close") // no request comes on a kept connection
			h.queue(closes, closes, closes, closes, last)
			s.sends(t, h.bot, 1)
			l.useUp(t, "1")
			s.stands(t, h.bot, map[string]string{"408": "active HTTP_408", "a broken connection": "active CONNECTION_LOST"}[name]+", 0 waiting, 1 failed, at 2")
			if got := o.reasons(t, h.bot); !slices.Equal(got, []string{"1 DELIVERY_OUTCOME_UNKNOWN 5"}) {
				t.Errorf("after %s: got %q", name, got)
			}
		}
	})
	t.Run("W-10 10 minutes use the budget up too, once an attempt fails after them", func(t *testing.T) {
		well, ill := o.hooked(t, e), o.hooked(t, e)
		well.queue(says(500))
		ill.queue(says(500), says(500))
		s.write(t, event{bot: well.bot}, event{bot: ill.bot}, event{bot: ill.bot})
		var first hookInfo
		for _, h := range []*hooked{well, ill} {
			h.gets(t, "1", 1)
			l := &ladder{s: s, h: h}
			first = l.failed(t, "HTTP_500", 5*time.Second)
		}
		s.reach(t, first.LastError.Date.Add(10*time.Minute), 0)
		well.gets(t, "1", 2)
		s.stands(t, well.bot, "active HTTP_500, 0 waiting, 0 failed, at 2")
		ill.gets(t, "1", 2)
		ill.gets(t, "2", 1)
		s.stands(t, ill.bot, "active HTTP_500, 0 waiting, 1 failed, at 3")
		if got := o.reasons(t, ill.bot); !slices.Equal(got, []string{"1 HTTP_5XX 2"}) {
			t.Errorf("got %q", got)
		}
	})
	t.Run("W-09 W-12 a failed connection waits 5 s, doubled up to 5 min, charges nothing, and a 2xx resets it", func(t *testing.T) {
		h := o.hooked(t, e)
		e.names.lead(h.host, "127.0.0.2") // nobody listens there
		s.sends(t, h.bot, 1)
		l := &ladder{s: s, h: h}
		waits := []time.Duration{5, 10, 20, 40, 80, 160, 300, 300}
		var i hookInfo
		for n, wait := range waits {
			i = l.failed(t, "CONNECTION_FAILED", wait*time.Second)
			if n < len(waits)-1 {
				s.reach(t, *i.NextAttempt, 0)
			}
		}
		e.names.lead(h.host, "127.0.0.1")
		l.due(t, i, "1", len(waits)+1)
		s.stands(t, h.bot, "active CONNECTION_FAILED, 0 waiting, 0 failed, at 2")
		s.advance(t, 61*time.Second) // no connection is kept so long
		e.names.lead(h.host)
		s.sends(t, h.bot, 1)
		l.failed(t, "DNS_FAILED", 5*time.Second)
		s.reach(t, l.last.Add(5*time.Second), 0)
		l.failed(t, "DNS_FAILED", 10*time.Second)
		e.names.lead(h.host, "127.0.0.1")
		o.act(t, h.bot, "connection/probe") // ends the wait
		h.gets(t, "2", 3)
		s.stands(t, h.bot, "active DNS_FAILED, 0 waiting, 0 failed, at 3")
	})
	t.Run("W-09 429 waits as it says, as often as it comes, and charges nothing", func(t *testing.T) {
		h := o.hooked(t, e)
		h.does(says(429, "Retry-After: 30"))
		s.sends(t, h.bot, 1)
		l := &ladder{s: s, h: h}
		h.gets(t, "1", 1)
		for n := 2; n < 9; n++ {
			i := l.failed(t, "HTTP_429", 30*time.Second)
			if i.State != "retrying" {
				t.Fatalf("got the state %s, want retrying", i.State)
			}
			if n == 2 {
				l.due(t, i, "1", n)
			} else {
				l.fast(t, i, "1", n)
			}
		}
		i := l.failed(t, "HTTP_429", 30*time.Second)
		h.does(says(500)) // the budget is whole
		l.fast(t, i, "1", 9)
		for n, wait := range budgetWaits {
			l.fast(t, l.failed(t, "HTTP_500", wait), "1", n+10)
		}
		s.stands(t, h.bot, "active HTTP_500, 0 waiting, 1 failed, at 2")
		if got := o.reasons(t, h.bot); !slices.Equal(got, []string{"1 HTTP_5XX 13"}) {
			t.Errorf("got %q", got)
		}
	})
}
