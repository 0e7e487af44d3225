package queue_test

import (
	"slices"
	"testing"
	"time"

	"mybots/delivery"
	"mybots/delivery/queue"
)

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
