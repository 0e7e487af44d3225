package notice

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/pg"
)

// claimTime is the real time that a claim holds: longer than any request.
const claimTime = 30 * time.Second

// Job is a notice on its way out.
type Job struct {
	ID        int64                `db:"notice_id"`
	Kind      delivery.TroubleKind `db:"kind"`
	Urgent    bool                 `db:"urgent"`
	BotID     int64                `db:"bot_id"`
	SpaceID   int64                `db:"space_id"`
	UserID    int64                `db:"user_id"`
	Route     string               `db:"route"`
	Recipient string               `db:"recipient"`
	Language  string               `db:"language"`
	Text      string               `db:"text"`
	Button    string               `db:"button"`
	Tries     int                  `db:"tries"` // this one included

	Readdressed bool      `db:"readdressed"`
	Since       time.Time `db:"since"`
	WindowAt    time.Time `db:"window_at"`
	Counted     int       `db:"counted"`
}

// claimed is what came of a look for work.
type claimed struct {
	job    *Job  // to be sent by its route; nil: none
	closed State // else what happened to the notice that was found; "": none was due
}

const jobColumns = `notice_id, kind, urgent, bot_id, space_id, user_id, route, recipient, language, text, button, tries, readdressed, since, window_at, counted`

// pickSQL takes the next notice of a lane and holds its row. Zero rows: none is
// due. While a route that was stopped is resumed in portions, the latest go first,
// and no ordinary one before an urgent one.
const (
	pickSQL       = pickFrom + ` ORDER BY due_at, notice_id LIMIT 1 FOR UPDATE SKIP LOCKED`
	pickLatestSQL = pickFrom + `
   AND ($2 OR NOT EXISTS (SELECT FROM notices u WHERE u.route = $1 AND u.urgent AND u.state IN ('queued', 'retrying') AND u.due_at <= $3))
 ORDER BY notice_id DESC LIMIT 1 FOR UPDATE SKIP LOCKED`
	pickFrom = `SELECT ` + jobColumns + ` FROM notices
 WHERE route = $1 AND urgent = $2 AND state IN ('queued', 'retrying') AND due_at <= $3`
)

// situationSQL reads what a notice's freshness depends on. The window's row is
// locked first: a cause that is being recorded is then seen, or finds the window
// closed.
const situationSQL = `
SELECT coalesce(b.deleted_at IS NOT NULL, true) AS gone, coalesce(q.mode = 'webhook' AND q.hook_paused <> '', false) AS paused,
       coalesce(q.failed, 0) AS failed, m.user_id IS NULL AS unlinked
  FROM (SELECT 1) one
  LEFT JOIN bots b ON b.bot_id = $1
  LEFT JOIN queues q ON q.bot_id = $1
  LEFT JOIN max_links m ON m.user_id = $2 AND m.max_user_id::text = $3`

// lane is what one goroutine serves: the urgent or the ordinary notices of a route.
type lane struct {
	Route  string `db:"route"`
	Urgent bool   `db:"urgent"`
}

// due returns the lanes in which something can be sent now.
func (s *Store) due(ctx context.Context) (list []lane, err error) {
	err = s.db.SelectContext(ctx, &list, `
SELECT r.route, l.urgent FROM notice_routes r CROSS JOIN (VALUES (true), (false)) l (urgent)
 WHERE NOT r.stopped AND EXISTS (
       SELECT FROM notices n WHERE n.route = r.route AND n.urgent = l.urgent AND n.state IN ('queued', 'retrying') AND n.due_at <= $1)`, s.clock.Now())
	if err != nil {
		return nil, pg.Mark(fmt.Errorf("look for notices that are due: %w", err))
	}
	return list, nil
}

