package notice

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"mybots/delivery/pg"
)

// Way is the state of one route.
type Way struct {
	Route     string  `db:"route"`
	Stopped   bool    `db:"stopped"`
	StoppedAt pg.Time `db:"stopped_at"`
	Reason    string  `db:"reason"`    // of the stop
	Allowance *int    `db:"allowance"` // notices that still go out, then it stops again; nil: all
}

// routeState reads whether a route sends. In portions its row is held, so that
// no two notices are counted as one.
func (s *Store) routeState(ctx context.Context, tx *sqlx.Tx, route string) (portion, stopped bool, err error) {
	for _, hold := range []string{"", " FOR UPDATE"} {
		var w Way
		err := tx.GetContext(ctx, &w, `SELECT route, stopped, stopped_at, reason, allowance FROM notice_routes WHERE route = $1`+hold, route)
		if err != nil {
			return false, false, fmt.Errorf("state of the route %s: %w", route, err)
		}
		portion, stopped = w.Allowance != nil, w.Stopped
		if stopped || !portion {
			return portion, stopped, nil
		}
	}
	return portion, stopped, nil
}

// spend counts a notice of a portion.
func spend(ctx context.Context, tx *sqlx.Tx, route string, now time.Time) error {
	_, err := tx.ExecContext(ctx, `
UPDATE notice_routes SET allowance = CASE WHEN allowance > 1 THEN allowance - 1 END, stopped = allowance <= 1,
       stopped_at = CASE WHEN allowance <= 1 THEN $2 ELSE stopped_at END, reason = CASE WHEN allowance <= 1 THEN $3 ELSE reason END
 WHERE route = $1`, route, now, WhyPortion)
	if err != nil {
		return fmt.Errorf("count a notice of the route %s: %w", route, err)
	}
	return nil
}

// stop stops a route; what waits for it goes on waiting.
func stop(ctx context.Context, tx *sqlx.Tx, route, reason string, now time.Time) error {
	_, err := tx.ExecContext(ctx, `
UPDATE notice_routes SET stopped = true, stopped_at = CASE WHEN stopped THEN stopped_at ELSE $2 END, reason = $3, allowance = NULL WHERE route = $1`,
		route, now, reason)
	if err != nil {
		return fmt.Errorf("stop the route %s: %w", route, err)
	}
	return nil
}
