package main_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// deletes is the messenger's word that a message was deleted (I-05).
func deletes(b *bot, chat, message string) event {
	return event{bot: b, kind: "message_deleted", chat: chat, message: message,
		payload: fmt.Sprintf(`{"chat":{"id":"%s"},"message_id":"%s"}`, chat, message)}
}

// said is a message of a chat.
func said(b *bot, chat, message string) event {
	return event{bot: b, chat: chat, message: message, payload: fmt.Sprintf(`{"message_id":"%s"}`, message)}
}

// reject moves an update to FAILED.
func (s *server) reject(t testing.TB, b *bot, id, consumer, epoch string) {
	t.Helper()
	s.ok(t, b, "rejectUpdate", fmt.Sprintf(`{"update_id":"%s","reason":"bad","consumer_id":"%s","epoch":"%s"}`, id, consumer, epoch), "Idempotency-Key: reject-"+id)
}

func TestSkipped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve(t)

	t.Run("P-13 P-14 I-05 cancelled and failed ranges, joined and in order", func(t *testing.T) {
		t.Parallel()
		b := w.bot(t)
		s.write(t, said(b, "5", "1"), said(b, "5", "2"), said(b, "5", "3"), said(b, "5", "4"), said(b, "5", "5"), said(b, "5", "6"))
		s.write(t, deletes(b, "5", "2"), deletes(b, "5", "3"), deletes(b, "5", "6"))
		got := s.poll(t, b, at("a", "", "", now))
		if want := "1 4 5 7 8 9 | 2-3 cancelled 6-6 cancelled | 1..10"; got.outline() != want {
			t.Fatalf("got %s, want %s", got.outline(), want)
		}
		epoch := got.Lease.Epoch
		for _, id := range []string{"4", "5", "7"} {
			s.reject(t, b, id, "a", epoch)
		}
		got = s.poll(t, b, at("a", epoch, "", now))
		if want := "1 8 9 | 2-3 cancelled 4-5 failed 6-6 cancelled 7-7 failed | 1..10"; got.outline() != want {
			t.Errorf("got %s, want %s", got.outline(), want)
		}
		got = s.poll(t, b, at("a", epoch, "5", now)) // the position is within a range
		if want := "8 9 | 5-5 failed 6-6 cancelled 7-7 failed | 5..10"; got.outline() != want {
			t.Errorf("got %s, want %s", got.outline(), want)
		}
		got = s.poll(t, b, at("a", epoch, "10", now))
		if want := "| | 10..10"; got.outline() != want {
			t.Errorf("got %s, want %s", got.outline(), want)
		}
		if i := s.info(t, b); i.Failed != 3 || i.Pending != 0 {
			t.Errorf("got %d failed and %d pending, want 3 and 0", i.Failed, i.Pending)
		}
	})
	t.Run("P-13 limit counts updates only", func(t *testing.T) {
		t.Parallel()
		b := w.bot(t)
		var events []event
		for i := 1; i <= 40; i++ {
			events = append(events, said(b, "5", fmt.Sprint(i)))
		}
		s.write(t, events...)
		for i := 1; i <= 40; i++ {
			if i%2 == 0 {
				s.write(t, deletes(b, "5", fmt.Sprint(i)))
			}
		}
		got := s.poll(t, b, at("a", "", "", `,"timeout":0,"limit":5`))
		if want := "1 3 5 7 9 | 2-2 cancelled 4-4 cancelled 6-6 cancelled 8-8 cancelled | 1..10"; got.outline() != want {
			t.Errorf("got %s, want %s", got.outline(), want)
		}
	})
	t.Run("P-14 a range behind the last update comes in the next batch, at once", func(t *testing.T) {
		t.Parallel()
		b := w.bot(t)
		s.write(t, some(b, 3)...)
		got := s.poll(t, b, at("a", "", "", now))
		epoch := got.Lease.Epoch
		s.reject(t, b, "2", "a", epoch)
		s.reject(t, b, "3", "a", epoch)
		if got = s.poll(t, b, at("a", epoch, "", now)); got.outline() != "1 | | 1..2" {
			t.Fatalf("got %s, want 1 alone", got.outline())
		}
		e := receive(t, 3*time.Second, "a batch of ranges alone comes at once", s.pollBeside(b, at("a", epoch, "2", `,"timeout":25`)))
		e.gave(t, "| 2-3 failed | 2..4")
		if got = s.poll(t, b, at("a", epoch, "4", now)); got.outline() != "| | 4..4" {
			t.Errorf("got %s", got.outline())
		}
	})
	t.Run("P-02 a waiting poll ends with a range that comes meanwhile", func(t *testing.T) {
		t.Parallel()
		b := w.bot(t)
		s.write(t, event{bot: b})
		epoch := s.poll(t, b, at("a", "", "", now)).Lease.Epoch
		done := s.waiting(t, b, at("a", epoch, "2", `,"timeout":20`))
		// In one request: the message is gone before anybody could see it.
		s.write(t, said(b, "5", "1"), deletes(b, "5", "1"))
		receive(t, 3*time.Second, "the waiting poll ends", done).gave(t, "3 | 2-2 cancelled | 2..4")
	})
	t.Run("F-04 a deleted message leaves what was issued and other chats' alone", func(t *testing.T) {
		t.Parallel()
		b := w.bot(t)
		s.write(t, said(b, "5", "1"), said(b, "5", "2"))
		got := s.poll(t, b, at("a", "", "", `,"timeout":0,"limit":1`))
		edited := event{bot: b, kind: "message_edited", chat: "5", message: "2"}
		s.write(t, said(b, "6", "1"), said(b, "6", "2"), edited, deletes(b, "5", "1"), deletes(b, "5", "2"), deletes(b, "7", "1"))
		got = s.poll(t, b, at("a", got.Lease.Epoch, "", now))
		if want := "1 3 4 6 7 8 | 2-2 cancelled 5-5 cancelled | 1..9"; got.outline() != want {
			t.Errorf("got %s, want %s", got.outline(), want)
		}
		if i := s.info(t, b); i.Pending != 6 {
			t.Errorf("got %d pending, want 6", i.Pending)
		}
	})
	t.Run("F-04 a deleted message takes its FAILED updates out of the list", func(t *testing.T) {
		t.Parallel()
		b := w.bot(t)
		s.write(t, said(b, "5", "1"), said(b, "5", "2"))
		got := s.poll(t, b, at("a", "", "", now))
		s.reject(t, b, "1", "a", got.Lease.Epoch)
		s.write(t, deletes(b, "5", "1"))
		if i := s.info(t, b); i.Failed != 0 || i.Pending != 2 {
			t.Errorf("got %d failed and %d pending, want 0 and 2", i.Failed, i.Pending)
		}
		// P-13: it stays failed, whatever becomes of it there but for Skip.
		if got = s.poll(t, b, at("a", got.Lease.Epoch, "", now)); got.outline() != "2 3 | 1-1 failed | 1..4" {
			t.Errorf("got %s", got.outline())
		}
	})
}

