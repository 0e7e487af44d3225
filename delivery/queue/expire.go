package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"mybots/delivery/pg"
)

// expireSQL takes what has expired out of one bot's queue and marks it as
// skipped, in runs. The row is locked, so its position holds.
const expireSQL = `
WITH gone AS (
    DELETE FROM updates u USING queues q
     WHERE q.bot_id = $1 AND u.bot_id = $1 AND u.update_id >= q.confirmed AND u.expires_at <= $2
    RETURNING u.update_id, octet_length(u.payload) AS size
), runs AS (
    SELECT min(update_id) AS from_id, max(update_id) AS to_id
      FROM (SELECT update_id, update_id - row_number() OVER (ORDER BY update_id) AS run FROM gone) g GROUP BY run
), marked AS (
    INSERT INTO skips (bot_id, from_id, to_id, reason) SELECT $1, from_id, to_id, 'expired' FROM runs
), freed AS (
    SELECT count(*)::integer AS updates, coalesce(sum(size), 0)::bigint AS bytes FROM gone
)
UPDATE queues SET waiting = waiting - freed.updates, waiting_bytes = waiting_bytes - freed.bytes
  FROM freed WHERE bot_id = $1 RETURNING freed.updates`

func (q *Queue) expire(ctx context.Context, tx *sqlx.Tx, botID int64, now time.Time) (int, error) {
	var n int
	if err := tx.GetContext(ctx, &n, expireSQL, botID, now); err != nil {
		return 0, fmt.Errorf("expire updates of bot %d: %w", botID, err)
	}
	return n, nil
}

// dueSQL finds the bots with something to expire. Originals expire in the order
// of their ids, so the first one tells; replays have an index.
const dueSQL = `
SELECT q.bot_id FROM queues q
  JOIN LATERAL (SELECT expires_at FROM updates u WHERE u.bot_id = q.bot_id AND u.update_id >= q.confirmed AND u.replay_of = 0
                 ORDER BY update_id LIMIT 1) first ON first.expires_at <= $1
 WHERE q.waiting > 0
UNION
SELECT bot_id FROM updates WHERE replay_of <> 0 AND expires_at <= $1
UNION
SELECT bot_id FROM failed_updates WHERE expires_at <= $1`

const expireFailedSQL = `
WITH gone AS (DELETE FROM failed_updates WHERE bot_id = $1 AND expires_at <= $2 RETURNING 1)
UPDATE queues SET failed = failed - (SELECT count(*) FROM gone) WHERE bot_id = $1`

// Expire ends what is older than 7 days, waiting or FAILED, in every queue
// and returns how many waiting updates that were. A queue that fails
// doesn't stop the others; the first error comes back.
func (q *Queue) Expire(ctx context.Context) (int, error) {
	now := q.clock.Now()
	var bots []int64
	if err := q.db.SelectContext(ctx, &bots, dueSQL, now); err != nil {
		return 0, pg.Mark(fmt.Errorf("look for expired updates: %w", err))
	}
	total := 0
	var failed error
	for _, botID := range bots {
		n, err := q.ExpireOf(ctx, botID)
		total += n
		if failed == nil {
			failed = err
		}
	}
	return total, failed
}

// ExpireOf is Expire for one bot.
func (q *Queue) ExpireOf(ctx context.Context, botID int64) (n int, err error) {
	now := q.clock.Now()
	err = q.tx(ctx, func(tx *sqlx.Tx) error {
		if _, err := q.load(ctx, tx, botID); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, expireFailedSQL, botID, now); err != nil {
			return fmt.Errorf("expire FAILED updates of bot %d: %w", botID, err)
		}
		n, err = q.expire(ctx, tx, botID, now)
		return err
	})
	if err == nil {
		q.ring(botID) // a waiting poll reports the range
	}
	return n, err
}
