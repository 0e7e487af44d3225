package botkit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// react says what to do about a failed call or update (K-06): how long to wait
// before the next call, or what a person has to mend.
func (p *poller) react(ctx context.Context, err error) (wait time.Duration, fatal error) {
	if f, ok := errors.AsType[*failure](err); ok {
		wait := backoff(p.health.stuck(f.id))
		p.log.Warn("the update comes again", "update_id", f.id, "wait", wait)
		p.health.answered(wait)
		return wait, nil
	}
	if stop, ok := errors.AsType[stopError](err); ok {
		return 0, fmt.Errorf("polling stopped: %w", stop.DecodeError)
	}
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return 0, err
	}
	p.fails++
	log := p.log.With("code", e.Code, "request_id", e.RequestID)
	switch e.Code {
	case ConsumerConflict:
		// Another consumer has the lease, or a poll still waits: our own, right after
		// a crash. Epoch and offset stay: the server decides whether they still count.
		wait = after(cmp.Or(e.RetryAfter, conflictWait), 1)
		log.Info("another getUpdates holds this bot", "wait", wait)
	case CursorBehind:
		log.Warn("the saved offset is behind; going on from the server's", "offset", p.position.Offset, "confirmed_offset", e.ConfirmedOffset)
		if !e.ConfirmedOffset.Valid() {
			return 0, e
		}
		return p.moveTo(ctx, e.ConfirmedOffset), nil
	case OffsetNotIssued:
		log.Warn("the saved offset is unknown to this lease; asking the server for its position", "offset", p.position.Offset)
		return p.moveTo(ctx, ""), nil
	case DeliveryModeConflict:
		wait = after(slowCheck, 1)
		log.Info("the bot receives by webhook", "wait", wait)
	case BotPaused:
		wait = after(slowCheck, 1)
		log.Info("the bot is paused by its owner", "wait", wait)
	case Unauthorized:
		return 0, fmt.Errorf("the bot's token isn't valid: take the current one from My bots and start again: %w", e)
	case BotDisabled:
		return 0, fmt.Errorf("the bot's space has bots switched off: ask its administrator to switch them on and start again: %w", e)
	default:
		if !e.passing() {
			return 0, fmt.Errorf("the server refuses the request: check its address, ConsumerID and the kit's version: %w", e)
		}
		wait = after(e.RetryAfter, p.fails)
		log.Warn("getUpdates failed", "error", e, "wait", wait)
		return wait, nil // no health: it is an answer only to those who want none
	}
	p.health.answered(wait)
	return wait, nil
}

// moveTo saves another offset under the same epoch. It waits only when that
// didn't help the last time.
func (p *poller) moveTo(ctx context.Context, offset ID) (wait time.Duration) {
	if p.fails > 1 {
		wait = backoff(p.fails)
	}
	p.health.answered(wait)
	p.save(ctx, nil, p.position.Epoch, offset)
	return wait
}
