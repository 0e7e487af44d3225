package botkit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	longestPoll  = 25 * time.Second
	slowCheck    = 30 * time.Second // of what a person has to change first
	batchTime    = 20 * time.Second // after which a batch is left, to confirm what is done and keep the lease
	confirmTime  = 5 * time.Second  // for the last call, when the bot ends
	conflictWait = 5 * time.Second  // a conflict always names a time; this is for one that doesn't
	callsASecond = 4                // the server takes five (P-03)
)

// Poll receives by long polling until ctx ends; then it returns nil, after the
// update at hand and a last confirmation.
//
// It confirms only what is done with: handled with a good outcome, or stored in
// the Inbox. An update that fails comes again, after a growing pause, and those
// after it wait. All passing faults, conflicts over the lease, pauses and
// switches of the mode are waited out; a person has to mend the errors that it
// returns: a token that isn't valid, a space that runs no bots, a request that
// the server refuses, each an *Error, and *DecodeError when the DecodePolicy said
// Stop. Starting again at once won't help with those.
func (b *Bot) Poll(ctx context.Context) error {
	if b.client == nil || b.o.ConsumerID == "" {
		return errors.New("polling needs a client and Options.ConsumerID")
	}
	if !b.polling.CompareAndSwap(false, true) {
		return errors.New("this bot polls already")
	}
	defer b.polling.Store(false)
	b.health.answered(0)
	b.health.stop("")
	receiving, stop := context.WithCancel(ctx)
	var working sync.WaitGroup
	if b.inbox != nil {
		working.Go(func() { _ = b.Work(receiving) }) // ends with receiving; there is an inbox, so no error
	}
	p := &poller{Bot: b}
	err := p.run(ctx)
	b.health.ended()
	if err != nil {
		b.health.stop("stopped: " + err.Error())
	}
	stop()
	working.Wait()
	return err
}

type poller struct {
	*Bot
	position  Position // saved
	confirmed ID       // by the server's last answer
	carried   ID       // the offset of a call that was cut off: it may have confirmed
	fails     int      // calls in a row
	paced     [callsASecond]time.Time
}

func (p *poller) run(ctx context.Context) error {
	if !p.persist(ctx, p.load) {
		return nil
	}
	var fatal error
	for fatal == nil && p.room(ctx) && p.pace(ctx) {
		batch, err := p.client.GetUpdates(ctx, Poll{
			ConsumerID: p.o.ConsumerID, Epoch: p.position.Epoch, Offset: p.position.Offset, Timeout: p.o.PollTimeout,
		})
		if err == nil {
			p.fails = 0
			err = p.take(ctx, batch)
		} else if ctx.Err() != nil {
			p.carried = p.position.Offset
		}
		if err != nil && ctx.Err() == nil {
			var wait time.Duration
			if wait, fatal = p.react(ctx, err); fatal == nil {
				pause(ctx, wait)
			}
		}
	}
	p.confirm(ctx)
	return fatal
}

// load reads the position. Another bot's is none: its offset would mean nothing.
func (p *poller) load(ctx context.Context) (err error) {
	var at Position
	if p.inbox != nil {
		at, err = p.inbox.Load(ctx)
	} else {
		at, err = p.o.Store.Load(ctx)
	}
	if err != nil {
		return err
	}
	if at.Bot != p.client.mark || !at.sound() {
		at = Position{Bot: p.client.mark}
	}
	p.position = at
	return nil
}

// save stores the position and, in the same transaction, the items that come
// before it.
func (p *poller) save(ctx context.Context, items []Item, epoch, offset ID) bool {
	to := Position{Bot: p.position.Bot, Epoch: epoch, Offset: offset}
	if to == p.position && len(items) == 0 {
		return true
	}
	return p.persist(ctx, func(ctx context.Context) error {
		if p.inbox == nil {
			if err := p.o.Store.Save(ctx, to); err != nil {
				return err
			}
			p.position = to
			return nil
		}
		added, err := p.inbox.Put(ctx, items, &to)
		if err != nil {
			return err
		}
		p.position = to
		p.health.count(func(s *Status) { s.Duplicates += int64(len(items) - added) })
		ring(p.stored)
		return nil
	})
}

// room waits while the inbox is full; false: ctx has ended.
func (p *poller) room(ctx context.Context) bool {
	for n := 1; p.inbox != nil && ctx.Err() == nil; n++ {
		counts, err := p.inbox.Counts(ctx)
		if err == nil && !p.full(counts) {
			break
		}
		if err != nil && ctx.Err() == nil {
			p.health.stored(err)
			p.log.Error("the inbox fails", "error", err)
			pause(ctx, backoff(n))
			continue
		}
		p.health.answered(0) // not deaf, only behind
		pause(ctx, time.Second)
	}
	return ctx.Err() == nil
}

// pace waits until the server takes another call; false: ctx has ended.
func (p *poller) pace(ctx context.Context) bool {
	if wait := time.Second - time.Since(p.paced[0]); wait > 0 {
		pause(ctx, wait)
	}
	copy(p.paced[:], p.paced[1:])
	p.paced[callsASecond-1] = time.Now()
	return ctx.Err() == nil
}

