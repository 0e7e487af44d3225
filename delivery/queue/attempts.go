package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/pg"
)

// Attempt is one request to a webhook and what came of it (UI-03).
type Attempt struct {
	At       time.Time     // when it ended
	UpdateID int64         //
	Number   int           // for this update, from 1
	Fate     delivery.Fate // what became of the update
	Code     string        // "" for a 2xx, else as in last_error
	Detail   string        // of a certificate that doesn't validate: which trouble
	Status   int           // 0: no answer
	Took     time.Duration //
	Charged  int           // how much of the update's budget it left used
}

// attemptTime is how long attempts are kept.
const attemptTime = 7 * 24 * time.Hour

const keepAttemptSQL = `
INSERT INTO attempts (day, bot_id, at, update_id, attempt, fate, code, detail, status, took_us, charged)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`

func keepAttempt(ctx context.Context, tx *sqlx.Tx, c Claim, a delivery.Answer, number, charged int, fate delivery.Fate, took time.Duration, now time.Time) error {
	_, err := tx.ExecContext(ctx, keepAttemptSQL, Day(now), c.BotID, now, c.Update.UpdateID, number, string(fate),
		a.Code(), a.Detail, a.Status, took.Microseconds(), charged)
	if err != nil {
		return fmt.Errorf("keep an attempt of bot %d: %w", c.BotID, err)
	}
	return nil
}

// Attempts returns the bot's last requests, the latest first, up to limit.
func (q *Queue) Attempts(ctx context.Context, botID int64, limit int) ([]Attempt, error) {
	rows, err := q.db.QueryContext(ctx, `
SELECT at, update_id, attempt, fate, code, detail, status, took_us, charged FROM attempts
 WHERE bot_id = $1 AND at > $2 ORDER BY at DESC, update_id DESC LIMIT $3`, botID, q.clock.Now().Add(-attemptTime), limit)
	if err != nil {
		return nil, pg.Mark(fmt.Errorf("attempts of bot %d: %w", botID, err))
	}
	defer rows.Close()
	var list []Attempt
	for rows.Next() {
		var a Attempt
		var at pg.Time
		var took int64
		if err := rows.Scan(&at, &a.UpdateID, &a.Number, &a.Fate, &a.Code, &a.Detail, &a.Status, &took, &a.Charged); err != nil {
			return nil, pg.Mark(fmt.Errorf("attempts of bot %d: %w", botID, err))
		}
		a.At, a.Took = at.Time, time.Duration(took)*time.Microsecond
		list = append(list, a)
	}
	if err := rows.Err(); err != nil {
		return nil, pg.Mark(fmt.Errorf("attempts of bot %d: %w", botID, err))
	}
	return list, nil
}

// Day numbers the days since 1970, by which attempts are partitioned.
func Day(t time.Time) int { return int(t.Unix() / (24 * 60 * 60)) }

// MakeDays makes the partitions of the present day and of its neighbours.
func (q *Queue) MakeDays(ctx context.Context) error {
	day := Day(q.clock.Now())
	for d := day - 1; d <= day+1; d++ {
		if _, err := q.db.ExecContext(ctx, `SELECT make_day($1)`, d); err != nil {
			return pg.Mark(fmt.Errorf("make the partitions of day %d: %w", d, err))
		}
	}
	return nil
}

// DropDays drops the partitions of attempts that hold nothing younger than 7
// days and returns how many there were.
func (q *Queue) DropDays(ctx context.Context) (int, error) {
	var n int
	if err := q.db.GetContext(ctx, &n, `SELECT drop_days($1)`, Day(q.clock.Now().Add(-attemptTime))); err != nil {
		return 0, pg.Mark(fmt.Errorf("drop old partitions: %w", err))
	}
	return n, nil
}

// withDays runs write again with the partitions of the day, when there were none.
func (q *Queue) withDays(ctx context.Context, write func() error) error {
	err := write()
	if pg.State(err) == pg.CheckViolation {
		if err = q.MakeDays(ctx); err == nil {
			err = write()
		}
	}
	return err
}
