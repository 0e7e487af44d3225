package notice

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
)

// told is whom a notice about a bot goes to.
type told struct {
	Bot          string `db:"name"`
	SpaceID      int64  `db:"space_id"`
	UserID       int64  `db:"owner_id"`
	ChatLanguage string `db:"chat_language"` // "": the owner never opened BotFather there
	Language     string `db:"language"`      // of the person's pages; "": not chosen
	MAX          int64  `db:"max_user_id"`   // 0: not linked
}

// Zero rows: the bot is deleted.
const toldSQL = `
SELECT b.name, b.space_id, b.owner_id, p.language, coalesce(c.language, '') AS chat_language, coalesce(m.max_user_id, 0) AS max_user_id
  FROM bots b JOIN people p ON p.user_id = b.owner_id
  LEFT JOIN botfather_chats c ON c.space_id = b.space_id AND c.user_id = b.owner_id
  LEFT JOIN max_links m ON m.user_id = b.owner_id
 WHERE b.bot_id = $1 AND b.deleted_at IS NULL`

// windowSQL opens a window or counts one that is held back, decided from the
// locked row. A window that has just opened has held nothing back yet.
const windowSQL = `
INSERT INTO notice_windows AS w (bot_id, kind, opened_at, held, counted) VALUES ($1, $2, $3, 0, 0)
ON CONFLICT (bot_id, kind) DO UPDATE SET
    opened_at = CASE WHEN w.opened_at > $4 THEN w.opened_at ELSE $3 END,
    held      = CASE WHEN w.opened_at > $4 THEN w.held + 1 ELSE 0 END,
    counted   = CASE WHEN w.opened_at > $4 THEN w.counted ELSE w.held END
RETURNING opened_at = $3 AND held = 0 AS opened, counted`

const recordSQL = `
INSERT INTO notices (key, kind, urgent, bot_id, space_id, user_id, route, recipient, language, template, text, button, code,
                     window_at, counted, event_at, queued_at, since, due_at, tries_left)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $17, $17, $18)
ON CONFLICT (key) DO NOTHING`

// Record writes the notices about t, one for each route that the owner has, in
// the transaction of the cause (N-02), whose lock on the bot's queue row keeps
// two causes apart. Within a window of the same kind it only counts (N-03). An
// owner with no route gets none, and no window opens (N-01).
func (s *Store) Record(ctx context.Context, tx *sqlx.Tx, t delivery.Trouble) error {
	var to []told
	if err := tx.SelectContext(ctx, &to, toldSQL, t.BotID); err != nil {
		return fmt.Errorf("look whom to tell of bot %d: %w", t.BotID, err)
	}
	if len(to) == 0 {
		return nil
	}
	routes := s.recipients(to[0])
	if len(routes) == 0 {
		return nil
	}
	now := s.clock.Now()
	var window struct {
		Opened  bool `db:"opened"`
		Counted int  `db:"counted"`
	}
	if err := tx.GetContext(ctx, &window, windowSQL, t.BotID, string(t.Kind), now, now.Add(-Window)); err != nil {
		return fmt.Errorf("window of notices about bot %d: %w", t.BotID, err)
	}
	if !window.Opened {
		return nil
	}
	for _, r := range routes {
		m, err := render(r.language, to[0].Bot, t, window.Counted)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, recordSQL, keyOf(t.Kind, t.BotID, r.route, r.recipient, now), string(t.Kind), urgent(t.Kind), t.BotID, to[0].SpaceID, to[0].UserID,
			r.route, r.recipient, r.language, m.template, m.text, m.button, t.Code, now, window.Counted, t.At, now, MaxTries)
		if err != nil {
			return fmt.Errorf("record a notice about bot %d: %w", t.BotID, err)
		}
	}
	return nil
}

// recipient is one way to the owner.
type recipient struct{ route, recipient, language string }

func (s *Store) recipients(t told) (list []recipient) {
	if t.ChatLanguage != "" {
		list = append(list, recipient{BotFather, strconv.FormatInt(t.UserID, 10), t.ChatLanguage})
	}
	if s.max && t.MAX != 0 {
		lang := English
		for _, l := range []string{t.Language, t.ChatLanguage} {
			if l != "" {
				lang = l
			}
		}
		list = append(list, recipient{MAX, strconv.FormatInt(t.MAX, 10), lang})
	}
	return list
}

// keyOf is the key of N-03: event kind, bot, recipient, start of the window.
func keyOf(kind delivery.TroubleKind, botID int64, route, recipient string, window time.Time) string {
	return strings.Join([]string{string(kind), strconv.FormatInt(botID, 10), route, recipient, windowStart(window)}, " ")
}
