package notice

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/audit"
	"mybots/delivery/pg"
)

// Line is a notice as support reads it (N-08).
type Line struct {
	ID        int64                `db:"notice_id"`
	Key       string               `db:"key"`
	Kind      delivery.TroubleKind `db:"kind"`
	BotID     int64                `db:"bot_id"`
	BotName   string               `db:"bot_name"` // the username
	SpaceID   int64                `db:"space_id"`
	Owner     string               `db:"owner"` // the email
	Route     string               `db:"route"`
	Recipient string               `db:"recipient"`
	Email     string               `db:"email"` // of a recipient in a BotFather chat; "" for another
	Language  string               `db:"language"`
	Template  string               `db:"template"` // its version
	Text      string               `db:"text"`
	Code      string               `db:"code"`
	Counted   int                  `db:"counted"` // held back before it, which the text tells
	Held      int                  `db:"held"`    // held back since, while its window is the last one
	EventAt   pg.Time              `db:"event_at"`
	QueuedAt  pg.Time              `db:"queued_at"`
	DueAt     pg.Time              `db:"due_at"`
	TriedAt   pg.Time              `db:"tried_at"`
	SentAt    pg.Time              `db:"sent_at"`
	State     State                `db:"state"`
	Tries     int                  `db:"tries"`
	HTTPCode  int                  `db:"http_code"` // 0: no answer yet, or no HTTP
	MessageID string               `db:"message_id"`
	Reason    string               `db:"reason"`
}

// ForPerson tells whether the notice waits for a person's decision.
func (l Line) ForPerson() bool { return l.State == Uncertain || l.State == Blocked || l.State == Dead }

// Open tells whether the notice can still be closed, or sent to somebody else.
func (l Line) Open() bool { return l.ForPerson() || l.State == Queued || l.State == Retrying }

// Filter picks notices; the zero Filter picks all.
type Filter struct {
	ForPerson bool // only those that wait for a person
	State     State
	Route     string
	BotID     int64
}

const lineSQL = `
SELECT n.notice_id, n.key, n.kind, n.bot_id, coalesce(b.username, '') AS bot_name, n.space_id, coalesce(o.email, '') AS owner, n.route, n.recipient,
       coalesce(p.email, '') AS email, n.language, n.template, n.text, n.code, n.counted, coalesce(w.held, 0) AS held, n.event_at, n.queued_at, n.due_at,
       n.tried_at, n.sent_at, n.state, n.tries, n.http_code, n.message_id, n.reason
  FROM notices n
  LEFT JOIN bots b ON b.bot_id = n.bot_id
  LEFT JOIN people o ON o.user_id = n.user_id
  LEFT JOIN people p ON n.route = 'botfather' AND p.user_id::text = n.recipient
  LEFT JOIN notice_windows w ON w.bot_id = n.bot_id AND w.kind = n.kind AND w.opened_at = n.window_at`

// where writes the filter's condition; its parameters follow those in args.
func (f Filter) where(args []any) (string, []any) {
	condition := ""
	add := func(text string, arg any) {
		args = append(args, arg)
		condition += fmt.Sprintf(text, len(args))
	}
	if f.ForPerson {
		condition += ` AND n.state IN ('uncertain', 'blocked', 'dead')`
	}
	if f.State != "" {
		add(` AND n.state = $%d`, string(f.State))
	}
	if f.Route != "" {
		add(` AND n.route = $%d`, f.Route)
	}
	if f.BotID != 0 {
		add(` AND n.bot_id = $%d`, f.BotID)
	}
	return condition, args
}

// List returns up to limit notices with ids below before, the latest first; 0 for
// before: the latest of all.
func (s *Store) List(ctx context.Context, f Filter, before int64, limit int) ([]Line, error) {
	if before == 0 {
		before = 1<<63 - 1
	}
	condition, args := f.where([]any{before, limit})
	var list []Line
	if err := s.db.SelectContext(ctx, &list, lineSQL+` WHERE n.notice_id < $1`+condition+` ORDER BY n.notice_id DESC LIMIT $2`, args...); err != nil {
		return nil, pg.Mark(fmt.Errorf("list notices: %w", err))
	}
	return list, nil
}

// Count returns how many notices List would list, up to most.
func (s *Store) Count(ctx context.Context, f Filter, most int) (int, error) {
	condition, args := f.where([]any{most})
	var n int
	if err := s.db.GetContext(ctx, &n, `SELECT count(*) FROM (SELECT 1 FROM notices n WHERE true`+condition+` LIMIT $1) f`, args...); err != nil {
		return 0, pg.Mark(fmt.Errorf("count notices: %w", err))
	}
	return n, nil
}

// Line returns one notice, else delivery.ErrNotFound.
func (s *Store) Line(ctx context.Context, id int64) (Line, error) { return line(ctx, s.db, id, "") }

