package main_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// claimTime is how long a claim of a process that is gone stands in the way of
// the others, and a busy machine's part.
const claimTime = 20 * time.Second

func TestWebhookStop(t *testing.T) {
	t.Parallel()
	stopping := func(t *testing.T, s *server) {
		t.Helper()
		signalTo(t, s.cmd.Process.Pid, syscall.SIGTERM)
		eventually(t, 5*time.Second, "the process says that it stops", func() bool { return strings.Contains(s.log.String(), `"msg":"stopping"`) })
	}
	t.Run("G-04 on SIGTERM a request under way finishes and is confirmed, and another replica goes on at once", func(t *testing.T) {
		t.Parallel()
		w, e := newHookWorld(t)
		s := w.serve(t)
		o := s.signIn(t)
		var held []*hooked
		var under []*visit
		for range 3 {
			h := o.hooked(t, e)
			h.does(waits)
			s.sends(t, h.bot, 3)
			held, under = append(held, h), append(under, h.gets(t, "1", 1))
		}
		free := o.hooked(t, e)
		other := w.serve(t)
		began := time.Now()
		stopping(t, s)
		other.sends(t, free.bot, 2)
		free.gets(t, "1", 1)
		free.gets(t, "2", 1)
		for i, answer := range []int{200, 422, 401} {
			held[i].does(says(200))
			under[i].let <- says(answer)
		}
		held[0].gets(t, "2", 1)
		held[1].gets(t, "2", 1)
		receive(t, 15*time.Second, "the process is out", s.exited)
		if took := time.Since(began); took > 6*time.Second || s.cmd.ProcessState.ExitCode() != 0 {
			t.Errorf("out with code %d after %v, want 0 soon after the last answer", s.cmd.ProcessState.ExitCode(), took)
		}
		for i, want := range []string{"active, 0 waiting, 0 failed, at 4", "active HTTP_422, 0 waiting, 1 failed, at 4", "paused HTTP_401, 3 waiting, 0 failed, at 1"} {
			other.stands(t, held[i].bot, want)
			held[i].check(t)
		}
	})
	t.Run("G-04 an endpoint that never answers holds it up for less than 15 s", func(t *testing.T) {
		t.Parallel()
		w, e := newHookWorld(t)
		s := w.serve(t)
		h := s.signIn(t).hooked(t, e)
		h.does(never)
		s.sends(t, h.bot, 2)
		h.gets(t, "1", 1)
		other := w.serve(t)
		if code, took := s.term(); code != 0 {
			t.Errorf("got exit code %d after %v, want 0", code, took)
		}
		h.does(says(200))
		// It was settled as a timeout, or given back: then it goes out again at once.
		if i := other.hookInfo(t, h.bot); i.NextAttempt != nil {
			other.reach(t, *i.NextAttempt, 0)
		}
		h.gets(t, "1", 2)
		h.gets(t, "2", 1)
		eventually(t, 5*time.Second, "both are confirmed", func() bool { return other.info(t, h.bot).Pending == 0 })
		h.check(t)
	})
	t.Run("G-03 W-05 W-13 kill -9 with a request under way: another replica sends it again once the claim has run out", func(t *testing.T) {
		t.Parallel()
		w, e := newHookWorld(t)
		s := w.serve(t)
		h := s.signIn(t).hooked(t, e)
		h.does(waits)
		s.sends(t, h.bot, 2)
		v := h.gets(t, "1", 1)
		other := w.serve(t)
		s.kill()
		receive(t, 3*time.Second, "the request ends", v.ended)
		h.does(says(200))
		other.advance(t, time.Hour) // claims run in real time
		if again := h.visited(t, claimTime); again.update.UpdateID != "1" || again.attempt != 2 || again.at.Sub(v.at) < 10*time.Second {
			t.Errorf("got update %s attempt %d after %v, want 1 and 2 after the claim", again.update.UpdateID, again.attempt, again.at.Sub(v.at))
		}
		h.gets(t, "2", 1)
		other.stands(t, h.bot, "active, 0 waiting, 0 failed, at 3")
		h.check(t)
	})
	t.Run("G-03 W-13 a replica that was frozen past its claim changes nothing when it wakes up", func(t *testing.T) {
		t.Parallel()
		w, e := newHookWorld(t)
		frozen := w.serve(t, "MYBOTS_ADMIN_ADDR=127.0.0.1:0")
		frozen.trouble = true // it finds itself out of time
		o := frozen.signIn(t)
		lates := []script{says(200), says(401), says(422), says(500), breaks}
		var bots []*hooked
		var old, young []*visit
		for range lates {
			h := o.hooked(t, e)
			h.does(waits)
			frozen.sends(t, h.bot, 2)
			bots, old = append(bots, h), append(old, h.gets(t, "1", 1))
		}
		s := w.serve(t)
		signalTo(t, frozen.cmd.Process.Pid, syscall.SIGSTOP)
		t.Cleanup(func() { signalTo(t, frozen.cmd.Process.Pid, syscall.SIGCONT) }) // before its own cleanup
		for _, h := range bots {
			v := h.visited(t, claimTime)
			if v.update.UpdateID != "1" || v.attempt != 2 {
				t.Fatalf("got update %s attempt %d, want 1 and 2", v.update.UpdateID, v.attempt)
			}
			young = append(young, v)
		}
		for i, late := range lates { // the answers lie ready when it wakes up
			old[i].let <- late
			receive(t, 3*time.Second, "the old request ends", old[i].ended)
		}
		// One of them has gone on to the next update meanwhile.
		young[1].let <- says(200)
		next := bots[1].gets(t, "2", 1)
		signalTo(t, frozen.cmd.Process.Pid, syscall.SIGCONT)
		eventually(t, 5*time.Second, "the frozen one is done with its requests", func() bool {
			return frozen.metric(t, "mybots_webhook_requests_in_flight") == 0
		})
		for i, h := range bots {
			want := "active, 2 waiting, 0 failed, at 1"
			if i == 1 {
				want = "active, 1 waiting, 0 failed, at 2"
			}
			if got, _ := s.standing(t, h.bot); got != want {
				t.Errorf("late answer %d: got %q, want %q", i, got, want)
			}
			h.quiet(t, 100*time.Millisecond)
		}
		young[0].let <- says(500) // the budget is whole: a first failure
		l := &ladder{s: s, h: bots[0]}
		l.failed(t, "HTTP_500", 5*time.Second)
		next.let <- says(200)
		for _, i := range []int{2, 3, 4} {
			young[i].let <- says(200)
			bots[i].gets(t, "2", 1).let <- says(200)
		}
		for i, h := range bots[1:] {
			if got := fmt.Sprint(s.stands(t, h.bot, "active, 0 waiting, 0 failed, at 3").State); got != "active" {
				t.Errorf("bot %d: %s", i+1, got)
			}
		}
	})
}
