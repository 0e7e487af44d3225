package botkit

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

const (
	keptFor     = 8 * 24 * time.Hour // an event can come again for 7 days
	lookAgain   = 30 * time.Second   // what another program put into the inbox is found within
	longestTry  = 5 * time.Minute    // between two tries of one update
	purgeEvery  = time.Hour
	longestNote = 256
)

// Work handles the updates in the inbox until ctx ends, also those from before a
// restart: in order in each lane, Options.Workers lanes at a time. An update that
// fails comes again after a growing pause, and its lane waits; after
// Options.Tries, or Reject, it is parked and its lane goes on. When ctx ends, the
// updates at hand are finished. Poll does it by itself; bots with only a webhook
// call it. While another call runs, this one waits. Without an Inbox it is an
// error.
func (b *Bot) Work(ctx context.Context) error {
	if b.inbox == nil {
		return errors.New("the bot has no inbox to work from")
	}
	select {
	case b.working <- struct{}{}:
		defer func() { <-b.working }()
	case <-ctx.Done():
		return nil
	}
	w := &worker{Bot: b, busy: map[string]bool{}, done: make(chan string)}
	w.run(ctx)
	return nil
}

type worker struct {
	*Bot
	busy   map[string]bool // lanes that an update is handled of
	done   chan string     // lanes that are free again
	purged time.Time
	fails  int // of the inbox, in a row
}

func (w *worker) run(ctx context.Context) {
	work, cancel := graceful(ctx)
	defer cancel()
	for ctx.Err() == nil {
		timer := time.NewTimer(w.start(ctx, work))
		select {
		case lane := <-w.done:
			delete(w.busy, lane)
		case <-w.stored:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	for len(w.busy) > 0 {
		delete(w.busy, <-w.done)
	}
}

// start starts what is due and says when to look again.
func (w *worker) start(ctx, work context.Context) (wait time.Duration) {
	now := time.Now()
	var err error
	if now.Sub(w.purged) >= purgeEvery {
		if err = w.inbox.Purge(ctx, now.Add(-keptFor)); err == nil {
			w.purged = now
		}
	}
	var heads []Item
	if err == nil {
		heads, err = w.inbox.Heads(ctx, now, w.o.Workers+len(w.busy)+1)
	}
	if ctx.Err() != nil {
		return lookAgain
	}
	if err != nil {
		w.fails++
		w.log.Error("the inbox fails", "error", err)
		w.health.stored(err)
		return backoff(w.fails)
	}
	if w.fails > 0 {
		w.fails = 0
		w.health.stored(nil)
	}
	for _, i := range heads {
		switch {
		case w.busy[i.Key]:
		case i.Due.After(now):
			return min(lookAgain, i.Due.Sub(now))
		case len(w.busy) == w.o.Workers:
			return lookAgain
		default:
			w.busy[i.Key] = true
			go func() { // ends with the update; run waits for it
				defer func() { w.done <- i.Key }() // also when the handler ends its goroutine
				w.try(ctx, work, i)
			}()
		}
	}
	return lookAgain
}

// try handles an item and settles it.
func (w *worker) try(ctx, work context.Context, i Item) {
	u, err := ParseUpdate(i.Raw)
	if err == nil {
		err = w.handle(work, u)
	}
	if work.Err() != nil && err != nil {
		return // it was cut off by the end: no failure of its own
	}
	s := Settlement{State: ItemHandled}
	reason, isRejected := rejected(err)
	switch {
	case isRejected:
		s.State, s.Note = ItemParked, reason
		w.health.count(func(s *Status) { s.Rejected++ })
	case err != nil && i.Failures+1 >= w.o.Tries:
		s.State, s.Note = ItemParked, err.Error()
	case err != nil:
		s.State, s.Note, s.Due = ItemWaiting, err.Error(), time.Now().Add(tryPause(i.Failures+1))
	}
	s.Note = s.Note[:min(len(s.Note), longestNote)]
	if s.State == ItemParked {
		w.log.Error("update parked", "update_id", i.UpdateID, "event_id", i.EventID, "failures", i.Failures+1)
	}
	// An update that is done with isn't done again because the inbox is away.
	w.persist(ctx, func(ctx context.Context) error { return w.inbox.Settle(ctx, i.EventID, s) })
}

// tryPause is the pause after an update's n-th failure, from 1.
func tryPause(n int) time.Duration {
	most := min(longestTry, time.Second<<min(n-1, 10))
	return most/2 + rand.N(most/2)
}

// persist stores something, again and again until it could; false: ctx ended
// first. It begins, and finishes what it has begun, even when ctx has ended.
func (b *Bot) persist(ctx context.Context, store func(context.Context) error) bool {
	for n := 1; ; n++ {
		timed, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTime)
		err := store(timed)
		cancel()
		b.health.stored(err)
		if err == nil {
			return true
		}
		b.log.Error("the store fails", "error", err)
		if !pause(ctx, backoff(n)) {
			return false
		}
	}
}
