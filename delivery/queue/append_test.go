package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mybots/delivery"
	"mybots/delivery/queue"
	"mybots/migrations/dbtest"
)

// poll is one getUpdates call without waiting; it never meets the rate limit.
func (r *rig) poll(t testing.TB, p delivery.Poll) delivery.Batch {
	t.Helper()
	r.clock.advance(time.Second)
	if p.Limit == 0 {
		p.Limit = 100
	}
	got, err := r.Receive(t.Context(), r.bot, p, "192.0.2.1")
	if err != nil {
		t.Fatalf("poll %+v: %v", p, err)
	}
	return got.Batch
}

// drain takes and confirms everything and returns the ids and the ranges that came.
func (r *rig) drain(t testing.TB) (ids []int64, skipped []delivery.Range) {
	t.Helper()
	p := delivery.Poll{ConsumerID: "drain"}
	for {
		b := r.poll(t, p)
		for _, u := range b.Updates {
			ids = append(ids, u.UpdateID)
		}
		skipped = append(skipped, b.Skipped...)
		if b.Empty() {
			return ids, skipped
		}
		p.HasEpoch, p.Epoch, p.HasOffset, p.Offset = true, b.Lease.Epoch, true, b.NextOffset
	}
}

func codes(results []queue.Appended) (list []string) {
	for _, r := range results {
		switch {
		case r.Refusal != nil:
			list = append(list, string(r.Refusal.Code))
		case r.Duplicate:
			list = append(list, fmt.Sprintf("duplicate of %d", r.UpdateID))
		default:
			list = append(list, fmt.Sprint(r.UpdateID))
		}
	}
	return list
}

