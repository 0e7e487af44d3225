// Package bots keeps spaces, people and their sessions, bots and their tokens,
// the secrets that are shown once, and the platform's settings.
package bots

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/pg"
	"mybots/delivery/queue"
)

// Store keeps bots and all that isn't their queues.
type Store struct {
	db      *sqlx.DB
	clock   delivery.Clock
	queue   *queue.Queue
	sealer  *Sealer
	hashing chan struct{} // bounds the memory that password hashing takes
	byToken *pg.Stmt
}

// New returns the store in db. Owners' actions on a queue go through q.
func New(db *sqlx.DB, clock delivery.Clock, q *queue.Queue, sealer *Sealer) *Store {
	return &Store{db: db, clock: clock, queue: q, sealer: sealer, hashing: make(chan struct{}, 2), byToken: pg.NewStmt(db, byTokenSQL)}
}

// Bot is a bot as its owner sees it.
type Bot struct {
	ID        int64
	SpaceID   int64
	OwnerID   int64
	Username  string
	Name      string
	CreatedAt time.Time
}

// Actor is who acts: a person, with the request that the audit log names.
type Actor struct {
	UserID    int64
	RequestID string
	Address   string // where the request came from; "" where nobody knows
}

// Zero rows: no live bot has this token.
const byTokenSQL = `
SELECT b.bot_id, b.space_id, b.owner_id, b.username, b.name, b.created_at
  FROM bot_tokens t JOIN bots b USING (bot_id)
 WHERE t.token_hash = $1 AND b.deleted_at IS NULL`

// ByToken returns the bot whose live token this is, else delivery.ErrNotFound
// the look-up is by the token's SHA-256, so nothing that takes time
// depends on how close a guess came.
func (s *Store) ByToken(ctx context.Context, token delivery.Secret) (Bot, error) {
	stmt, err := s.byToken.Get(ctx)
	if err != nil {
		return Bot{}, pg.Mark(err)
	}
	var b Bot
	err = stmt.QueryRowContext(ctx, token.Hash()).Scan(&b.ID, &b.SpaceID, &b.OwnerID, &b.Username, &b.Name, &b.CreatedAt)
	return b, found(err, "bot of a token")
}

const ownedSQL = `
SELECT bot_id, space_id, owner_id, username, name, created_at FROM bots
 WHERE bot_id = $1 AND owner_id = $2 AND deleted_at IS NULL`

// Owned returns the owner's bot; delivery.ErrNotFound also when it is somebody
// else's (UI-07).
func (s *Store) Owned(ctx context.Context, ownerID, botID int64) (Bot, error) {
	var b Bot
	err := s.db.QueryRowContext(ctx, ownedSQL, botID, ownerID).Scan(&b.ID, &b.SpaceID, &b.OwnerID, &b.Username, &b.Name, &b.CreatedAt)
	return b, found(err, fmt.Sprintf("bot %d of person %d", botID, ownerID))
}

// found marks what a look-up of one row came to.
func found(err error, what string) error {
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%s: %w", what, delivery.ErrNotFound)
	}
	if err != nil {
		return pg.Mark(fmt.Errorf("%s: %w", what, err))
	}
	return nil
}

// Card is a bot in the owner's list.
type Card struct {
	Bot
	Status queue.Status
}

// Cards returns the owner's bots, the newest last (UI-02).
func (s *Store) Cards(ctx context.Context, ownerID int64) ([]Card, error) {
	rows, err := s.db.QueryContext(ctx, `
SELECT bot_id, space_id, owner_id, username, name, created_at FROM bots
 WHERE owner_id = $1 AND deleted_at IS NULL ORDER BY bot_id`, ownerID)
	if err != nil {
		return nil, pg.Mark(fmt.Errorf("bots of person %d: %w", ownerID, err))
	}
	defer rows.Close()
	var cards []Card
	for rows.Next() {
		var c Card
		if err := rows.Scan(&c.ID, &c.SpaceID, &c.OwnerID, &c.Username, &c.Name, &c.CreatedAt); err != nil {
			return nil, pg.Mark(fmt.Errorf("bots of person %d: %w", ownerID, err))
		}
		cards = append(cards, c)
	}
	if err := rows.Err(); err != nil {
		return nil, pg.Mark(fmt.Errorf("bots of person %d: %w", ownerID, err))
	}
	ids := make([]int64, len(cards))
	for i, c := range cards {
		ids[i] = c.ID
	}
	states, err := s.queue.StatusOf(ctx, ids)
	if err != nil {
		return nil, err
	}
	for i := range cards {
		cards[i].Status = states[cards[i].ID]
	}
	return cards, nil
}