// take handles or stores a batch, and saves how far that went.
func (p *poller) take(ctx context.Context, batch Batch) error {
	ids, ok := batchIDs(batch)
	if !ok {
		return &Error{Method: "getUpdates", Code: BadResult, Status: 200, Message: "a batch without proper ids; a newer kit may know it"}
	}
	p.confirmed = batch.ConfirmedOffset
	epoch := batch.Lease.Epoch
	// A new epoch is kept before anything is done under it: a crash then goes on
	// with the lease, and not against it.
	if epoch != p.position.Epoch && !p.save(ctx, nil, epoch, batch.ConfirmedOffset) {
		return ctx.Err()
	}
	for _, r := range batch.Skipped { // of whatever reason: new ones may appear
		p.log.Info("updates were skipped", "from", r.From, "to", r.To, "reason", r.Reason)
	}
	work, cancel := graceful(ctx)
	defer cancel()
	var items []Item
	var failed error
	// The next update wanted: an id of the batch, at its end next_offset; never computed.
	reached, began := batch.ConfirmedOffset, time.Now()
	for n, raw := range batch.Updates {
		if p.inbox == nil && (ctx.Err() != nil || time.Since(began) > batchTime) {
			break
		}
		var item *Item
		if item, failed = p.one(work, raw, epoch); failed != nil {
			break
		}
		if item != nil {
			items = append(items, *item)
		}
		reached = append(ids, batch.NextOffset)[n+1]
		p.health.answered(0)
	}
	if len(batch.Updates) == 0 {
		reached = batch.NextOffset
	}
	if !p.save(ctx, items, epoch, reached) {
		return ctx.Err()
	}
	p.health.received(batch, p.position)
	return failed
}

// batchIDs returns the ids of a batch's updates; ok is false if a batch lacks
// what the position needs.
func batchIDs(batch Batch) (ids []ID, ok bool) {
	for _, raw := range batch.Updates {
		u, err := ParseUpdate(raw)
		if bad, isBad := errors.AsType[*DecodeError](err); isBad {
			ids = append(ids, bad.UpdateID)
			continue
		}
		if err != nil {
			return nil, false
		}
		ids = append(ids, u.UpdateID)
	}
	return ids, batch.ConfirmedOffset.Valid() && batch.NextOffset.Valid() && batch.Lease.Epoch.Valid()
}

// failure is an update that wasn't handled. It hides its cause, which may be an
// *Error of another call, from what reacts to getUpdates.
type failure struct {
	id    ID
	cause error
}

func (f *failure) Error() string { return fmt.Sprintf("update %s: %v", f.id, f.cause) }

// one handles an update, or returns what to store of it.
func (p *poller) one(ctx context.Context, raw []byte, epoch ID) (*Item, error) {
	u, err := ParseUpdate(raw)
	id, eventID := ID(""), ""
	if bad, ok := errors.AsType[*DecodeError](err); ok {
		id, eventID = bad.UpdateID, bad.EventID
		err = p.decide(ctx, bad)
		if _, stop := errors.AsType[stopError](err); stop {
			return nil, err
		}
	} else if err == nil {
		id, eventID = u.UpdateID, u.EventID
		if p.inbox != nil {
			item := p.item(u)
			return &item, nil
		}
		err = p.handle(ctx, u)
	}
	if reason, ok := rejected(err); ok {
		return nil, p.reject(ctx, id, eventID, reason, epoch)
	}
	if err != nil {
		return nil, &failure{id, err}
	}
	p.health.stuck("")
	return nil, nil
}

// reject moves an update to the owner's FAILED list.
func (p *poller) reject(ctx context.Context, id ID, eventID, reason string, epoch ID) error {
	// With the update id: a replay is the same event in another place, and may be
	// rejected again.
	key := ActionKey(eventID, "reject", string(id))
	err := p.client.RejectUpdate(ctx, key, Rejection{UpdateID: id, Reason: reason, ConsumerID: p.o.ConsumerID, Epoch: epoch})
	switch {
	case err == nil:
		p.health.count(func(s *Status) { s.Rejected++ })
	case errors.Is(err, UpdateNotFound): // it waits no longer: nothing to move
	case errors.Is(err, ConsumerConflict), errors.Is(err, DeliveryModeConflict), errors.Is(err, BotPaused),
		errors.Is(err, Unauthorized), errors.Is(err, BotDisabled):
		return err // as if getUpdates had said so
	default:
		return &failure{id, err}
	}
	p.health.stuck("")
	return nil
}

// confirm tells the server at the end what is saved and no call has carried. If
// it fails, the next start does it.
func (p *poller) confirm(ctx context.Context) {
	if p.position.Offset == p.carried || p.position.Offset.Compare(p.confirmed) <= 0 {
		return
	}
	timed, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirmTime)
	defer cancel()
	_, err := p.client.GetUpdates(timed, Poll{
		ConsumerID: p.o.ConsumerID, Epoch: p.position.Epoch, Offset: p.position.Offset, Limit: 1,
	})
	if err != nil {
		p.log.Info("the last updates aren't confirmed yet; the next start does it", "offset", p.position.Offset, "error", err)
	}
}
