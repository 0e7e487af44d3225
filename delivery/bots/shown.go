package bots

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mybots/delivery"
	"mybots/delivery/pg"
)

// showTime is how long a secret waits for the page that shows it.
const showTime = 10 * time.Minute

// Kinds of secrets that are shown once.
const (
	ShownToken  = "token"
	ShownSecret = "secret"
)

// KeepToShow keeps a secret, sealed, for one look from the session with this
// hash, for ten minutes at the most (UI-02).
func (s *Store) KeepToShow(ctx context.Context, session []byte, botID int64, kind string, secret delivery.Secret) error {
	_, err := s.db.ExecContext(ctx, `
INSERT INTO shown_once (session_hash, bot_id, kind, sealed, expires_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (session_hash, bot_id, kind) DO UPDATE SET sealed = excluded.sealed, expires_at = excluded.expires_at`,
		session, botID, kind, s.sealer.Seal([]byte(secret), place(botID, kind)), s.clock.Now().Add(showTime))
	if err != nil {
		return pg.Mark(fmt.Errorf("keep a secret of bot %d to be shown: %w", botID, err))
	}
	return nil
}

// ShowOnce gives the secret to the session that it was kept for and forgets it;
// delivery.ErrNotFound from then on, and for a token that another one has
// replaced since.
func (s *Store) ShowOnce(ctx context.Context, session []byte, botID int64, kind string) (delivery.Secret, error) {
	var sealed []byte
	var until time.Time
	err := s.db.QueryRowContext(ctx, `
DELETE FROM shown_once WHERE session_hash = $1 AND bot_id = $2 AND kind = $3 RETURNING sealed, expires_at`,
		session, botID, kind).Scan(&sealed, &until)
	if err := found(err, fmt.Sprintf("secret of bot %d", botID)); err != nil {
		return "", err
	}
	if !s.clock.Now().Before(until) {
		return "", fmt.Errorf("secret of bot %d: %w", botID, delivery.ErrNotFound)
	}
	value, err := s.sealer.Open(sealed, place(botID, kind))
	if err != nil {
		return "", err
	}
	secret := delivery.Secret(value)
	if kind == ShownToken {
		if b, err := s.ByToken(ctx, secret); err != nil || b.ID != botID {
			return "", errors.Join(err, fmt.Errorf("token of bot %d: %w", botID, delivery.ErrNotFound))
		}
	}
	return secret, nil
}

func place(botID int64, kind string) string { return fmt.Sprintf("shown_once|%d|%s", botID, kind) }
