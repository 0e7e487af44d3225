package queue

import (
	"context"
	"fmt"
	"time"

	"mybots/delivery"
	"mybots/delivery/pg"
)

// Status is the state of one bot's queue and connection, read in one statement.
type Status struct {
	delivery.Connection
	SettingsVersion int64
	Waiting         int
	WaitingBytes    int64
	OldestWaiting   time.Time // the date of the first update that waits; zero: none waits
	Failed          int
	Conflict        Conflict
	Hook            delivery.Hook
	HookAllowed     bool      // by the platform (W-03)
	HookURL         string    // the last one that was saved; "" for none yet
	HookSavedAt     time.Time // with its secret
	At              time.Time // the product's time of the look
}

// Full tells whether the queue takes no ordinary message any more.
func (s Status) Full() bool {
	return s.Waiting >= delivery.MaxWaiting || s.WaitingBytes >= delivery.MaxWaitingBytes
}

// Conflict is the last caller that got CONSUMER_CONFLICT; At is zero when there
// was none yet.
type Conflict struct {
	ConsumerID string
	Address    string
	At         time.Time
}

const statusSQL = `
SELECT q.bot_id, q.mode, q.deleted, q.paused, q.disabled, p.maintenance, q.settings_version,
       q.next_update_id, q.confirmed, q.max_issued,
       q.epoch, q.epoch_lost, q.consumer_id, q.lease_since, q.lease_until, q.poll_until,
       q.waiting, q.waiting_bytes, q.failed, q.conflict_consumer_id, q.conflict_address, q.conflict_at,
       first.update_id, first.date,
       coalesce(w.url, ''), w.saved_at, ` + hookColumns + `
  FROM queues q CROSS JOIN platform p
  LEFT JOIN webhooks w ON w.bot_id = q.bot_id
  LEFT JOIN LATERAL (SELECT update_id, date FROM updates u WHERE u.bot_id = q.bot_id AND u.update_id >= q.confirmed
                      ORDER BY update_id LIMIT 1) first ON true
 WHERE q.bot_id = ANY ($1)`

// Status looks at a bot's queue; delivery.ErrNotFound when there is no such bot.
func (q *Queue) Status(ctx context.Context, botID int64) (Status, error) {
	states, err := q.StatusOf(ctx, []int64{botID})
	if err != nil {
		return Status{}, err
	}
	s, ok := states[botID]
	if !ok {
		return Status{}, fmt.Errorf("status of bot %d: %w", botID, delivery.ErrNotFound)
	}
	return s, nil
}

// StatusOf looks at the queues of many bots. Bots that don't exist are left out.
func (q *Queue) StatusOf(ctx context.Context, bots []int64) (map[int64]Status, error) {
	stmt, err := q.status.Get(ctx)
	if err != nil {
		return nil, pg.Mark(err)
	}
	rows, err := stmt.QueryContext(ctx, pg.Int8s(bots))
	if err != nil {
		return nil, pg.Mark(fmt.Errorf("status of %d bots: %w", len(bots), err))
	}
	defer rows.Close()
	now := q.clock.Now()
	states := make(map[int64]Status, len(bots))
	for rows.Next() {
		s := Status{At: now}
		var botID int64
		var since, until, poll, conflictAt, oldest pg.Time
		var savedAt pg.Time
		var first *int64
		var hook hookScan
		if err := rows.Scan(append([]any{&botID,
			&s.Mode, &s.Deleted, &s.Paused, &s.Disabled, &s.Maintenance, &s.SettingsVersion,
			&s.NextUpdateID, &s.Confirmed, &s.MaxIssued,
			&s.Epoch, &s.EpochLost, &s.ConsumerID, &since, &until, &poll,
			&s.Waiting, &s.WaitingBytes, &s.Failed, &s.Conflict.ConsumerID, &s.Conflict.Address, &conflictAt, &first, &oldest,
			&s.HookURL, &savedAt}, hook.places()...)...); err != nil {
			return nil, pg.Mark(fmt.Errorf("status of %d bots: %w", len(bots), err))
		}
		s.LeaseSince, s.LeaseUntil, s.PollUntil = since.Time, until.Time, poll.Time
		s.Conflict.At, s.OldestWaiting, s.HookSavedAt = conflictAt.Time, oldest.Time, savedAt.Time
		s.Hook, s.HookAllowed = hook.read()
		if s.Mode == delivery.Webhook { // W-15
			s.Confirmed = s.NextUpdateID
			if first != nil {
				s.Confirmed = *first
			}
		}
		states[botID] = s
	}
	if err := rows.Err(); err != nil {
		return nil, pg.Mark(fmt.Errorf("status of %d bots: %w", len(bots), err))
	}
	return states, nil
}

