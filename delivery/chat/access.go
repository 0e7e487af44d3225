package chat

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/pg"
)

// What a chat allows its bot (I-05).
const (
	Allowed = "allowed"
	Stopped = "stopped" // the person stopped the bot
	Blocked = "blocked" // the person blocked the bot
	Left    = "left"    // the person left the space
)

// Closed says that nothing goes from the test chat to the bot, since the person
// has stopped or blocked it, or left the space. It is a delivery.ErrConflict.
type Closed struct{ Access string }

func (e *Closed) Error() string { return "the chat is " + e.Access }

// Is makes every Closed a delivery.ErrConflict.
func (e *Closed) Is(target error) bool { return target == delivery.ErrConflict }

// lockChat makes the test chat's row if there is none, locks it, and returns
// what the chat allows.
func lockChat(ctx context.Context, tx *sqlx.Tx, botID, chatID int64) (access string, err error) {
	if _, err := tx.ExecContext(ctx, `INSERT INTO chats (bot_id, chat_id) VALUES ($1, $2) ON CONFLICT DO NOTHING`, botID, chatID); err != nil {
		return "", fmt.Errorf("open the test chat of bot %d: %w", botID, err)
	}
	err = tx.GetContext(ctx, &access, `SELECT access FROM chats WHERE bot_id = $1 AND chat_id = $2 FOR NO KEY UPDATE`, botID, chatID)
	if err != nil {
		return "", fmt.Errorf("look at the test chat of bot %d: %w", botID, err)
	}
	return access, nil
}

// open returns a *Closed when the person's test chat doesn't allow the bot.
func (s *Store) open(ctx context.Context, botID int64, by Person) error {
	return pg.InTx(ctx, s.db, func(tx *sqlx.Tx) error { return openIn(ctx, tx, botID, TestChatID(by.ID)) })
}

func openIn(ctx context.Context, tx *sqlx.Tx, botID, chatID int64) error {
	access, err := lockChat(ctx, tx, botID, chatID)
	if err == nil && access != Allowed {
		return &Closed{Access: access}
	}
	return err
}