// next takes the next notice of a lane that is due. One whose cause has passed is
// closed. One for BotFather's chat is sent, in the same transaction. One for
// another route is marked as sending and comes back.
func (s *Store) next(ctx context.Context, l lane) (claimed, error) {
	var c claimed
	err := pg.InTx(ctx, s.db, func(tx *sqlx.Tx) error {
		c = claimed{}
		portion, stopped, err := s.routeState(ctx, tx, l.Route)
		if err != nil || stopped {
			return err
		}
		now := s.clock.Now()
		pick := pickSQL
		if portion {
			pick = pickLatestSQL
		}
		var list []Job
		if err := tx.SelectContext(ctx, &list, pick, l.Route, l.Urgent, now); err != nil {
			return fmt.Errorf("look for notices by %s: %w", l.Route, err)
		}
		if len(list) == 0 {
			return nil
		}
		j := list[0]
		why, err := s.whyStale(ctx, tx, j, now)
		if err != nil {
			return err
		}
		if why != "" {
			c.closed = Stale
			return s.closeStale(ctx, tx, j, why, true)
		}
		if portion {
			if err := spend(ctx, tx, l.Route, now); err != nil {
				return err
			}
		}
		if j.Route == BotFather {
			c.closed, err = s.write(ctx, tx, j, now)
			return err
		}
		j.Tries++
		c.job = &j
		_, err = tx.ExecContext(ctx, `
UPDATE notices SET state = 'sending', tries = tries + 1, tries_left = tries_left - 1, tried_at = $2,
       claimed_until = clock_timestamp() + $3 * interval '1 second'
 WHERE notice_id = $1`, j.ID, now, int(claimTime.Seconds()))
		if err != nil {
			return fmt.Errorf("claim notice %d: %w", j.ID, err)
		}
		return nil
	})
	if err != nil {
		return claimed{}, err
	}
	return c, nil
}

func (s *Store) whyStale(ctx context.Context, tx *sqlx.Tx, j Job, now time.Time) (string, error) {
	if _, err := tx.ExecContext(ctx, `SELECT 1 FROM notice_windows WHERE bot_id = $1 AND kind = $2 FOR UPDATE`, j.BotID, string(j.Kind)); err != nil {
		return "", fmt.Errorf("hold the window of notice %d: %w", j.ID, err)
	}
	var sit struct {
		Gone     bool `db:"gone"`
		Paused   bool `db:"paused"`
		Failed   int  `db:"failed"`
		Unlinked bool `db:"unlinked"`
	}
	if err := tx.GetContext(ctx, &sit, situationSQL, j.BotID, j.UserID, j.Recipient); err != nil {
		return "", fmt.Errorf("look whether notice %d is fresh: %w", j.ID, err)
	}
	return situation{
		Gone: sit.Gone, Paused: sit.Paused, Failed: sit.Failed, Age: now.Sub(j.Since),
		Unlinked: j.Route == MAX && !j.Readdressed && sit.Unlinked,
	}.stale(j.Kind), nil
}

// reopenSQL ends a window in which nothing was sent and nothing is on its way, so
// that the next cause is told at once, with all that was held back.
const reopenSQL = `
UPDATE notice_windows w SET opened_at = NULL, held = held + counted, counted = 0
 WHERE bot_id = $1 AND kind = $2 AND opened_at = $3
   AND NOT EXISTS (SELECT FROM notices n WHERE n.bot_id = $1 AND n.kind = $2 AND n.window_at = $3 AND n.state NOT IN ('stale', 'deduplicated'))`

// closeStale closes a notice that isn't sent (N-05). unsent: it surely didn't
// arrive, so that it holds nothing back.
func (s *Store) closeStale(ctx context.Context, tx *sqlx.Tx, j Job, why string, unsent bool) error {
	if _, err := tx.ExecContext(ctx, `UPDATE notices SET state = 'stale', reason = $2, claimed_until = NULL WHERE notice_id = $1`, j.ID, why); err != nil {
		return fmt.Errorf("close notice %d: %w", j.ID, err)
	}
	if !unsent {
		return nil
	}
	if _, err := tx.ExecContext(ctx, reopenSQL, j.BotID, string(j.Kind), j.WindowAt); err != nil {
		return fmt.Errorf("end the window of notice %d: %w", j.ID, err)
	}
	return nil
}

