// Package sqlitestore is a botkit.Inbox in an SQLite file, with no cgo. It is a
// module of its own, so that botkit needs nothing but the standard library.
package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"mybots/botkit"
)

// Inbox keeps a bot's updates in an SQLite file. What a call returned nil for
// survives a power cut. One process uses a file; others may read it.
type Inbox struct{ db *sql.DB }

var _ botkit.Inbox = (*Inbox)(nil)

// Times are kept as Unix nanoseconds, UTC.
const schema = `
CREATE TABLE IF NOT EXISTS position (
	one    INTEGER PRIMARY KEY CHECK (one = 1),
	bot    TEXT NOT NULL,
	epoch  TEXT NOT NULL,
	offset TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS inbox (
	place     INTEGER PRIMARY KEY AUTOINCREMENT,
	event_id  TEXT NOT NULL UNIQUE,
	update_id TEXT NOT NULL,
	lane      TEXT NOT NULL,
	raw       BLOB,                        -- NULL once it is handled
	received  INTEGER NOT NULL,
	state     TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'handled', 'parked')),
	failures  INTEGER NOT NULL DEFAULT 0,
	due       INTEGER NOT NULL DEFAULT 0,
	note      TEXT NOT NULL DEFAULT ''
);
CREATE INDEX IF NOT EXISTS inbox_lanes ON inbox (lane, place) WHERE state = 'waiting';
CREATE INDEX IF NOT EXISTS inbox_parked ON inbox (place) WHERE state = 'parked';
CREATE INDEX IF NOT EXISTS inbox_handled ON inbox (received) WHERE state = 'handled';
`

// Open opens the file at path, and makes it if it is missing, for its owner's
// eyes only: it holds what people wrote. Close it at the end.
func Open(ctx context.Context, path string) (*Inbox, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the inbox: %w", err)
	}
	if err := file.Close(); err != nil {
		return nil, fmt.Errorf("open the inbox: %w", err)
	}
	// WAL lets others read; FULL has each commit on the disk before it returns.
	settings := url.Values{"_pragma": {"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)"}, "_txlock": {"immediate"}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: settings.Encode()}).String())
	if err != nil {
		return nil, fmt.Errorf("open the inbox: %w", err)
	}
	db.SetMaxOpenConns(1) // one writer
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return nil, errors.Join(fmt.Errorf("open the inbox %s: %w", path, err), db.Close())
	}
	return &Inbox{db}, nil
}

// Close closes the file.
func (in *Inbox) Close() error { return in.db.Close() }

// Load implements botkit.Inbox.
func (in *Inbox) Load(ctx context.Context) (p botkit.Position, err error) {
	err = in.db.QueryRowContext(ctx, `SELECT bot, epoch, offset FROM position`).Scan(&p.Bot, &p.Epoch, &p.Offset)
	if errors.Is(err, sql.ErrNoRows) {
		return botkit.Position{}, nil
	}
	if err != nil {
		return botkit.Position{}, fmt.Errorf("load the position: %w", err)
	}
	return p, nil
}

const putSQL = `
INSERT INTO inbox (event_id, update_id, lane, raw, received, due) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (event_id) DO NOTHING`

const moveSQL = `
INSERT INTO position (one, bot, epoch, offset) VALUES (1, ?, ?, ?)
ON CONFLICT (one) DO UPDATE SET bot = excluded.bot, epoch = excluded.epoch, offset = excluded.offset`

// Put implements botkit.Inbox.
func (in *Inbox) Put(ctx context.Context, items []botkit.Item, p *botkit.Position) (added int, err error) {
	tx, err := in.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("store %d updates: %w", len(items), err)
	}
	defer func() {
		if err != nil {
			added, err = 0, fmt.Errorf("store %d updates: %w", len(items), errors.Join(err, rollback(tx)))
		}
	}()
	for _, i := range items {
		result, err := tx.ExecContext(ctx, putSQL, i.EventID, i.UpdateID, i.Key, i.Raw, nanoseconds(i.Received), nanoseconds(i.Due))
		if err != nil {
			return 0, err
		}
		n, err := result.RowsAffected()
		if err != nil {
			return 0, err
		}
		added += int(n)
	}
	if p != nil {
		if _, err := tx.ExecContext(ctx, moveSQL, p.Bot, p.Epoch, p.Offset); err != nil {
			return 0, err
		}
	}
	return added, tx.Commit()
}

