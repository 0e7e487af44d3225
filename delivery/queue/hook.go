package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/pg"
)

// hookRow is what a locked queue row says about webhook delivery. Long polling
// has no use for it, so it is read and written by itself.
type hookRow struct {
	delivery.Hook
	allowed    bool
	generation int64
}

// hookColumns are the columns of queues that hookScan reads.
const hookColumns = `hook_allowed, hook_paused, stopped_at, due_at, connect_failures, used_up, breaker, probe_asked,
       head_id, head_attempts, head_charged, head_failed_at, error_code, error_detail, error_at, success_at`

// hookScan reads hookColumns.
type hookScan struct {
	hook    delivery.Hook
	allowed bool

	stopped, due, headFailed, errorAt, success pg.Time
}

// places are where the columns go.
func (s *hookScan) places() []any {
	h := &s.hook
	return []any{&s.allowed, &h.Paused, &s.stopped, &s.due, &h.Failures, &h.UsedUp, &h.Breaker, &h.ProbeAsked,
		&h.Head.UpdateID, &h.Head.Attempts, &h.Head.Charged, &s.headFailed, &h.LastError.Code, &h.LastError.Detail, &s.errorAt, &s.success}
}

// read returns what was scanned.
func (s *hookScan) read() (h delivery.Hook, allowed bool) {
	h = s.hook
	h.StoppedAt, h.Due, h.Head.FirstFailed, h.LastError.At, h.SuccessAt = s.stopped.Time, s.due.Time, s.headFailed.Time, s.errorAt.Time, s.success.Time
	return h, s.allowed
}

// The row is locked already.
const hookSQL = `SELECT generation, ` + hookColumns + ` FROM queues WHERE bot_id = $1`

func loadHook(ctx context.Context, tx *sqlx.Tx, botID int64) (hookRow, error) {
	var h hookRow
	var s hookScan
	if err := tx.QueryRowContext(ctx, hookSQL, botID).Scan(append([]any{&h.generation}, s.places()...)...); err != nil {
		return hookRow{}, fmt.Errorf("read the webhook state of bot %d: %w", botID, err)
	}
	h.Hook, h.allowed = s.read()
	return h, nil
}

const saveHookSQL = `
UPDATE queues SET generation = $2, hook_paused = $3, stopped_at = $4, due_at = $5, connect_failures = $6, used_up = $7, breaker = $8,
       probe_asked = $9, head_id = $10, head_attempts = $11, head_charged = $12, head_failed_at = $13,
       error_code = $14, error_detail = $15, error_at = $16, success_at = $17
 WHERE bot_id = $1`

func saveHook(ctx context.Context, tx *sqlx.Tx, botID int64, h hookRow) error {
	at := func(t time.Time) pg.Time { return pg.Time{Time: t} }
	_, err := tx.ExecContext(ctx, saveHookSQL, botID, h.generation, h.Paused, at(h.StoppedAt), at(h.Due), h.Failures, h.UsedUp, h.Breaker,
		h.ProbeAsked, h.Head.UpdateID, h.Head.Attempts, h.Head.Charged, at(h.Head.FirstFailed),
		h.LastError.Code, h.LastError.Detail, at(h.LastError.At), at(h.SuccessAt))
	if err != nil {
		return fmt.Errorf("write the webhook state of bot %d: %w", botID, err)
	}
	return nil
}

// fence makes the answer to a request that is under way count for nothing
// (W-13). Its claim stays until its holder gives it up or it runs out, so that
// no other request begins before that.
func (h *hookRow) fence() { h.generation++ }

// changeHook is change with the webhook's state beside the connection.
func (q *Queue) changeHook(ctx context.Context, botID int64, rule func(context.Context, *sqlx.Tx, *row, *hookRow) error) error {
	return q.change(ctx, botID, func(ctx context.Context, tx *sqlx.Tx, r *row) error {
		h, err := loadHook(ctx, tx, botID)
		if err != nil {
			return err
		}
		if err := rule(ctx, tx, r, &h); err != nil {
			return err
		}
		return saveHook(ctx, tx, botID, h)
	})
}

// ResumeWebhook is the owner's Resume delivery (W-11): what waits goes out at
// once; while the breaker is open, as a probe (W-12).
func (q *Queue) ResumeWebhook(ctx context.Context, botID int64, within Within) error {
	return q.steerHook(ctx, botID, within, func(h *hookRow, r *row) delivery.Hook { return h.Resume(q.clock.Now(), h.halted(r)) })
}

// ProbeWebhook is the owner's Probe now (W-12).
func (q *Queue) ProbeWebhook(ctx context.Context, botID int64, within Within) error {
	return q.steerHook(ctx, botID, within, func(h *hookRow, _ *row) delivery.Hook { return h.Probe(q.clock.Now()) })
}

// steerHook does nothing to a bot that receives by long polling.
func (q *Queue) steerHook(ctx context.Context, botID int64, within Within, rule func(*hookRow, *row) delivery.Hook) error {
	return q.changeHook(ctx, botID, func(ctx context.Context, tx *sqlx.Tx, r *row, h *hookRow) error {
		if err := within(ctx, tx); err != nil {
			return err
		}
		if r.Mode == delivery.Webhook {
			h.Hook = rule(h, r)
		}
		return nil
	})
}

// halted tells whether the bot may not deliver to its webhook, whatever the
// webhook answers.
func (h *hookRow) halted(r *row) bool {
	return r.Paused || r.Disabled || r.Maintenance || !h.allowed
}

