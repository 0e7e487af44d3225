package main_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// at writes a getUpdates body: who asks, with which epoch and offset (empty for none), and more fields.
func at(consumer, epoch, offset, more string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"consumer_id":"%s"`, consumer)
	if epoch != "" {
		fmt.Fprintf(&b, `,"epoch":"%s"`, epoch)
	}
	if offset != "" {
		fmt.Fprintf(&b, `,"offset":"%s"`, offset)
	}
	return b.String() + more + "}"
}

const now = `,"timeout":0` // of a poll that doesn't wait

func TestPolling(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, other := w.serve(t), w.serve(t)

	t.Run("P-01 fields out of their range are refused, named, with the range", func(t *testing.T) {
		t.Parallel()
		b := w.bot(t)
		for _, c := range []struct{ fields, field, low, high string }{
			{`"timeout":-1`, "timeout", "0", "25"}, {`"timeout":26`, "timeout", "0", "25"}, {`"timeout":1.5`, "timeout", "0", "25"}, {`"timeout":"5"`, "timeout", "0", "25"},
			{`"timeout":true`, "timeout", "0", "25"}, {`"timeout":1e99`, "timeout", "0", "25"}, {`"timeout":99999999999999999999`, "timeout", "0", "25"}, {`"timeout":[0]`, "timeout", "0", "25"},
			{`"limit":0`, "limit", "1", "100"}, {`"limit":101`, "limit", "1", "100"}, {`"limit":-5`, "limit", "1", "100"}, {`"limit":"1"`, "limit", "1", "100"}, {`"limit":{}`, "limit", "1", "100"},
		} {
			a := s.refused(t, "INVALID_REQUEST", b, "getUpdates", `{"consumer_id":"a",`+c.fields+`}`)
			if !strings.Contains(a.message, c.field) || !strings.Contains(a.message, c.low) || !strings.Contains(a.message, c.high) {
				t.Errorf("%s: got %q, want the field and its range", c.fields, a.message)
			}
		}
		for _, consumer := range []string{`""`, `"` + strings.Repeat("a", 65) + `"`, `"a b"`, `"é"`, `"a/b"`, `"a\n"`, `"a\u0000"`, `" a"`, `"a:b"`, `"@"`, `"а"`, `5`, `null`, `[]`} {
			a := s.refused(t, "INVALID_REQUEST", b, "getUpdates", `{"timeout":0,"consumer_id":`+consumer+`}`)
			if !strings.Contains(a.message, "consumer_id") {
				t.Errorf("consumer_id %s: got %q, want it named", consumer, a.message)
			}
		}
		if lease := s.info(t, b).Lease; lease != nil {
			t.Errorf("refused calls took a lease: %+v", lease)
		}
	})
	t.Run("P-01 the ends of the ranges are allowed", func(t *testing.T) {
		t.Parallel()
		for _, consumer := range []string{"a", "0", ".", "_", "-", "A-Za-z0-9._-", strings.Repeat("a", 64)} {
			b := w.bot(t)
			if got := s.poll(t, b, at(consumer, "", "", `,"timeout":0,"limit":1`)); got.Lease.ConsumerID != consumer {
				t.Errorf("got the lease for %q, want %q", got.Lease.ConsumerID, consumer)
			}
		}
		b := w.bot(t)
		s.write(t, event{bot: b})
		s.poll(t, b, at("a", "", "", `,"timeout":25,"limit":100`)) // returns at once
	})
	t.Run("P-01 the timeout is 25 s and the limit 100 unless told otherwise", func(t *testing.T) {
		t.Parallel()
		b := w.bot(t)
		done := s.waiting(t, b, `{"consumer_id":"a"}`)
		if lease := s.info(t, b).Lease; !about(lease.ExpiresAt, time.Now().Add(85*time.Second)) {
			t.Errorf("P-04 got a lease until %v, want the end of a wait of 25 s and 60 s", lease.ExpiresAt)
		}
		s.write(t, some(b, 150)...)
		e := receive(t, 5*time.Second, "the poll ends", done)
		again := s.poll(t, b, at("a", e.batch.Lease.Epoch, "", ""))
		if len(again.Updates) != 100 {
			t.Errorf("got %d updates, want 100", len(again.Updates))
		}
	})
	t.Run("P-02 a poll returns as soon as there is something, through whichever replica it came", func(t *testing.T) {
		t.Parallel()
		for _, writer := range []*server{s, other} {
			b := w.bot(t)
			done := s.waiting(t, b, at("a", "", "", `,"timeout":20`))
			began := time.Now()
			writer.write(t, event{bot: b})
			receive(t, 3*time.Second, "the waiting poll ends", done).gave(t, "1 | | 1..2")
			t.Logf("woken after %v", time.Since(began))
		}
	})
	t.Run("P-02 a poll for nothing returns an empty batch after its timeout", func(t *testing.T) {
		t.Parallel()
		b := w.bot(t)
		s.write(t, some(b, 2)...)
		first := s.poll(t, b, at("a", "", "", now))
		began := time.Now()
		e := receive(t, 10*time.Second, "the poll ends", other.pollBeside(b, at("a", first.Lease.Epoch, "3", `,"timeout":2`)))
		e.gave(t, "| | 3..3")
		if took := time.Since(began); took < 2*time.Second-50*time.Millisecond || took > 4*time.Second {
			t.Errorf("got the answer after %v, want 2 s", took)
		}
		if !about(e.batch.Lease.ExpiresAt, time.Now().Add(time.Minute)) || e.batch.Lease.Epoch != first.Lease.Epoch {
			t.Errorf("got the lease %+v, want it until 60 s from now", e.batch.Lease)
		}
	})
	t.Run("P-10 a bot that has received nothing has position 1", func(t *testing.T) {
		t.Parallel()
		b := w.bot(t)
		if i := s.info(t, b); i.ConfirmedOffset != "1" || i.MaxIssued != "0" || i.Lease != nil {
			t.Errorf("got %+v", i)
		}
		if got := s.poll(t, b, at("a", "", "1", now)); got.outline() != "| | 1..1" {
			t.Errorf("got %s", got.outline())
		}
	})
	t.Run("P-10 P-12 offsets: the table of the seed", func(t *testing.T) {
		t.Parallel()
		b := w.bot(t)
		s.write(t, some(b, 6)...)
		first := s.poll(t, b, at("a", "", "", `,"timeout":0,"limit":4`))
		epoch := first.Lease.Epoch
		if first.outline() != "1 2 3 4 | | 1..5" {
			t.Fatalf("got %s", first.outline())
		}
		for _, c := range []struct{ offset, code, outline string }{
			{"1", "", "1 2 | | 1..3"},
			{"3", "", "3 4 | | 3..5"},
			{"3", "", "3 4 | | 3..5"},
			{"2", "CURSOR_BEHIND", ""},
			{"0", "CURSOR_BEHIND", ""},
			{"6", "OFFSET_NOT_ISSUED", ""},
			{"7", "OFFSET_NOT_ISSUED", ""},
			{"", "", "3 4 | | 3..5"},
			{"5", "", "5 6 | | 5..7"},
			{"4", "CURSOR_BEHIND", ""},
			{"7", "", "| | 7..7"},
			{"8", "OFFSET_NOT_ISSUED", ""},
			{"", "", "| | 7..7"},
		} {
			body := at("a", epoch, c.offset, `,"timeout":0,"limit":2`)
			if c.code != "" {
				a := s.pollFails(t, c.code, b, body)
				if want := map[string]string{"2": "3", "0": "3", "4": "5"}[c.offset]; a.confirmed != want {
					t.Errorf("offset %s: got confirmed_offset %q, want %q", c.offset, a.confirmed, want)
				}
				continue
			}
			if got := s.poll(t, b, body); got.outline() != c.outline || got.Lease.Epoch != epoch {
				t.Errorf("offset %q: got %s in epoch %s, want %s in %s", c.offset, got.outline(), got.Lease.Epoch, c.outline, epoch)
			}
		}
		if i := s.info(t, b); i.Pending != 0 || i.PendingBytes != 0 || i.ConfirmedOffset != "7" || i.MaxIssued != "6" || i.OldestPendingDate != nil {
			t.Errorf("W-15 got %+v for an empty queue", i)
		}
	})
	t.Run("P-17 a batch holds at most 4 MiB of payload, and at least one update", func(t *testing.T) {
		t.Parallel()
		b := w.bot(t)
		full := event{bot: b, payload: `{"a":"` + strings.Repeat("x", 256<<10-8) + `"}`} // 16 of them are 4 MiB
		var events []event
		for range 17 {
			events = append(events, full)
		}
		events = append(events, event{bot: b, payload: `{}`})
		s.write(t, events...)
		first := s.poll(t, b, at("a", "", "", now))
		second := s.poll(t, b, at("a", first.Lease.Epoch, first.NextOffset, now))
		if len(first.Updates) != 16 || len(second.Updates) != 2 {
			t.Errorf("got %d and %d updates, want 16 and 2", len(first.Updates), len(second.Updates))
		}
		s.write(t, event{bot: b, payload: `{"a":1}`}, full, full)
		if third := s.poll(t, b, at("a", first.Lease.Epoch, second.NextOffset, now)); len(third.Updates) != 3 {
			t.Errorf("got %d updates, want 3", len(third.Updates))
		}
	})
	t.Run("P-03 five calls a second, over all replicas, whatever they come to", func(t *testing.T) {
		t.Parallel()
		b := w.bot(t)
		for range 30 { // none of these counts
			s.refused(t, "INVALID_REQUEST", b, "getUpdates", `{}`)
			s.ok(t, b, "getDeliveryInfo", `{}`)
		}
		began := time.Now()
		var wg sync.WaitGroup
		answers, errs := make([]answer, 40), make([]error, 40)
		for i := range answers {
			wg.Go(func() {
				answers[i], errs[i] = []*server{s, other}[i%2].try(b, "getUpdates", at(fmt.Sprint("c", i), "", "", now))
			})
		}
		wg.Wait()
		took := time.Since(began)
		count := map[string]int{}
		for i, a := range answers {
			if errs[i] != nil {
				t.Fatal(errs[i])
			}
			count[a.code]++
			if a.code == "RATE_LIMITED" && a.retry != 1 {
				t.Errorf("got retry_after %d, want 1", a.retry)
			}
		}
		through := 40 - count["RATE_LIMITED"]
		if most := 5 + int(took.Seconds()*5) + 1; through < 5 || through > most || count[""] != 1 {
			t.Errorf("got %v in %v, want 5 to %d calls through, one of them with the lease", count, took, most)
		}
	})
}