func TestAppendJudgesEachEvent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	other := r.addBot("other")
	paused := r.addBot("paused")
	disabled := r.addBot("disabled")
	r.db.MustExec(`UPDATE queues SET paused = true WHERE bot_id = $1`, paused)
	r.db.MustExec(`UPDATE queues SET disabled = true WHERE bot_id = $1`, disabled)
	twice := event(r.bot, "twice")
	elsewhere := twice
	elsewhere.BotID = other
	upper := twice
	upper.EventID = strings.ToUpper(twice.EventID)
	results, err := r.Append(t.Context(), []delivery.Event{
		twice, event(999_999, "nobody"), event(other, "1"), upper, event(paused, "x"), elsewhere, event(disabled, "x"), event(r.bot, "2"), event(r.bot, "3"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("I-01 one bad event harms no other; I-03 a duplicate in one batch; the same id for another bot is another event", func(t *testing.T) {
		want := []string{"1", "BOT_NOT_FOUND", "1", "duplicate of 1", "BOT_PAUSED", "2", "BOT_DISABLED", "2", "3"}
		if got := codes(results); !slices.Equal(got, want) {
			t.Errorf("got  %v\nwant %v", got, want)
		}
	})
	t.Run("I-03 a duplicate of a paused bot's event is a duplicate", func(t *testing.T) {
		r.db.MustExec(`UPDATE queues SET paused = true WHERE bot_id = $1`, r.bot)
		results, err := r.Append(t.Context(), []delivery.Event{twice, event(r.bot, "new")})
		if got, want := codes(results), []string{"duplicate of 1", "BOT_PAUSED"}; err != nil || !slices.Equal(got, want) {
			t.Errorf("got %v %v, want %v", got, err, want)
		}
		r.db.MustExec(`UPDATE queues SET paused = false WHERE bot_id = $1`, r.bot)
	})
	t.Run("I-03 duplicate after it was confirmed, for 7 days and no longer", func(t *testing.T) {
		r.drain(t)
		r.clock.advance(7*24*time.Hour - time.Minute)
		results, err := r.Append(t.Context(), []delivery.Event{twice})
		if got, want := codes(results), []string{"duplicate of 1"}; err != nil || !slices.Equal(got, want) {
			t.Errorf("got %v %v, want %v", got, err, want)
		}
		r.clock.advance(time.Minute)
		results, err = r.Append(t.Context(), []delivery.Event{twice, twice})
		if got, want := codes(results), []string{"4", "duplicate of 4"}; err != nil || !slices.Equal(got, want) {
			t.Errorf("got %v %v after 7 days, want %v", got, err, want)
		}
	})
}

func TestAppendRaces(t *testing.T) {
	t.Parallel()
	t.Run("U-02 no lower id becomes visible late: an append held open holds up the next ones, and the poll", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.append(1)
		// An append of another process: the row is counted up, not committed yet.
		tx := r.db.MustBegin()
		var id int64
		if err := tx.Get(&id, `UPDATE queues SET next_update_id = next_update_id + 1, waiting = waiting + 1, waiting_bytes = waiting_bytes + 2
			WHERE bot_id = $1 RETURNING next_update_id - 1`, r.bot); err != nil {
			t.Fatal(err)
		}
		tx.MustExec(`INSERT INTO updates (bot_id, update_id, event_id, type, date, expires_at, chat_id, message_id, payload)
			VALUES ($1, $2, gen_random_uuid(), 'message', $3, $4, 0, 0, '{}')`, r.bot, id, r.clock.Now(), r.clock.Now().Add(time.Hour))

		appended := make(chan []queue.Appended, 1)
		go func() {
			results, err := r.Append(context.WithoutCancel(t.Context()), []delivery.Event{event(r.bot, "later")})
			if err != nil {
				t.Error(err)
			}
			appended <- results
		}()
		dbtest.WaitBlocked(t, r.db, 1)
		polled := make(chan delivery.Batch, 1)
		go func() {
			got, err := r.Receive(context.WithoutCancel(t.Context()), r.bot, delivery.Poll{ConsumerID: "a", Limit: 100}, "")
			if err != nil {
				t.Error(err)
			}
			polled <- got.Batch
		}()
		dbtest.WaitBlocked(t, r.db, 2)
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if got := (<-appended)[0].UpdateID; got != id+1 {
			t.Errorf("the later append got id %d, want %d", got, id+1)
		}
		b := <-polled
		for i, u := range b.Updates {
			if u.UpdateID != int64(i)+1 {
				t.Errorf("got update %d at place %d, want %d", u.UpdateID, i, i+1)
			}
		}
		if len(b.Updates) < 2 {
			t.Errorf("the poll got %d updates, want the one that was held open too", len(b.Updates))
		}
	})
	t.Run("I-03 two replicas given the same events at once write each once; I-04 in order", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		replica := queue.New(r.db, r.clock, func(int64) {})
		defer replica.Close()
		events := make([]delivery.Event, 200)
		for i := range events {
			events[i] = event(r.bot, fmt.Sprint(i))
		}
		var wg sync.WaitGroup
		results := make([][]queue.Appended, 8)
		for i := range results {
			q := []*queue.Queue{r.Queue, replica}[i%2]
			wg.Go(func() {
				var err error
				if results[i], err = q.Append(t.Context(), events); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		first := 0
		for i, list := range results {
			for j, res := range list {
				if res.Refusal != nil || res.UpdateID != int64(j)+1 {
					t.Fatalf("caller %d: event %d got %+v, want id %d", i, j, res, j+1)
				}
				if !res.Duplicate {
					first++
				}
			}
		}
		if first != len(events) {
			t.Errorf("got %d first writings, want %d", first, len(events))
		}
	})
	t.Run("I-04 concurrent callers keep their own order, ids have no hole and no twin", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		const callers, calls, each = 16, 10, 5
		var wg sync.WaitGroup
		var mu sync.Mutex
		var all []int64
		for range callers {
			wg.Go(func() {
				last := int64(0)
				for range calls {
					events := make([]delivery.Event, each)
					for i := range events {
						events[i] = event(r.bot, "x")
					}
					results, err := r.Append(t.Context(), events)
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					for _, res := range results {
						if res.UpdateID <= last {
							t.Errorf("got id %d after %d of the same caller", res.UpdateID, last)
						}
						last = res.UpdateID
						all = append(all, last)
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		slices.Sort(all)
		for i, id := range all {
			if id != int64(i)+1 {
				t.Fatalf("got id %d at place %d", id, i)
			}
		}
		if ids, _ := r.drain(t); !slices.Equal(ids, all) {
			t.Errorf("got %d ids by polling, want the %d that were answered", len(ids), len(all))
		}
	})
	t.Run("P-02 an append between the look and the wait isn't missed: the bell rang before", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		got, err := r.Receive(t.Context(), r.bot, delivery.Poll{ConsumerID: "a", Limit: 100, Timeout: 25 * time.Second}, "")
		if err != nil || !got.Waiting {
			t.Fatalf("got %+v %v, want a wait", got, err)
		}
		for len(r.rings) > 0 {
			<-r.rings
		}
		r.append(1)
		if bot := <-r.rings; bot != r.bot {
			t.Errorf("the bell rang for %d, want %d", bot, r.bot)
		}
		got, err = r.Resume(t.Context(), r.bot, got.Ticket, 100, false)
		if err != nil || got.Waiting || len(got.Batch.Updates) != 1 {
			t.Errorf("got %+v %v, want the update", got, err)
		}
	})
}

func TestAppendFailure(t *testing.T) {
	t.Parallel()
	t.Run("I-01 an event that the database can't take harms only its own caller", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		bad := event(r.bot, "bad")
		bad.Type = "a\x00b" // no text in PostgreSQL; intake lets none through
		// Hold the bot's row, so that both callers land in one group behind the first.
		tx := r.db.MustBegin()
		tx.MustExec(`SELECT 1 FROM queues WHERE bot_id = $1 FOR UPDATE`, r.bot)
		var wg sync.WaitGroup
		wg.Go(func() { r.mustAppend(t, event(r.bot, "1")) })
		wg.Go(func() { r.mustAppend(t, event(r.bot, "2")) })
		dbtest.WaitBlocked(t, r.db, 1)
		failed := make(chan error, 1)
		wg.Go(func() {
			_, err := r.Append(t.Context(), []delivery.Event{bad})
			failed <- err
		})
		wg.Go(func() { r.mustAppend(t, event(r.bot, "3")) })
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if err := <-failed; err == nil || errors.Is(err, delivery.ErrUnavailable) {
			t.Errorf("got %v for the bad event, want an error that isn't «unavailable»", err)
		}
		if ids, _ := r.drain(t); !slices.Equal(ids, []int64{1, 2, 3}) {
			t.Errorf("got %v, want the three good ones", ids)
		}
	})
	t.Run("A-07 a queue that somebody holds for long is unavailable, and holds up no other", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		other := r.addBot("other")
		tx := r.db.MustBegin()
		tx.MustExec(`SELECT 1 FROM queues WHERE bot_id = $1 FOR UPDATE`, r.bot)
		both := []delivery.Event{event(r.bot, "held"), event(other, "free")}
		for range 3 {
			if _, err := r.Append(t.Context(), both); !errors.Is(err, delivery.ErrUnavailable) {
				t.Errorf("got %v for the held queue, want ErrUnavailable", err)
			}
			r.mustAppend(t, event(other, "free"))
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		results, err := r.Append(t.Context(), both)
		if got, want := codes(results), []string{"1", "duplicate of 1"}; err != nil || !slices.Equal(got, want) {
			t.Errorf("got %v %v once it is free, want %v", got, err, want)
		}
	})
	t.Run("G-04 after Close nothing is taken in", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.Close()
		if _, err := r.Append(t.Context(), []delivery.Event{event(r.bot, "x")}); !errors.Is(err, delivery.ErrUnavailable) {
			t.Errorf("got %v, want ErrUnavailable", err)
		}
	})
	t.Run("I-01 no partition for the week yet: it is made", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.append(1)
		r.clock.advance(100 * 24 * time.Hour)
		r.append(1)
		if n, err := r.DropWeeks(t.Context()); err != nil || n == 0 {
			t.Errorf("got %d dropped partitions %v, want the old ones", n, err)
		}
		r.append(1)
	})
}

func (r *rig) mustAppend(t *testing.T, e delivery.Event) {
	results, err := r.Append(t.Context(), []delivery.Event{e})
	if err != nil || results[0].Refusal != nil {
		t.Errorf("append: got %+v %v", results, err)
	}
}
