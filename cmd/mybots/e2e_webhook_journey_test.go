package main_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestWebhookJourney(t *testing.T) {
	t.Parallel()
	w, e := newHookWorld(t)
	proxies := []string{"HTTPS_PROXY=http://127.0.0.1:9", "https_proxy=http://127.0.0.1:9", "ALL_PROXY=socks5://127.0.0.1:9"} // W-04 ignored
	s, other := w.serve(t, proxies...), w.serve(t, proxies...)
	o := s.signIn(t)

	t.Run("W-14 W-15 M-01 from long polling to a webhook and back", func(t *testing.T) {
		b, k := o.newBot(t), e.sink()
		off := hookInfo{State: "off"}
		if got := s.hookInfo(t, b); got != off {
			t.Errorf("new: got %+v, want %+v", got, off)
		}
		k.does(waits)
		k.secret = o.hook(t, b, k.url, "keep")
		if got := s.hookInfo(t, b); got != (hookInfo{URL: k.url, State: "active"}) {
			t.Errorf("saved: got %+v", got)
		}
		s.sends(t, b, 2)
		v := k.gets(t, "1", 1)
		i := s.info(t, b)
		if i.Mode != "webhook" || i.Pending != 2 || i.Failed != 0 || i.ConfirmedOffset != "1" || i.MaxIssued != "1" || i.Lease != nil || i.OldestPendingDate == nil ||
			i.PendingBytes != 2*int64(len(`{"text":"event 1"}`)) || i.Limits.Updates != 10_000 || i.Limits.Bytes != 52_428_800 {
			t.Errorf("with the first under way: got %+v", i)
		}
		v.let <- says(204)
		k.gets(t, "2", 1).let <- says(500)
		h := s.stands(t, b, "retrying HTTP_500, 1 waiting, 0 failed, at 2")
		if !about(h.LastError.Date, w.now()) || h.LastError.Message == "" || h.LastSuccess == nil || !about(*h.LastSuccess, w.now()) || h.LastSuccess.After(h.LastError.Date) ||
			h.NextAttempt == nil || h.NextAttempt.Sub(h.LastError.Date) != 5*time.Second {
			t.Errorf("after a 500: got %+v", h)
		}
		if i = s.info(t, b); i.MaxIssued != "2" {
			t.Errorf("after a 500: got max_issued_update_id %s, want 2: every attempt counts as issued", i.MaxIssued)
		}
		failed := h.LastError.Date
		s.reach(t, *h.NextAttempt, 0)
		k.gets(t, "2", 2).let <- says(200)
		h = s.stands(t, b, "active HTTP_500, 0 waiting, 0 failed, at 3")
		if !h.LastError.Date.Equal(failed) || h.LastSuccess == nil || !h.LastSuccess.After(failed) || h.NextAttempt != nil {
			t.Errorf("after the success: got %+v, want last_error to stay with its date", h)
		}
		o.save(t, b, "keep")
		if got := s.hookInfo(t, b); got != off {
			t.Errorf("polling again: got %+v, want %+v", got, off)
		}
		s.sends(t, b, 1)
		if got := s.poll(t, b, at("a", "", "", now)); got.outline() != "3 | | 3..4" {
			t.Errorf("M-03 got %s, want what the webhook delivered not issued again", got.outline())
		}
	})
	t.Run("W-05 W-06 W-07 U-03 one after the other, as getUpdates would give them", func(t *testing.T) {
		h, poller := o.hooked(t, e), o.newBot(t)
		payloads := []string{`{"z":1,"a":2,"a":1.00}`, "{\"a\":\"😀\u2028\\u2028\"}", `{"a":"\ud800 \u0000 \/"}`, `{"n":12345678901234567890}`, `{"a":"<&>","e":1E+5}`}
		const n = 30
		list := twins(n, func(i int) string { return payloads[i%len(payloads)] }, h.bot, poller)
		list[0].kind, list[1].kind, list[4].date, list[5].date = "тип \"<", "тип \"<", "2026-01-02T03:04:05.6+03:00", "2026-01-02T03:04:05.6+03:00"
		s.write(t, list...)
		want := s.poll(t, poller, at("a", "", "", now)).Updates
		last := time.Time{}
		for i := range n {
			v := h.gets(t, fmt.Sprint(i+1), 1)
			if v.body != want[i].raw {
				t.Errorf("got the body %q, want %q", v.body, want[i].raw)
			}
			r, got := v.request, maps.Clone(v.request.Header)
			at := v.signed(t, h.secret)
			if !about(at, w.now()) || at.Before(last) {
				t.Errorf("W-07 got t %v after %v, now %v", at, last, w.now())
			}
			last = at
			expect := http.Header{
				"Content-Type": {"application/json; charset=utf-8"}, "Content-Length": {fmt.Sprint(len(v.body))}, "User-Agent": {"SMeet-Webhook/1"},
				"X-Smeet-Update-Id": {want[i].UpdateID}, "X-Smeet-Event-Id": {want[i].EventID}, "X-Smeet-Attempt": {"1"}, "X-Smeet-Signature": r.Header["X-Smeet-Signature"],
			}
			if !maps.EqualFunc(got, expect, slices.Equal) || r.Method != http.MethodPost || len(r.TransferEncoding) > 0 || r.ContentLength != int64(len(v.body)) {
				t.Errorf("W-06 got %s %v %v, want POST with %v", r.Method, got, r.TransferEncoding, expect)
			}
		}
		s.stands(t, h.bot, fmt.Sprintf("active, 0 waiting, 0 failed, at %d", n+1))
		if i := s.info(t, h.bot); i.MaxIssued != fmt.Sprint(n) || i.PendingBytes != 0 || i.OldestPendingDate != nil {
			t.Errorf("W-15 got %+v", i)
		}
		h.check(t)
	})
	t.Run("P-08 P-16 W-11 in webhook mode getUpdates is refused, in every replica; a waiting poll ends so", func(t *testing.T) {
		for _, poller := range []*server{s, other} {
			b, k := o.newBot(t), e.sink()
			s.sends(t, b, 1)
			epoch := s.poll(t, b, at("a", "", "", now)).Lease.Epoch
			done := poller.waiting(t, b, at("a", epoch, "2", `,"timeout":25`))
			k.secret = o.hook(t, b, k.url, "keep")
			if got := receive(t, 3*time.Second, "the poll ends", done); got.err != nil || got.code != "DELIVERY_MODE_CONFLICT" {
				t.Errorf("got %q %v, want DELIVERY_MODE_CONFLICT", got.code, got.err)
			}
			for _, r := range []*server{s, other} {
				r.pollFails(t, "DELIVERY_MODE_CONFLICT", b, at("a", epoch, "2", now))
				r.refused(t, "DELIVERY_MODE_CONFLICT", b, "rejectUpdate", rejection("1", "r", "a", epoch), "Idempotency-Key: k")
			}
			s.sends(t, b, 1)
			k.gets(t, "2", 1)
			s.stands(t, b, "active, 0 waiting, 0 failed, at 3")
			o.save(t, b, "keep")
			if got := s.poll(t, b, at("a", epoch, "2", now)); got.outline() != "| | 3..3" || got.Lease.Epoch == epoch {
				t.Errorf("back in polling: got %s in epoch %s, want a new one", got.outline(), got.Lease.Epoch)
			}
		}
	})
	t.Run("F-02 U-04 Retry of a FAILED update goes out as a new one", func(t *testing.T) {
		h := o.hooked(t, e)
		h.queue(says(422), says(400))
		events := s.sends(t, h.bot, 3)
		s.stands(t, h.bot, "active HTTP_400, 0 waiting, 2 failed, at 4")
		for range 3 {
			h.visited(t, dueTime)
		}
		if got := fmt.Sprint(o.reasons(t, h.bot)); got != "[1 HTTP_422 1 2 HTTP_400 1]" && got != "[2 HTTP_400 1 1 HTTP_422 1]" {
			t.Errorf("F-01 got %s", got)
		}
		if got := o.deed(t, h.bot, "retry", "1"); !slices.Equal(got, []string{"1 replayed"}) {
			t.Errorf("got %q", got)
		}
		v := h.gets(t, "4", 1)
		if v.update.EventID != events[0].id || v.update.ReplayOf != "1" || v.update.payload != events[0].payload || !strings.Contains(v.request.Header.Get("X-SMeet-Event-Id"), events[0].id) {
			t.Errorf("got %s", v.body)
		}
		v.signed(t, h.secret)
		s.stands(t, h.bot, "active HTTP_400, 0 waiting, 1 failed, at 5")
		if got := o.deed(t, h.bot, "skip", "2"); !slices.Equal(got, []string{"2 skipped"}) {
			t.Errorf("F-03 got %q", got)
		}
		s.stands(t, h.bot, "active HTTP_400, 0 waiting, 0 failed, at 5")
	})
}
