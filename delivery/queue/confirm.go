package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"mybots/delivery"
	"mybots/delivery/pg"
)

// groupConfirms is how many confirmations one group holds at the most.
const groupConfirms = 500

// confirming is one 2xx on its way through a group.
type confirming struct {
	turned turn
	claim  Claim
	status int
	took   time.Duration
	next   bool
	busy   bool   // somebody holds the row
	got    *Claim // of the bot's next update
	lost   bool   // the generation is another one by now
}

func (c *confirming) weight() (items, bytes int) { return 1, len(c.claim.Update.Payload) }
func (c *confirming) turn() *turn                { return &c.turned }

const confirmSQL = `
SELECT bot_id, busy, update_id, event_id, type, date, replay_of, payload
  FROM confirm_webhooks($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`

// Confirm writes that the webhook answered c's request with a 2xx: the update is
// gone. With next the claim stays, renewed, for the bot's next update: it comes
// back, nil when none may be sent now; then, and without next, the claim is given up.
// ErrLost: the answer counts for nothing. delivery.ErrUnavailable: it may be
// written or not, and may be asked again.
func (q *Queue) Confirm(ctx context.Context, c Claim, status int, took time.Duration, next bool) (*Claim, error) {
	e := &confirming{turned: newTurn(), claim: c, status: status, took: took, next: next}
	if err := q.confirms.add(e); err != nil {
		return nil, err
	}
	if err := e.turned.wait(ctx); err != nil {
		return nil, pg.Mark(err)
	}
	if e.lost {
		return nil, fmt.Errorf("confirm %d/%d: %w", c.BotID, c.Update.UpdateID, ErrLost)
	}
	return e.got, nil
}

// writeConfirms commits a group.
func (q *Queue) writeConfirms(ctx context.Context, entries []*confirming) {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	// By bot for the function; two of one bot never meet, as each has one claim.
	slices.SortFunc(entries, func(a, b *confirming) int { return cmp.Compare(a.claim.BotID, b.claim.BotID) })
	for _, next := range []bool{true, false} {
		part := slices.DeleteFunc(slices.Clone(entries), func(e *confirming) bool { return e.next != next })
		if len(part) == 0 {
			continue
		}
		err := q.withDays(ctx, func() error { return q.confirmRows(ctx, part, next, false) })
		if pg.State(err) == pg.LockNotAvailable {
			// A row is held for long: only its own bot waits, and asks again.
			err = q.withDays(ctx, func() error { return q.confirmRows(ctx, part, next, true) })
		}
		for _, e := range part {
			e.turned.err = pg.Mark(err)
			if err == nil && e.busy {
				e.turned.err = errBusy
			}
		}
	}
}

func (q *Queue) confirmRows(ctx context.Context, entries []*confirming, next, skip bool) error {
	stmt, err := q.confirmGroup.Get(ctx)
	if err != nil {
		return err
	}
	n := len(entries)
	bots, generations, updates := make(pg.Int8s, n), make(pg.Int8s, n), make(pg.Int8s, n)
	attempts, statuses, took := make(pg.Int8s, n), make(pg.Int8s, n), make(pg.Int8s, n)
	byBot := make(map[int64]*confirming, n)
	for i, e := range entries {
		c := e.claim
		bots[i], generations[i], updates[i] = c.BotID, c.Generation, c.Update.UpdateID
		attempts[i], statuses[i], took[i] = int64(c.Attempt), int64(e.status), e.took.Microseconds()
		e.busy, e.lost, e.got = false, true, nil
		byBot[c.BotID] = e
	}
	now := q.clock.Now()
	rows, err := stmt.QueryContext(ctx, now, Day(now), int(ClaimTime.Seconds()), next, skip, bots, generations, updates, attempts, statuses, took)
	if err != nil {
		return fmt.Errorf("confirm %d updates: %w", n, err)
	}
	defer rows.Close()
	for rows.Next() {
		var botID int64
		var busy bool
		var updateID *int64
		var u delivery.Update
		var eventID *string
		var date pg.Time
		if err := rows.Scan(&botID, &busy, &updateID, &eventID, &u.Type, &date, &u.ReplayOf, &u.Payload); err != nil {
			return fmt.Errorf("confirm %d updates: %w", n, err)
		}
		e := byBot[botID]
		if e == nil {
			return errors.New("confirm: an answer about a bot that wasn't asked for")
		}
		e.busy, e.lost = busy, false
		if updateID != nil {
			u.UpdateID, u.EventID, u.Date = *updateID, *eventID, date.Time
			got := e.claim
			got.Attempt, got.Trouble, got.Update = 1, false, u
			e.got = &got
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("confirm %d updates: %w", n, err)
	}
	return nil
}
