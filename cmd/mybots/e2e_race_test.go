package main_test

import (
	"testing"
	"time"

	"mybots/migrations/dbtest"
)

// TestLateAppend holds one append's transaction open after it took its id, and
// looks whether a later id can be seen before it.
func TestLateAppend(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, other := w.serve(t), w.serve(t)
	db := w.db(t)

	t.Run("U-02 no id becomes visible before a lower one, whose append is still under way", func(t *testing.T) {
		b := w.bot(t)
		s.write(t, event{bot: b})
		lease := s.poll(t, b, at("a", "", "", now)).Lease
		// The bot's new chat is being written by somebody else, too: the append that
		// names it has its id and waits for that.
		tx := db.MustBegin()
		defer tx.Rollback()
		tx.MustExec(`INSERT INTO chats (bot_id, chat_id) VALUES ($1, 77)`, b.id)

		type result struct {
			results []written
			err     error
		}
		write := func(s *server, e event) <-chan result {
			done := make(chan result, 1)
			go func() { // ends with the answer
				a, err := s.tryEvents(eventsBody(e.json()))
				var r []written
				if err == nil {
					r, err = a.results(1)
				}
				done <- result{r, err}
			}()
			return done
		}
		early, late := event{bot: b, chat: "77"}.filled(), event{bot: b}.filled()
		first := write(s, early)
		dbtest.WaitBlocked(t, db, 1)
		second := write(other, late)
		dbtest.WaitBlocked(t, db, 2)
		// A poll through a third connection must not see the later one either.
		poll := other.pollBeside(b, at("a", lease.Epoch, "2", now))
		dbtest.WaitBlocked(t, db, 3)
		still(t, "the first append", first)
		still(t, "the second append", second)
		still(t, "the poll", poll)
		var visible int
		if err := db.Get(&visible, `SELECT count(*) FROM updates WHERE bot_id = $1 AND update_id > 1`, b.id); err != nil {
			t.Fatal(err)
		}
		if visible != 0 {
			t.Errorf("%d updates are visible while the first append is under way, want none", visible)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		one, two := receive(t, 5*time.Second, "the first append ends", first), receive(t, 5*time.Second, "the second append ends", second)
		if one.err != nil || two.err != nil || one.results[0].String() != "2" || two.results[0].String() != "3" {
			t.Fatalf("got %v %v and %v %v, want 2 and 3", one.results, one.err, two.results, two.err)
		}
		e := receive(t, 5*time.Second, "the poll ends", poll)
		if got := e.batch.outline(); e.err != nil || e.code != "" || got != "2 | | 2..3" && got != "2 3 | | 2..4" && got != "| | 2..2" {
			t.Errorf("the poll got %s %q %v", got, e.code, e.err)
		}
		all := s.poll(t, b, at("a", lease.Epoch, "2", now))
		if all.outline() != "2 3 | | 2..4" || all.Updates[0].EventID != early.id || all.Updates[1].EventID != late.id {
			t.Errorf("got %s", all.outline())
		}
	})
	t.Run("U-02 a confirmation that races with an append loses nothing", func(t *testing.T) {
		b := w.bot(t)
		s.write(t, event{bot: b})
		got := s.poll(t, b, at("a", "", "", now))
		// Whatever order they get the row in, the update must come.
		tx := db.MustBegin()
		defer tx.Rollback()
		tx.MustExec(`SELECT FROM queues WHERE bot_id = $1 FOR UPDATE`, b.id)
		poll := s.pollBeside(b, at("a", got.Lease.Epoch, "2", `,"timeout":20`))
		dbtest.WaitBlocked(t, db, 1)
		done := make(chan error, 1)
		go func() { // ends with the answer
			_, err := other.tryEvents(eventsBody(event{bot: b}.filled().json()))
			done <- err
		}()
		dbtest.WaitBlocked(t, db, 2)
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := receive(t, 5*time.Second, "the append ends", done); err != nil {
			t.Fatal(err)
		}
		receive(t, 5*time.Second, "the poll ends", poll).gave(t, "2 | | 2..3")
	})
	t.Run("P-05 of first calls that race one gets the lease", func(t *testing.T) {
		b := w.bot(t)
		tx := db.MustBegin()
		defer tx.Rollback()
		tx.MustExec(`SELECT FROM queues WHERE bot_id = $1 FOR UPDATE`, b.id)
		one, two := s.pollBeside(b, at("a", "", "", now)), other.pollBeside(b, at("b", "", "", now))
		dbtest.WaitBlocked(t, db, 2)
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		codes := map[string]int{}
		for _, c := range []<-chan ended{one, two} {
			e := receive(t, 5*time.Second, "a poll ends", c)
			if e.err != nil {
				t.Fatal(e.err)
			}
			codes[e.code]++
		}
		if codes[""] != 1 || codes["CONSUMER_CONFLICT"] != 1 {
			t.Errorf("got %v, want one lease and one conflict", codes)
		}
	})
}
