package queue

import (
	"context"
	"fmt"
	"time"

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

// Pause stops a bot or lets it go on (M-07). A webhook request that is under way
// counts; none is made after it.
func (q *Queue) Pause(ctx context.Context, botID int64, paused bool, within Within) error {
	return q.changeHook(ctx, botID, func(ctx context.Context, tx *sqlx.Tx, r *row, h *hookRow) error {
		if err := within(ctx, tx); err != nil {
			return err
		}
		now := q.clock.Now()
		r.Connection = r.Connection.Pause(paused, now)
		h.stopOrGo(r, now)
		return nil
	})
}

// Reset takes the lease away, whoever holds it, and fences a webhook request
// that is under way (M-06, P-08, W-13). The queue stays.
func (q *Queue) Reset(ctx context.Context, botID int64, within Within) error {
	return q.changeHook(ctx, botID, func(ctx context.Context, tx *sqlx.Tx, r *row, h *hookRow) error {
		if err := within(ctx, tx); err != nil {
			return err
		}
		r.Connection = r.TakeAway()
		h.fence()
		return nil
	})
}

// Settings is how a bot shall receive from now on.
type Settings struct {
	Mode delivery.Mode
	URL  string // of the webhook, in its canonical form
	// Seal returns the webhook's secret, sealed for the version of the settings
	// that it is saved with.
	Seal func(version int64) []byte
	Drop bool // cancel what waits (M-02)
}

// Save saves the connection's settings and returns how many waiting updates were
// cancelled. version is the one that the owner decided from: delivery.ErrStale
// when it isn't the present one (M-05). A *delivery.Refusal with
// WEBHOOKS_UNAVAILABLE: the platform has switched the bot's webhook off (W-03).
// Every save is a switch: it takes the lease, fences a request that is under way,
// ends a pause of delivery and closes the breaker (M-01 to M-04).
func (q *Queue) Save(ctx context.Context, botID, version int64, s Settings, within Within) (cancelled int, err error) {
	err = q.changeHook(ctx, botID, func(ctx context.Context, tx *sqlx.Tx, r *row, h *hookRow) error {
		if err := within(ctx, tx); err != nil {
			return err
		}
		if version != r.version {
			return fmt.Errorf("save version %d of bot %d, present %d: %w", version, botID, r.version, delivery.ErrStale)
		}
		if s.Mode == delivery.Webhook && !h.allowed {
			return delivery.Refuse(delivery.WebhooksUnavailable, "the platform has switched this bot's webhook off")
		}
		if r.Mode == delivery.Webhook {
			if err := r.toHead(ctx, tx); err != nil { // before DROP cancels (M-03)
				return err
			}
		}
		now := q.clock.Now()
		h.Hook = h.Saved(now, h.halted(r))
		if r.Mode != s.Mode {
			h.LastError, h.SuccessAt, h.Head = delivery.HookError{}, time.Time{}, delivery.Budget{}
		}
		h.fence()
		r.version++
		r.Mode = s.Mode
		r.Connection = r.TakeAway()
		if err := saveWebhook(ctx, tx, botID, r.version, s, now); err != nil || !s.Drop {
			return err
		}
		if err := tx.GetContext(ctx, &cancelled, dropSQL, botID, r.Confirmed); err != nil {
			return fmt.Errorf("cancel the updates of bot %d: %w", botID, err)
		}
		return nil
	})
	return cancelled, err
}

// saveWebhook keeps the address, and the secret while it is used.
func saveWebhook(ctx context.Context, tx *sqlx.Tx, botID, version int64, s Settings, now time.Time) error {
	var err error
	if s.Mode == delivery.Webhook {
		_, err = tx.ExecContext(ctx, `
INSERT INTO webhooks (bot_id, url, secret, version, saved_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (bot_id) DO UPDATE SET url = excluded.url, secret = excluded.secret, version = excluded.version, saved_at = excluded.saved_at`,
			botID, s.URL, s.Seal(version), version, now)
	} else {
		_, err = tx.ExecContext(ctx, `UPDATE webhooks SET secret = NULL WHERE bot_id = $1`, botID)
	}
	if err != nil {
		return fmt.Errorf("save the webhook of bot %d: %w", botID, err)
	}
	return nil
}

// dropSQL cancels all that waits and marks it as skipped, in runs (M-02).
const dropSQL = `
WITH gone AS (
    DELETE FROM updates WHERE bot_id = $1 AND update_id >= $2 RETURNING update_id
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
	return q.changeHook(ctx, botID, func(ctx context.Context, tx *sqlx.Tx, r *row, h *hookRow) error {
		if err := within(ctx, tx); err != nil {
			return err
		}
		h.fence()
		for _, table := range []string{"updates", "failed_updates", "skips", "webhooks", "attempts"} {
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
