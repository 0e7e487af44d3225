package queue

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
)

// rejectSQL moves one waiting update to FAILED. Zero rows: it waits no more.
const rejectSQL = `
WITH gone AS (
    DELETE FROM updates WHERE bot_id = $1 AND update_id = $2 AND expires_at > $4 RETURNING *
), kept AS (
    INSERT INTO failed_updates (bot_id, update_id, event_id, type, date, expires_at, chat_id, message_id, replay_of, payload,
                                reason, attempts, failed_at)
    SELECT bot_id, update_id, event_id, type, date, expires_at, chat_id, message_id, replay_of, payload, $3, 1, $4 FROM gone
), marked AS (
    INSERT INTO skips (bot_id, from_id, to_id, reason) SELECT bot_id, update_id, update_id, 'failed' FROM gone
)
UPDATE queues q SET waiting = waiting - 1, waiting_bytes = waiting_bytes - octet_length(gone.payload), failed = failed + 1
  FROM gone WHERE q.bot_id = gone.bot_id RETURNING gone.event_id`

// Rejected is rejectUpdate's result.
type Rejected struct {
	UpdateID string `json:"update_id"`
	EventID  string `json:"event_id"`
	State    string `json:"state"`
}

// Reject moves an update that the current lease was issued to FAILED with the
// program's reason, once for each idempotency key. It returns
// the result's JSON and whether it is a stored one. A *delivery.Refusal is the
// product's no and leaves everything as it was.
func (q *Queue) Reject(ctx context.Context, call Once, r delivery.Rejection) (answer []byte, replayed bool, err error) {
	answer, replayed, err = q.Once(ctx, call, func(tx *sqlx.Tx) ([]byte, error) {
		row, err := q.load(ctx, tx, call.BotID)
		if err != nil {
			return nil, err
		}
		now := q.clock.Now()
		var refusal *delivery.Refusal
		if row.Connection, refusal = row.Connection.Reject(r, now); refusal != nil {
			return nil, refusal
		}
		var eventID string
		err = tx.GetContext(ctx, &eventID, rejectSQL, call.BotID, r.UpdateID, r.Reason, now)
		if errors.Is(err, sql.ErrNoRows) {
			return nil, delivery.Refuse(delivery.UpdateNotFound, "update "+strconv.FormatInt(r.UpdateID, 10)+" waits no more: it was rejected, cancelled or has expired")
		}
		if err != nil {
			return nil, fmt.Errorf("reject %d/%d: %w", call.BotID, r.UpdateID, err)
		}
		if err := q.store(ctx, tx, row); err != nil {
			return nil, err
		}
		return json.Marshal(Rejected{UpdateID: strconv.FormatInt(r.UpdateID, 10), EventID: eventID, State: "failed"})
	})
	if err == nil && !replayed {
		q.ring(call.BotID) // a poll that waits reports the range
	}
	return answer, replayed, err
}
