package notice

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"mybots/delivery"
	"mybots/delivery/pg"
)

// Chat is an owner's chat with BotFather in a space.
type Chat struct {
	Language string    `db:"language"`
	OpenedAt time.Time `db:"opened_at"`
}

// ChatOf returns the person's BotFather chat in a space; delivery.ErrNotFound: it
// was never opened.
func (s *Store) ChatOf(ctx context.Context, spaceID, userID int64) (Chat, error) {
	var c Chat
	err := s.db.GetContext(ctx, &c, `SELECT language, opened_at FROM botfather_chats WHERE space_id = $1 AND user_id = $2`, spaceID, userID)
	if errors.Is(err, sql.ErrNoRows) {
		return Chat{}, fmt.Errorf("BotFather chat of person %d: %w", userID, delivery.ErrNotFound)
	}
	if err != nil {
		return Chat{}, pg.Mark(fmt.Errorf("BotFather chat of person %d: %w", userID, err))
	}
	return c, nil
}

// OpenChat opens the person's BotFather chat in a space, or changes its language:
// from then on notices go there (N-01). A *delivery.Invalid: the language is
// neither en nor ru. delivery.ErrNotFound: the person isn't of that space.
func (s *Store) OpenChat(ctx context.Context, spaceID, userID int64, language string) error {
	if !slices.Contains([]string{English, Russian}, language) {
		return &delivery.Invalid{Field: "language", Rule: "must be en or ru"}
	}
	done, err := s.db.ExecContext(ctx, `
INSERT INTO botfather_chats (space_id, user_id, language, opened_at) SELECT space_id, user_id, $3, $4 FROM people WHERE space_id = $1 AND user_id = $2
ON CONFLICT (space_id, user_id) DO UPDATE SET language = excluded.language`, spaceID, userID, language, s.clock.Now())
	if err != nil {
		return pg.Mark(fmt.Errorf("open the BotFather chat of person %d: %w", userID, err))
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return errors.Join(fmt.Errorf("person %d in space %d: %w", userID, spaceID, delivery.ErrNotFound), err)
	}
	return nil
}

// Message is a notice as it stands in a chat.
type Message struct {
	ID       int64     `db:"message_id"`
	BotID    int64     `db:"bot_id"`
	Language string    `db:"language"` // of the text
	Text     string    `db:"text"`
	Button   string    `db:"button"`
	At       time.Time `db:"written_at"`
	Live     bool      `db:"live"` // the bot is there still, and the person's
}

// Messages returns up to limit messages of the chat before the one with the id
// before, the latest first; 0 for before: the latest of all.
func (s *Store) Messages(ctx context.Context, spaceID, userID, before int64, limit int) ([]Message, error) {
	if before == 0 {
		before = 1<<63 - 1
	}
	var list []Message
	err := s.db.SelectContext(ctx, &list, `
SELECT m.message_id, m.bot_id, m.language, m.text, m.button, m.written_at, (b.bot_id IS NOT NULL) AS live
  FROM botfather_messages m LEFT JOIN bots b ON b.bot_id = m.bot_id AND b.owner_id = m.user_id AND b.deleted_at IS NULL
 WHERE m.space_id = $1 AND m.user_id = $2 AND m.message_id < $3 ORDER BY m.message_id DESC LIMIT $4`, spaceID, userID, before, limit)
	if err != nil {
		return nil, pg.Mark(fmt.Errorf("BotFather's messages to person %d: %w", userID, err))
	}
	return list, nil
}

// Unreachable tells whether no notice about bots in the space can reach the
// person: they never opened BotFather there and linked no account at MAX (N-01).
func (s *Store) Unreachable(ctx context.Context, spaceID, userID int64) (bool, error) {
	var reached bool
	err := s.db.GetContext(ctx, &reached, `
SELECT EXISTS (SELECT FROM botfather_chats WHERE space_id = $1 AND user_id = $2) OR $3 AND EXISTS (SELECT FROM max_links WHERE user_id = $2)`, spaceID, userID, s.max)
	if err != nil {
		return false, pg.Mark(fmt.Errorf("look whether person %d can be reached: %w", userID, err))
	}
	return !reached, nil
}
