package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/pg"
)

// Failed is one FAILED update as its owner sees it (F-01).
type Failed struct {
	UpdateID  int64     `db:"update_id"`
	EventID   string    `db:"event_id"`
	Type      string    `db:"type"`
	Date      time.Time `db:"date"`
	Reason    string    `db:"reason"`
	Attempts  int       `db:"attempts"`
	FailedAt  time.Time `db:"failed_at"`
	ExpiresAt time.Time `db:"expires_at"`
	ByWebhook bool      `db:"by_webhook"` // Reason is a code, else it is the program's own words
}

// FailedFilter picks FAILED updates; an empty field picks all.
type FailedFilter struct {
	Type      string
	Reason    string
	ByWebhook bool // with Reason: whose reason it is
}

// What is counted is listed, also what has expired and waits for upkeep (F-05).
const failedWhere = ` FROM failed_updates WHERE bot_id = $1 AND ($2 = '' OR type = $2) AND ($3 = '' OR (reason = $3 AND by_webhook = $4))`

// FailedPage returns up to limit FAILED updates behind the update_id after, in
// order of their ids.
func (q *Queue) FailedPage(ctx context.Context, botID int64, f FailedFilter, after int64, limit int) ([]Failed, error) {
	var list []Failed
	err := q.db.SelectContext(ctx, &list, `SELECT update_id, event_id, type, date, reason, attempts, failed_at, expires_at, by_webhook`+failedWhere+
		` AND update_id > $5 ORDER BY update_id LIMIT $6`, botID, f.Type, f.Reason, f.ByWebhook, after, limit)
	if err != nil {
		return nil, pg.Mark(fmt.Errorf("FAILED updates of bot %d: %w", botID, err))
	}
	return list, nil
}

// FailedGroup counts the FAILED updates of one type and reason.
type FailedGroup struct {
	Type      string `db:"type"`
	Reason    string `db:"reason"`
	ByWebhook bool   `db:"by_webhook"`
	Count     int    `db:"count"`
}

// FailedGroups counts a bot's FAILED updates by type and reason.
func (q *Queue) FailedGroups(ctx context.Context, botID int64) ([]FailedGroup, error) {
	var list []FailedGroup
	err := q.db.SelectContext(ctx, &list, `SELECT type, reason, by_webhook, count(*) AS count`+failedWhere+
		` GROUP BY type, reason, by_webhook ORDER BY type, by_webhook, reason`, botID, "", "", false)
	if err != nil {
		return nil, pg.Mark(fmt.Errorf("count the FAILED updates of bot %d: %w", botID, err))
	}
	return list, nil
}

// FailedIDs returns the ids of all FAILED updates that the filter picks.
func (q *Queue) FailedIDs(ctx context.Context, botID int64, f FailedFilter) ([]int64, error) {
	var ids []int64
	err := q.db.SelectContext(ctx, &ids, `SELECT update_id`+failedWhere+` ORDER BY update_id`, botID, f.Type, f.Reason, f.ByWebhook)
	if err != nil {
		return nil, pg.Mark(fmt.Errorf("FAILED updates of bot %d: %w", botID, err))
	}
	return ids, nil
}

// candidate is a FAILED update that is to be replayed, and whether its chat
// still allows it.
type candidate struct {
	UpdateID  int64     `db:"update_id"`
	ExpiresAt time.Time `db:"expires_at"`
	Size      int64     `db:"size"`
	Access    string    `db:"access"`
}

const candidatesSQL = `
SELECT f.update_id, f.expires_at, octet_length(f.payload) AS size, coalesce(c.access, 'allowed') AS access
  FROM failed_updates f LEFT JOIN chats c ON c.bot_id = f.bot_id AND c.chat_id = f.chat_id
 WHERE f.bot_id = $1 AND f.update_id = ANY ($2) ORDER BY f.update_id`

// replaySQL moves FAILED updates to the tail under their new ids. Their event
// and expiry stay (F-02, U-04).
const replaySQL = `
WITH gone AS (
    DELETE FROM failed_updates f USING unnest($2::bigint[], $3::bigint[]) AS n (old_id, new_id)
     WHERE f.bot_id = $1 AND f.update_id = n.old_id RETURNING f.*, n.new_id
), back AS (
    INSERT INTO updates (bot_id, update_id, event_id, type, date, expires_at, chat_id, message_id, replay_of, payload)
    SELECT bot_id, new_id, event_id, type, date, expires_at, chat_id, message_id, update_id, payload FROM gone
)
UPDATE queues SET next_update_id = next_update_id + g.n, waiting = waiting + g.n, waiting_bytes = waiting_bytes + g.bytes, failed = failed - g.n
  FROM (SELECT count(*)::integer AS n, coalesce(sum(octet_length(payload)), 0)::bigint AS bytes FROM gone) g WHERE bot_id = $1`