// changedSQL finds those of the given bots that a waiting poll should look at
// again: something is there to give, or its wait was ended from elsewhere.
const changedSQL = `
SELECT q.bot_id FROM queues q CROSS JOIN platform p
 WHERE q.bot_id = ANY ($1)
   AND (q.next_update_id > q.confirmed OR q.poll_until IS NULL OR q.epoch_lost OR q.deleted OR q.paused OR q.disabled
        OR p.maintenance OR q.mode <> 'polling')`

// Changed is the net under the bell: of the bots that polls wait for, it
// returns those with a reason to look again.
func (q *Queue) Changed(ctx context.Context, bots []int64) ([]int64, error) {
	var changed []int64
	if err := q.db.SelectContext(ctx, &changed, changedSQL, pg.Int8s(bots)); err != nil {
		return nil, pg.Mark(fmt.Errorf("look at %d waiting bots: %w", len(bots), err))
	}
	return changed, nil
}

// Totals are sums over all queues, for the metrics.
type Totals struct {
	Waiting      int64
	WaitingBytes int64
	Failed       int64
	Bots         int64
	Full         int64
	Oldest       pg.Time
	Webhooks     int64 // bots that receive by webhook; of them:
	Disabled     int64 // by the platform
	Paused       int64
	Open         int64 // whose breaker is open
	Retrying     int64
}

const totalsSQL = `
SELECT coalesce(sum(waiting), 0) AS waiting, coalesce(sum(waiting_bytes), 0) AS waitingbytes, coalesce(sum(failed), 0) AS failed,
       count(*) AS bots, count(*) FILTER (WHERE waiting >= 10000 OR waiting_bytes >= 52428800) AS "full",
       (SELECT min(u.date) FROM queues w CROSS JOIN LATERAL (
            SELECT date FROM updates u WHERE u.bot_id = w.bot_id AND u.update_id >= w.confirmed ORDER BY update_id LIMIT 1) u
         WHERE w.waiting > 0) AS oldest,
       count(*) FILTER (WHERE hook <> '') AS webhooks, count(*) FILTER (WHERE hook = 'disabled') AS disabled,
       count(*) FILTER (WHERE hook = 'paused') AS paused, count(*) FILTER (WHERE hook = 'open') AS open,
       count(*) FILTER (WHERE hook = 'retrying') AS retrying
  FROM (SELECT waiting, waiting_bytes, failed,
               CASE WHEN mode <> 'webhook' THEN '' WHEN NOT hook_allowed OR disabled THEN 'disabled' WHEN hook_paused <> '' OR paused THEN 'paused'
                    WHEN breaker > 0 THEN 'open' WHEN waiting > 0 AND (due_at IS NOT NULL OR connect_failures > 0) THEN 'retrying' ELSE 'active' END AS hook
          FROM queues WHERE NOT deleted) q`

// Totals adds up all queues.
func (q *Queue) Totals(ctx context.Context) (Totals, error) {
	var t Totals
	if err := q.db.GetContext(ctx, &t, totalsSQL); err != nil {
		return Totals{}, pg.Mark(fmt.Errorf("add up the queues: %w", err))
	}
	return t, nil
}
