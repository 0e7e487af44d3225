package bots

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/audit"
	"mybots/delivery/pg"
	"mybots/delivery/queue"
)

// MaxName is how long a bot's name may be, in code points.
const MaxName = 64

var usernames = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{2,31}$`)

// NewBot is what a bot is made of.
type NewBot struct {
	SpaceID  int64
	OwnerID  int64
	Username string // with or without a leading @
	Name     string
	By       Actor // who makes it; nobody: an operator
}

// check brings the fields into shape, or says which breaks its rule.
func (n *NewBot) check() error {
	n.Username = strings.TrimPrefix(strings.TrimSpace(n.Username), "@")
	n.Name = strings.TrimSpace(n.Name)
	if !usernames.MatchString(n.Username) {
		return &delivery.Invalid{Field: "username", Rule: "must be 3 to 32 characters of A-Z a-z 0-9 _ and begin with a letter"}
	}
	if l := utf8.RuneCountInString(n.Name); l == 0 || l > MaxName || !utf8.ValidString(n.Name) || delivery.HasControl(n.Name) {
		return &delivery.Invalid{Field: "name", Rule: "must be 1 to 64 characters without control characters"}
	}
	return nil
}

// Create makes a bot with an empty queue and returns it with its token, which is
// stored as a hash only and can't be read again. A *delivery.Invalid names a
// field that breaks its rule; delivery.ErrConflict: the username is taken;
// delivery.ErrNotFound: there is no such owner in that space.
func (s *Store) Create(ctx context.Context, n NewBot) (Bot, delivery.Secret, error) {
	if err := n.check(); err != nil {
		return Bot{}, "", err
	}
	now := s.clock.Now()
	token := delivery.NewSecret(delivery.BotTokenPrefix)
	b := Bot{SpaceID: n.SpaceID, OwnerID: n.OwnerID, Username: n.Username, Name: n.Name, CreatedAt: now}
	err := pg.InTx(ctx, s.db, func(tx *sqlx.Tx) error {
		var runs bool
		err := tx.GetContext(ctx, &runs, `
SELECT s.runs_bots FROM people p JOIN spaces s USING (space_id) WHERE p.user_id = $1 AND s.space_id = $2 FOR SHARE OF s`, n.OwnerID, n.SpaceID)
		if err := found(err, fmt.Sprintf("person %d in space %d", n.OwnerID, n.SpaceID)); err != nil {
			return err
		}
		err = tx.GetContext(ctx, &b.ID, `
INSERT INTO bots (space_id, owner_id, username, name, created_at) VALUES ($1, $2, $3, $4, $5) RETURNING bot_id`,
			n.SpaceID, n.OwnerID, n.Username, n.Name, now)
		if pg.State(err) == pg.UniqueViolation {
			return fmt.Errorf("bot @%s: %w", n.Username, delivery.ErrConflict)
		}
		if err != nil {
			return fmt.Errorf("add bot @%s: %w", n.Username, err)
		}
		if err := setToken(ctx, tx, b.ID, token, s.clock); err != nil {
			return err
		}
		if err := queue.Open(ctx, tx, b.ID, !runs); err != nil {
			return err
		}
		return audit.Write(ctx, tx, audit.Entry{
			At: now, BotID: b.ID, UserID: n.By.UserID, Action: "create", After: "username=" + b.Username, RequestID: n.By.RequestID, Address: n.By.Address,
		})
	})
	if err != nil {
		return Bot{}, "", err
	}
	return b, token, nil
}

// setToken makes token the bot's one live token.
func setToken(ctx context.Context, tx *sqlx.Tx, botID int64, token delivery.Secret, clock delivery.Clock) error {
	_, err := tx.ExecContext(ctx, `
INSERT INTO bot_tokens (token_hash, bot_id, created_at) VALUES ($1, $2, $3)
ON CONFLICT (bot_id) DO UPDATE SET token_hash = excluded.token_hash, created_at = excluded.created_at`,
		token.Hash(), botID, clock.Now())
	if err != nil {
		return fmt.Errorf("set the token of bot %d: %w", botID, err)
	}
	return nil
}
