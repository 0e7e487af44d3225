package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/pg"
)

// The platform's switches (UI-06). What else belongs to one of them, the check
// and the audit line, runs in the same transaction and gets to know how it was.

// Switched is Within for a switch: on is how it stands before.
type Switched func(ctx context.Context, tx *sqlx.Tx, on bool) error

// AllowWebhook lets the bot have a webhook or takes it away (W-03). Taken away,
// a request that is under way counts for nothing and none is made after it; what
// waits keeps waiting, and the budget's clock stands still. Long polling isn't
// touched.
func (q *Queue) AllowWebhook(ctx context.Context, botID int64, allowed bool, within Switched) error {
	return q.changeHook(ctx, botID, func(ctx context.Context, tx *sqlx.Tx, r *row, h *hookRow) error {
		if r.Deleted {
			return fmt.Errorf("webhook of bot %d: %w", botID, delivery.ErrNotFound)
		}
		if err := within(ctx, tx, h.allowed); err != nil {
			return err
		}
		if h.allowed == allowed {
			return nil
		}
		h.allowed = allowed
		h.fence()
		h.stopOrGo(r, q.clock.Now())
		if _, err := tx.ExecContext(ctx, `UPDATE queues SET hook_allowed = $2 WHERE bot_id = $1`, botID, allowed); err != nil {
			return fmt.Errorf("switch the webhook of bot %d: %w", botID, err)
		}
		return nil
	})
}

// cancelFailedSQL cancels all FAILED updates of bots whose rows are locked (F-04).
const cancelFailedSQL = `
WITH gone AS (DELETE FROM failed_updates WHERE bot_id = ANY ($1) RETURNING bot_id)
UPDATE queues q SET failed = failed - g.n FROM (SELECT bot_id, count(*) AS n FROM gone GROUP BY bot_id) g WHERE q.bot_id = g.bot_id`

const lockManySQL = `SELECT bot_id FROM queues WHERE bot_id = ANY ($1) AND NOT deleted ORDER BY bot_id FOR UPDATE`

// Waiting polls end, as delivery.Connection.Pause ends them, and the clock of
// every budget stops, as delivery.Hook.Stop stops it.
const stopBotsSQL = `
UPDATE queues SET disabled = true, stopped_at = coalesce(stopped_at, $2),
       lease_until = CASE WHEN poll_until > $2 THEN $3 ELSE lease_until END,
       poll_until = CASE WHEN poll_until > $2 THEN NULL ELSE poll_until END
 WHERE bot_id = ANY ($1) AND NOT disabled`

// goSQL is delivery.Hook.Go for many rows: the budget's clock moves on by the
// time for which it stood.
const goSQL = `stopped_at = NULL, head_failed_at = CASE WHEN stopped_at IS NULL THEN head_failed_at
       ELSE head_failed_at + greatest(interval '0', $2::timestamptz - greatest(stopped_at, head_failed_at)) END`

const startBotsSQL = `UPDATE queues SET disabled = false WHERE bot_id = ANY ($1) AND disabled`

const goBotsSQL = `
UPDATE queues q SET ` + goSQL + ` FROM platform p
 WHERE bot_id = ANY ($1) AND NOT p.maintenance AND NOT paused AND NOT disabled AND hook_allowed AND hook_paused = '' AND stopped_at IS NOT NULL`

// RunBots lets bots run or stops them, as their space does: intake refuses their
// events, polls that wait end, webhooks stop, FAILED updates are cancelled (P-16,
// F-04). What waits keeps waiting. which names the bots, in the same transaction
// and before anything is changed; its error undoes all.
func (q *Queue) RunBots(ctx context.Context, running bool, which func(context.Context, *sqlx.Tx) ([]int64, error)) error {
	var ids []int64
	err := pg.InTx(ctx, q.db, func(tx *sqlx.Tx) error {
		all, err := which(ctx, tx)
		if err != nil {
			return err
		}
		if err := tx.SelectContext(ctx, &ids, lockManySQL, pg.Int8s(all)); err != nil {
			return fmt.Errorf("lock %d queues: %w", len(all), err)
		}
		now := q.clock.Now()
		if running {
			if _, err := tx.ExecContext(ctx, startBotsSQL, pg.Int8s(ids)); err != nil {
				return fmt.Errorf("start %d bots: %w", len(ids), err)
			}
			if _, err := tx.ExecContext(ctx, goBotsSQL, pg.Int8s(ids), now); err != nil {
				return fmt.Errorf("start the budgets of %d bots: %w", len(ids), err)
			}
			return nil
		}
		if _, err := tx.ExecContext(ctx, stopBotsSQL, pg.Int8s(ids), now, now.Add(delivery.LeaseTime)); err != nil {
			return fmt.Errorf("stop %d bots: %w", len(ids), err)
		}
		if _, err := tx.ExecContext(ctx, cancelFailedSQL, pg.Int8s(ids)); err != nil {
			return fmt.Errorf("cancel the FAILED updates of %d bots: %w", len(ids), err)
		}
		return nil
	})
	for _, botID := range ids {
		q.ring(botID) // error or not: an error can hide a commit
	}
	return err
}

