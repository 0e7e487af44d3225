// Package queue keeps the updates of bots in PostgreSQL: it takes events in,
// hands them to long polling, confirms, rejects and expires them. One row a bot
// decides; every method locks it first, asks delivery's rules what they say of
// it, and writes that.
package queue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/pg"
)

// Queue is the durable queue of every bot.
type Queue struct {
	db       *sqlx.DB
	clock    delivery.Clock
	ring     func(botID int64)
	groups   [appendWriters]*group[*appending]
	confirms *group[*confirming]
	chats    *seen
	held     held
	tell     Tell

	lock, save, batch, ranges, appendGroup, status *pg.Stmt
	claim, confirmGroup                            *pg.Stmt
}

// Tell records a notice to the owner in the transaction of its cause (N-02).
// The bot's queue row is locked then.
type Tell func(ctx context.Context, tx *sqlx.Tx, t delivery.Trouble) error

// Option changes what New makes.
type Option func(*Queue)

// Telling makes the queues tell owners of their trouble (N-01). Without it nobody
// is told.
func Telling(tell Tell) Option { return func(q *Queue) { q.tell = tell } }

// New returns the queues kept in db. ring is called with a bot whenever its
// waiting poll should look again: it grew, or its connection was changed. Close
// must be called at the end.
func New(db *sqlx.DB, clock delivery.Clock, ring func(botID int64), options ...Option) *Queue {
	q := &Queue{
		db: db, clock: clock, ring: ring, chats: newSeen(100_000),
		tell:        func(context.Context, *sqlx.Tx, delivery.Trouble) error { return nil },
		lock:        pg.NewStmt(db, lockSQL),
		save:        pg.NewStmt(db, saveSQL),
		batch:       pg.NewStmt(db, batchSQL),
		ranges:      pg.NewStmt(db, rangesSQL),
		appendGroup: pg.NewStmt(db, appendSQL),
		status:      pg.NewStmt(db, statusSQL),

		claim:        pg.NewStmt(db, claimSQL),
		confirmGroup: pg.NewStmt(db, confirmSQL),
	}
	for i := range q.groups {
		q.groups[i] = newGroup(groupEvents, groupBytes, q.write)
	}
	q.confirms = newGroup(groupConfirms, groupBytes, q.writeConfirms)
	for _, o := range options {
		o(q)
	}
	return q
}

// Close waits for the appends and confirmations that are under way and refuses
// later ones.
func (q *Queue) Close() {
	q.confirms.close()
	for _, g := range q.groups {
		g.close()
	}
}

// row is a bot's queue row under lock.
type row struct {
	delivery.Connection
	botID     int64
	confirmed int64 // where the position was when the row was locked
	version   int64 // of the settings
	conflict  conflict
}

// conflict is the last caller that got CONSUMER_CONFLICT.
type conflict struct {
	consumerID, address string
	at                  pg.Time
}

// Zero rows: there is no such bot.
const lockSQL = `
SELECT q.mode, q.deleted, q.paused, q.disabled, p.maintenance, q.settings_version,
       q.next_update_id, q.confirmed, q.max_issued,
       q.epoch, q.epoch_lost, q.consumer_id, q.lease_since, q.lease_until, q.poll_until, q.ticket,
       q.lease_max_issued, q.lease_next_offset, q.tokens, q.tokens_at,
       q.conflict_consumer_id, q.conflict_address, q.conflict_at
  FROM queues q CROSS JOIN platform p
 WHERE q.bot_id = $1
   FOR UPDATE OF q`

