package notice

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/delivery/pg"
)

func TestBotFather(t *testing.T) {
	t.Parallel()
	t.Run("N-07 a notice becomes a message of the chat", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.answer(r.bot, status(401))
		r.clock.advance(3 * time.Second)
		if c := r.step(BotFather, false); c.job != nil || c.closed != "" {
			t.Errorf("the ordinary lane took an urgent notice: %+v", c)
		}
		if c := r.step(BotFather, true); c.closed != Sent {
			t.Fatalf("got %+v, want it sent", c)
		}
		chat, line := r.chat(r.bot), r.only()
		if len(chat) != 1 || chat[0].Text != line.Text || chat[0].Button != "Connection" || chat[0].BotID != r.bot.ID || !chat[0].Live {
			t.Errorf("the chat: %+v", chat)
		}
		if line.State != Sent || line.Tries != 1 || line.MessageID != fmt.Sprint(chat[0].ID) || !line.SentAt.Equal(r.clock.Now()) || !line.QueuedAt.Equal(r.clock.Now().Add(-3*time.Second)) {
			t.Errorf("N-08 the notice: %+v", line)
		}
		if c := r.step(BotFather, true); c.job != nil || c.closed != "" {
			t.Errorf("N-03 it was taken again: %+v", c)
		}
	})
	t.Run("N-03 two workers write each notice once", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		const n = 40
		for i := range n {
			b := r.addBot(fmt.Sprint("robot", i))
			r.open(b, English)
			r.answer(b, status(401))
		}
		other := New(Options{DB: r.db, Clock: r.clock, BaseURL: r.base})
		var running sync.WaitGroup
		for _, s := range []*Store{r.Store, other, r.Store, other} {
			running.Go(func() {
				for {
					c, err := s.next(t.Context(), lane{BotFather, true})
					if err != nil {
						t.Error(err)
					}
					if err != nil || c.closed == "" {
						return
					}
				}
			})
		}
		running.Wait()
		var messages, notices int
		if err := r.db.Get(&messages, `SELECT count(*) FROM botfather_messages`); err != nil {
			t.Fatal(err)
		}
		if err := r.db.Get(&notices, `SELECT count(*) FROM notices WHERE state = 'sent'`); err != nil {
			t.Fatal(err)
		}
		if messages != n || notices != n {
			t.Errorf("got %d messages of %d sent notices, want %d", messages, notices, n)
		}
	})
	t.Run("N-04 a chat that is gone", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.answer(r.bot, status(401))
		r.closeChat(r.bot)
		if c := r.step(BotFather, true); c.closed != Dead {
			t.Errorf("got %+v, want it dead", c)
		}
		if l := r.only(); !l.ForPerson() || l.Reason != WhyNoChat {
			t.Errorf("the notice: %+v", l)
		}
	})
}

