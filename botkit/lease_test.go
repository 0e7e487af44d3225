package botkit_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"mybots/botkit"
	"mybots/botkit/bottest"
)

func TestLease(t *testing.T) {
	t.Parallel()
	bubble(t, "K-06 another consumer takes the lease, and it comes back", func(t *testing.T) {
		h := &seen{}
		r := newRig(t, h, botkit.Options{})
		r.server.Message("550", "one")
		r.poll()
		after(time.Second)
		r.server.Steal("other")
		r.server.Message("550", "two")
		after(2 * time.Minute)
		if got := h.got(); !slices.Equal(got, []botkit.ID{"1", "2"}) {
			t.Errorf("handled %v, want each once", got)
		}
		if s := r.bot.Status(); s.Position.Epoch != "3" || s.Position.Offset != "3" {
			t.Errorf("position %+v, want epoch 3, offset 3", s.Position)
		}
		_ = r.stop()
	})
	bubble(t, "K-06 the owner resets the connection", func(t *testing.T) {
		h := &seen{}
		r := newRig(t, h, botkit.Options{})
		r.server.Message("550", "one")
		r.poll()
		after(time.Second)
		r.server.Reset()
		r.server.Message("550", "two")
		after(5 * time.Second)
		if got := h.got(); !slices.Equal(got, []botkit.ID{"1", "2"}) {
			t.Errorf("handled %v, want each once", got)
		}
		_ = r.stop()
	})
	bubble(t, "K-06 to webhook and back", func(t *testing.T) {
		h := &seen{}
		r := newRig(t, h, botkit.Options{})
		r.poll()
		after(time.Second)
		r.server.Webhook(true)
		r.server.Message("550", "one")
		after(5 * time.Minute)
		if n := len(r.server.Calls()); n > 12 {
			t.Errorf("%d calls in 5 minutes of webhook mode, want a slow check", n)
		}
		if !r.bot.Healthy() {
			t.Errorf("problems %v, want none", r.bot.Status().Problems)
		}
		r.server.Webhook(false)
		after(time.Minute)
		if got := h.got(); !slices.Equal(got, []botkit.ID{"1"}) {
			t.Errorf("handled %v, want 1", got)
		}
		_ = r.stop()
	})
	bubble(t, "K-06 CURSOR_BEHIND goes on from the server's position", func(t *testing.T) {
		h := &seen{}
		r := newRig(t, h, botkit.Options{})
		for range 3 {
			r.server.Message("550", "hello")
		}
		r.server.Fault("getUpdates", bottest.Fault{}, bottest.Fault{Do: func() { r.server.MoveTo("5") }})
		r.poll()
		after(time.Second)
		r.server.Message("550", "4, confirmed by somebody")
		r.server.Message("550", "5")
		after(5 * time.Second)
		if got := h.got(); !slices.Contains(got, "5") || slices.Contains(got, "4") {
			t.Errorf("handled %v, want 5 and not 4", got)
		}
		_ = r.stop()
	})
	bubble(t, "K-06 a server that always says CURSOR_BEHIND isn't hammered", func(t *testing.T) {
		r := newRig(t, &seen{}, botkit.Options{})
		for range 200 {
			r.server.Fault("getUpdates", bottest.Fault{Status: 200, Page: `{"ok":false,"error":{"code":"CURSOR_BEHIND","message":"","confirmed_offset":"1"}}`})
		}
		r.poll()
		after(time.Minute)
		if n := len(r.server.Calls()); n > 10 {
			t.Errorf("%d calls in a minute", n)
		}
		_ = r.stop()
	})
	bubble(t, "K-06 restart: epoch and offset come back together", func(t *testing.T) {
		h := &seen{}
		file := filepath.Join(t.TempDir(), "position.json")
		r := newRig(t, h, botkit.Options{Store: botkit.NewFileStore(file)})
		r.server.Message("550", "one")
		r.poll()
		after(time.Second)
		_ = r.stop() // in the middle of a poll: the server counts it as waiting
		r.bot = newBot(t, r.server, h, botkit.Options{Store: botkit.NewFileStore(file)})
		r.poll()
		r.server.Message("550", "two")
		after(30 * time.Second)
		calls := r.server.Calls()
		last := calls[len(calls)-1]
		if last.Fields["epoch"] != "1" {
			t.Errorf("the lease's epoch is %v, want 1: the restart kept the lease", last.Fields["epoch"])
		}
		if got := h.got(); !slices.Equal(got, []botkit.ID{"1", "2"}) {
			t.Errorf("handled %v, want each once", got)
		}
		_ = r.stop()
	})
	bubble(t, "K-06 a saved jump that the lease doesn't know", func(t *testing.T) {
		h := &seen{}
		store := &botkit.MemoryStore{}
		r := newRig(t, h, botkit.Options{Store: store})
		r.server.Skip("cancelled", r.server.Message("550", "one"), r.server.Message("550", "two"))
		r.poll()
		after(time.Second)
		if p, _ := store.Load(t.Context()); p.Offset != "3" || p.Epoch != "1" {
			t.Errorf("saved %+v, want the jump to 3 under epoch 1", p)
		}
		_ = r.stop()
		r.server.Steal("other")
		r.server.MoveTo("1")
		after(2 * time.Minute)
		r.bot = newBot(t, r.server, h, botkit.Options{Store: store})
		r.poll()
		r.server.Message("550", "three")
		after(5 * time.Second)
		if got := h.got(); !slices.Equal(got, []botkit.ID{"3"}) {
			t.Errorf("handled %v, want 3", got)
		}
		_ = r.stop()
	})
	bubble(t, "K-06 another bot's position is no position", func(t *testing.T) {
		store := &botkit.MemoryStore{}
		if err := store.Save(t.Context(), botkit.Position{Bot: "another", Epoch: "1", Offset: "40"}); err != nil {
			t.Fatal(err)
		}
		r := newRig(t, &seen{}, botkit.Options{Store: store})
		r.poll()
		after(time.Second)
		if first := r.server.Calls()[0].Fields; first["epoch"] != nil || first["offset"] != nil {
			t.Errorf("the first call has %v, want no epoch and no offset", first)
		}
		_ = r.stop()
	})
	bubble(t, "K-06 nothing is confirmed that couldn't be saved", func(t *testing.T) {
		store := &brokenStore{}
		h := &seen{}
		r := newRig(t, h, botkit.Options{Store: store})
		r.server.Message("550", "one")
		r.poll()
		after(time.Minute)
		if got := r.server.Position(); got != "1" || r.bot.Healthy() {
			t.Errorf("position %s, healthy %t; want 1, false", got, r.bot.Healthy())
		}
		store.works.Store(true)
		after(time.Minute)
		if got := r.server.Position(); got != "2" || !r.bot.Healthy() || len(h.got()) != 1 {
			t.Errorf("position %s, problems %v, handled %v; want 2, none, 1 once", got, r.bot.Status().Problems, h.got())
		}
		_ = r.stop()
	})
	bubble(t, "K-06 two copies: the second takes over", func(t *testing.T) {
		h := &seen{}
		r := newRig(t, h, botkit.Options{ConsumerID: "a"})
		second := &rig{t: t, server: r.server, bot: newBot(t, r.server, h, botkit.Options{ConsumerID: "b"})}
		r.server.Message("550", "one")
		r.poll()
		after(time.Second)
		second.poll()
		after(3 * time.Minute)
		if !second.bot.Healthy() {
			t.Errorf("the waiting copy has problems %v, want none", second.bot.Status().Problems)
		}
		_ = r.stop()
		r.server.Message("550", "two")
		after(2 * time.Minute)
		if got := h.got(); !slices.Equal(got, []botkit.ID{"1", "2"}) {
			t.Errorf("handled %v, want each once", got)
		}
		_ = second.stop()
	})
}
