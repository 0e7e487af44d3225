package bots

import (
	"context"
	"fmt"
	"strings"

	"mybots/delivery"
	"mybots/delivery/audit"
	"mybots/delivery/pg"
)

// Found is a bot as support's lists and pages show it. Deleted ones are found too.
type Found struct {
	ID       int64   `db:"bot_id"`
	Username string  `db:"username"`
	Name     string  `db:"name"`
	OwnerID  int64   `db:"owner_id"`
	Owner    string  `db:"owner"` // the email
	SpaceID  int64   `db:"space_id"`
	Space    string  `db:"space"`
	Running  bool    `db:"runs_bots"` // the space runs bots
	Created  pg.Time `db:"created_at"`
	Deleted  pg.Time `db:"deleted_at"` // zero: it isn't
}

const foundColumns = `SELECT b.bot_id, b.username, b.name, b.owner_id, o.email AS owner, b.space_id, s.name AS space, s.runs_bots, b.created_at, b.deleted_at`

const foundFrom = ` FROM bots b JOIN people o ON o.user_id = b.owner_id JOIN spaces s ON s.space_id = b.space_id`

// $1 is the text for ILIKE, $2 the id that it is, 0 for none.
const foundWhere = ` WHERE (b.bot_id = $2 OR b.space_id = $2 OR b.username ILIKE $1 OR b.name ILIKE $1 OR o.email ILIKE $1 OR s.name ILIKE $1)`

var likeEscapes = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// pattern prepares what somebody looks for.
func pattern(text string) (like string, id int64) {
	id, _ = delivery.ParseID(text)
	return "%" + likeEscapes.Replace(strings.TrimPrefix(text, "@")) + "%", id
}

// Find returns up to limit bots behind the bot after, in the order of their ids,
// for which text is the bot's or the space's id, or a part of the username, the
// name, the owner's email or the space's name; capitals and small letters are one.
func (s *Store) Find(ctx context.Context, text string, after int64, limit int) ([]Found, error) {
	like, id := pattern(text)
	var list []Found
	err := s.db.SelectContext(ctx, &list, foundColumns+foundFrom+foundWhere+` AND b.bot_id > $3 ORDER BY b.bot_id LIMIT $4`, like, id, after, limit)
	if err != nil {
		return nil, pg.Mark(fmt.Errorf("find bots: %w", err))
	}
	return list, nil
}

// Count returns how many bots Find would find, up to most.
func (s *Store) Count(ctx context.Context, text string, most int) (int, error) {
	like, id := pattern(text)
	var n int
	if err := s.db.GetContext(ctx, &n, `SELECT count(*) FROM (SELECT 1`+foundFrom+foundWhere+` LIMIT $3) f`, like, id, most); err != nil {
		return 0, pg.Mark(fmt.Errorf("count bots: %w", err))
	}
	return n, nil
}

// Look returns any bot, deleted or not; delivery.ErrNotFound when there is none.
func (s *Store) Look(ctx context.Context, botID int64) (Found, error) {
	var f Found
	err := s.db.GetContext(ctx, &f, foundColumns+foundFrom+` WHERE b.bot_id = $1`, botID)
	return f, found(err, fmt.Sprintf("bot %d", botID))
}

// Needs is a bot that needs somebody's attention.
type Needs struct {
	Found
	Rank    int     `db:"rank"` // 1 is the most serious; see the constants
	Why     string  `db:"why"`  // the code that paused delivery, or of the last error
	Waiting int     `db:"waiting"`
	Failed  int     `db:"failed"`
	Oldest  pg.Time `db:"oldest"` // of what waits
}

// Why a bot needs attention, the most serious first.
const (
	NeedsResume   = 1 // an answer paused webhook delivery (W-11)
	NeedsEndpoint = 2 // the breaker is open (W-12)
	NeedsPlatform = 3 // the platform switched it off
	NeedsRoom     = 4 // the queue is full
	NeedsReceiver = 5 // something has waited for over an hour, and nobody asks
	NeedsOwner    = 6 // FAILED updates
)