func (q *Queue) load(ctx context.Context, tx *sqlx.Tx, botID int64) (row, error) {
	r := row{botID: botID}
	var since, until, poll, tokensAt pg.Time
	err := q.lock.In(ctx, tx).QueryRowContext(ctx, botID).Scan(
		&r.Mode, &r.Deleted, &r.Paused, &r.Disabled, &r.Maintenance, &r.version,
		&r.NextUpdateID, &r.Confirmed, &r.MaxIssued,
		&r.Epoch, &r.EpochLost, &r.ConsumerID, &since, &until, &poll, &r.Ticket,
		&r.LeaseMaxIssued, &r.LeaseNextOffset, &r.Tokens, &tokensAt,
		&r.conflict.consumerID, &r.conflict.address, &r.conflict.at)
	if errors.Is(err, sql.ErrNoRows) {
		return row{}, fmt.Errorf("queue of bot %d: %w", botID, delivery.ErrNotFound)
	}
	if err != nil {
		return row{}, fmt.Errorf("lock the queue of bot %d: %w", botID, err)
	}
	r.LeaseSince, r.LeaseUntil, r.PollUntil, r.TokensAt = since.Time, until.Time, poll.Time, tokensAt.Time
	r.confirmed = r.Confirmed
	return r, nil
}

// saveSQL writes the row and removes what the position has passed: a bounded
// DELETE from the old position to the new one.
const saveSQL = `
WITH gone AS (
    DELETE FROM updates WHERE bot_id = $1 AND update_id >= $2 AND update_id < $3
    RETURNING octet_length(payload) AS size
), passed AS (
    DELETE FROM skips WHERE bot_id = $1 AND from_id < $3 AND to_id < $3
), freed AS (
    SELECT count(*) AS updates, coalesce(sum(size), 0) AS bytes FROM gone
)
UPDATE queues SET
    confirmed = $3, waiting = waiting - freed.updates, waiting_bytes = waiting_bytes - freed.bytes,
    mode = $4, paused = $5, settings_version = $6, max_issued = $7,
    epoch = $8, epoch_lost = $9, consumer_id = $10, lease_since = $11, lease_until = $12, poll_until = $13, ticket = $14,
    lease_max_issued = $15, lease_next_offset = $16, tokens = $17, tokens_at = $18,
    conflict_consumer_id = $19, conflict_address = $20, conflict_at = $21
FROM freed WHERE bot_id = $1`

func (q *Queue) store(ctx context.Context, tx *sqlx.Tx, r row) error {
	_, err := q.save.In(ctx, tx).ExecContext(ctx, r.botID, r.confirmed, r.Confirmed,
		string(r.Mode), r.Paused, r.version, r.MaxIssued,
		r.Epoch, r.EpochLost, r.ConsumerID, pg.Time{Time: r.LeaseSince}, pg.Time{Time: r.LeaseUntil}, pg.Time{Time: r.PollUntil}, r.Ticket,
		r.LeaseMaxIssued, r.LeaseNextOffset, r.Tokens, pg.Time{Time: r.TokensAt},
		r.conflict.consumerID, r.conflict.address, r.conflict.at)
	if err != nil {
		return fmt.Errorf("save the queue of bot %d: %w", r.botID, err)
	}
	return nil
}

// tx runs f in a transaction in which the row's statements are ready.
func (q *Queue) tx(ctx context.Context, f func(*sqlx.Tx) error) error {
	if err := pg.Prepare(ctx, q.lock, q.save, q.batch, q.ranges); err != nil {
		return err
	}
	return pg.InTx(ctx, q.db, f)
}

// change locks a bot's row, lets rule change its connection, writes it and
// rings: the way of all that isn't a getUpdates call. An error of rule leaves
// everything as it was.
func (q *Queue) change(ctx context.Context, botID int64, rule func(context.Context, *sqlx.Tx, *row) error) error {
	err := q.tx(ctx, func(tx *sqlx.Tx) error {
		r, err := q.load(ctx, tx, botID)
		if err != nil {
			return err
		}
		if err := rule(ctx, tx, &r); err != nil {
			return err
		}
		return q.store(ctx, tx, r)
	})
	if !errors.Is(err, delivery.ErrNotFound) {
		q.ring(botID) // error or not: an error can hide a commit
	}
	return err
}
