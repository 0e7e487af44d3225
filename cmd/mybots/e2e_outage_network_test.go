package main_test

import (
	"testing"
	"time"
)

func TestOutageNetwork(t *testing.T) {
	t.Parallel()
	w, p := behindProxy(t)
	s := w.serve(t)
	s.trouble = true
	b := s.chatting(t)
	t.Run("A-07 a database that refuses connections is 503 UNAVAILABLE", func(t *testing.T) {
		p.turn(refuses)
		all := s.everyCall(b, 4)
		unavailable(t, all)
		p.turn(works)
		s.recovered(t, b)
	})
	t.Run("A-07 a network that swallows everything is 503 UNAVAILABLE in time", func(t *testing.T) {
		p.turn(silent)
		unavailable(t, s.everyCall(b, 4))
		if got := s.status(t, "/healthz"); got != 200 {
			t.Errorf("G-07 /healthz: got %d, want 200", got)
		}
		p.turn(works)
		s.recovered(t, b)
	})
	t.Run("A-07 connections that are cut again and again do no harm", func(t *testing.T) {
		for range 10 {
			p.turn(refuses)
			p.turn(works)
			for name, e := range s.everyCall(b, 1) {
				if e.err != nil || e.took > outageTime {
					t.Errorf("%s: got %q %v after %v", name, e.code, e.err, e.took)
				}
			}
		}
		s.recovered(t, b)
	})
}

func TestOutageSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve(t)
	s.trouble = true
	b, quiet := s.chatting(t), w.bot(t)
	db := w.db(t)
	poll := s.waiting(t, quiet, `{"consumer_id":"a","timeout":25}`)
	const end = `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`
	t.Run("A-07 sessions that the administrator ends are made anew", func(t *testing.T) {
		for range 10 {
			if _, err := db.Exec(end); err != nil {
				t.Fatal(err)
			}
			for name, e := range s.everyCall(b, 1) {
				if e.err != nil || e.took > outageTime {
					t.Errorf("%s: got %q %v after %v", name, e.code, e.err, e.took)
				}
			}
		}
		s.recovered(t, b)
		s.write(t, event{bot: quiet})
		receive(t, 5*time.Second, "the poll that waited through it gets its update", poll).gave(t, "1 | | 1..2")
	})
	t.Run("A-07 a database that is closed to all is 503 UNAVAILABLE", func(t *testing.T) {
		admin := newAdmin(t, w)
		name := ""
		if err := db.Get(&name, `SELECT current_database()`); err != nil {
			t.Fatal(err)
		}
		admin(`ALTER DATABASE "` + name + `" ALLOW_CONNECTIONS false`)
		if _, err := db.Exec(end); err != nil {
			t.Fatal(err)
		}
		all := s.everyCall(b, 2)
		admin(`ALTER DATABASE "` + name + `" ALLOW_CONNECTIONS true`)
		unavailable(t, all)
		s.recovered(t, b)
	})
	t.Run("A-07 a row that somebody keeps locked is no hang", func(t *testing.T) {
		tx := db.MustBegin()
		defer tx.Rollback()
		tx.MustExec(`SELECT FROM queues WHERE bot_id = $1 FOR UPDATE`, b.id)
		for name, e := range s.everyCall(b, 1) {
			if e.err != nil || e.took > outageTime {
				t.Errorf("%s: got %q %v after %v", name, e.code, e.err, e.took)
			}
		}
		began := time.Now()
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		s.recovered(t, b)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("recovered after %v", took)
		}
	})
}