// needySQL ranks all bots; the rank of most is NULL. The order of a CASE is kept,
// so the look at the oldest update is made for few.
const needySQL = `
SELECT q.bot_id, q.waiting, q.failed, CASE WHEN q.hook_paused <> '' THEN q.hook_paused WHEN q.mode = 'webhook' THEN q.error_code ELSE '' END AS why,
       CASE WHEN q.mode = 'webhook' AND q.hook_paused <> '' THEN 1
            WHEN q.mode = 'webhook' AND q.breaker > 0 THEN 2
            WHEN q.disabled OR (q.mode = 'webhook' AND NOT q.hook_allowed) THEN 3
            WHEN q.waiting >= 10000 OR q.waiting_bytes >= 52428800 THEN 4
            WHEN q.waiting > 0 AND q.mode = 'polling' AND NOT q.paused AND (q.lease_until IS NULL OR q.lease_until <= $1)
                 AND (SELECT u.date FROM updates u WHERE u.bot_id = q.bot_id AND u.update_id >= q.confirmed ORDER BY u.update_id LIMIT 1) < $1::timestamptz - interval '1 hour' THEN 5
            WHEN q.failed > 0 THEN 6 END AS rank
  FROM queues q WHERE NOT q.deleted`

// Attention returns up to limit bots that need attention, the most serious first,
// behind the bot after of that rank.
func (s *Store) Attention(ctx context.Context, rank int, after int64, limit int) ([]Needs, error) {
	var list []Needs
	err := s.db.SelectContext(ctx, &list, foundColumns+`, n.rank, n.why, n.waiting, n.failed, first.date AS oldest`+
		` FROM (SELECT * FROM (`+needySQL+`) r WHERE rank IS NOT NULL AND (rank, bot_id) > ($2::integer, $3::bigint) ORDER BY rank, bot_id LIMIT $4) n`+
		` JOIN bots b USING (bot_id) JOIN people o ON o.user_id = b.owner_id JOIN spaces s ON s.space_id = b.space_id`+
		` LEFT JOIN LATERAL (SELECT u.date FROM updates u JOIN queues q USING (bot_id) WHERE u.bot_id = n.bot_id AND u.update_id >= q.confirmed ORDER BY u.update_id LIMIT 1) first ON true`+
		` ORDER BY n.rank, n.bot_id`, s.clock.Now(), rank, after, limit)
	if err != nil {
		return nil, pg.Mark(fmt.Errorf("look for bots that need attention: %w", err))
	}
	return list, nil
}

// CountAttention returns how many bots need attention, up to most.
func (s *Store) CountAttention(ctx context.Context, most int) (int, error) {
	var n int
	err := s.db.GetContext(ctx, &n, `SELECT count(*) FROM (SELECT 1 FROM (`+needySQL+`) r WHERE rank IS NOT NULL LIMIT $2) n`, s.clock.Now(), most)
	if err != nil {
		return 0, pg.Mark(fmt.Errorf("count bots that need attention: %w", err))
	}
	return n, nil
}

// Space is a space as support sees it.
type Space struct {
	ID      int64  `db:"space_id"`
	Name    string `db:"name"`
	Running bool   `db:"runs_bots"`
	Bots    int    `db:"bots"` // up to 10,001
}

// Space returns a space; delivery.ErrNotFound when there is none.
func (s *Store) Space(ctx context.Context, spaceID int64) (Space, error) {
	var sp Space
	err := s.db.GetContext(ctx, &sp, `
SELECT space_id, name, runs_bots, (SELECT count(*) FROM (SELECT 1 FROM bots b WHERE b.space_id = s.space_id AND b.deleted_at IS NULL LIMIT 10001) n) AS bots
  FROM spaces s WHERE space_id = $1`, spaceID)
	return sp, found(err, fmt.Sprintf("space %d", spaceID))
}

// Log returns lines of the audit log; see audit.Read.
func (s *Store) Log(ctx context.Context, f audit.Filter, before int64, limit int) ([]audit.Line, error) {
	return audit.Read(ctx, s.db, f, before, limit)
}
