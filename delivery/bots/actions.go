package bots

import (
	"context"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/queue"
)

// The owner's actions. Each checks in its own transaction that the bot is the
// actor's (delivery.ErrNotFound if not, UI-07) and leaves a line in the audit log.

// Pause stops the bot or lets it go on (M-07).
func (s *Store) Pause(ctx context.Context, by Actor, botID int64, paused bool) error {
	action := "resume"
	if paused {
		action = "pause"
	}
	return s.queue.Pause(ctx, botID, paused, s.owner(by, botID, action, ""))
}

// Reset takes the lease away from whoever holds it (M-06).
func (s *Store) Reset(ctx context.Context, by Actor, botID int64) error {
	return s.queue.Reset(ctx, botID, s.owner(by, botID, "reset_connection", ""))
}

// EmergencyReset takes the lease away and replaces the token. The new one is
// returned this once; the old one is dead (M-06).
func (s *Store) EmergencyReset(ctx context.Context, by Actor, botID int64) (delivery.Secret, error) {
	token := delivery.NewSecret(delivery.BotTokenPrefix)
	allowed := s.owner(by, botID, "emergency_reset", "")
	err := s.queue.Reset(ctx, botID, func(ctx context.Context, tx *sqlx.Tx) error {
		if err := allowed(ctx, tx); err != nil {
			return err
		}
		return setToken(ctx, tx, botID, token, s.clock)
	})
	if err != nil {
		return "", err
	}
	return token, nil
}

// Replay appends FAILED updates at the end of the queue; see queue.Queue.Replay.
func (s *Store) Replay(ctx context.Context, by Actor, botID int64, ids []int64) ([]delivery.Outcome, error) {
	return s.queue.Replay(ctx, botID, ids, s.owner(by, botID, "replay", fmt.Sprintf("%d updates chosen", len(ids))))
}

// Skip removes FAILED updates for good; see queue.Queue.Skip.
func (s *Store) Skip(ctx context.Context, by Actor, botID int64, ids []int64) ([]delivery.Outcome, error) {
	return s.queue.Skip(ctx, botID, ids, s.owner(by, botID, "skip", fmt.Sprintf("%d updates chosen", len(ids))))
}

// Delete deletes the bot. username must be its username, typed again, else a
// *delivery.Invalid (M-09).
func (s *Store) Delete(ctx context.Context, by Actor, botID int64, username string) error {
	b, err := s.Owned(ctx, by.UserID, botID)
	if err != nil {
		return err
	}
	if !strings.EqualFold(strings.TrimPrefix(strings.TrimSpace(username), "@"), b.Username) {
		return &delivery.Invalid{Field: "username", Rule: "must be the bot's username, " + b.Username}
	}
	allowed := s.owner(by, botID, "delete", "")
	return s.queue.Delete(ctx, botID, func(ctx context.Context, tx *sqlx.Tx) error {
		if err := allowed(ctx, tx); err != nil {
			return err
		}
		for _, statement := range []string{
			`DELETE FROM bot_tokens WHERE bot_id = $1`,
			`DELETE FROM shown_once WHERE bot_id = $1`,
			`DELETE FROM messages WHERE bot_id = $1`,
			`DELETE FROM callbacks WHERE bot_id = $1`,
			`DELETE FROM outbound WHERE bot_id = $1`,
			`DELETE FROM chats WHERE bot_id = $1`,
			`DELETE FROM idempotency_keys WHERE bot_id = $1`, // its answers hold texts
		} {
			if _, err := tx.ExecContext(ctx, statement, botID); err != nil {
				return fmt.Errorf("delete bot %d: %w", botID, err)
			}
		}
		if _, err := tx.ExecContext(ctx, `UPDATE bots SET deleted_at = $2 WHERE bot_id = $1`, botID, s.clock.Now()); err != nil {
			return fmt.Errorf("delete bot %d: %w", botID, err)
		}
		return nil
	})
}

// owner is the check and the audit line that every action carries.
func (s *Store) owner(by Actor, botID int64, action, detail string) queue.Within {
	return func(ctx context.Context, tx *sqlx.Tx) error {
		var one int
		err := tx.GetContext(ctx, &one, `
SELECT 1 FROM bots WHERE bot_id = $1 AND owner_id = $2 AND deleted_at IS NULL`, botID, by.UserID)
		if err := found(err, fmt.Sprintf("bot %d of person %d", botID, by.UserID)); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `
INSERT INTO audit (bot_id, at, user_id, action, detail, request_id) VALUES ($1, $2, $3, $4, $5, $6)`,
			botID, s.clock.Now(), by.UserID, action, detail, by.RequestID)
		if err != nil {
			return fmt.Errorf("audit %s of bot %d: %w", action, botID, err)
		}
		return nil
	}
}
