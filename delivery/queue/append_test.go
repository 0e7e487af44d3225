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

	"github.com/jmoiron/sqlx"

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

func TestLimits(t *testing.T) {
	t.Parallel()
	fill := func(t *testing.T, r *rig, n int, payload []byte) []queue.Appended {
		t.Helper()
		var all []queue.Appended
		for n > 0 {
			batch := make([]delivery.Event, min(n, delivery.MaxEvents))
			for i := range batch {
				batch[i] = event(r.bot, "x")
				if payload != nil {
					batch[i].Payload = payload
				}
			}
			results, err := r.Append(t.Context(), batch)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, results...)
			n -= len(batch)
		}
		return all
	}
	t.Run("Q-02 10,000 waiting updates and no more; I-03 a duplicate is known when the queue is full", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		first := event(r.bot, "first")
		if _, err := r.Append(t.Context(), []delivery.Event{first}); err != nil {
			t.Fatal(err)
		}
		results := fill(t, r, 10_000, nil)
		if got := results[9_998]; got.UpdateID != 10_000 {
			t.Errorf("got %+v for the 10,000th, want it accepted", got)
		}
		got := results[9_999]
		if got.Refusal == nil || got.Refusal.Code != delivery.QueueFull {
			t.Errorf("got %+v for the 10,001st, want QUEUE_FULL", got)
		}
		again, err := r.Append(t.Context(), []delivery.Event{first, event(r.bot, "more")})
		if got, want := codes(again), []string{"duplicate of 1", "QUEUE_FULL"}; err != nil || !slices.Equal(got, want) {
			t.Errorf("got %v %v, want %v", got, err, want)
		}
		// One confirmed makes room for one.
		b := r.poll(t, delivery.Poll{ConsumerID: "a", Limit: 1})
		r.poll(t, delivery.Poll{ConsumerID: "a", Limit: 1, HasEpoch: true, Epoch: b.Lease.Epoch, HasOffset: true, Offset: b.NextOffset})
		if got, want := codes(fill(t, r, 2, nil)), []string{"10001", "QUEUE_FULL"}; !slices.Equal(got, want) {
			t.Errorf("got %v after one was confirmed, want %v", got, want)
		}
	})
	t.Run("Q-02 50 MiB of payload and no more; what still fits is taken", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		payload := []byte(`{"t":"` + strings.Repeat("x", 256<<10-8) + `"}`) // 256 KiB: 200 of them are 50 MiB
		results := fill(t, r, 199, payload)
		if last := results[198]; last.Refusal != nil {
			t.Fatalf("got %+v for the 199th, want it accepted", last)
		}
		small := event(r.bot, "small")
		small.Payload = []byte(`{}`)
		big := event(r.bot, "big")
		big.Payload = payload
		exact := event(r.bot, "exact")
		exact.Payload = payload[:len(payload)-4]
		exact.Payload = append(slices.Clone(exact.Payload), `"}`...)
		got, err := r.Append(t.Context(), []delivery.Event{small, big, exact, small})
		if want := []string{"200", "QUEUE_FULL", "201", "duplicate of 200"}; err != nil || !slices.Equal(codes(got), want) {
			t.Errorf("got %v %v, want %v", codes(got), err, want)
		}
		s, err := r.Status(t.Context(), r.bot)
		if err != nil || s.WaitingBytes != delivery.MaxWaitingBytes {
			t.Errorf("got %d waiting bytes %v, want %d", s.WaitingBytes, err, delivery.MaxWaitingBytes)
		}
	})
	t.Run("P-17 a batch stops before it would pass 4 MiB", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		fill(t, r, 20, []byte(`{"t":"`+strings.Repeat("x", 256<<10-8)+`"}`))
		b := r.poll(t, delivery.Poll{ConsumerID: "a"})
		if len(b.Updates) != 16 || b.NextOffset != 17 {
			t.Errorf("got %d updates up to %d, want 16 up to 17", len(b.Updates), b.NextOffset)
		}
		b = r.poll(t, delivery.Poll{ConsumerID: "a", HasEpoch: true, Epoch: b.Lease.Epoch, HasOffset: true, Offset: b.NextOffset})
		if len(b.Updates) != 4 || b.NextOffset != 21 {
			t.Errorf("got %d updates up to %d, want 4 up to 21", len(b.Updates), b.NextOffset)
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

func TestMessageDeleted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	about := func(typ string, message int64) delivery.Event {
		e := event(r.bot, typ)
		e.Type, e.MessageID = typ, message
		return e
	}
	append := func(events ...delivery.Event) {
		t.Helper()
		if _, err := r.Append(t.Context(), events); err != nil {
			t.Fatal(err)
		}
	}
	append(about("message", 1), about("message", 2)) // 1, 2
	b := r.poll(t, delivery.Poll{ConsumerID: "a", Limit: 2})
	if _, _, err := r.Reject(t.Context(), queue.Once{BotID: r.bot, Key: "k", Fingerprint: []byte("f")}, delivery.Rejection{UpdateID: 2, Reason: "no", ConsumerID: "a", Epoch: b.Lease.Epoch}); err != nil {
		t.Fatal(err)
	}
	other := about("message", 1)
	other.ChatID = 551
	append(about("message_edited", 1), about("message", 3), other) // 3, 4, 5
	append(about("message_deleted", 1), about("message_deleted", 2))
	r.clock.advance(time.Minute) // a's lease ends
	ids, skipped := r.drain(t)
	t.Run("F-04 I-05 a deleted message cancels what was never issued about it, whatever its type, and FAILED ones; its own event goes out", func(t *testing.T) {
		// 1 was issued and stays; 2 FAILED and is reported so; 3 is cancelled; 5 is of another chat.
		if want := []int64{1, 4, 5, 6, 7}; !slices.Equal(ids, want) {
			t.Errorf("got %v, want %v", ids, want)
		}
		want := []delivery.Range{{From: 2, To: 2, Reason: "failed"}, {From: 3, To: 3, Reason: "cancelled"}}
		if !slices.Equal(skipped, want) {
			t.Errorf("got %v, want %v", skipped, want)
		}
		s, err := r.Status(t.Context(), r.bot)
		if err != nil || s.Failed != 0 || s.Waiting != 0 || s.WaitingBytes != 0 {
			t.Errorf("got %d FAILED, %d waiting, %d bytes %v, want none", s.Failed, s.Waiting, s.WaitingBytes, err)
		}
	})
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	t.Run("Q-01 P-13 what is older than 7 days is reported as expired, by a poll without any sweep", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.append(3)
		r.clock.advance(time.Hour)
		r.append(1)
		r.clock.advance(7*24*time.Hour - time.Hour - time.Second)
		b := r.poll(t, delivery.Poll{ConsumerID: "a"}) // the clock's second makes it 7 days to the moment
		if len(b.Updates) != 1 || b.Updates[0].UpdateID != 4 || !slices.Equal(b.Skipped, []delivery.Range{{From: 1, To: 3, Reason: "expired"}}) {
			t.Errorf("got %+v, want 1 to 3 expired and update 4", b)
		}
	})
	t.Run("Q-01 the sweep frees the queue and rings; FAILED ones expire too, and stay reported as failed", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.append(3)
		b := r.poll(t, delivery.Poll{ConsumerID: "a"})
		if _, _, err := r.Reject(t.Context(), queue.Once{BotID: r.bot, Key: "k", Fingerprint: []byte("f")}, delivery.Rejection{UpdateID: 2, Reason: "no", ConsumerID: "a", Epoch: b.Lease.Epoch}); err != nil {
			t.Fatal(err)
		}
		r.clock.advance(7 * 24 * time.Hour)
		n, err := r.Expire(t.Context())
		if err != nil || n != 2 {
			t.Errorf("got %d %v, want 2 expired", n, err)
		}
		s, err := r.Status(t.Context(), r.bot)
		if err != nil || s.Waiting != 0 || s.WaitingBytes != 0 || s.Failed != 0 {
			t.Errorf("got %+v %v, want an empty queue", s, err)
		}
		_, skipped := r.drain(t)
		want := []delivery.Range{{From: 1, To: 1, Reason: "expired"}, {From: 2, To: 2, Reason: "failed"}, {From: 3, To: 3, Reason: "expired"}}
		if !slices.Equal(skipped, want) {
			t.Errorf("got %v, want %v", skipped, want)
		}
	})
}

func TestOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	call := queue.Once{BotID: r.bot, Key: "key", Fingerprint: []byte("fields")}
	if err := r.MakeWeeks(t.Context()); err != nil { // else the first round ends at the missing partition, undone
		t.Fatal(err)
	}
	did := 0
	do := func(*sqlx.Tx) ([]byte, error) {
		did++
		return fmt.Appendf(nil, `{"did":%d}`, did), nil
	}
	t.Run("A-06 equal calls that race do it once", func(t *testing.T) {
		var wg sync.WaitGroup
		var mu sync.Mutex
		answers := map[string]int{}
		for range 8 {
			wg.Go(func() {
				answer, replayed, err := r.Once(t.Context(), call, do) // do runs under the key's lock
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				answers[fmt.Sprintf("%s %v", answer, replayed)]++
			})
		}
		wg.Wait()
		if did != 1 || answers[`{"did":1} false`] != 1 || answers[`{"did":1} true`] != 7 {
			t.Errorf("did it %d times, answers %v", did, answers)
		}
	})
	t.Run("A-06 the same key for other values is IDEMPOTENCY_KEY_REUSED", func(t *testing.T) {
		other := call
		other.Fingerprint = []byte("other")
		if _, _, err := r.Once(t.Context(), other, do); codeOf(err) != delivery.IdempotencyKeyReused {
			t.Errorf("got %v", err)
		}
	})
	t.Run("A-06 only successes are stored", func(t *testing.T) {
		fails := queue.Once{BotID: r.bot, Key: "fails", Fingerprint: []byte("fields")}
		refusal := delivery.Refuse(delivery.ChatNotFound, "no")
		if _, _, err := r.Once(t.Context(), fails, func(*sqlx.Tx) ([]byte, error) { return nil, refusal }); codeOf(err) != delivery.ChatNotFound {
			t.Fatalf("got %v", err)
		}
		if answer, replayed, err := r.Once(t.Context(), fails, do); err != nil || replayed || string(answer) != `{"did":2}` {
			t.Errorf("got %s %v %v after a failure, want it done", answer, replayed, err)
		}
	})
	t.Run("A-06 kept for 7 days and no longer", func(t *testing.T) {
		r.clock.advance(7*24*time.Hour - time.Second)
		if _, replayed, err := r.Once(t.Context(), call, do); err != nil || !replayed {
			t.Errorf("got replayed %v %v before 7 days are over, want the stored answer", replayed, err)
		}
		r.clock.advance(time.Second)
		if answer, replayed, err := r.Once(t.Context(), call, do); err != nil || replayed || string(answer) != `{"did":3}` {
			t.Errorf("got %s %v %v after 7 days, want it done again", answer, replayed, err)
		}
	})
}
