package main_test

import (
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

func TestStop(t *testing.T) {
	t.Parallel()
	t.Run("G-04 waiting polls get an empty batch, and the process is out with code 0", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		s := w.serve(t)
		bots := w.bots(t, 3)
		var polls []<-chan ended
		for _, b := range bots {
			polls = append(polls, s.waiting(t, b, at("a", "", "", `,"timeout":25`)))
		}
		code, took := s.term()
		if code != 0 || took > 5*time.Second {
			t.Errorf("got exit code %d after %v, want 0 at once: nobody had to be waited for", code, took)
		}
		epochs := make([]string, len(polls))
		for i, p := range polls {
			e := receive(t, time.Second, "the poll was answered", p)
			if e.gave(t, "| | 1..1"); !about(e.batch.Lease.ExpiresAt, time.Now().Add(time.Minute)) {
				t.Errorf("got the lease %+v, want 60 s from the answer", e.batch.Lease)
			}
			epochs[i] = e.batch.Lease.Epoch
		}
		if c, err := net.DialTimeout("tcp", s.address(), time.Second); err == nil {
			c.Close()
			t.Error("the address still takes connections")
		}
		// Another process goes on where this one stopped, at once.
		next := w.serve(t)
		next.write(t, event{bot: bots[0]})
		if got := next.poll(t, bots[0], at("a", epochs[0], "1", now)); got.outline() != "1 | | 1..2" || got.Lease.Epoch != epochs[0] {
			t.Errorf("after the restart got %s", got.outline())
		}
	})
	t.Run("G-04 what writers were answered while it stopped is there", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, testClock)
		s := w.serve(t)
		f := newFlood(w.bots(t, 2))
		stop := make(chan struct{})
		wait := f.run(6, false, stop, s)
		eventually(t, 20*time.Second, "intake is in full swing", func() bool { return f.accepted() > 30 })
		code, took := s.term()
		close(stop)
		if code != 0 {
			t.Errorf("got exit code %d after %v, want 0", code, took)
		}
		if err := wait(); err != nil {
			t.Fatal(err)
		}
		f.drainAll(t, w.serve(t))
	})
	t.Run("G-04 G-02 callers that stall and its own PostgreSQL don't keep it longer than 15 s", func(t *testing.T) {
		t.Parallel()
		w := ownWorld(t)
		s := w.serve(t)
		b := w.bot(t)
		poll := s.waiting(t, b, at("a", "", "", `,"timeout":25`))
		for _, path := range []string{"/bot-api/v1/getMe", "/internal/v1/events", "/login"} {
			c := s.dial(t)
			token := map[string]string{"/bot-api/v1/getMe": b.token, "/internal/v1/events": w.key}[path]
			fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{", path, token)
		}
		fmt.Fprint(s.dial(t), "POST /bot-api/v1/getMe HTTP/1.1\r\nHos") // not even a header
		s.dial(t)                                                       // not even a byte
		// The stalled calls are under way: their tokens were looked up.
		eventually(t, 10*time.Second, "the server works", func() bool { return s.status(t, "/readyz") == 200 })
		code, took := s.term()
		t.Logf("out with code %d after %v", code, took)
		receive(t, time.Second, "the poll was answered", poll).gave(t, "| | 1..1")
	})
	t.Run("G-04 a second signal ends it at once", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		s := w.serve(t)
		c := s.dial(t)
		fmt.Fprintf(c, "POST /internal/v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: 1000\r\n\r\n{", w.key)
		eventually(t, 10*time.Second, "the server works", func() bool { return s.status(t, "/readyz") == 200 })
		var signals atomic.Int32
		began := time.Now()
		eventually(t, 10*time.Second, "the process is gone after its second signal", func() bool {
			if signals.Add(1) <= 50 {
				signalTo(t, s.cmd.Process.Pid, 15)
			}
			return !s.running()
		})
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("gone after %v", took)
		}
	})
}
