package botkit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mybots/botkit"
	"mybots/botkit/bottest"
)

var errKilled = errors.New("killed")

// knife cuts a process off at one of its steps: from then on nothing that it
// does has an effect, as after kill -9.
type knife struct {
	*botkit.MemoryInbox
	dead   atomic.Bool
	step   string // where to cut
	before bool   // the step, or after it
	nth    int32  // time that it comes
	seen   atomic.Int32
	kill   func()
}

func (k *knife) at(step string, do func() error) error {
	if k.dead.Load() {
		return errKilled
	}
	cut := k.step == step && k.seen.Add(1) == k.nth
	if cut && k.before {
		k.dead.Store(true)
		k.kill()
		return errKilled
	}
	err := do()
	if cut {
		k.dead.Store(true)
		k.kill()
		return errKilled
	}
	return err
}

func (k *knife) Put(ctx context.Context, items []botkit.Item, p *botkit.Position) (n int, err error) {
	return n, k.at("store", func() error {
		n, err = k.MemoryInbox.Put(ctx, items, p)
		return err
	})
}

func (k *knife) Settle(ctx context.Context, eventID string, s botkit.Settlement) error {
	return k.at("settle", func() error { return k.MemoryInbox.Settle(ctx, eventID, s) })
}

// Killed at any step, a bot with an inbox loses nothing, keeps the order in each
// chat, and does each action once.
func TestKill(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"store", "settle", "getUpdates", "sendMessage", "webhook"} {
		for _, before := range []bool{true, false} {
			for nth := int32(1); nth <= 3; nth++ {
				word := map[bool]string{true: "before", false: "after"}[before]
				bubble(t, fmt.Sprintf("K-01 K-06 killed %s %s %d", word, step, nth), func(t *testing.T) {
					killAt(t, step, before, nth)
				})
			}
		}
	}
}

func killAt(t *testing.T, step string, before bool, nth int32) {
	server := bottest.New(t)
	server.Unlimited()
	inbox := botkit.NewMemoryInbox()
	want := map[botkit.ID][]string{}
	push := func(n int) {
		chat, text := botkit.ID(fmt.Sprint(550+n%3)), fmt.Sprint("order ", n)
		want[chat] = append(want[chat], text)
		server.Message(chat, text)
	}
	for n := range 30 {
		push(n)
	}
	// life runs one process until it is killed, or for a minute.
	life := func(k *knife) {
		ctx, cancel := context.WithCancel(t.Context())
		k.MemoryInbox, k.kill = inbox, cancel
		client := server.Client()
		cut, reached := k.step == "getUpdates" || k.step == "sendMessage", int32(0)
		if cut {
			fault := bottest.Fault{LoseRequest: k.before, LoseAnswer: !k.before, Do: func() { k.dead.Store(true); cancel() }}
			for reached = 1; reached < k.nth; reached++ {
				server.Fault(k.step, bottest.Fault{})
			}
			server.Fault(k.step, fault)
		}
		handler := botkit.HandlerFunc(func(ctx context.Context, u *botkit.Update) error {
			if k.dead.Load() {
				return errKilled
			}
			_, err := client.SendMessage(ctx, u.Key("reply"), botkit.Outgoing{ChatID: u.ChatID(), Text: u.Message.Text})
			return err
		})
		bot := newBot(t, server, handler, botkit.Options{Inbox: k})
		done := make(chan struct{})
		go func() { // ends with cancel
			defer close(done)
			if k.step != "webhook" {
				_ = bot.Poll(ctx)
				return
			}
			server.Webhook(true)
			hook, n := bot.Webhook(bottest.Secret), int32(0)
			k.step = "store" // each request stores once
			var work sync.WaitGroup
			work.Go(func() { _ = bot.Work(ctx) })
			for ctx.Err() == nil && server.Deliver(hook) != 0 {
				n++
			}
			<-ctx.Done()
			work.Wait()
			server.Webhook(false)
		}()
		after(time.Minute)
		cancel()
		<-done
	}
	life(&knife{step: step, before: before, nth: nth})
	for n := 30; n < 36; n++ {
		push(n)
	}
	after(2 * time.Minute) // the lease ends
	life(&knife{})
	got := map[botkit.ID][]string{}
	for _, m := range server.Sent() {
		got[m.ChatID] = append(got[m.ChatID], m.Text)
	}
	for chat := range want {
		if !slices.Equal(got[chat], want[chat]) {
			t.Errorf("chat %s:\n got %v\nwant %v", chat, got[chat], want[chat])
		}
	}
	if server.Position() != "37" {
		t.Errorf("position %s, want 37", server.Position())
	}
}
