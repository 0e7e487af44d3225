package botkit_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mybots/botkit"
	"mybots/botkit/bottest"
)

func TestPollingEdges(t *testing.T) {
	t.Parallel()
	bubble(t, "K-06 a new epoch is saved before anything is done under it", func(t *testing.T) {
		store := &botkit.MemoryStore{}
		h := botkit.HandlerFunc(func(ctx context.Context, _ *botkit.Update) error {
			if p, err := store.Load(ctx); err != nil || p.Epoch != "1" || p.Offset != "1" {
				t.Errorf("while the first update is handled: saved %+v, %v; want epoch 1 and offset 1", p, err)
			}
			return nil
		})
		r := newRig(t, h, botkit.Options{Store: store})
		r.server.Message("550", "hello")
		r.poll()
		after(time.Second)
		_ = r.stop()
	})
	bubble(t, "K-06 what a waiting poll has confirmed isn't confirmed again at the end", func(t *testing.T) {
		r := newRig(t, &seen{}, botkit.Options{})
		r.server.Message("550", "hello")
		r.poll()
		after(time.Second)
		_ = r.stop()
		if n := len(r.server.Calls()); n != 2 || r.server.Position() != "2" {
			t.Errorf("%d calls, position %s; want 2, 2", n, r.server.Position())
		}
		done := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { done <- r.bot.Poll(ctx) }() // ends with cancel
		after(time.Minute)
		cancel()
		if err := <-done; err != nil || len(r.server.Calls()) < 4 {
			t.Errorf("polling once more: %v after %d calls", err, len(r.server.Calls()))
		}
		after(10 * time.Minute)
		if !r.bot.Healthy() {
			t.Errorf("long after the end: problems %v, want none", r.bot.Status().Problems)
		}
	})
	bubble(t, "K-03 an update to reject that waits no longer is passed", func(t *testing.T) {
		h := &seen{do: func(_ context.Context, u *botkit.Update) error {
			if u.UpdateID == "1" {
				return botkit.Reject("no such order")
			}
			return nil
		}}
		r := newRig(t, h, botkit.Options{})
		r.server.Message("550", "one")
		r.server.Message("550", "two")
		r.server.Fault("rejectUpdate", bottest.Fault{Code: botkit.UpdateNotFound})
		r.poll()
		after(2 * time.Second)
		if got := h.got(); !slices.Equal(got, []botkit.ID{"1", "2"}) || r.server.Position() != "3" {
			t.Errorf("handled %v, position %s; want each once, 3", got, r.server.Position())
		}
		_ = r.stop()
	})
	bubble(t, "K-03 a replay may be rejected again", func(t *testing.T) {
		r := newRig(t, botkit.HandlerFunc(func(context.Context, *botkit.Update) error { return botkit.Reject("no such order") }), botkit.Options{})
		id := r.server.Message("550", "one")
		r.poll()
		after(2 * time.Second)
		r.server.Replay(id)
		after(2 * time.Second)
		if got := r.server.Rejected(); len(got) != 2 || got[0].EventID != got[1].EventID || r.server.Position() != "3" {
			t.Errorf("rejected %+v, position %s; want the event twice, 3", got, r.server.Position())
		}
		_ = r.stop()
	})
	rejectFaults := map[string]struct {
		fault bottest.Fault
		after time.Duration
	}{
		"K-03 rejecting meets a lost lease":   {bottest.Fault{Code: botkit.ConsumerConflict, RetryAfter: 5}, 20 * time.Second},
		"K-03 rejecting loses its answer":     {bottest.Fault{LoseAnswer: true}, 20 * time.Second},
		"K-03 rejecting meets a fault of 500": {bottest.Fault{Code: botkit.Internal}, 20 * time.Second},
		"K-03 rejecting is refused at first":  {bottest.Fault{Code: botkit.InvalidRequest}, 20 * time.Second},
	}
	for name, c := range rejectFaults {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t, botkit.HandlerFunc(func(context.Context, *botkit.Update) error { return botkit.Reject("no such order") }), botkit.Options{})
			r.server.Message("550", "one")
			r.server.Fault("rejectUpdate", c.fault)
			r.poll()
			after(c.after)
			if got := r.server.Rejected(); len(got) != 1 || r.server.Position() != "2" {
				t.Errorf("rejected %+v, position %s; want once, 2", got, r.server.Position())
			}
			_ = r.stop()
		})
	}
	bubble(t, "K-06 CURSOR_BEHIND: the next call carries the server's position", func(t *testing.T) {
		r := newRig(t, &seen{}, botkit.Options{PollTimeout: time.Second})
		r.server.Message("550", "hello")
		r.server.Fault("getUpdates", bottest.Fault{}, bottest.Fault{Do: func() { r.server.MoveTo("5") }})
		r.poll()
		after(3 * time.Second)
		calls := r.server.Calls()
		if calls[1].Code != string(botkit.CursorBehind) || calls[2].Fields["offset"] != "5" || calls[2].Fields["epoch"] != "1" {
			t.Errorf("calls %+v, want CURSOR_BEHIND and then offset 5 under epoch 1", calls[1:3])
		}
		_ = r.stop()
	})
	bubble(t, "K-06 a position that can't be read yet", func(t *testing.T) {
		store := &brokenStore{failLoads: 3}
		store.works.Store(true)
		r := newRig(t, &seen{}, botkit.Options{Store: store})
		r.poll()
		after(100 * time.Millisecond)
		if r.bot.Healthy() || len(r.server.Calls()) != 0 {
			t.Errorf("healthy %t after %d calls, want false and none", r.bot.Healthy(), len(r.server.Calls()))
		}
		after(time.Minute)
		if !r.bot.Healthy() || len(r.server.Calls()) == 0 {
			t.Errorf("problems %v after %d calls, want none and some", r.bot.Status().Problems, len(r.server.Calls()))
		}
		_ = r.stop()
	})
	bubble(t, "K-06 the owner halts the bot, and lets it go on", func(t *testing.T) {
		for _, code := range []botkit.Code{botkit.BotPaused, botkit.Maintenance} {
			h := &seen{}
			r := newRig(t, h, botkit.Options{})
			r.poll()
			after(time.Second)
			r.server.Halt(code)
			after(2 * time.Minute)
			r.server.Halt("")
			r.server.Message("550", "hello")
			after(40 * time.Second)
			if len(h.got()) != 1 {
				t.Errorf("%s: handled %v, want 1 when it is over", code, h.got())
			}
			_ = r.stop()
		}
	})
}

