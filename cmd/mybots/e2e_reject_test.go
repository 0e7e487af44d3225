package main_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

func rejection(id, reason, consumer, epoch string) string {
	return fmt.Sprintf(`{"update_id":"%s","reason":"%s","consumer_id":"%s","epoch":"%s"}`, id, reason, consumer, epoch)
}

func TestReject(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testClock)
	s := w.serve(t)
	held := func(t *testing.T, n, issued int) (*bot, string, []event) {
		t.Helper()
		b := w.bot(t)
		events := s.write(t, some(b, n)...)
		return b, s.poll(t, b, at("a", "", "", fmt.Sprintf(`,"timeout":0,"limit":%d`, issued))).Lease.Epoch, events
	}

	t.Run("R-03 the update becomes FAILED and the rest goes on", func(t *testing.T) {
		b, epoch, events := held(t, 3, 3)
		got := decode[struct {
			UpdateID string `json:"update_id"`
			EventID  string `json:"event_id"`
			State    string `json:"state"`
		}](t, s.ok(t, b, "rejectUpdate", rejection("2", "Не могу 😀", "a", epoch), "Idempotency-Key: k"))
		if got.UpdateID != "2" || got.EventID != events[1].id || got.State != "failed" {
			t.Errorf("got %+v, want update 2 failed", got)
		}
		if i := s.info(t, b); i.Failed != 1 || i.Pending != 2 || i.ConfirmedOffset != "1" {
			t.Errorf("got %+v, want 1 failed, 2 pending, position 1", i)
		}
		if batch := s.poll(t, b, at("a", epoch, "", now)); batch.outline() != "1 3 | 2-2 failed | 1..4" {
			t.Errorf("got %s", batch.outline())
		}
		if batch := s.poll(t, b, at("a", epoch, "4", now)); batch.outline() != "| | 4..4" {
			t.Errorf("got %s", batch.outline())
		}
		if i := s.info(t, b); i.Failed != 1 || i.Pending != 0 {
			t.Errorf("got %+v, want it in the list still", i)
		}
	})
	t.Run("R-01 the reason is 1 to 256 characters without control characters", func(t *testing.T) {
		b, epoch, _ := held(t, 4, 4)
		for _, reason := range []string{"", `a\u0000b`, `\u0001`, `a\nb`, `a\tb`, `\u007f`, `\u0085`, `\u009f`, strings.Repeat("a", 257), strings.Repeat("é", 257), strings.Repeat("😀", 257), `\ud800`} {
			a := s.refused(t, "INVALID_REQUEST", b, "rejectUpdate", rejection("1", reason, "a", epoch), "Idempotency-Key: bad")
			if reason != `\ud800` && !strings.Contains(a.message, "reason") {
				t.Errorf("reason %.40q: got %q, want it named", reason, a.message)
			}
		}
		for i, reason := range []string{"x", strings.Repeat("a", 256), strings.Repeat("😀", 256), `<b>&\"\\ \u2028`} {
			s.ok(t, b, "rejectUpdate", rejection(fmt.Sprint(i+1), reason, "a", epoch), fmt.Sprintf("Idempotency-Key: good-%d", i))
		}
	})
	t.Run("R-01 every field is needed", func(t *testing.T) {
		b, epoch, _ := held(t, 1, 1)
		whole := map[string]string{"update_id": "1", "reason": "r", "consumer_id": "a", "epoch": epoch}
		for missing := range whole {
			body := map[string]any{missing: nil}
			for k, v := range whole {
				if k != missing {
					body[k] = v
				}
			}
			text, err := json.Marshal(body)
			if err != nil {
				t.Fatal(err)
			}
			if a := s.refused(t, "INVALID_REQUEST", b, "rejectUpdate", string(text), "Idempotency-Key: k"); !strings.Contains(a.message, missing) {
				t.Errorf("without %s: got %q, want it named", missing, a.message)
			}
		}
		s.refused(t, "IDEMPOTENCY_KEY_REQUIRED", b, "rejectUpdate", rejection("1", "r", "a", epoch))
	})
	t.Run("R-02 only what was issued to the lease and isn't confirmed", func(t *testing.T) {
		b, epoch, _ := held(t, 5, 3)
		s.poll(t, b, at("a", epoch, "2", `,"timeout":0,"limit":2`)) // 1 is confirmed, 2 and 3 issued, 4 and 5 not
		for _, id := range []string{"0", "1", "4", "5", "6", "9223372036854775807"} {
			s.refused(t, "UPDATE_NOT_FOUND", b, "rejectUpdate", rejection(id, "r", "a", epoch), "Idempotency-Key: "+id)
		}
		s.ok(t, b, "rejectUpdate", rejection("3", "r", "a", epoch), "Idempotency-Key: 3")
		s.refused(t, "UPDATE_NOT_FOUND", b, "rejectUpdate", rejection("3", "r", "a", epoch), "Idempotency-Key: 3-again")
		if i := s.info(t, b); i.Failed != 1 || i.Pending != 3 {
			t.Errorf("got %+v, want 1 failed and 3 pending", i)
		}
	})
	t.Run("R-02 what an earlier lease was issued isn't issued to this one", func(t *testing.T) {
		b, epoch, _ := held(t, 3, 3)
		s.advance(t, 61*time.Second)
		second := s.poll(t, b, at("b", epoch, "", `,"timeout":0,"limit":1`)).Lease.Epoch
		s.refused(t, "UPDATE_NOT_FOUND", b, "rejectUpdate", rejection("2", "r", "b", second), "Idempotency-Key: 2")
		s.ok(t, b, "rejectUpdate", rejection("1", "r", "b", second), "Idempotency-Key: 1")
	})
	t.Run("R-02 another's consumer_id or epoch, or no active lease, is a conflict", func(t *testing.T) {
		b, epoch, _ := held(t, 1, 1)
		for _, c := range [][2]string{{"b", epoch}, {"a", "999"}, {"a", "0"}, {"b", "999"}} {
			if a := s.refused(t, "CONSUMER_CONFLICT", b, "rejectUpdate", rejection("1", "r", c[0], c[1]), "Idempotency-Key: k"); a.retry < 50 || a.retry > 60 {
				t.Errorf("%v: got retry_after %d, want the rest of the lease", c, a.retry)
			}
		}
		s.advance(t, 61*time.Second)
		if a := s.refused(t, "CONSUMER_CONFLICT", b, "rejectUpdate", rejection("1", "r", "a", epoch), "Idempotency-Key: k"); a.retry != 1 {
			t.Errorf("without a lease: got retry_after %d, want 1", a.retry)
		}
		if i := s.info(t, b); i.Failed != 0 || i.Lease != nil {
			t.Errorf("got %+v, want no lease and nothing failed", i)
		}
	})
	t.Run("R-02 it may come while a poll waits: no conflict, and the poll isn't disturbed", func(t *testing.T) {
		b, epoch, _ := held(t, 2, 2)
		done := s.waiting(t, b, at("a", epoch, "3", `,"timeout":20`))
		s.refused(t, "UPDATE_NOT_FOUND", b, "rejectUpdate", rejection("2", "r", "a", epoch), "Idempotency-Key: k")
		s.refused(t, "CONSUMER_CONFLICT", b, "rejectUpdate", rejection("2", "r", "b", epoch), "Idempotency-Key: k")
		if lease := s.info(t, b).Lease; lease == nil || !lease.Waiting || !about(lease.ExpiresAt, w.now().Add(80*time.Second)) {
			t.Errorf("got the lease %+v, want the poll waiting", lease)
		}
		still(t, "the poll", done)
		s.write(t, event{bot: b})
		receive(t, 3*time.Second, "the poll ends", done).gave(t, "3 | | 3..4")
	})
	t.Run("P-04 rejectUpdate by the holder keeps the lease", func(t *testing.T) {
		b, epoch, _ := held(t, 2, 2)
		s.advance(t, 40*time.Second)
		s.ok(t, b, "rejectUpdate", rejection("1", "r", "a", epoch), "Idempotency-Key: k")
		if lease := s.info(t, b).Lease; lease == nil || !about(lease.ExpiresAt, w.now().Add(time.Minute)) {
			t.Errorf("got the lease %+v, want 60 s from now", lease)
		}
		s.advance(t, 40*time.Second)
		s.refused(t, "UPDATE_NOT_FOUND", b, "rejectUpdate", rejection("9", "r", "a", epoch), "Idempotency-Key: k2")
		if lease := s.info(t, b).Lease; lease == nil || !about(lease.ExpiresAt, w.now().Add(20*time.Second)) {
			t.Errorf("after a failed call got the lease %+v, want it as it was: of failed calls only those of P-11 keep it", lease)
		}
	})
}