func TestStale(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		cause delivery.Answer
		then  func(*rig)
		want  string // the reason; "" for a notice that is sent
	}{
		"N-05 still paused": {status(401), func(*rig) {}, ""},
		"N-05 resumed":      {status(401), func(r *rig) { r.resume(r.bot) }, WhyResumed},
		"N-05 the mode changed": {status(401), func(r *rig) {
			if _, err := r.bots.SavePolling(r.t.Context(), bots.Actor{UserID: r.bot.OwnerID}, r.bot.ID, 2, false); err != nil {
				r.t.Fatal(err)
			}
		}, WhyResumed},
		"N-05 the bot was deleted": {status(401), func(r *rig) {
			if err := r.bots.Delete(r.t.Context(), bots.Actor{UserID: r.bot.OwnerID}, r.bot.ID, "robot"); err != nil {
				r.t.Fatal(err)
			}
		}, WhyBotDeleted},
		"N-05 a microsecond under its limit": {status(401), func(r *rig) { r.clock.advance(MaxAge - time.Microsecond) }, ""},
		"N-05 older than its limit":          {status(401), func(r *rig) { r.clock.advance(MaxAge) }, WhyOld},
		"N-05 still FAILED":                  {status(422), func(*rig) {}, ""},
		"N-05 no update is FAILED any more": {status(422), func(r *rig) {
			r.db.MustExec(`DELETE FROM failed_updates WHERE bot_id = $1`, r.bot.ID)
			r.db.MustExec(`UPDATE queues SET failed = 0 WHERE bot_id = $1`, r.bot.ID)
		}, WhyNoneFailed},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.answer(r.bot, c.cause)
			c.then(r)
			r.step(BotFather, r.only().Kind == delivery.TroublePaused)
			l := r.only()
			if c.want == "" {
				if l.State != Sent || len(r.chat(r.bot)) != 1 {
					t.Errorf("got %s (%s), want it sent", l.State, l.Reason)
				}
				return
			}
			if l.State != Stale || l.Reason != c.want || len(r.chat(r.bot)) != 0 {
				t.Errorf("got %s (%s) and %d messages, want it stale: %s", l.State, l.Reason, len(r.chat(r.bot)), c.want)
			}
		})
	}
	t.Run("N-05 N-03 what wasn't sent holds nothing back", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.pause(r.bot)
		r.clock.advance(time.Second)
		r.pause(r.bot) // held back
		r.resume(r.bot)
		if c := r.step(BotFather, true); c.closed != Stale {
			t.Fatalf("got %+v, want it stale", c)
		}
		r.clock.advance(time.Minute)
		r.pause(r.bot)
		if list := r.lines(); len(list) != 2 || list[1].State != Queued || list[1].Counted != 1 {
			t.Errorf("the pause after it: %+v; want a notice of its own that counts the one held back", list)
		}
	})
	t.Run("N-03 one that was sent by another route holds back", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.linkMAX(r.bot, 77)
		r.pause(r.bot)
		r.step(BotFather, true)
		r.resume(r.bot)
		if c := r.step(MAX, true); c.closed != Stale {
			t.Fatalf("got %+v, want it stale", c)
		}
		r.pause(r.bot)
		if n := len(r.lines()); n != 2 {
			t.Errorf("got %d notices, want no third: the owner was told", n)
		}
	})
	t.Run("N-05 a cause that is being recorded isn't overlooked", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.pause(r.bot)
		r.resume(r.bot)
		// The next pause is recorded, held back behind the first, and not committed yet.
		tx := r.db.MustBegin()
		tx.MustExec(`UPDATE queues SET hook_paused = 'HTTP_401' WHERE bot_id = $1`, r.bot.ID)
		if err := r.Record(t.Context(), tx, delivery.Trouble{Kind: delivery.TroublePaused, BotID: r.bot.ID, Code: "HTTP_401", At: r.clock.Now()}); err != nil {
			t.Fatal(err)
		}
		done := make(chan claimed, 1)
		go func() {
			c, err := r.next(context.WithoutCancel(t.Context()), lane{BotFather, true})
			if err != nil {
				t.Error(err)
			}
			done <- c
		}()
		waitBlocked(t, r.db)
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if c := <-done; c.closed != Sent {
			t.Errorf("got %+v, want the notice sent: delivery is paused", c)
		}
	})
	t.Run("N-05 a cause that comes while one is closed is told", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.pause(r.bot)
		r.resume(r.bot)
		// The worker closes the first as stale, and hasn't committed yet.
		tx := r.db.MustBegin()
		var j Job
		if err := tx.Get(&j, `SELECT `+jobColumns+` FROM notices FOR UPDATE`); err != nil {
			t.Fatal(err)
		}
		if why, err := r.whyStale(t.Context(), tx, j, r.clock.Now()); err != nil || why == "" {
			t.Fatalf("got %q, %v; want it stale", why, err)
		}
		r.clock.advance(time.Second)
		done := make(chan error, 1)
		go func() { done <- r.tryAnswer(r.bot, status(401)) }()
		waitBlocked(t, r.db)
		if err := r.closeStale(t.Context(), tx, j, "resumed", true); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if list := r.lines(); len(list) != 2 || list[1].State != Queued {
			t.Errorf("got %+v, want a second notice", list)
		}
	})
	t.Run("N-05 nobody's notices don't wait for ever", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.linkMAX(r.bot, 77)
		r.pause(r.bot)
		r.clock.advance(MaxAge)
		if _, err := r.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, l := range r.lines() {
			if l.State != Stale || l.Reason != WhyOld {
				t.Errorf("got %s (%s), want it stale", l.State, l.Reason)
			}
		}
	})
	t.Run("N-07 an account that was unlinked", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.linkMAX(r.bot, 77)
		r.pause(r.bot)
		if err := r.Unlink(t.Context(), Actor{UserID: r.bot.OwnerID}); err != nil {
			t.Fatal(err)
		}
		if c := r.step(MAX, true); c.closed != Stale {
			t.Errorf("got %+v, want it stale", c)
		}
	})
}

