package queue

import (
	"context"
	"fmt"
	"time"

	"mybots/delivery/pg"
)

// Week numbers the weeks since 1970, by which event ids and idempotency keys
// are partitioned: every 7 days lie in two of them.
func Week(t time.Time) int { return int(t.Unix() / (7 * 24 * 60 * 60)) }

// MakeWeeks makes the partitions of the present week and of its neighbours.
func (q *Queue) MakeWeeks(ctx context.Context) error {
	week := Week(q.clock.Now())
	for w := week - 1; w <= week+1; w++ {
		if _, err := q.db.ExecContext(ctx, `SELECT make_week($1)`, w); err != nil {
			return pg.Mark(fmt.Errorf("make the partitions of week %d: %w", w, err))
		}
	}
	return nil
}

// DropWeeks drops the partitions that hold nothing younger than 7 days and
// returns how many there were.
func (q *Queue) DropWeeks(ctx context.Context) (int, error) {
	var n int
	if err := q.db.GetContext(ctx, &n, `SELECT drop_weeks($1)`, Week(q.clock.Now())-1); err != nil {
		return 0, pg.Mark(fmt.Errorf("drop old partitions: %w", err))
	}
	return n, nil
}