func TestInfo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve(t)
	b := w.bot(t)
	t.Run("W-15 getDeliveryInfo tells the queue's state", func(t *testing.T) {
		i := s.info(t, b)
		if i.Mode != "polling" || i.Pending != 0 || i.PendingBytes != 0 || i.OldestPendingDate != nil || i.Failed != 0 || i.ConfirmedOffset != "1" || i.MaxIssued != "0" || i.Lease != nil {
			t.Errorf("of a new bot: got %+v", i)
		}
		if i.Limits.Updates != 10_000 || i.Limits.Bytes != 52_428_800 {
			t.Errorf("got the limits %+v", i.Limits)
		}
		s.write(t, event{bot: b, date: "2026-01-02T03:04:05Z", payload: `{ "a": 1 }`}, event{bot: b, date: "2025-01-01T00:00:00Z", payload: `{"é":1}`})
		i = s.info(t, b)
		if i.Pending != 2 || i.PendingBytes != 7+8 || i.OldestPendingDate == nil || !i.OldestPendingDate.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) {
			t.Errorf("of two updates: got %+v, oldest %v", i, i.OldestPendingDate)
		}
		lease := s.poll(t, b, at("a", "", "", `,"timeout":0,"limit":1`)).Lease
		i = s.info(t, b)
		if i.MaxIssued != "1" || i.Pending != 2 || i.Lease == nil || i.Lease.ConsumerID != "a" || i.Lease.Waiting || !i.Lease.ExpiresAt.Equal(lease.ExpiresAt) {
			t.Errorf("after a poll: got %+v, lease %+v", i, i.Lease)
		}
		if strings.Contains(string(s.ok(t, b, "getDeliveryInfo", "{}")), `"epoch"`) {
			t.Error("getDeliveryInfo tells the epoch")
		}
	})
	t.Run("W-14 getWebhookInfo says off in polling mode", func(t *testing.T) {
		got := string(s.ok(t, b, "getWebhookInfo", "{}"))
		want := map[string]any{"url": "", "state": "off", "pending_update_count": 2.0, "last_error": nil, "last_success_date": nil, "next_attempt_date": nil}
		var fields map[string]any
		if err := json.Unmarshal([]byte(got), &fields); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(fields) != fmt.Sprint(want) {
			t.Errorf("got %s, want %v", got, want)
		}
	})
}