// waitBlocked waits until a statement of this database waits for a lock.
func waitBlocked(t *testing.T, db *sqlx.DB) {
	t.Helper()
	for {
		var n int
		err := db.GetContext(t.Context(), &n, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			return
		}
	}
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	// fill queues notices by MAX about n bots, ordinary ones first, then urgent ones.
	fill := func(r *rig, n int) {
		for _, a := range []delivery.Answer{status(422), status(401)} {
			for i := range n {
				b := r.addBot(fmt.Sprint("robot", a.Status, "_", i))
				r.linkMAX(b, int64(100+i))
				r.clock.advance(time.Second)
				r.answer(b, a)
			}
		}
	}
	drain := func(r *rig) (taken []string) {
		for _, urgent := range []bool{true, false} {
			for {
				c := r.step(MAX, urgent)
				if c.job == nil {
					break
				}
				taken = append(taken, fmt.Sprint(c.job.Kind, c.job.Recipient))
				if _, err := r.settle(r.t.Context(), *c.job, Result{Class: ClassSent, Code: 200}); err != nil {
					r.t.Fatal(err)
				}
			}
		}
		return taken
	}
	t.Run("N-04 a stopped route sends nothing, others go on", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.linkMAX(r.bot, 77)
		r.pause(r.bot)
		var by deeds
		if err := r.StopRoute(t.Context(), MAX, by.within); err != nil {
			t.Fatal(err)
		}
		if c := r.step(MAX, true); c.job != nil {
			t.Errorf("the stopped route gave %+v", c.job)
		}
		if c := r.step(BotFather, true); c.closed != Sent {
			t.Errorf("the other route: %+v, want it sent", c)
		}
		if got, want := by.last(), "notices_off route=max sending=on -> sending=off"; got != want {
			t.Errorf("audit: %s, want %s", got, want)
		}
	})
	t.Run("N-08 resumed in portions, the urgent and the latest first", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		var by deeds
		if err := r.StopRoute(t.Context(), MAX, by.within); err != nil {
			t.Fatal(err)
		}
		fill(r, 3)
		if err := r.ResumeRoute(t.Context(), MAX, 4, by.within); err != nil {
			t.Fatal(err)
		}
		if c := r.step(MAX, false); c.job != nil {
			t.Errorf("the ordinary lane took %+v of the portion while urgent ones wait", c.job)
		}
		if got, want := fmt.Sprint(drain(r)), "[paused102 paused101 paused100 failed102]"; got != want {
			t.Errorf("the portion was %s, want %s", got, want)
		}
		ways, err := r.Ways(t.Context())
		if err != nil || !ways[1].Stopped || ways[1].Reason != WhyPortion || ways[1].Allowance != nil {
			t.Errorf("after the portion: %+v, %v; want it stopped", ways, err)
		}
		if err := r.ResumeRoute(t.Context(), MAX, 0, by.within); err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprint(drain(r)), "[failed100 failed101]"; got != want {
			t.Errorf("the rest was %s, want %s", got, want)
		}
	})
	t.Run("N-08 two workers never send more than the portion", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		var by deeds
		if err := r.StopRoute(t.Context(), MAX, by.within); err != nil {
			t.Fatal(err)
		}
		fill(r, 10)
		if err := r.ResumeRoute(t.Context(), MAX, 7, by.within); err != nil {
			t.Fatal(err)
		}
		var running sync.WaitGroup
		var mu sync.Mutex
		taken := 0
		for i := range 6 {
			running.Go(func() {
				for {
					c, err := r.next(t.Context(), lane{MAX, i%2 == 0})
					if err != nil {
						t.Error(err)
					}
					if c.job == nil {
						return
					}
					mu.Lock()
					taken++
					mu.Unlock()
				}
			})
		}
		running.Wait()
		if taken != 7 {
			t.Errorf("got %d, want 7", taken)
		}
	})
	t.Run("N-08 there is no such route", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		var by deeds
		if err := r.StopRoute(t.Context(), "pigeon", by.within); pg.State(err) != "" || err == nil {
			t.Errorf("got %v, want not found", err)
		}
	})
}