func TestJumps(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testClock)
	s := w.serve(t)
	// jumped adds a bot whose position is 2, with 2 to 4 cancelled behind it: the
	// next batch jumps past what was issued.
	jumped := func(t *testing.T) (*bot, string) {
		t.Helper()
		b := w.bot(t)
		s.write(t, said(b, "5", "1"))
		epoch := s.poll(t, b, at("a", "", "", now)).Lease.Epoch
		s.write(t, said(b, "5", "2"), said(b, "5", "2"), said(b, "5", "2"))
		s.write(t, said(b, "6", "9"))
		s.write(t, deletes(b, "5", "2"))
		s.poll(t, b, at("a", epoch, "2", `,"timeout":0,"limit":1`))
		return b, epoch
	}
	t.Run("P-15 a jump is valid for the lease that it was issued to", func(t *testing.T) {
		b, epoch := jumped(t)
		got := s.poll(t, b, at("a", epoch, "2", `,"timeout":0,"limit":1`))
		if want := "5 | 2-4 cancelled | 2..6"; got.outline() != want {
			t.Fatalf("got %s, want %s", got.outline(), want)
		}
		if got = s.poll(t, b, at("a", epoch, "6", now)); got.outline() != "6 | | 6..7" {
			t.Errorf("got %s", got.outline())
		}
	})
	t.Run("P-15 after a restart with a new lease it gets OFFSET_NOT_ISSUED, and the range comes again", func(t *testing.T) {
		b := w.bot(t)
		s.write(t, some(b, 3)...)
		epoch := s.poll(t, b, at("a", "", "", `,"timeout":0,"limit":1`)).Lease.Epoch
		s.advance(t, week+time.Hour) // 1 was issued, 2 and 3 never
		got := s.poll(t, b, at("a", epoch, "2", now))
		epoch = got.Lease.Epoch
		if want := "| 2-3 expired | 2..4"; got.outline() != want {
			t.Fatalf("Q-01 got %s, want %s", got.outline(), want)
		}
		s.advance(t, 2*time.Minute)
		s.pollFails(t, "OFFSET_NOT_ISSUED", b, at("a", epoch, "4", now))
		if lease := s.info(t, b).Lease; lease != nil {
			t.Errorf("P-11 the error granted a lease: %+v", lease)
		}
		got = s.poll(t, b, at("a", epoch, "", now))
		if want := "| 2-3 expired | 2..4"; got.outline() != want {
			t.Fatalf("got %s, want %s", got.outline(), want)
		}
		s.pollFails(t, "OFFSET_NOT_ISSUED", b, at("a", got.Lease.Epoch, "3", now))
		if got = s.poll(t, b, at("a", got.Lease.Epoch, "4", now)); got.outline() != "| | 4..4" {
			t.Errorf("got %s", got.outline())
		}
		s.write(t, event{bot: b})
		if got = s.poll(t, b, at("a", got.Lease.Epoch, "4", now)); got.outline() != "4 | | 4..5" {
			t.Errorf("got %s: the ids went on", got.outline())
		}
	})
	t.Run("P-15 only the next_offset last returned is one", func(t *testing.T) {
		b := w.bot(t)
		s.write(t, some(b, 3)...)
		epoch := s.poll(t, b, at("a", "", "", `,"timeout":0,"limit":1`)).Lease.Epoch
		s.advance(t, week+time.Hour)
		got := s.poll(t, b, at("a", epoch, "2", now)) // 2..4
		s.write(t, event{bot: b})
		again := s.poll(t, b, at("a", got.Lease.Epoch, "2", now))
		if want := "4 | 2-3 expired | 2..5"; again.outline() != want {
			t.Fatalf("got %s, want %s", again.outline(), want)
		}
		// 4 is below max_issued + 1 now: fine as any offset.
		if last := s.poll(t, b, at("a", got.Lease.Epoch, "4", now)); last.outline() != "4 | | 4..5" {
			t.Errorf("got %s", last.outline())
		}
	})
}

