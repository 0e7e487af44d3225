package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/pg"
)

// Received is what a getUpdates call comes to: an answer, or a wait.
type Received struct {
	Batch   delivery.Batch
	Waiting bool            // no answer yet: wait for the bell and call Resume
	Ticket  delivery.Ticket // of the wait
}

// Receive does one getUpdates call from address up to its answer or the
// beginning of its wait, by the rules of delivery.Connection.Receive. A
// *delivery.Refusal is the product's no. Register with the bell before the call,
// so that an update between its look and the wait isn't missed.
func (q *Queue) Receive(ctx context.Context, botID int64, call delivery.Poll, address string) (Received, error) {
	return q.poll(ctx, botID, func(tx *sqlx.Tx, r *row, now time.Time) (out Received, refusal *delivery.Refusal, err error) {
		r.Connection, refusal = r.Connection.Receive(call, now)
		if refusal != nil {
			if refusal.Code == delivery.ConsumerConflict {
				r.conflict = conflict{call.ConsumerID, address, pg.Time{Time: now}}
			}
			return Received{}, refusal, nil
		}
		batch, err := q.read(ctx, tx, r, call.Limit, now)
		if err != nil {
			return Received{}, nil, err
		}
		if batch.Empty() && call.Timeout > 0 {
			r.Connection, out.Ticket = r.Wait(call.Timeout, now)
			out.Waiting = true
			return out, nil, nil
		}
		out.Batch = r.answer(batch, now)
		return out, nil, nil
	})
}

// Resume lets a waiting poll look again: it takes what is there, ends empty when
// its time is over or when last is set, else waits on. A *delivery.Refusal ends it.
func (q *Queue) Resume(ctx context.Context, botID int64, ticket delivery.Ticket, limit int, last bool) (Received, error) {
	return q.poll(ctx, botID, func(tx *sqlx.Tx, r *row, now time.Time) (out Received, refusal *delivery.Refusal, err error) {
		r.Connection, refusal = r.Connection.Resume(ticket, now)
		if refusal != nil {
			return Received{}, refusal, nil
		}
		batch, err := q.read(ctx, tx, r, limit, now)
		if err != nil {
			return Received{}, nil, err
		}
		if batch.Empty() && !last && now.Before(ticket.Until) {
			return Received{Waiting: true, Ticket: ticket}, nil, errUnchanged
		}
		out.Batch = r.answer(batch, now)
		return out, nil, nil
	})
}

// errUnchanged ends a transaction that has nothing to write.
var errUnchanged = errors.New("nothing to write")

// poll runs judge on the locked row and writes what it made of it, refused or not.
func (q *Queue) poll(ctx context.Context, botID int64, judge func(*sqlx.Tx, *row, time.Time) (Received, *delivery.Refusal, error)) (Received, error) {
	var out Received
	var refusal *delivery.Refusal
	err := q.tx(ctx, func(tx *sqlx.Tx) error {
		r, err := q.load(ctx, tx, botID)
		if err != nil {
			return err
		}
		before := r.Connection
		out, refusal, err = judge(tx, &r, q.clock.Now())
		if err != nil {
			return err
		}
		if r.Connection == before {
			return errUnchanged // a refusal that changes nothing
		}
		return q.store(ctx, tx, r)
	})
	if errors.Is(err, errUnchanged) {
		err = nil
	}
	if err == nil && refusal != nil {
		err = refusal
	}
	if err != nil {
		return Received{}, err
	}
	return out, nil
}

// answer ends the call on the row and completes the batch.
func (r *row) answer(b delivery.Batch, now time.Time) delivery.Batch {
	r.Connection = r.Answer(b, now)
	b.Lease = delivery.Lease{ConsumerID: r.ConsumerID, Epoch: r.Epoch, Since: r.LeaseSince, ExpiresAt: r.LeaseUntil}
	return b
}

// batchSQL reads from the position on, never from «the smallest»: dead rows below
// it, kept by somebody's long transaction, would have to be walked over. It stops
// before the update that would carry the batch over its bytes (P-17).
const batchSQL = `
SELECT update_id, event_id, type, date, replay_of, payload, expires_at
  FROM (SELECT *, sum(octet_length(payload)) OVER (ORDER BY update_id) AS bytes, row_number() OVER (ORDER BY update_id) AS place
          FROM (SELECT update_id, event_id, type, date, replay_of, payload, expires_at
                  FROM updates WHERE bot_id = $1 AND update_id >= $2 ORDER BY update_id LIMIT $3) u) u
 WHERE bytes <= $4 OR place = 1
 ORDER BY update_id`

// Zero rows: nothing was skipped there.
const rangesSQL = `SELECT from_id, to_id, reason FROM skips WHERE bot_id = $1 AND to_id >= $2 AND from_id < $3 ORDER BY from_id`

// read puts together the batch at the position. What has expired by now is
// taken out first, so that none is handed over late.
func (q *Queue) read(ctx context.Context, tx *sqlx.Tx, r *row, limit int, now time.Time) (delivery.Batch, error) {
	if r.NextUpdateID == r.Confirmed {
		return delivery.NewBatch(nil, nil, r.Confirmed, r.Confirmed), nil
	}
	updates, expired, err := q.updates(ctx, tx, r, limit, now)
	if err == nil && expired {
		if _, err = q.expire(ctx, tx, r.botID, now); err == nil {
			updates, _, err = q.updates(ctx, tx, r, limit, now)
		}
	}
	if err != nil {
		return delivery.Batch{}, err
	}
	var skipped []delivery.Range
	if !delivery.Whole(updates, r.Confirmed) {
		if skipped, err = q.skipped(ctx, tx, r); err != nil {
			return delivery.Batch{}, err
		}
	}
	return delivery.NewBatch(updates, skipped, r.Confirmed, r.NextUpdateID), nil
}

// updates reads up to limit waiting updates, and tells whether one has expired.
func (q *Queue) updates(ctx context.Context, tx *sqlx.Tx, r *row, limit int, now time.Time) (list []delivery.Update, expired bool, err error) {
	rows, err := q.batch.In(ctx, tx).QueryContext(ctx, r.botID, r.Confirmed, limit, delivery.MaxBatchBytes)
	if err != nil {
		return nil, false, fmt.Errorf("read the updates of bot %d: %w", r.botID, err)
	}
	defer rows.Close()
	for rows.Next() {
		var u delivery.Update
		var until time.Time
		if err := rows.Scan(&u.UpdateID, &u.EventID, &u.Type, &u.Date, &u.ReplayOf, &u.Payload, &until); err != nil {
			return nil, false, fmt.Errorf("read an update of bot %d: %w", r.botID, err)
		}
		expired = expired || !until.After(now)
		list = append(list, u)
	}
	return list, expired, rows.Err()
}

func (q *Queue) skipped(ctx context.Context, tx *sqlx.Tx, r *row) ([]delivery.Range, error) {
	rows, err := q.ranges.In(ctx, tx).QueryContext(ctx, r.botID, r.Confirmed, r.NextUpdateID)
	if err != nil {
		return nil, fmt.Errorf("read the skipped ranges of bot %d: %w", r.botID, err)
	}
	defer rows.Close()
	var list []delivery.Range
	for rows.Next() {
		var s delivery.Range
		if err := rows.Scan(&s.From, &s.To, &s.Reason); err != nil {
			return nil, fmt.Errorf("read a skipped range of bot %d: %w", r.botID, err)
		}
		list = append(list, s)
	}
	return list, rows.Err()
}
