package main_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestDuplicates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, other := w.serve(t), w.serve(t)

	t.Run("I-03 the same event again gives the first update_id and writes nothing", func(t *testing.T) {
		t.Parallel()
		b, stranger := w.bot(t), w.bot(t)
		e := event{bot: b, payload: `{"text":"first"}`}.filled()
		changed := event{bot: b, id: e.id, kind: "message_edited", date: "2000-01-01T00:00:00Z", payload: `{"text":"changed"}`}.json()
		if got := fmt.Sprint(s.writeRaw(t, e.json(), event{bot: b}.filled().json(), e.json(), changed)); got != "[1 2 1 again 1 again]" {
			t.Errorf("in one batch: got %s", got)
		}
		for _, s := range []*server{s, other} {
			if got := fmt.Sprint(s.writeRaw(t, changed, event{bot: stranger, id: e.id}.filled().json(), e.json())); got != "[1 again 1 1 again]" && got != "[1 again 1 again 1 again]" {
				t.Errorf("in a later batch: got %s", got)
			}
		}
		got := s.poll(t, b, at("a", "", "", now))
		if got.outline() != "1 2 | | 1..3" || got.Updates[0].payload != e.payload || got.Updates[0].Type != "message" {
			t.Errorf("got %s, the first %s", got.outline(), got.Updates[0].raw)
		}
		s.poll(t, b, at("a", got.Lease.Epoch, "3", now))
		if got := fmt.Sprint(other.writeRaw(t, e.json())); got != "[1 again]" {
			t.Errorf("after it was confirmed: got %s", got)
		}
		if i := s.info(t, b); i.Pending != 0 {
			t.Errorf("got %d pending, want none", i.Pending)
		}
	})
	t.Run("I-03 a refused event isn't remembered", func(t *testing.T) {
		t.Parallel()
		b := w.bot(t)
		e := event{bot: b}.filled()
		large := event{bot: b, id: e.id, payload: `{"a":"` + strings.Repeat("x", 256<<10) + `"}`}.filled()
		if got := fmt.Sprint(s.writeRaw(t, large.json(), e.json(), large.json(), e.json())); got != "[PAYLOAD_TOO_LARGE 1 PAYLOAD_TOO_LARGE 1 again]" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("I-03 of calls that race with one event one writes it", func(t *testing.T) {
		t.Parallel()
		b := w.bot(t)
		for round := range 5 {
			e := event{bot: b}.filled()
			batch := eventsBody(event{bot: b}.filled().json(), e.json(), event{bot: b}.filled().json())
			var wg sync.WaitGroup
			got := make([][]written, 16)
			errs := make([]error, 16)
			for i := range got {
				wg.Go(func() {
					a, err := []*server{s, other}[i%2].tryEvents(batch)
					if err == nil {
						got[i], err = a.results(3)
					}
					errs[i] = err
				})
			}
			wg.Wait()
			fresh := 0
			for i := range got {
				if errs[i] != nil {
					t.Fatal(errs[i])
				}
				for k := range 3 {
					if got[i][k].UpdateID != fmt.Sprint(3*round+k+1) {
						t.Errorf("round %d, call %d: got %v, want update %d", round, i, got[i], 3*round+k+1)
					}
					if !*got[i][k].Duplicate {
						fresh++
					}
				}
			}
			if fresh != 3 {
				t.Errorf("round %d: %d events were written, want 3", round, fresh)
			}
		}
	})
	t.Run("I-04 events keep their order, in one request and over requests and replicas", func(t *testing.T) {
		t.Parallel()
		b, c := w.bot(t), w.bot(t)
		var want []string
		for i := range 20 {
			batch := []event{{bot: b}, {bot: c}, {bot: b}, {bot: b}, {bot: c}}
			for _, e := range []*server{s, other}[i%2].write(t, batch...) {
				if e.bot == b {
					want = append(want, e.id)
				}
			}
		}
		for i, u := range s.poll(t, b, at("a", "", "", now)).Updates {
			if u.EventID != want[i] {
				t.Fatalf("update %d is event %s, want %s", i+1, u.EventID, want[i])
			}
		}
	})
}

func TestQueueLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testClock)
	s := w.serve(t)
	t.Run("Q-02 I-03 a queue holds 10,000 waiting updates, then QUEUE_FULL for that bot alone", func(t *testing.T) {
		b, beside := w.bot(t), w.bot(t)
		var last []event
		for range 19 {
			last = s.write(t, some(b, 500)...)
		}
		s.write(t, some(b, 498)...)
		e := func(b *bot) string { return event{bot: b}.filled().json() }
		got := fmt.Sprint(s.writeRaw(t, e(b), e(beside), e(b), e(b), e(beside), last[0].json(), e(b)))
		if want := "[9999 1 10000 QUEUE_FULL 2 9001 again QUEUE_FULL]"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if i := s.info(t, b); i.Pending != 10_000 {
			t.Errorf("got %d pending, want 10000", i.Pending)
		}
		first := s.poll(t, b, at("a", "", "", now))
		if got := fmt.Sprint(s.writeRaw(t, e(b))); got != "[QUEUE_FULL]" {
			t.Errorf("issuing frees nothing: got %s", got)
		}
		s.poll(t, b, at("a", first.Lease.Epoch, "4", now))
		if got := fmt.Sprint(s.writeRaw(t, e(b), e(b), e(b), e(b))); got != "[10001 10002 10003 QUEUE_FULL]" {
			t.Errorf("after 3 were confirmed: got %s", got)
		}
		s.reject(t, b, "5", "a", first.Lease.Epoch)
		if got := fmt.Sprint(s.writeRaw(t, e(b), e(b))); got != "[10004 QUEUE_FULL]" {
			t.Errorf("FAILED updates don't count: got %s", got)
		}
		s.advance(t, week+time.Minute)
		if got := fmt.Sprint(s.writeRaw(t, e(b))); got != "[10005]" && got != "[QUEUE_FULL]" {
			t.Errorf("after all expired: got %s", got)
		}
		eventually(t, 10*time.Second, "what expired counts no more", func() bool { return s.info(t, b).Pending <= 1 })
	})
	t.Run("Q-02 a queue holds 50 MiB of payload", func(t *testing.T) {
		b := w.bot(t)
		full := event{bot: b, payload: `{"a":"` + strings.Repeat("x", 256<<10-8) + `"}`}
		for n := 200; n > 0; n -= 25 { // 200 are 50 MiB
			events := make([]event, 25)
			for i := range events {
				events[i] = full
			}
			s.write(t, events...)
		}
		i := s.info(t, b)
		if i.PendingBytes != 50<<20 || i.Pending != 200 {
			t.Fatalf("got %d bytes in %d updates, want 50 MiB in 200", i.PendingBytes, i.Pending)
		}
		small := event{bot: b, payload: "{}"}
		if got := fmt.Sprint(s.writeRaw(t, small.filled().json())); got != "[QUEUE_FULL]" {
			t.Errorf("got %s, want QUEUE_FULL", got)
		}
		lease := s.poll(t, b, at("a", "", "", `,"timeout":0,"limit":1`)).Lease
		s.poll(t, b, at("a", lease.Epoch, "2", `,"timeout":0,"limit":1`))
		got := fmt.Sprint(s.writeRaw(t, small.filled().json(), full.filled().json(), small.filled().json()))
		if want := "[201 QUEUE_FULL 202]"; got != want {
			t.Errorf("after one was confirmed: got %s, want %s: what fits is taken", got, want)
		}
	})
}
