package queue

import (
	"context"
	"fmt"
	"time"

	"mybots/delivery"
	"mybots/delivery/pg"
)

// ClaimTime is how long a claim holds after it was made or renewed: a request
// and what is done about its answer. It runs on the database's clock, the one
// real clock that all replicas share (G-05).
const ClaimTime = 15 * time.Second

// Claim is the right to make one request for a bot: the update to send, and the
// generation that every write about it names.
type Claim struct {
	BotID      int64
	Generation int64
	Version    int64 // of the settings
	Trouble    bool  // the bot's last attempts failed
	Attempt    int   // for this update, from 1, this one included (W-06)
	Update     delivery.Update
}

// Claimed is what became of a set of bots that were asked for.
type Claimed struct {
	Claims  []Claim
	Busy    []int64 // somebody holds their rows just now, or the limit was reached: ask again
	Expired []int64 // their first update has expired: ExpireOf, then ask again
}

const claimSQL = `
SELECT bot_id, busy, expired, generation, version, trouble, attempt, update_id, event_id, type, date, replay_of, payload
  FROM claim_webhooks($1, $2, $3, $4)`

// Claim claims those of the bots for which a request may be made now, up to
// limit. Each claim must be settled, confirmed or released. Bots that have
// nothing to send now are in no list.
func (q *Queue) Claim(ctx context.Context, bots []int64, limit int) (Claimed, error) {
	stmt, err := q.claim.Get(ctx)
	if err != nil {
		return Claimed{}, pg.Mark(err)
	}
	rows, err := stmt.QueryContext(ctx, q.clock.Now(), pg.Int8s(bots), limit, int(ClaimTime.Seconds()))
	if err != nil {
		return Claimed{}, pg.Mark(fmt.Errorf("claim %d bots: %w", len(bots), err))
	}
	defer rows.Close()
	var out Claimed
	for rows.Next() {
		var c Claim
		var busy, expired bool
		var eventID *string
		var date pg.Time
		if err := rows.Scan(&c.BotID, &busy, &expired, &c.Generation, &c.Version, &c.Trouble, &c.Attempt,
			&c.Update.UpdateID, &eventID, &c.Update.Type, &date, &c.Update.ReplayOf, &c.Update.Payload); err != nil {
			return Claimed{}, pg.Mark(fmt.Errorf("claim %d bots: %w", len(bots), err))
		}
		switch {
		case busy:
			out.Busy = append(out.Busy, c.BotID)
		case expired:
			out.Expired = append(out.Expired, c.BotID)
		default:
			c.Update.EventID, c.Update.Date = *eventID, date.Time
			out.Claims = append(out.Claims, c)
		}
	}
	if err := rows.Err(); err != nil {
		return Claimed{}, pg.Mark(fmt.Errorf("claim %d bots: %w", len(bots), err))
	}
	return out, nil
}

// Due is a bot that receives by webhook, as the worker's sweep sees it.
type Due struct {
	BotID int64   `db:"bot_id"`
	Ready bool    `db:"ready"` // a request may be made now
	At    pg.Time `db:"at"`    // else when it may; zero: not by time alone
	// Trouble: the bot's last attempts failed.
	Trouble bool `db:"trouble"`
}

const dueHooksSQL = `
SELECT q.bot_id, able AND (due_at IS NULL OR due_at <= $1 OR probe_asked) AS ready, CASE WHEN able AND due_at > $1 THEN due_at END AS at, trouble
  FROM (SELECT bot_id, due_at, probe_asked, due_at IS NOT NULL OR connect_failures > 0 OR breaker > 0 OR head_charged > 0 AS trouble,
               waiting > 0 AND hook_paused = '' AND hook_allowed AND NOT paused AND NOT disabled AND NOT maintenance
               AND (claim_until IS NULL OR claim_until <= clock_timestamp()) AS able
          FROM queues CROSS JOIN platform WHERE mode = 'webhook' AND NOT deleted) q`

// DueWebhooks looks at all bots that receive by webhook: the net under the bell
// and the timers.
func (q *Queue) DueWebhooks(ctx context.Context) ([]Due, error) {
	var list []Due
	if err := q.db.SelectContext(ctx, &list, dueHooksSQL, q.clock.Now()); err != nil {
		return nil, pg.Mark(fmt.Errorf("look for due webhooks: %w", err))
	}
	return list, nil
}

const fencedSQL = `
SELECT h.bot FROM unnest($1::bigint[], $2::bigint[]) AS h (bot, generation)
  LEFT JOIN queues q ON q.bot_id = h.bot AND q.generation = h.generation AND NOT q.deleted WHERE q.bot_id IS NULL`

// Fenced returns those of the bots whose claim, of the generation beside it, is
// worth nothing any more (W-13).
func (q *Queue) Fenced(ctx context.Context, bots, generations []int64) ([]int64, error) {
	var list []int64
	if err := q.db.SelectContext(ctx, &list, fencedSQL, pg.Int8s(bots), pg.Int8s(generations)); err != nil {
		return nil, pg.Mark(fmt.Errorf("look for fenced claims: %w", err))
	}
	return list, nil
}
