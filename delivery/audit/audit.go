// Package audit keeps the log of what people did: who, when, what, why, and
// how it was before and after. Lines are written in the transaction that does
// the deed and are never changed or removed; the database refuses both.
package audit

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"mybots/delivery/pg"
)

// Entry is one deed. None of its texts may hold a secret, a payload or the
// query of an address.
type Entry struct {
	At        time.Time `db:"at"`
	BotID     int64     `db:"bot_id"`   // 0: it isn't about one bot
	SpaceID   int64     `db:"space_id"` // 0: it isn't about one space, or BotID says which
	UserID    int64     `db:"user_id"`  // who did it; 0: an operator at the command line
	Action    string    `db:"action"`   // a_word_like_this
	Detail    string    `db:"detail"`   // what the deed was given, beside before and after
	Before    string    `db:"before"`   // how it was: name=value, separated by spaces
	After     string    `db:"after"`    // how it is from then on
	Reason    string    `db:"reason"`   // the person's own words
	RequestID string    `db:"request_id"`
	Address   string    `db:"address"` // where the request came from
}

// The role is the one that the person has at that moment.
const writeSQL = `
INSERT INTO audit (bot_id, space_id, at, user_id, role, action, detail, before, after, reason, request_id, address)
VALUES ($1, $2, $3, $4, coalesce((SELECT role FROM people WHERE user_id = $4), 'operator'), $5, $6, $7, $8, $9, $10, $11)`

// Write adds a line in the transaction that does the deed.
func Write(ctx context.Context, tx *sqlx.Tx, e Entry) error {
	_, err := tx.ExecContext(ctx, writeSQL, e.BotID, e.SpaceID, e.At, e.UserID, e.Action, e.Detail, e.Before, e.After, e.Reason, e.RequestID, e.Address)
	if err != nil {
		return fmt.Errorf("audit %s: %w", e.Action, err)
	}
	return nil
}

// Line is a line of the log as it is read.
type Line struct {
	Entry
	ID      int64  `db:"audit_id"`
	Role    string `db:"role"`     // of the person, then
	Email   string `db:"email"`    // of the person, now; "" for an operator
	BotName string `db:"bot_name"` // the username; "" for none
	Space   string `db:"space"`    // the space's name; "" for none
}

// Filter picks lines. The zero Filter picks all; with a bot, those about the bot
// and those about its space.
type Filter struct{ BotID, SpaceID int64 }

const readSQL = `
SELECT a.audit_id, a.at, a.bot_id, a.space_id, a.user_id, a.role, a.action, a.detail, a.before, a.after, a.reason, a.request_id, a.address,
       coalesce(p.email, '') AS email, coalesce(b.username, '') AS bot_name, coalesce(s.name, '') AS space
  FROM audit a
  LEFT JOIN people p ON p.user_id = a.user_id
  LEFT JOIN bots b ON a.bot_id <> 0 AND b.bot_id = a.bot_id
  LEFT JOIN spaces s ON a.space_id <> 0 AND s.space_id = a.space_id
 WHERE a.audit_id < $1`

// Read returns up to limit lines before the line with the id before, the latest
// first; 0 for before: the latest of all.
func Read(ctx context.Context, db *sqlx.DB, f Filter, before int64, limit int) ([]Line, error) {
	if before == 0 {
		before = 1<<63 - 1
	}
	statement, args := readSQL, []any{before, limit}
	if f.BotID != 0 {
		statement += ` AND (a.bot_id = $3 OR (a.space_id = $4 AND a.space_id <> 0))`
		args = append(args, f.BotID, f.SpaceID)
	}
	var lines []Line
	if err := db.SelectContext(ctx, &lines, statement+` ORDER BY a.audit_id DESC LIMIT $2`, args...); err != nil {
		return nil, pg.Mark(fmt.Errorf("read the audit log: %w", err))
	}
	return lines, nil
}