func line(ctx context.Context, db sqlx.QueryerContext, id int64, hold string) (Line, error) {
	var l Line
	err := sqlx.GetContext(ctx, db, &l, lineSQL+` WHERE n.notice_id = $1`+hold, id)
	if errors.Is(err, sql.ErrNoRows) {
		return Line{}, fmt.Errorf("notice %d: %w", id, delivery.ErrNotFound)
	}
	if err != nil {
		return Line{}, pg.Mark(fmt.Errorf("notice %d: %w", id, err))
	}
	return l, nil
}

// Within checks in a deed's transaction that the person may do it, and writes its
// line into the audit log, whose action and states are given. An error undoes
// the deed.
type Within func(ctx context.Context, tx *sqlx.Tx, e audit.Entry) error

// decide is what a person's decision about one notice has in common: the row is
// held, may says whether its state allows it, change changes it.
func (s *Store) decide(ctx context.Context, id int64, within Within, action string, may func(Line) bool, change func(*sqlx.Tx, Line) (State, error)) error {
	return pg.InTx(ctx, s.db, func(tx *sqlx.Tx) error {
		l, err := line(ctx, tx, id, ` FOR UPDATE OF n`)
		if err != nil {
			return err
		}
		if !may(l) {
			return fmt.Errorf("notice %d is %s: %w", id, l.State, delivery.ErrStale)
		}
		after, err := change(tx, l)
		if err != nil {
			return err
		}
		return within(ctx, tx, audit.Entry{BotID: l.BotID, Action: action, Detail: fmt.Sprintf("notice=%d route=%s", id, l.Route),
			Before: "state=" + string(l.State), After: "state=" + string(after)})
	})
}

// againSQL puts a notice back to the start of its way, with all its tries.
const againSQL = `UPDATE notices SET state = 'queued', reason = '', due_at = $2, since = $2, tries_left = $3, claimed_until = NULL WHERE `

// Retry sends a notice again that waits for a person. delivery.ErrNotFound: there
// is none; delivery.ErrStale: it doesn't wait for one (any more).
func (s *Store) Retry(ctx context.Context, id int64, within Within) error {
	return s.decide(ctx, id, within, "notice_retry", Line.ForPerson, func(tx *sqlx.Tx, _ Line) (State, error) {
		if _, err := tx.ExecContext(ctx, againSQL+`notice_id = $1`, id, s.clock.Now(), MaxTries); err != nil {
			return "", fmt.Errorf("send notice %d again: %w", id, err)
		}
		return Queued, nil
	})
}

// Close ends a notice that isn't to be sent any more. Errors are those of Retry.
func (s *Store) Close(ctx context.Context, id int64, within Within) error {
	return s.decide(ctx, id, within, "notice_close", Line.Open, func(tx *sqlx.Tx, l Line) (State, error) {
		var j Job
		if err := tx.GetContext(ctx, &j, `SELECT `+jobColumns+` FROM notices WHERE notice_id = $1`, id); err != nil {
			return "", fmt.Errorf("notice %d: %w", id, err)
		}
		return Stale, s.closeStale(ctx, tx, j, WhyClosed, l.State != Uncertain)
	})
}

// Readdress sends a notice to somebody else: by MAX to the account with that
// number, in BotFather's chat to the person with that email, who must have opened
// it in the bot's space. Somebody who has this notice already doesn't get it twice:
// then it is closed as deduplicated. A *delivery.Invalid: there is no such
// recipient; other errors are those of Retry.
func (s *Store) Readdress(ctx context.Context, id int64, route, recipient string, within Within) error {
	return s.decide(ctx, id, within, "notice_readdress", Line.Open, func(tx *sqlx.Tx, l Line) (State, error) {
		to, err := s.resolve(ctx, tx, l.SpaceID, route, strings.TrimSpace(recipient))
		if err != nil {
			return "", err
		}
		var j Job
		if err := tx.GetContext(ctx, &j, `SELECT `+jobColumns+` FROM notices WHERE notice_id = $1`, id); err != nil {
			return "", fmt.Errorf("notice %d: %w", id, err)
		}
		key := keyOf(l.Kind, l.BotID, route, to, j.WindowAt)
		var twice bool
		if err := tx.GetContext(ctx, &twice, `SELECT EXISTS (SELECT FROM notices WHERE key = $1 AND notice_id <> $2)`, key, id); err != nil {
			return "", fmt.Errorf("look for the key of notice %d: %w", id, err)
		}
		if twice {
			_, err := tx.ExecContext(ctx, `UPDATE notices SET state = 'deduplicated', reason = '`+WhyTwice+`' WHERE notice_id = $1`, id)
			if err != nil {
				return "", fmt.Errorf("close notice %d: %w", id, err)
			}
			return Deduplicated, nil
		}
		if _, err := tx.ExecContext(ctx, againSQL+`notice_id = $1`, id, s.clock.Now(), MaxTries); err != nil {
			return "", fmt.Errorf("send notice %d again: %w", id, err)
		}
		_, err = tx.ExecContext(ctx, `UPDATE notices SET key = $2, route = $3, recipient = $4, readdressed = true WHERE notice_id = $1`, id, key, route, to)
		if err != nil {
			return "", fmt.Errorf("readdress notice %d: %w", id, err)
		}
		return Queued, nil
	})
}