// Zero rows: the person has no chat there.
const writeSQL = `
INSERT INTO botfather_messages (space_id, user_id, notice_id, bot_id, language, text, button, written_at)
SELECT space_id, user_id, $3, $4, $5, $6, $7, $8 FROM botfather_chats WHERE space_id = $1 AND user_id::text = $2
RETURNING message_id`

// write puts a notice into the person's BotFather chat and closes it.
func (s *Store) write(ctx context.Context, tx *sqlx.Tx, j Job, now time.Time) (State, error) {
	var ids []int64
	if err := tx.SelectContext(ctx, &ids, writeSQL, j.SpaceID, j.Recipient, j.ID, j.BotID, j.Language, j.Text, j.Button, now); err != nil {
		return "", fmt.Errorf("write notice %d: %w", j.ID, err)
	}
	o, messageID := outcome{state: Sent}, ""
	var sent pg.Time
	if len(ids) == 0 {
		o = outcome{state: Dead, reason: WhyNoChat}
	} else {
		messageID, sent.Time = strconv.FormatInt(ids[0], 10), now
	}
	_, err := tx.ExecContext(ctx, `
UPDATE notices SET state = $2, tries = tries + 1, tried_at = $3, sent_at = $4, message_id = $5, reason = $6 WHERE notice_id = $1`,
		j.ID, string(o.state), now, sent, messageID, o.reason)
	if err != nil {
		return "", fmt.Errorf("close notice %d: %w", j.ID, err)
	}
	return o.state, nil
}

const settleSQL = `
UPDATE notices SET state = $3, due_at = coalesce($4, due_at), sent_at = $5, http_code = $6, message_id = $7, reason = $8, claimed_until = NULL
 WHERE notice_id = $1 AND tries = $2 AND state IN ('sending', 'uncertain')`

// errOvertaken: while the request was under way a person decided about the notice.
var errOvertaken = errors.New("somebody decided about the notice meanwhile")

// settle writes what came of a try. The answer to a request whose claim had run
// out still counts, as long as nobody decided otherwise.
func (s *Store) settle(ctx context.Context, j Job, r Result) (State, error) {
	var state State
	err := pg.InTx(ctx, s.db, func(tx *sqlx.Tx) error {
		var left int
		if err := tx.GetContext(ctx, &left, `SELECT tries_left FROM notices WHERE notice_id = $1 FOR UPDATE`, j.ID); err != nil {
			return fmt.Errorf("hold notice %d: %w", j.ID, err)
		}
		now := s.clock.Now()
		o := judge(r, left, j.Since, now)
		state = o.state
		var sent pg.Time
		if o.state == Sent {
			sent.Time = now
		}
		done, err := tx.ExecContext(ctx, settleSQL, j.ID, j.Tries, string(o.state), pg.Time{Time: o.due}, sent, r.Code, r.MessageID, o.reason)
		if err != nil {
			return fmt.Errorf("settle notice %d: %w", j.ID, err)
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			return errors.Join(errOvertaken, err)
		}
		if o.state == Blocked {
			return stop(ctx, tx, j.Route, o.reason, now)
		}
		return nil
	})
	return state, err
}

// sweep finds notices whose process ended between the mark and the answer: they
// may have arrived (N-04). It also closes what nobody picks up for too long, as its
// route is stopped or isn't set up any more (N-05).
func (s *Store) sweep(ctx context.Context) (unanswered []int64, err error) {
	err = s.db.SelectContext(ctx, &unanswered, `
UPDATE notices SET state = 'uncertain', reason = '`+WhyEnded+`', claimed_until = NULL
 WHERE state = 'sending' AND claimed_until <= clock_timestamp() RETURNING notice_id`)
	if err != nil {
		return nil, pg.Mark(fmt.Errorf("look for notices without an answer: %w", err))
	}
	_, err = s.db.ExecContext(ctx, `
UPDATE notices SET state = 'stale', reason = $2 WHERE state IN ('queued', 'retrying') AND since <= $1`, s.clock.Now().Add(-MaxAge), WhyOld)
	if err != nil {
		return nil, pg.Mark(fmt.Errorf("close old notices: %w", err))
	}
	return unanswered, nil
}