// stopOrGo lets the budget's clock stand or run, as the bot now may deliver or
// not (W-10).
func (h *hookRow) stopOrGo(r *row, now time.Time) {
	if h.halted(r) {
		h.Hook = h.Stop(now)
	} else {
		h.Hook = h.Go(now)
	}
}

// Zero rows: nothing waits.
const headSQL = `SELECT update_id FROM updates WHERE bot_id = $1 AND update_id >= $2 ORDER BY update_id LIMIT 1`

// toHead moves the position to the first update that waits, with none to the
// next id: what a webhook delivered or failed is behind it then (M-03, W-15).
func (r *row) toHead(ctx context.Context, tx *sqlx.Tx) error {
	var ids []int64
	if err := tx.SelectContext(ctx, &ids, headSQL, r.botID, r.Confirmed); err != nil {
		return fmt.Errorf("look for the first update of bot %d: %w", r.botID, err)
	}
	r.Confirmed = r.NextUpdateID
	if len(ids) > 0 {
		r.Confirmed = ids[0]
	}
	return nil
}

// failSQL moves one waiting update to FAILED, reason and attempts given by the
// webhook's answers. Zero rows: it waits no more.
const failSQL = `
WITH gone AS (
    DELETE FROM updates WHERE bot_id = $1 AND update_id = $2 RETURNING *
), kept AS (
    INSERT INTO failed_updates (bot_id, update_id, event_id, type, date, expires_at, chat_id, message_id, replay_of, payload,
                                reason, attempts, failed_at, by_webhook)
    SELECT bot_id, update_id, event_id, type, date, expires_at, chat_id, message_id, replay_of, payload, $3, $4, $5, true FROM gone
)
UPDATE queues q SET waiting = waiting - 1, waiting_bytes = waiting_bytes - octet_length(gone.payload), failed = failed + 1
  FROM gone WHERE q.bot_id = gone.bot_id`

// ErrLost: the claim is another's by now, or was fenced off; the answer counts
// for nothing (W-13).
var ErrLost = errors.New("the claim was lost")

// Settle writes what follows from the answer to the request that c was claimed
// for, and gives the claim up. It returns the state from now on and what became
// of the update. What the owner should know is told in the same transaction
// (N-02). ErrLost: nothing was written. A 2xx goes by Confirm.
func (q *Queue) Settle(ctx context.Context, c Claim, a delivery.Answer, took time.Duration) (hook delivery.Hook, fate delivery.Fate, err error) {
	err = q.withDays(ctx, func() error {
		return q.changeHook(ctx, c.BotID, func(ctx context.Context, tx *sqlx.Tx, r *row, h *hookRow) error {
			if h.generation != c.Generation || r.Deleted {
				return fmt.Errorf("settle %d/%d: %w", c.BotID, c.Update.UpdateID, ErrLost)
			}
			now := q.clock.Now()
			attempts := h.Head.Attempts
			var reason string
			h.Hook, fate, reason = h.Settle(a, now)
			if fate == delivery.FateFailed {
				if _, err := tx.ExecContext(ctx, failSQL, c.BotID, c.Update.UpdateID, reason, attempts, now); err != nil {
					return fmt.Errorf("fail %d/%d: %w", c.BotID, c.Update.UpdateID, err)
				}
			}
			if err := r.toHead(ctx, tx); err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, `UPDATE queues SET claim_until = NULL WHERE bot_id = $1`, c.BotID); err != nil {
				return fmt.Errorf("give up the claim of bot %d: %w", c.BotID, err)
			}
			if h.halted(r) { // since the request began
				h.Hook = h.Stop(now)
			}
			if r.Disabled { // F-04, for the one that came late
				if _, err := tx.ExecContext(ctx, cancelFailedSQL, pg.Int8s{c.BotID}); err != nil {
					return fmt.Errorf("cancel FAILED updates of bot %d: %w", c.BotID, err)
				}
			}
			if kind, code, ok := delivery.TroubleOf(h.Hook, fate, reason); ok {
				t := delivery.Trouble{Kind: kind, BotID: c.BotID, Code: code, UpdateID: c.Update.UpdateID, At: now}
				if err := q.tell(ctx, tx, t); err != nil {
					return err
				}
			}
			h.generation++ // asked again after a commit that an error hid, it is lost
			hook = h.Hook
			return keepAttempt(ctx, tx, c, a, attempts, h.Head.Charged, fate, took, now)
		})
	})
	return hook, fate, err
}

// releaseSQL gives a claim up, also one that was fenced off. A request that
// wasn't made is no attempt.
const releaseSQL = `
UPDATE queues SET claim_until = NULL,
       head_attempts = CASE WHEN $3 OR generation <> $2 THEN head_attempts ELSE greatest(head_attempts - 1, 0) END
 WHERE bot_id = $1 AND claim_generation = $2`

// Release gives a claim up whose request came to nothing: it wasn't made, or
// was cut off. sent tells which.
func (q *Queue) Release(ctx context.Context, c Claim, sent bool) error {
	if _, err := q.db.ExecContext(ctx, releaseSQL, c.BotID, c.Generation, sent); err != nil {
		return pg.Mark(fmt.Errorf("give up the claim of bot %d: %w", c.BotID, err))
	}
	q.ring(c.BotID)
	return nil
}