// resolve finds the recipient that support named.
func (s *Store) resolve(ctx context.Context, tx *sqlx.Tx, spaceID int64, route, recipient string) (string, error) {
	switch {
	case route == MAX && s.max:
		n, ok := delivery.ParseID(recipient)
		if !ok || n == 0 {
			return "", &delivery.Invalid{Field: "recipient", Rule: "must be the number of a MAX account"}
		}
		return strconv.FormatInt(n, 10), nil
	case route == BotFather:
		var ids []int64
		err := tx.SelectContext(ctx, &ids, `
SELECT c.user_id FROM botfather_chats c JOIN people p USING (user_id) WHERE c.space_id = $1 AND p.email_key = $2`, spaceID, strings.ToLower(recipient))
		if err != nil {
			return "", fmt.Errorf("look for a BotFather chat: %w", err)
		}
		if len(ids) == 0 {
			return "", &delivery.Invalid{Field: "recipient", Rule: "must be the email of somebody who opened BotFather in the bot's space"}
		}
		return strconv.FormatInt(ids[0], 10), nil
	}
	return "", &delivery.Invalid{Field: "route", Rule: "must be a route that is set up"}
}

// Ways returns the state of every route.
func (s *Store) Ways(ctx context.Context) ([]Way, error) {
	var list []Way
	if err := s.db.SelectContext(ctx, &list, `SELECT route, stopped, stopped_at, reason, allowance FROM notice_routes ORDER BY route`); err != nil {
		return nil, pg.Mark(fmt.Errorf("state of the routes: %w", err))
	}
	return list, nil
}

// StopRoute stops a route; its notices wait. delivery.ErrNotFound: there is no
// such route.
func (s *Store) StopRoute(ctx context.Context, route string, within Within) error {
	return s.steer(ctx, route, within, "notices_off", func(tx *sqlx.Tx) error {
		return stop(ctx, tx, route, WhyStopped, s.clock.Now())
	})
}

// ResumeRoute lets a route send again, what was blocked too. With a portion it
// stops again after as many notices, urgent and late ones first; 0: it doesn't.
// Notices that are too old or whose cause has passed close as stale.
func (s *Store) ResumeRoute(ctx context.Context, route string, portion int, within Within) error {
	if portion < 0 {
		return &delivery.Invalid{Field: "portion", Rule: "must be 0 or more"}
	}
	return s.steer(ctx, route, within, "notices_on", func(tx *sqlx.Tx) error {
		_, err := tx.ExecContext(ctx, `
UPDATE notice_routes SET stopped = false, stopped_at = NULL, reason = '', allowance = nullif($2, 0) WHERE route = $1`, route, portion)
		if err != nil {
			return fmt.Errorf("resume the route %s: %w", route, err)
		}
		_, err = tx.ExecContext(ctx, `
UPDATE notices SET state = 'queued', reason = '', due_at = $2, tries_left = $3 WHERE route = $1 AND state = 'blocked'`, route, s.clock.Now(), MaxTries)
		if err != nil {
			return fmt.Errorf("queue what the route %s had blocked: %w", route, err)
		}
		return nil
	})
}

func (s *Store) steer(ctx context.Context, route string, within Within, action string, change func(*sqlx.Tx) error) error {
	return pg.InTx(ctx, s.db, func(tx *sqlx.Tx) error {
		var before, after []Way
		read := func(into *[]Way) error {
			err := tx.SelectContext(ctx, into, `SELECT route, stopped, stopped_at, reason, allowance FROM notice_routes WHERE route = $1 FOR UPDATE`, route)
			if err == nil && len(*into) == 0 {
				return fmt.Errorf("route %q: %w", route, delivery.ErrNotFound)
			}
			return err
		}
		if err := read(&before); err != nil {
			return err
		}
		if err := change(tx); err != nil {
			return err
		}
		if err := read(&after); err != nil {
			return err
		}
		return within(ctx, tx, audit.Entry{Action: action, Detail: "route=" + route, Before: before[0].words(), After: after[0].words()})
	})
}

// words writes the route's state for the audit log.
func (w Way) words() string {
	switch {
	case w.Stopped:
		return "sending=off"
	case w.Allowance != nil:
		return "sending=on portion=" + strconv.Itoa(*w.Allowance)
	}
	return "sending=on"
}
