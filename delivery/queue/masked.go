package queue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/pg"
)

// Kept is one update that waits or is FAILED, as support sees it: without its
// content (UI-06).
type Kept struct {
	UpdateID  int64
	EventID   string
	Type      string
	Date      time.Time
	ExpiresAt time.Time
	ReplayOf  int64     // 0: it is no replay
	Chat      string    // masked; "" for none
	Size      int       // of the payload, in bytes
	Issued    bool      // handed over at least once; false for FAILED ones
	Failed    bool      // else it waits
	Reason    string    // of a FAILED one: the webhook's code, or the mask of the program's own words
	ByWebhook bool      // Reason is a code
	Attempts  int       // of a FAILED one
	FailedAt  time.Time // of a FAILED one
}

const keptColumns = `u.update_id, u.event_id, u.type, u.date, u.expires_at, u.replay_of, u.chat_id, octet_length(u.payload) AS size`

// What the position has passed is no more, though its row may be there still.
const waitingWhere = ` FROM updates u JOIN queues q USING (bot_id) WHERE u.bot_id = $1 AND u.update_id >= q.confirmed`

const (
	waitingColumns = keptColumns + `, u.update_id <= q.max_issued AS issued, false AS failed, '' AS reason, false AS by_webhook, 0 AS attempts, NULL::timestamptz AS failed_at`
	failedColumns  = keptColumns + `, false AS issued, true AS failed, u.reason, u.by_webhook, u.attempts, u.failed_at`
)

const waitingPageSQL = `SELECT ` + waitingColumns + waitingWhere + ` AND u.update_id > $2 ORDER BY u.update_id LIMIT $3`

const failedPageSQL = `SELECT ` + failedColumns + ` FROM failed_updates u WHERE u.bot_id = $1 AND u.update_id > $2 ORDER BY u.update_id LIMIT $3`

// WaitingMasked returns up to limit waiting updates behind the update_id after,
// in order, without their content.
func (q *Queue) WaitingMasked(ctx context.Context, botID, after int64, limit int) ([]Kept, error) {
	return q.kept(ctx, waitingPageSQL, botID, after, limit)
}

// FailedMasked is WaitingMasked for FAILED updates.
func (q *Queue) FailedMasked(ctx context.Context, botID, after int64, limit int) ([]Kept, error) {
	return q.kept(ctx, failedPageSQL, botID, after, limit)
}

func (q *Queue) kept(ctx context.Context, statement string, botID, after int64, limit int) ([]Kept, error) {
	rows, err := q.db.QueryContext(ctx, statement, botID, after, limit)
	if err != nil {
		return nil, pg.Mark(fmt.Errorf("updates of bot %d: %w", botID, err))
	}
	defer rows.Close()
	var list []Kept
	for rows.Next() {
		k, err := scanKept(rows)
		if err != nil {
			return nil, pg.Mark(fmt.Errorf("updates of bot %d: %w", botID, err))
		}
		list = append(list, k)
	}
	if err := rows.Err(); err != nil {
		return nil, pg.Mark(fmt.Errorf("updates of bot %d: %w", botID, err))
	}
	return list, nil
}

// scanKept reads a row; more are the places of columns behind those of Kept.
func scanKept(row interface{ Scan(...any) error }, more ...any) (k Kept, err error) {
	var chatID int64
	var failedAt pg.Time
	err = row.Scan(append([]any{&k.UpdateID, &k.EventID, &k.Type, &k.Date, &k.ExpiresAt, &k.ReplayOf, &chatID, &k.Size,
		&k.Issued, &k.Failed, &k.Reason, &k.ByWebhook, &k.Attempts, &failedAt}, more...)...)
	k.Date, k.ExpiresAt, k.FailedAt, k.Chat = k.Date.UTC(), k.ExpiresAt.UTC(), failedAt.Time, maskID(chatID)
	if k.Failed && !k.ByWebhook {
		k.Reason = maskText(utf8.RuneCountInString(k.Reason))
	}
	return k, err
}

// One of the two, since an update is in one place at a time. Zero rows: it is in
// neither.
const peekSQL = `
SELECT ` + waitingColumns + `, u.payload` + waitingWhere + ` AND u.update_id = $2
UNION ALL
SELECT ` + failedColumns + `, u.payload FROM failed_updates u WHERE u.bot_id = $1 AND u.update_id = $2`

// Peek returns one update and the shape of its payload, its values masked; see
// Mask. delivery.ErrNotFound: it is neither waiting nor FAILED.
func (q *Queue) Peek(ctx context.Context, botID, updateID int64) (Kept, string, error) {
	var payload []byte
	k, err := scanKept(q.db.QueryRowContext(ctx, peekSQL, botID, updateID), &payload)
	if err := peeked(err, botID, updateID); err != nil {
		return Kept{}, "", err
	}
	return k, Mask(payload), nil
}

// Reveal returns one update with its payload as it is stored. within is the
// check and the audit line: without it nothing is shown. delivery.ErrNotFound: the
// update is neither waiting nor FAILED, and nobody looked.
func (q *Queue) Reveal(ctx context.Context, botID, updateID int64, within func(context.Context, *sqlx.Tx, Kept) error) (k Kept, payload []byte, err error) {
	err = pg.InTx(ctx, q.db, func(tx *sqlx.Tx) error {
		k, err = scanKept(tx.QueryRowContext(ctx, peekSQL, botID, updateID), &payload)
		if err := peeked(err, botID, updateID); err != nil {
			return err
		}
		return within(ctx, tx, k)
	})
	if err != nil {
		return Kept{}, nil, err
	}
	return k, payload, nil
}

func peeked(err error, botID, updateID int64) error {
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("update %d/%d: %w", botID, updateID, delivery.ErrNotFound)
	}
	if err != nil {
		return pg.Mark(fmt.Errorf("update %d/%d: %w", botID, updateID, err))
	}
	return nil
}

// FailedMaskedGroups counts a bot's FAILED updates by type and reason. What its
// program gave as reasons counts as one, with the reason "".
func (q *Queue) FailedMaskedGroups(ctx context.Context, botID int64) ([]FailedGroup, error) {
	var list []FailedGroup
	err := q.db.SelectContext(ctx, &list, `
SELECT type, CASE WHEN by_webhook THEN reason ELSE '' END AS reason, by_webhook, count(*) AS count FROM failed_updates
 WHERE bot_id = $1 GROUP BY 1, 2, 3 ORDER BY count(*) DESC, 1, 2`, botID)
	if err != nil {
		return nil, pg.Mark(fmt.Errorf("count the FAILED updates of bot %d: %w", botID, err))
	}
	return list, nil
}

// maskID shows of an id how long it is, and of a long one its end.
func maskID(id int64) string {
	if id == 0 {
		return ""
	}
	text := fmt.Sprint(id)
	if len(text) < 6 {
		return strings.Repeat("•", len(text))
	}
	return strings.Repeat("•", len(text)-2) + text[len(text)-2:]
}
