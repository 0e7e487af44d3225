package queue_test

import (
	"slices"
	"strings"
	"testing"

	"mybots/delivery"
	"mybots/delivery/queue"
)

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
