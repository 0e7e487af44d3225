package bots

import (
	"context"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
)

// The owner's actions. Each checks in its own transaction that the bot is the
// actor's (delivery.ErrNotFound if not, UI-07) and leaves a line in the audit log.

// Pause stops the bot or lets it go on (M-07).
func (s *Store) Pause(ctx context.Context, by Actor, botID int64, paused bool) error {
	action := "resume"
	if paused {
		action = "pause"
	}
	return s.queue.Pause(ctx, botID, paused, s.owner(by, botID, deed{action: action, change: func(w was) (before, after string) {
		return "paused=" + onOff(w.Paused), "paused=" + onOff(paused)
	}}))
}

// Reset takes the lease away from whoever holds it (M-06).
func (s *Store) Reset(ctx context.Context, by Actor, botID int64) error {
	return s.queue.Reset(ctx, botID, s.owner(by, botID, deed{action: "reset_connection", change: func(w was) (before, after string) {
		return lease(w.ConsumerID), lease("")
	}}))
}

// EmergencyReset takes the lease away and replaces the token. The new one is
// returned this once; the old one is dead (M-06).
func (s *Store) EmergencyReset(ctx context.Context, by Actor, botID int64) (delivery.Secret, error) {
	token := delivery.NewSecret(delivery.BotTokenPrefix)
	allowed := s.owner(by, botID, deed{action: "emergency_reset", change: func(w was) (before, after string) {
		return lease(w.ConsumerID) + " token=old", lease("") + " token=new"
	}})
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
	return s.queue.Replay(ctx, botID, ids, s.owner(by, botID, chosen("replay", ids)))
}

// Skip removes FAILED updates for good; see queue.Queue.Skip.
func (s *Store) Skip(ctx context.Context, by Actor, botID int64, ids []int64) ([]delivery.Outcome, error) {
	return s.queue.Skip(ctx, botID, ids, s.owner(by, botID, chosen("skip", ids)))
}

// chosen is a deed on FAILED updates. What becomes of each, the deed finds out
// after its line is written.
func chosen(action string, ids []int64) deed {
	return deed{action: action, change: func(w was) (before, after string) {
		return fmt.Sprintf("failed=%d", w.Failed), fmt.Sprintf("chosen=%d", len(ids))
	}}
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
	allowed := s.owner(by, botID, deed{action: "delete", change: func(w was) (before, after string) {
		return fmt.Sprintf("username=%s waiting=%d failed=%d", w.Username, w.Waiting, w.Failed), "deleted"
	}})
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