// rollback ends a transaction that may have ended by itself.
func rollback(tx *sql.Tx) error {
	if err := tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
		return err
	}
	return nil
}

const headsSQL = `
SELECT event_id, update_id, lane, raw, received, failures, due, note FROM inbox
WHERE place IN (SELECT min(place) FROM inbox WHERE state = 'waiting' GROUP BY lane)
ORDER BY CASE WHEN due <= ? THEN 0 ELSE due END, place LIMIT ?`

// Heads implements botkit.Inbox.
func (in *Inbox) Heads(ctx context.Context, now time.Time, limit int) ([]botkit.Item, error) {
	return in.list(ctx, headsSQL, nanoseconds(now), limit)
}

const parkedSQL = `
SELECT event_id, update_id, lane, raw, received, failures, due, note FROM inbox WHERE state = 'parked' ORDER BY place LIMIT ?`

// Parked returns the oldest parked updates, at most limit, with the reason in Note.
func (in *Inbox) Parked(ctx context.Context, limit int) ([]botkit.Item, error) {
	return in.list(ctx, parkedSQL, limit)
}

func (in *Inbox) list(ctx context.Context, query string, args ...any) (items []botkit.Item, err error) {
	rows, err := in.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read the inbox: %w", err)
	}
	defer func() {
		if err = errors.Join(err, rows.Err(), rows.Close()); err != nil {
			items, err = nil, fmt.Errorf("read the inbox: %w", err)
		}
	}()
	for rows.Next() {
		var i botkit.Item
		var received, due int64
		if err := rows.Scan(&i.EventID, &i.UpdateID, &i.Key, &i.Raw, &received, &i.Failures, &due, &i.Note); err != nil {
			return nil, err
		}
		i.Received, i.Due = moment(received), moment(due)
		items = append(items, i)
	}
	return items, nil
}

const settleSQL = `
UPDATE inbox SET state = ?, due = ?, note = ?, failures = failures + (? = 'waiting'), raw = CASE WHEN ? = 'handled' THEN NULL ELSE raw END
WHERE event_id = ? AND state = 'waiting'`

var states = map[botkit.ItemState]string{botkit.ItemWaiting: "waiting", botkit.ItemHandled: "handled", botkit.ItemParked: "parked"}

// Settle implements botkit.Inbox.
func (in *Inbox) Settle(ctx context.Context, eventID string, s botkit.Settlement) error {
	state := states[s.State]
	n, err := in.change(ctx, settleSQL, state, nanoseconds(s.Due), s.Note, state, state, eventID)
	if err != nil {
		return fmt.Errorf("settle event %s: %w", eventID, err)
	}
	if n == 0 {
		return fmt.Errorf("event %s doesn't wait in the inbox", eventID)
	}
	return nil
}

// Retry lets parked updates be tried again, all of them if no event ids are
// given, and says how many that was. A bot that runs finds them within half a
// minute. They come before what was received after them.
func (in *Inbox) Retry(ctx context.Context, eventIDs ...string) (n int, err error) {
	const all = `UPDATE inbox SET state = 'waiting', failures = 0, due = 0 WHERE state = 'parked'`
	if len(eventIDs) == 0 {
		return in.change(ctx, all)
	}
	for _, id := range eventIDs {
		one, err := in.change(ctx, all+` AND event_id = ?`, id)
		if err != nil {
			return n, err
		}
		n += one
	}
	return n, nil
}

// Counts implements botkit.Inbox.
func (in *Inbox) Counts(ctx context.Context) (c botkit.InboxCounts, err error) {
	err = in.db.QueryRowContext(ctx, `
SELECT (SELECT count(*) FROM inbox WHERE state = 'waiting'), (SELECT count(*) FROM inbox WHERE state = 'parked')`).Scan(&c.Waiting, &c.Parked)
	if err != nil {
		return botkit.InboxCounts{}, fmt.Errorf("count the inbox: %w", err)
	}
	return c, nil
}

// Purge implements botkit.Inbox.
func (in *Inbox) Purge(ctx context.Context, before time.Time) error {
	_, err := in.change(ctx, `DELETE FROM inbox WHERE state = 'handled' AND received < ?`, nanoseconds(before))
	return err
}

func (in *Inbox) change(ctx context.Context, query string, args ...any) (int, error) {
	result, err := in.db.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, fmt.Errorf("change the inbox: %w", err)
	}
	n, err := result.RowsAffected()
	return int(n), err
}

// nanoseconds is how a time is kept; 0 is the zero time.
func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func moment(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}
