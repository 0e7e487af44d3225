package main_test

import (
	"maps"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestCrashOfServer(t *testing.T) {
	t.Parallel()
	w := ownWorld(t, testClock)
	s := w.serve(t)
	again := func() *server { return w.serve(t) } // ends with this test, not with its parts
	f := newFlood(w.bots(t, 3))
	var consumers []*consumer
	t.Run("I-02 G-02 kill -9 of the server in the middle of intake", func(t *testing.T) {
		for round := range 2 {
			before := f.accepted()
			stop := make(chan struct{})
			wait := f.run(8, false, stop, s)
			eventually(t, 20*time.Second, "intake is in full swing", func() bool { return f.accepted() > before+60 })
			s.kill()
			close(stop)
			if err := wait(); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			s = again() // on the same folder
		}
		consumers = f.drainAll(t, s)
	})
	t.Run("I-03 what got no answer can be written again after the crash, and is there once", func(t *testing.T) {
		open := maps.Clone(f.open)
		for id, b := range open {
			if retry, err := f.write(s, []event{event{bot: b, id: id}.filled()}); retry || err != nil {
				t.Fatalf("event %s: repeat %v, %v", id, retry, err)
			}
		}
		for _, c := range consumers {
			c.drain(t, s)
		}
		f.check(t, consumers)
		if len(f.open) > 0 {
			t.Errorf("%d events are still open", len(f.open))
		}
	})
	t.Run("G-02 it stops cleanly and leaves no PostgreSQL behind", func(t *testing.T) {
		pid := w.postmaster(t)
		if code, _ := s.term(); code != 0 {
			t.Errorf("got exit code %d, want 0", code)
		}
		if err := syscall.Kill(pid, 0); err == nil {
			t.Errorf("PostgreSQL %d still runs", pid)
		}
	})
}

func TestCrashOfPostgres(t *testing.T) {
	t.Parallel()
	w := ownWorld(t, testClock)
	s := w.serve(t)
	s.trouble = true
	f := newFlood(w.bots(t, 3))
	t.Run("I-02 I-03 G-02 kill -9 of PostgreSQL in the middle of intake", func(t *testing.T) {
		stop := make(chan struct{})
		wait := f.run(8, true, stop, s)
		for range 2 {
			before := f.accepted()
			eventually(t, 30*time.Second, "intake is in full swing", func() bool { return f.accepted() > before+60 })
			signalTo(t, w.postmaster(t), syscall.SIGKILL)
		}
		before := f.accepted()
		eventually(t, 30*time.Second, "intake goes on by itself", func() bool { return f.accepted() > before+30 })
		close(stop)
		if err := wait(); err != nil {
			t.Fatal(err)
		}
		if len(f.open) > 0 {
			t.Errorf("%d events were repeated until they were taken and are still open", len(f.open))
		}
		f.drainAll(t, s)
	})
	t.Run("G-02 A-07 killed again and again, while it starts too, it comes back by itself", func(t *testing.T) {
		last := 0
		runs := func() int { return strings.Count(s.log.String(), `"msg":"private PostgreSQL runs`) }
		started := func() int {
			eventually(t, 30*time.Second, "PostgreSQL is started again", func() bool {
				if !s.running() {
					t.Fatalf("the server has ended:\n%s", s.log.tail(3, false))
				}
				pid, ok := w.startedPostmaster()
				if !ok || pid == last {
					return false
				}
				last = pid
				return true
			})
			return last
		}
		for range 6 { // within a minute, each time once it runs
			before := runs()
			signalTo(t, started(), syscall.SIGKILL)
			eventually(t, 30*time.Second, "the server says that its PostgreSQL runs again", func() bool { return runs() > before })
		}
		for range 3 { // as soon as it is there
			signalTo(t, started(), syscall.SIGKILL)
		}
		started()
		s.recovered(t, f.bots[0])
	})
}
