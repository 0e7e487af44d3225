package notice

import (
	"context"
	"fmt"
	"time"

	"mybots/delivery/pg"
)

// Total is what the metrics say of one route (N-08).
type Total struct {
	Route     string  `db:"route"`
	Urgent    int64   `db:"urgent"`   // waiting to be sent, the pause lane
	Ordinary  int64   `db:"ordinary"` // waiting to be sent, the other lane
	Oldest    pg.Time `db:"oldest"`   // when the oldest of them was queued; zero: none waits
	ForPerson int64   `db:"for_person"`
	Stopped   bool    `db:"stopped"`
}

// Totals adds up the outbox, a row for each route.
func (s *Store) Totals(ctx context.Context) ([]Total, error) {
	var list []Total
	err := s.db.SelectContext(ctx, &list, `
SELECT r.route, r.stopped, count(n.notice_id) FILTER (WHERE n.waits AND n.urgent) AS urgent, count(n.notice_id) FILTER (WHERE n.waits AND NOT n.urgent) AS ordinary,
       min(n.queued_at) FILTER (WHERE n.waits) AS oldest, count(n.notice_id) FILTER (WHERE NOT n.waits) AS for_person
  FROM notice_routes r
  LEFT JOIN (SELECT notice_id, route, urgent, queued_at, state IN ('queued', 'sending', 'retrying') AS waits FROM notices
              WHERE state IN ('queued', 'retrying') OR state = 'sending' OR state IN ('uncertain', 'blocked', 'dead')) n USING (route)
 GROUP BY r.route, r.stopped ORDER BY r.route`)
	if err != nil {
		return nil, pg.Mark(fmt.Errorf("add up the notices: %w", err))
	}
	return list, nil
}

// KeepTime is how long closed notices are kept for support.
const KeepTime = 90 * 24 * time.Hour

// DropOld removes up to a thousand notices that closed KeepTime ago, and linking
// codes that hold no more. The chats keep what was written into them.
func (s *Store) DropOld(ctx context.Context) (int, error) {
	now := s.clock.Now()
	if _, err := s.db.ExecContext(ctx, `DELETE FROM max_codes WHERE expires_at < $1`, now); err != nil {
		return 0, pg.Mark(fmt.Errorf("drop old linking codes: %w", err))
	}
	done, err := s.db.ExecContext(ctx, `
DELETE FROM notices WHERE notice_id IN (
    SELECT notice_id FROM notices WHERE state IN ('sent', 'deduplicated', 'stale') AND queued_at < $1 ORDER BY queued_at LIMIT 1000)`, now.Add(-KeepTime))
	if err != nil {
		return 0, pg.Mark(fmt.Errorf("drop old notices: %w", err))
	}
	n, err := done.RowsAffected()
	return int(n), err
}