// Maintenance is what the platform says while it is serviced.
type Maintenance struct {
	On     bool
	Text   string // in English
	TextRU string // in Russian; "": Text serves both
}

const maintainSQL = `
UPDATE platform SET maintenance = $1, maintenance_en = $2, maintenance_ru = $3,
       maintenance_since = CASE WHEN NOT $1 THEN NULL WHEN maintenance THEN coalesce(maintenance_since, $4) ELSE $4 END`

// Budgets whose clock runs, and those that a request under way may start: few.
const stopHooksSQL = `
UPDATE queues SET stopped_at = $1 WHERE bot_id IN (
    SELECT bot_id FROM queues
     WHERE mode = 'webhook' AND stopped_at IS NULL AND (head_failed_at IS NOT NULL OR claim_until > clock_timestamp())
     ORDER BY bot_id FOR UPDATE)`

const lockStoppedSQL = `
SELECT bot_id FROM queues
 WHERE mode = 'webhook' AND stopped_at IS NOT NULL AND NOT paused AND NOT disabled AND hook_allowed AND hook_paused = ''
 ORDER BY bot_id FOR UPDATE`

// Those who wait for the end of maintenance, or for its beginning.
const concernedSQL = `SELECT bot_id FROM queues WHERE NOT deleted AND (poll_until > $1 OR (mode = 'webhook' AND waiting > 0))`

// Maintain begins or ends the platform's maintenance, or changes what it says.
// While it goes on no bot receives anything, waiting polls end (P-16), nothing is
// replayed (F-02), and no budget's clock runs; intake goes on taking events.
// within's on is whether it goes on already.
func (q *Queue) Maintain(ctx context.Context, m Maintenance, within Switched) error {
	err := pg.InTx(ctx, q.db, func(tx *sqlx.Tx) error {
		var on bool
		if err := tx.GetContext(ctx, &on, `SELECT maintenance FROM platform FOR UPDATE`); err != nil {
			return fmt.Errorf("lock the platform: %w", err)
		}
		if err := within(ctx, tx, on); err != nil {
			return err
		}
		now := q.clock.Now()
		if _, err := tx.ExecContext(ctx, maintainSQL, m.On, m.Text, m.TextRU, now); err != nil {
			return fmt.Errorf("switch maintenance: %w", err)
		}
		return maintainHooks(ctx, tx, on, m.On, now)
	})
	_ = q.ringConcerned(context.WithoutCancel(ctx)) // if it fails, the sweeps find them within a second
	return err
}

// maintainHooks stops or starts the clocks of the budgets.
func maintainHooks(ctx context.Context, tx *sqlx.Tx, was, is bool, now time.Time) error {
	switch {
	case is && !was:
		if _, err := tx.ExecContext(ctx, stopHooksSQL, now); err != nil {
			return fmt.Errorf("stop the budgets: %w", err)
		}
	case was && !is:
		var ids []int64
		if err := tx.SelectContext(ctx, &ids, lockStoppedSQL); err != nil {
			return fmt.Errorf("lock the stopped budgets: %w", err)
		}
		if _, err := tx.ExecContext(ctx, goBotsSQL, pg.Int8s(ids), now); err != nil {
			return fmt.Errorf("start %d budgets: %w", len(ids), err)
		}
	}
	return nil
}

// ringConcerned rings at once for those whom the sweeps would find within a second.
func (q *Queue) ringConcerned(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	var ids []int64
	if err := q.db.SelectContext(ctx, &ids, concernedSQL, q.clock.Now()); err != nil {
		return pg.Mark(fmt.Errorf("look for those whom maintenance concerns: %w", err))
	}
	for _, botID := range ids {
		q.ring(botID)
	}
	return nil
}