// Replay appends FAILED updates at the end of the queue, in the order of their
// old ids, and returns what became of each id, in the order given (F-02). Doing
// it twice appends once: an id that isn't FAILED any more is refused.
func (q *Queue) Replay(ctx context.Context, botID int64, ids []int64, within Within) ([]delivery.Outcome, error) {
	var outcomes []delivery.Outcome
	err := q.change(ctx, botID, func(ctx context.Context, tx *sqlx.Tx, r *row) error {
		if err := within(ctx, tx); err != nil {
			return err
		}
		var found []candidate
		if err := tx.SelectContext(ctx, &found, candidatesSQL, botID, pg.Int8s(ids)); err != nil {
			return fmt.Errorf("look at FAILED updates of bot %d: %w", botID, err)
		}
		room := delivery.Room{}
		if err := tx.QueryRowContext(ctx, `SELECT waiting, waiting_bytes FROM queues WHERE bot_id = $1`, botID).Scan(&room.Waiting, &room.Bytes); err != nil {
			return fmt.Errorf("look at the queue of bot %d: %w", botID, err)
		}
		became := map[int64]delivery.Outcome{}
		var old, fresh pg.Int8s
		now := q.clock.Now()
		for _, c := range found {
			o := delivery.Outcome{UpdateID: c.UpdateID, Result: delivery.Replayed}
			o.Reason = r.Replay(c.ExpiresAt, c.Access, c.Size, &room, now)
			if o.Reason != "" {
				o.Result = delivery.Refused
			} else {
				o.NewID = r.NextUpdateID + int64(len(fresh))
				old, fresh = append(old, c.UpdateID), append(fresh, o.NewID)
			}
			became[c.UpdateID] = o
		}
		if _, err := tx.ExecContext(ctx, replaySQL, botID, old, fresh); err != nil {
			return fmt.Errorf("replay %d updates of bot %d: %w", len(old), botID, err)
		}
		outcomes = inOrder(ids, became)
		return nil
	})
	return outcomes, err
}

// skipSQL removes FAILED updates for good; those ahead of the position are
// reported as skipped by the owner from now on (F-03, P-13). The array keeps the
// planner, which takes gone for a handful, from a nested loop over thousands.
const skipSQL = `
WITH gone AS (
    DELETE FROM failed_updates WHERE bot_id = $1 AND update_id = ANY ($2) RETURNING update_id
), marked AS (
    UPDATE skips s SET reason = 'skipped_by_owner'
     WHERE s.bot_id = $1 AND s.from_id = ANY (ARRAY(SELECT update_id FROM gone)) AND s.to_id = s.from_id AND s.reason = 'failed'
), counted AS (
    UPDATE queues SET failed = failed - (SELECT count(*) FROM gone) WHERE bot_id = $1
)
SELECT update_id FROM gone`

// Skip removes FAILED updates for good and returns what became of each id, in
// the order given (F-03).
func (q *Queue) Skip(ctx context.Context, botID int64, ids []int64, within Within) ([]delivery.Outcome, error) {
	var outcomes []delivery.Outcome
	err := q.change(ctx, botID, func(ctx context.Context, tx *sqlx.Tx, _ *row) error {
		if err := within(ctx, tx); err != nil {
			return err
		}
		var gone []int64
		if err := tx.SelectContext(ctx, &gone, skipSQL, botID, pg.Int8s(ids)); err != nil {
			return fmt.Errorf("skip FAILED updates of bot %d: %w", botID, err)
		}
		became := map[int64]delivery.Outcome{}
		for _, id := range gone {
			became[id] = delivery.Outcome{UpdateID: id, Result: delivery.Skipped}
		}
		outcomes = inOrder(ids, became)
		return nil
	})
	return outcomes, err
}

// inOrder returns one outcome for each id; who isn't there wasn't FAILED.
func inOrder(ids []int64, became map[int64]delivery.Outcome) []delivery.Outcome {
	outcomes := make([]delivery.Outcome, len(ids))
	for i, id := range ids {
		o, ok := became[id]
		if !ok {
			o = delivery.Outcome{UpdateID: id, Result: delivery.Refused, Reason: delivery.NotFailed}
		}
		outcomes[i] = o
	}
	return outcomes
}
