package botkit_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"mybots/botkit"
	"mybots/botkit/bottest"
)

func TestMemoryInbox(t *testing.T) {
	t.Parallel()
	in := botkit.NewMemoryInbox()
	bottest.CheckInbox(t, func(*testing.T) (botkit.Inbox, func()) { return in, func() {} })
}

func TestInbox(t *testing.T) {
	t.Parallel()
	bubble(t, "K-01 stored, confirmed, then handled", func(t *testing.T) {
		h := &seen{do: func(context.Context, *botkit.Update) error {
			time.Sleep(10 * time.Second)
			return nil
		}}
		r := newRig(t, h, botkit.Options{Inbox: botkit.NewMemoryInbox()})
		for range 3 {
			r.server.Message("550", "hello")
		}
		r.poll()
		after(time.Second)
		if got := r.server.Position(); got != "4" || len(h.got()) != 1 {
			t.Errorf("position %s, handled %v; want 4 while the first is handled", got, h.got())
		}
		after(time.Minute)
		if s := r.bot.Status(); len(h.got()) != 3 || s.Handled != 3 || s.InboxWaiting != 0 || !s.Healthy {
			t.Errorf("handled %v, status %+v; want 3", h.got(), s)
		}
		_ = r.stop()
	})
	bubble(t, "K-01 in order in a chat, chats side by side, bounded", func(t *testing.T) {
		var mu sync.Mutex
		var now, most int
		order := map[botkit.ID][]botkit.ID{}
		h := botkit.HandlerFunc(func(_ context.Context, u *botkit.Update) error {
			mu.Lock()
			now++
			most = max(most, now)
			order[u.ChatID()] = append(order[u.ChatID()], u.UpdateID)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			now--
			mu.Unlock()
			return nil
		})
		r := newRig(t, h, botkit.Options{Inbox: botkit.NewMemoryInbox(), Workers: 3})
		for n := range 60 {
			r.server.Message(botkit.ID(fmt.Sprint(500+n%6)), "hello")
		}
		r.poll()
		began := time.Now()
		after(25 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if most != 3 {
			t.Errorf("%d at a time, want 3", most)
		}
		for chat, ids := range order {
			if len(ids) != 10 || !slices.IsSortedFunc(ids, botkit.ID.Compare) {
				t.Errorf("chat %s: %v, want 10 in order", chat, ids)
			}
		}
		_ = began
		mu.Unlock()
		_ = r.stop()
		mu.Lock()
	})
	bubble(t, "K-02 a failing update holds up its chat only, is parked, and turns the health red", func(t *testing.T) {
		h := &seen{do: func(_ context.Context, u *botkit.Update) error {
			if u.UpdateID == "1" {
				return errBug
			}
			return nil
		}}
		r := newRig(t, h, botkit.Options{Inbox: botkit.NewMemoryInbox(), Tries: 4})
		r.server.Message("550", "fails")
		r.server.Message("550", "behind it")
		r.server.Message("551", "another chat")
		r.poll()
		after(time.Second)
		if got := h.got(); !slices.Contains(got, "3") || slices.Contains(got, "2") {
			t.Errorf("handled %v at first, want 3 and not 2", got)
		}
		after(time.Minute)
		s := r.bot.Status()
		if count(h.got(), "1") != 4 || count(h.got(), "2") != 1 || s.InboxParked != 1 || s.Healthy {
			t.Errorf("handled %v, status %+v; want 1 four times, then 2; one parked, unhealthy", h.got(), s)
		}
		_ = r.stop()
	})
	bubble(t, "K-02 a panic and a rejection in the inbox", func(t *testing.T) {
		h := &seen{do: func(_ context.Context, u *botkit.Update) error {
			if u.UpdateID == "1" {
				panic("bug")
			}
			return botkit.Reject("no such order")
		}}
		r := newRig(t, h, botkit.Options{Inbox: botkit.NewMemoryInbox(), Tries: 2})
		r.server.Message("550", "panics")
		r.server.Message("550", "is rejected")
		r.poll()
		after(time.Minute)
		if s := r.bot.Status(); s.InboxParked != 2 || s.Rejected != 1 || count(h.got(), "1") != 2 || count(h.got(), "2") != 1 {
			t.Errorf("handled %v, status %+v; want both parked", h.got(), s)
		}
		_ = r.stop()
	})
	bubble(t, "K-06 the same event twice is handled once", func(t *testing.T) {
		h := &seen{}
		r := newRig(t, h, botkit.Options{Inbox: botkit.NewMemoryInbox()})
		id := r.server.Message("550", "hello")
		r.poll()
		after(time.Second)
		r.server.Replay(id)
		after(time.Second)
		if s := r.bot.Status(); len(h.got()) != 1 || s.Duplicates != 1 {
			t.Errorf("handled %v, %d duplicates; want once, 1", h.got(), s.Duplicates)
		}
		_ = r.stop()
	})
	bubble(t, "K-06 webhook, polling and back with one inbox", func(t *testing.T) {
		h := &seen{}
		r := newRig(t, h, botkit.Options{Inbox: botkit.NewMemoryInbox()})
		hook := r.bot.Webhook(bottest.Secret)
		r.server.Message("550", "one")
		r.poll()
		after(time.Second)
		r.server.Webhook(true)
		r.server.Message("550", "two")
		lost := r.server.Raw("2")
		if got := bottest.Send(hook, bottest.Secret, lost); got != 200 { // an answer that SMeet doesn't get
			t.Errorf("answered %d, want 200", got)
		}
		if got := r.server.Deliver(hook); got != 200 {
			t.Errorf("answered %d, want 200", got)
		}
		r.server.Message("550", "three")
		r.server.Webhook(false)
		after(2 * time.Minute)
		if got := h.got(); !slices.Equal(got, []botkit.ID{"1", "2", "3"}) {
			t.Errorf("handled %v, want each once", got)
		}
		_ = r.stop()
	})
	bubble(t, "K-01 a full inbox takes no more", func(t *testing.T) {
		gate := make(chan struct{})
		h := &seen{do: func(ctx context.Context, _ *botkit.Update) error {
			select {
			case <-gate:
			case <-ctx.Done():
			}
			return ctx.Err()
		}}
		r := newRig(t, h, botkit.Options{Inbox: botkit.NewMemoryInbox(), InboxLimit: 100, HandlerTimeout: time.Hour})
		for range 400 {
			r.server.Message("550", "hello")
		}
		r.poll()
		after(5 * time.Minute)
		if s := r.bot.Status(); s.InboxWaiting != 100 || s.Healthy || r.server.Position() != "1" && r.server.Position() != "101" {
			t.Errorf("status %+v, position %s; want 100 waiting, unhealthy", s, r.server.Position())
		}
		r.server.Webhook(true)
		hook := r.bot.Webhook(bottest.Secret)
		if got := r.server.Deliver(hook); got != 429 {
			t.Errorf("the webhook answered %d, want 429", got)
		}
		close(gate)
		after(time.Minute)
		if got := r.server.Deliver(hook); got != 200 {
			t.Errorf("the webhook answered %d, want 200", got)
		}
		_ = r.stop()
	})
	bubble(t, "K-01 webhook only: Work handles what was stored", func(t *testing.T) {
		h := &seen{}
		r := newRig(t, h, botkit.Options{Inbox: botkit.NewMemoryInbox()})
		hook := r.bot.Webhook(bottest.Secret)
		r.server.Message("550", "one")
		if got := r.server.Deliver(hook); got != 200 || len(h.got()) != 0 {
			t.Errorf("answered %d with %v handled, want 200 before the work", got, h.got())
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.bot.Work(ctx) }() // ends with cancel
		after(time.Second)
		if len(h.got()) != 1 || !r.bot.Healthy() {
			t.Errorf("handled %v, problems %v; want 1, none", h.got(), r.bot.Status().Problems)
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Work returned %v, want nil", err)
		}
	})
}
