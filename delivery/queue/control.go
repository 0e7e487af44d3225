package queue

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
)

// Within is what else belongs to a change: it runs in the same transaction,
// under the lock of the queue's row, before the change. Its error undoes all.
type Within func(context.Context, *sqlx.Tx) error

// Open gives a new bot its queue, in the transaction that makes the bot.
// disabled: its space runs no bots.
func Open(ctx context.Context, tx *sqlx.Tx, botID int64, disabled bool) error {
	if _, err := tx.ExecContext(ctx, `INSERT INTO queues (bot_id, disabled) VALUES ($1, $2)`, botID, disabled); err != nil {
		return fmt.Errorf("open the queue of bot %d: %w", botID, err)
	}
	return nil
}

// Pause stops a bot or lets it go on (M-07).
func (q *Queue) Pause(ctx context.Context, botID int64, paused bool, within Within) error {
	return q.change(ctx, botID, func(ctx context.Context, tx *sqlx.Tx, r *row) error {
		if err := within(ctx, tx); err != nil {
			return err
		}
		r.Connection = r.Connection.Pause(paused, q.clock.Now())
		return nil
	})
}

// Reset takes the lease away, whoever holds it (M-06, P-08). The queue stays.
func (q *Queue) Reset(ctx context.Context, botID int64, within Within) error {
	return q.change(ctx, botID, func(ctx context.Context, tx *sqlx.Tx, r *row) error {
		if err := within(ctx, tx); err != nil {
			return err
		}
		r.Connection = r.TakeAway()
		return nil
	})
}

// Save saves the connection's settings as long polling and returns how many
// waiting updates were cancelled. version is the one that the owner decided
// from: delivery.ErrStale when it isn't the present one (M-05). Every save takes
// the lease; drop cancels what waits, also without a change of mode (M-01, M-02).
func (q *Queue) Save(ctx context.Context, botID, version int64, drop bool, within Within) (cancelled int, err error) {
	err = q.change(ctx, botID, func(ctx context.Context, tx *sqlx.Tx, r *row) error {
		if err := within(ctx, tx); err != nil {
			return err
		}
		if version != r.version {
			return fmt.Errorf("save version %d of bot %d, present %d: %w", version, botID, r.version, delivery.ErrStale)
		}
		r.version++
		r.Connection = r.TakeAway()
		if !drop {
			return nil
		}
		if err := tx.GetContext(ctx, &cancelled, dropSQL, botID); err != nil {
			return fmt.Errorf("cancel the updates of bot %d: %w", botID, err)
		}
		return nil
	})
	return cancelled, err
}

// dropSQL cancels all that waits and marks it as skipped, in runs (M-02).
const dropSQL = `
WITH gone AS (
    DELETE FROM updates u USING queues q WHERE q.bot_id = $1 AND u.bot_id = $1 AND u.update_id >= q.confirmed RETURNING u.update_id
), runs AS (
    SELECT min(update_id) AS from_id, max(update_id) AS to_id
      FROM (SELECT update_id, update_id - row_number() OVER (ORDER BY update_id) AS run FROM gone) g GROUP BY run
), marked AS (
    INSERT INTO skips (bot_id, from_id, to_id, reason) SELECT $1, from_id, to_id, 'cancelled' FROM runs
)
UPDATE queues SET waiting = 0, waiting_bytes = 0 WHERE bot_id = $1 RETURNING (SELECT count(*)::integer FROM gone)`

// Delete closes a bot's queue for good: what waits and what FAILED is cancelled,
// the payloads are removed, polls that wait end (M-09).
func (q *Queue) Delete(ctx context.Context, botID int64, within Within) error {
	return q.change(ctx, botID, func(ctx context.Context, tx *sqlx.Tx, r *row) error {
		if err := within(ctx, tx); err != nil {
			return err
		}
		for _, table := range []string{"updates", "failed_updates", "skips"} {
			if _, err := tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE bot_id = $1`, botID); err != nil {
				return fmt.Errorf("empty %s of bot %d: %w", table, botID, err)
			}
		}
		if _, err := tx.ExecContext(ctx, `UPDATE queues SET deleted = true, waiting = 0, waiting_bytes = 0, failed = 0 WHERE bot_id = $1`, botID); err != nil {
			return fmt.Errorf("close the queue of bot %d: %w", botID, err)
		}
		r.Connection = r.TakeAway()
		r.Confirmed = r.NextUpdateID
		return nil
	})
}