func TestInboxEdges(t *testing.T) {
	t.Parallel()
	bubble(t, "K-01 what was cut off at the end has not failed", func(t *testing.T) {
		in := botkit.NewMemoryInbox()
		h := botkit.HandlerFunc(func(ctx context.Context, _ *botkit.Update) error {
			<-ctx.Done()
			return ctx.Err()
		})
		r := newRig(t, h, botkit.Options{Inbox: in, Tries: 1, HandlerTimeout: time.Hour})
		r.server.Message("550", "hello")
		r.poll()
		after(time.Second)
		_ = r.stop()
		heads, err := in.Heads(context.Background(), time.Now(), 10)
		if err != nil || len(heads) != 1 || heads[0].Failures != 0 {
			t.Errorf("got %+v, %v; want it waiting, without a failure", heads, err)
		}
	})
	bubble(t, "K-01 what is stored is handled at once", func(t *testing.T) {
		h := &seen{}
		r := newRig(t, h, botkit.Options{Inbox: botkit.NewMemoryInbox()})
		r.poll()
		for n := 1; n <= 3; n++ {
			after(7 * time.Second)
			r.server.Message("550", "by polling")
			after(100 * time.Millisecond)
			if len(h.got()) != n {
				t.Errorf("handled %v a moment after update %d came", h.got(), n)
			}
		}
		_ = r.stop()
		r.server.Webhook(true)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 2)
		for range 2 { // the second waits for the first
			go func() { done <- r.bot.Work(ctx) }() // ends with cancel
		}
		after(7 * time.Second)
		r.server.Message("550", "by webhook")
		if got := r.server.Deliver(r.bot.Webhook(bottest.Secret)); got != 200 {
			t.Errorf("answered %d, want 200", got)
		}
		after(100 * time.Millisecond)
		if len(h.got()) != 4 {
			t.Errorf("handled %v a moment after the webhook's update came", h.got())
		}
		cancel()
		for range 2 {
			if err := <-done; err != nil {
				t.Errorf("Work returned %v, want nil", err)
			}
		}
	})
	bubble(t, "K-06 an event is remembered for 8 days", func(t *testing.T) {
		h := &seen{}
		r := newRig(t, h, botkit.Options{Inbox: botkit.NewMemoryInbox()})
		hook := r.bot.Webhook(bottest.Secret)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.bot.Work(ctx) }() // ends with cancel
		body := r.server.Raw(r.server.Message("550", "hello"))
		for _, c := range []struct {
			wait time.Duration
			want int
		}{{0, 1}, {8*24*time.Hour - time.Minute, 1}, {2 * time.Hour, 2}} {
			after(c.wait)
			if got := bottest.Send(hook, bottest.Secret, body); got != 200 {
				t.Errorf("answered %d, want 200", got)
			}
			after(time.Second)
			if len(h.got()) != c.want {
				t.Errorf("handled %d times, want %d", len(h.got()), c.want)
			}
		}
		cancel()
		<-done
	})
	bubble(t, "K-03 a decode policy before the inbox", func(t *testing.T) {
		h := &seen{}
		r := newRig(t, h, botkit.Options{Inbox: botkit.NewMemoryInbox()})
		r.server.Message("550", "one")
		r.server.Push(botkit.TypeMessage, rawJSON(notReadable))
		r.server.Message("550", "three")
		r.poll()
		err := <-r.ended
		if err == nil || !strings.Contains(err.Error(), "update 2") || r.server.Position() != "2" {
			t.Errorf("Poll returned %v at position %s; want it to stop at update 2, the first confirmed", err, r.server.Position())
		}
		// The update before the bad one is safe in the inbox.
		r.bot = newBot(t, r.server, h, botkit.Options{Inbox: botkit.NewMemoryInbox(), DecodePolicy: botkit.RejectOnDecodeError})
		r.poll()
		after(2 * time.Minute)
		if got := h.got(); !slices.Contains(got, "3") || r.server.Position() != "4" || len(r.server.Rejected()) != 1 {
			t.Errorf("handled %v, position %s, rejected %v; want 3, 4, update 2", got, r.server.Position(), r.server.Rejected())
		}
		_ = r.stop()
	})
	bubble(t, "K-01 an OrderKey of one's own, and one that panics", func(t *testing.T) {
		h := &seen{}
		r := newRig(t, h, botkit.Options{Inbox: botkit.NewMemoryInbox(), OrderKey: func(u *botkit.Update) string {
			if u.UpdateID == "2" {
				panic("bug")
			}
			return fmt.Sprint(u.UpdateID)
		}})
		for range 3 {
			r.server.Message("550", "hello")
		}
		r.poll()
		after(2 * time.Second)
		if len(h.got()) != 3 || r.server.Position() != "4" {
			t.Errorf("handled %v, position %s; want 3, 4", h.got(), r.server.Position())
		}
		_ = r.stop()
	})
}
