package botkit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"
)

// Options are a bot's settings; the zero value of each means its default.
type Options struct {
	// ConsumerID is the stable name of the receiving process, for Poll: 1 to 64
	// of A-Z a-z 0-9 . _ -. A second copy with another name takes over when the
	// first one is gone.
	ConsumerID string

	// Store keeps the position over restarts when there is no Inbox.
	// Default: a MemoryStore.
	Store Store

	// Inbox makes the bot durable: updates are stored in it, confirmed then, and
	// handled from it, in order in each chat. Default: none, updates are handled
	// before they are confirmed, one after another.
	Inbox Inbox

	// DecodePolicy decides about updates that can't be read.
	// Default: StopOnDecodeError.
	DecodePolicy DecodePolicy

	// Log takes what happens. The kit logs no token, no secret and nothing of an
	// update but its ids and type; it does log the texts of the handler's errors.
	// Default: nothing is logged.
	Log *slog.Logger

	// PollTimeout is how long a poll waits, in whole seconds. Default and most: 25 s.
	PollTimeout time.Duration

	// HandlerTimeout is how long handling one update may take. Default: 30 s.
	HandlerTimeout time.Duration

	// Workers is how many chats an inbox's updates are handled for at a time.
	// Default: 4.
	Workers int

	// Tries is how often an inbox's update is tried before it is parked. The
	// pauses between grow from a second to five minutes. Default: 10.
	Tries int

	// InboxLimit is how many updates may wait in the inbox; at the limit the bot
	// takes no more, and the server's queue grows. Default: 10,000.
	InboxLimit int

	// OrderKey names the lane of an update in the inbox: those of one lane are
	// handled in order, one at a time. Default: the chat.
	OrderKey func(*Update) string
}

// Bot receives updates and gives them to a handler, by long polling (Poll), by
// webhook (Webhook), or both with one Inbox, so that the owner can switch the
// mode while it runs.
type Bot struct {
	client  *Client
	handler Handler
	inbox   Inbox
	o       Options
	log     *slog.Logger
	health  *health

	polling atomic.Bool
	working chan struct{} // holds 1: taken by the Work that runs
	stored  chan struct{} // holds 1; full: something was stored in the inbox
}

// New returns a bot. client may be nil for one that has only webhooks. An error
// says which option is wrong.
func New(client *Client, handler Handler, o Options) (*Bot, error) {
	if handler == nil {
		return nil, errors.New("the bot needs a handler")
	}
	if o.Store != nil && o.Inbox != nil {
		return nil, errors.New("the inbox keeps the position: set Store or Inbox, not both")
	}
	if o.ConsumerID != "" && !validConsumer(o.ConsumerID) {
		return nil, errors.New("ConsumerID must be 1 to 64 of A-Z a-z 0-9 . _ -")
	}
	o.PollTimeout = cmp.Or(o.PollTimeout, longestPoll)
	if o.PollTimeout < time.Second || o.PollTimeout > longestPoll || o.PollTimeout%time.Second != 0 {
		return nil, fmt.Errorf("PollTimeout must be whole seconds, at most %s", longestPoll)
	}
	o.HandlerTimeout = cmp.Or(o.HandlerTimeout, 30*time.Second)
	o.Workers, o.Tries, o.InboxLimit = cmp.Or(o.Workers, 4), cmp.Or(o.Tries, 10), cmp.Or(o.InboxLimit, 10_000)
	if o.HandlerTimeout < 0 || o.Workers < 1 || o.Tries < 1 || o.InboxLimit < 1 {
		return nil, errors.New("HandlerTimeout, Workers, Tries and InboxLimit can't be negative")
	}
	if o.Store == nil {
		o.Store = &MemoryStore{}
	}
	if o.DecodePolicy == nil {
		o.DecodePolicy = StopOnDecodeError
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.OrderKey == nil {
		o.OrderKey = func(u *Update) string { return string(u.ChatID()) }
	}
	return &Bot{
		client: client, handler: handler, inbox: o.Inbox, o: o, log: o.Log, health: newHealth(o.PollTimeout + healthSlack),
		working: make(chan struct{}, 1), stored: make(chan struct{}, 1),
	}, nil
}

func validConsumer(id string) bool {
	return len(id) <= 64 && strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == ""
}

// stopError says that the policy's verdict was Stop.
type stopError struct{ *DecodeError }

func (e stopError) Unwrap() error { return e.DecodeError }

// retryError says that the policy's verdict was Retry.
type retryError struct{ *DecodeError }

func (e retryError) Unwrap() error { return e.DecodeError }

// decide asks the policy about an update that can't be read. nil: it is skipped.
func (b *Bot) decide(ctx context.Context, e *DecodeError) error {
	verdict := Stop
	err := guard(func() (err error) {
		verdict, err = b.o.DecodePolicy(ctx, e)
		return err
	})
	log := b.log.With("update_id", e.UpdateID, "event_id", e.EventID, "type", e.Type, "path", e.Path, "problem", e.Problem)
	if reason, ok := rejected(err); ok {
		log.Warn("an update that can't be read is rejected", "reason", reason)
		return err
	}
	switch {
	case err != nil:
		log.Error("the policy for updates that can't be read failed", "error", err)
		return err
	case verdict == Skip:
		log.Warn("an update that can't be read is skipped")
		b.health.count(func(s *Status) { s.Quarantined++ })
		return nil
	case verdict == Retry:
		log.Warn("an update that can't be read is to come again")
		return retryError{e}
	default:
		log.Error("stopped: an update can't be read")
		return stopError{e}
	}
}

// handle gives an update to the handler, and keeps what came of it.
func (b *Bot) handle(ctx context.Context, u *Update) error {
	timed, cancel := context.WithTimeout(ctx, b.o.HandlerTimeout)
	defer cancel()
	err := guard(func() error { return b.handler.Handle(timed, u) })
	log := b.log.With("update_id", u.UpdateID, "event_id", u.EventID, "type", u.Type)
	if err == nil {
		b.health.count(func(s *Status) { s.Handled++ })
		log.Debug("update handled")
		return nil
	}
	if reason, ok := rejected(err); ok {
		log.Warn("update rejected by the handler", "reason", reason)
		return err
	}
	b.health.count(func(s *Status) { s.Failed++ })
	if p, ok := errors.AsType[*PanicError](err); ok {
		log = log.With("stack", string(p.Stack))
	}
	log.Error("update failed", "error", err)
	return err
}

// stopGrace is how long the update at hand may take once the bot is to stop.
const stopGrace = 8 * time.Second

// graceful returns a context for work that may be finished when ctx ends: it
// ends stopGrace later.
func graceful(ctx context.Context) (context.Context, context.CancelFunc) {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { // ends when the grace is over or the work is done
		pause(work, stopGrace)
		cancel()
	})
	return work, func() {
		stop()
		cancel()
	}
}

// item is an update on its way into the inbox. An OrderKey that panics must not
// keep it out of there.
func (b *Bot) item(u *Update) Item {
	i := Item{EventID: u.EventID, UpdateID: u.UpdateID, Raw: u.Raw, Received: time.Now().UTC()}
	err := guard(func() error {
		i.Key = b.o.OrderKey(u)
		return nil
	})
	if err != nil {
		b.log.Error("OrderKey failed: the update goes into the lane of no chat", "update_id", u.UpdateID, "error", err)
	}
	return i
}

// ring tells a loop to look; one ring is enough for many.
func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}