func TestRetention(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testClock)
	s := w.serve(t)
	t.Run("Q-01 what waits expires 7 days after it was written, and says so", func(t *testing.T) {
		b := w.bot(t)
		s.write(t, event{bot: b, date: "2001-01-01T00:00:00Z"}, event{bot: b, date: "2099-01-01T00:00:00Z"})
		s.advance(t, 24*time.Hour)
		s.write(t, some(b, 2)...)
		s.advance(t, 6*24*time.Hour-time.Minute)
		got := s.poll(t, b, at("a", "", "", now))
		if got.outline() != "1 2 3 4 | | 1..5" {
			t.Fatalf("a minute before: got %s", got.outline())
		}
		s.advance(t, 90*time.Second)
		got = s.poll(t, b, at("a", "", "", now))
		if want := "3 4 | 1-2 expired | 1..5"; got.outline() != want {
			t.Fatalf("got %s, want %s", got.outline(), want)
		}
		if i := s.info(t, b); i.Pending != 2 {
			t.Errorf("got %d pending, want 2", i.Pending)
		}
	})
	t.Run("Q-01 FAILED updates expire too, and a waiting poll reports what expires", func(t *testing.T) {
		b := w.bot(t)
		s.write(t, some(b, 3)...)
		got := s.poll(t, b, at("a", "", "", `,"timeout":0,"limit":2`))
		s.reject(t, b, "1", "a", got.Lease.Epoch)
		if i := s.info(t, b); i.Failed != 1 || i.Pending != 2 {
			t.Fatalf("got %d failed and %d pending", i.Failed, i.Pending)
		}
		s.advance(t, week+time.Minute)
		eventually(t, 5*time.Second, "the FAILED update expires", func() bool { return s.info(t, b).Failed == 0 })
		got = s.poll(t, b, at("a", "", "", now))
		if want := "| 1-1 failed 2-3 expired | 1..4"; got.outline() != want {
			t.Errorf("got %s, want %s", got.outline(), want)
		}
		if i := s.info(t, b); i.Pending != 0 || i.PendingBytes != 0 || i.OldestPendingDate != nil {
			t.Errorf("got %+v, want nothing waiting", i)
		}
	})
	t.Run("I-03 after 7 days an event is a new one", func(t *testing.T) {
		b := w.bot(t)
		e := event{bot: b}.filled()
		s.write(t, e)
		for range 7 {
			s.advance(t, 24*time.Hour-time.Minute)
			if got := fmt.Sprint(s.writeRaw(t, e.json(), strings.Replace(e.json(), e.id, strings.ToUpper(e.id), 1))); got != "[1 again 1 again]" {
				t.Fatalf("within 7 days: got %s, want the first update_id", got)
			}
		}
		s.advance(t, 8*time.Minute)
		if got := fmt.Sprint(s.writeRaw(t, e.json())); got != "[2]" {
			t.Errorf("after 7 days: got %s, want a new update", got)
		}
	})
}
