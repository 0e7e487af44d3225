package main_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestWebhookSwitch(t *testing.T) {
	t.Parallel()
	w, e := newHookWorld(t)
	s, other := w.serve(t), w.serve(t)
	o := s.signIn(t)
	// underWay is a bot with a FAILED update 1, and the request for the first of n
	// more under way.
	underWay := func(t *testing.T, n int) (*hooked, []event, *visit) {
		t.Helper()
		h := o.hooked(t, e)
		h.does(waits)
		events := s.sends(t, h.bot, n+1)
		h.gets(t, "1", 1).let <- says(422)
		return h, events, h.gets(t, "2", 1)
	}
	// The endpoint's 200 comes right after the switch, or the request is cut off.
	lates := map[string]func(*testing.T, *visit){
		"that answers 200 too late": func(t *testing.T, v *visit) {
			v.let <- says(200)
			receive(t, 3*time.Second, "the request ends", v.ended)
		},
		"that doesn't answer": func(t *testing.T, v *visit) {
			receive(t, 3*time.Second, "the request is cut off", v.ended)
			if !v.cut {
				t.Error("W-13 the request wasn't cut off")
			}
		},
	}
	for name, late := range lates {
		t.Run("M-02 M-03 W-13 to long polling with KEEP, a request under way "+name, func(t *testing.T) {
			h, events, v := underWay(t, 3)
			o.save(t, h.bot, "keep")
			late(t, v)
			got := other.poll(t, h.bot, at("a", "", "", now))
			if got.outline() != "2 3 4 | | 2..5" || got.Updates[0].EventID != events[1].id || got.Updates[0].raw != v.body {
				t.Errorf("got %s, want the same update again", got.outline())
			}
			if i := s.info(t, h.bot); i.Mode != "polling" || i.Failed != 1 || i.Pending != 3 {
				t.Errorf("got %+v", i)
			}
			if got := s.poll(t, h.bot, at("a", got.Lease.Epoch, "4", now)); got.outline() != "4 | | 4..5" {
				t.Errorf("got %s", got.outline())
			}
			h.does(says(200))
			o.rehook(t, h, "keep") // and back: what was confirmed by polling doesn't come
			if v := h.visited(t, dueTime); v.update.UpdateID != "4" {
				t.Errorf("back by webhook: got update %s, want 4", v.update.UpdateID)
			}
			s.stands(t, h.bot, "active, 0 waiting, 1 failed, at 5")
			h.check(t)
		})
		t.Run("M-02 M-03 to long polling with DROP, a request under way "+name, func(t *testing.T) {
			h, _, v := underWay(t, 3)
			o.save(t, h.bot, "drop")
			late(t, v)
			if got := s.poll(t, h.bot, at("a", "", "", now)); got.outline() != "| 2-4 cancelled | 2..5" {
				t.Errorf("got %s", got.outline())
			}
			if i := s.info(t, h.bot); i.Pending != 0 || i.PendingBytes != 0 || i.Failed != 1 {
				t.Errorf("got %+v", i)
			}
		})
		t.Run("M-04 W-13 a new secret, a request under way "+name, func(t *testing.T) {
			h, events, v := underWay(t, 2)
			v.signed(t, h.secret)
			h.does(says(200))
			o.rehook(t, h, "keep")
			late(t, v)
			again := h.gets(t, "2", 2)
			again.signed(t, h.secret)
			if again.update.EventID != events[1].id || again.body != v.body {
				t.Errorf("got %s, want %s again", again.body, v.body)
			}
			h.gets(t, "3", 1).signed(t, h.secret)
			s.stands(t, h.bot, "active HTTP_422, 0 waiting, 1 failed, at 4")
			h.check(t)
		})
		t.Run("M-02 W-13 another webhook with DROP, a request under way "+name, func(t *testing.T) {
			h, _, v := underWay(t, 2)
			o.rehook(t, h, "drop")
			late(t, v)
			h.does(says(200))
			s.sends(t, h.bot, 1)
			h.gets(t, "4", 1).signed(t, h.secret)
			s.stands(t, h.bot, "active HTTP_422, 0 waiting, 1 failed, at 5")
			h.check(t)
		})
		for reset, do := range map[string]func(*testing.T, *hooked){
			"a reset":            func(t *testing.T, h *hooked) { o.act(t, h.bot, "connection/reset") },
			"an emergency reset": func(t *testing.T, h *hooked) { h.token = o.emergency(t, h.bot) },
		} {
			t.Run("W-13 M-06 "+reset+", a request under way "+name, func(t *testing.T) {
				h, _, v := underWay(t, 2)
				h.does(says(200))
				do(t, h)
				late(t, v)
				h.gets(t, "2", 2).signed(t, h.secret) // mode, address, secret and queue stay
				h.gets(t, "3", 1).signed(t, h.secret)
				s.stands(t, h.bot, "active HTTP_422, 0 waiting, 1 failed, at 4")
				h.check(t)
			})
		}
	}
	t.Run("M-02 M-03 from long polling with KEEP: all that isn't confirmed goes out, in the new mode alone", func(t *testing.T) {
		b, k := o.newBot(t), e.sink()
		events := s.sends(t, b, 4)
		epoch := s.poll(t, b, at("a", "", "", now)).Lease.Epoch
		s.reject(t, b, "3", "a", epoch)
		s.poll(t, b, at("a", epoch, "2", now))
		k.secret = o.hook(t, b, k.url, "keep")
		if v := k.gets(t, "2", 1); v.update.EventID != events[1].id {
			t.Errorf("got %s", v.body)
		}
		k.gets(t, "4", 1)
		s.stands(t, b, "active, 0 waiting, 1 failed, at 5")
		o.save(t, b, "keep")
		if got := s.poll(t, b, at("a", epoch, "5", now)); got.outline() != "| | 5..5" {
			t.Errorf("M-03 got %s, want no FAILED id below the position reported", got.outline())
		}
	})
	t.Run("M-02 from long polling with DROP: nothing of it goes out", func(t *testing.T) {
		b, k := o.newBot(t), e.sink()
		s.sends(t, b, 3)
		epoch := s.poll(t, b, at("a", "", "", now)).Lease.Epoch
		s.reject(t, b, "1", "a", epoch)
		k.secret = o.hook(t, b, k.url, "drop")
		s.sends(t, b, 1)
		k.gets(t, "4", 1)
		s.stands(t, b, "active, 0 waiting, 1 failed, at 5")
	})
	t.Run("M-05 a save from old settings is refused; the webhook and its secret stay", func(t *testing.T) {
		h := o.hooked(t, e)
		old, other := o.version(t, h.bot), e.sink()
		o.rehook(t, h, "keep")
		for _, mode := range []string{"webhook", "polling"} {
			status, _, body := o.post(t, "/bots/"+h.id+"/connection", url.Values{"mode": {mode}, "url": {other.url}, "pending": {"drop"}, "version": {old}})
			if status != http.StatusConflict || !strings.Contains(body, `id="error"`) || !strings.Contains(body, h.host) {
				t.Errorf("%s: got %d, want 409 with the error and the present address", mode, status)
			}
		}
		s.sends(t, h.bot, 1)
		h.gets(t, "1", 1).signed(t, h.secret)
		s.stands(t, h.bot, "active, 0 waiting, 0 failed, at 2")
	})
	t.Run("W-05 G-05 a jump of the clock while a request is under way begins no second one", func(t *testing.T) {
		h := o.hooked(t, e)
		h.does(waits)
		s.sends(t, h.bot, 2)
		v := h.gets(t, "1", 1)
		for range 3 {
			s.advance(t, time.Hour)
			h.quiet(t, 400*time.Millisecond)
		}
		v.let <- says(200)
		h.gets(t, "2", 1).let <- says(200)
		s.stands(t, h.bot, "active, 0 waiting, 0 failed, at 3")
		h.check(t)
	})
	t.Run("M-08 a test request shows how its answer would be taken and changes nothing", func(t *testing.T) {
		o = s.signIn(t) // a session doesn't last over those hours
		h := o.hooked(t, e)
		h.queue(says(401))
		s.sends(t, h.bot, 1)
		h.gets(t, "1", 1)
		before := s.stands(t, h.bot, "paused HTTP_401, 1 waiting, 0 failed, at 1")
		seen := map[string]bool{}
		for _, c := range []struct {
			does script
			want string
		}{{says(204), "confirmed"}, {says(422), "failed"}, {says(401), "pause"}, {says(302), "pause"}, {says(503, "Connection: close"), "budget"}, {breaks, "budget"}, {says(429), "wait"}} {
			h.queue(c.does)
			location := o.act(t, h.bot, "connection/test")
			v := h.visited(t, dueTime)
			v.signed(t, h.secret)
			if v.update.UpdateID != "0" || v.update.Type != "test" || seen[v.update.EventID] || !uuidForm.MatchString(v.update.EventID) {
				t.Errorf("got %s", v.body)
			}
			seen[v.update.EventID] = true
			if _, body := o.get(t, location); !strings.Contains(body, `id="test-result" data-result="`+c.want+`"`) {
				t.Errorf("want %s shown: %.200s", c.want, body)
			}
		}
		if got := s.hookInfo(t, h.bot); fmt.Sprint(*got.LastError) != fmt.Sprint(*before.LastError) || got.State != before.State || got.LastSuccess != nil {
			t.Errorf("got %+v, want %+v as before", got, before)
		}
		s.stands(t, h.bot, "paused HTTP_401, 1 waiting, 0 failed, at 1")
	})
}
