package bots

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/audit"
	"mybots/delivery/pg"
	"mybots/delivery/queue"
)

// Support's deeds. Each checks in its own transaction that the actor has the
// right still and leaves one line in the audit log (UI-06).

// MaxWhy is how long a reason or a message of support may be, in code points.
const MaxWhy = 500

// secrets finds what somebody pasted that may stand in no log.
var secrets = regexp.MustCompile(`(` + delivery.BotTokenPrefix + `|` + delivery.IntakeKeyPrefix + `|` + delivery.WebhookSecretPrefix + `)[a-z2-7]{16,}`)

// CheckWhy brings a reason or message of support into shape: one in which nothing
// can be seen, of characters without a width for example, is "". A
// *delivery.Invalid names the field.
func CheckWhy(field, text string) (string, error) {
	text = strings.TrimSpace(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text))
	if utf8.RuneCountInString(text) > MaxWhy || !delivery.Storable(text) || delivery.HasControl(strings.ReplaceAll(text, "\n", " ")) || secrets.MatchString(text) {
		return "", &delivery.Invalid{Field: field, Rule: fmt.Sprintf("must be up to %d characters, with no control character and no token or secret", MaxWhy)}
	}
	if !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) }) {
		return "", nil
	}
	return text, nil
}

// The rights of support that deeds need.
const (
	mayAct    = `may_act`
	mayUnmask = `may_unmask`
)

// maySQL holds the person's row, so that a right that is taken away at the same
// moment is taken away before or after the deed. Zero rows: the person may not.
const maySQL = `SELECT 1 FROM people WHERE user_id = $1 AND (role = 'admin' OR (role = 'support' AND %s)) FOR SHARE`

// support is the check and the audit line that every deed of support carries.
func (s *Store) support(ctx context.Context, tx *sqlx.Tx, by Actor, right string, e audit.Entry) error {
	var one int
	if err := found(tx.GetContext(ctx, &one, fmt.Sprintf(maySQL, right), by.UserID), fmt.Sprintf("right of person %d", by.UserID)); err != nil {
		return err
	}
	e.At, e.UserID, e.RequestID, e.Address = s.clock.Now(), by.UserID, by.RequestID, by.Address
	return audit.Write(ctx, tx, e)
}

// ActingFor is what the deeds of support in other rooms carry: in the deed's
// transaction it checks that by may act (delivery.ErrNotFound: not so), and writes
// the deed's line with the reason. A *delivery.Invalid: the reason breaks its rule.
func (s *Store) ActingFor(by Actor, reason string) (func(context.Context, *sqlx.Tx, audit.Entry) error, error) {
	reason, err := CheckWhy("reason", reason)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, tx *sqlx.Tx, e audit.Entry) error {
		e.Reason = reason
		return s.support(ctx, tx, by, mayAct, e)
	}, nil
}

// AllowWebhook switches a bot's webhook on or off (W-03); see
// queue.Queue.AllowWebhook. Its owner sees the reason. delivery.ErrNotFound: there
// is no such bot, or the actor hasn't the right.
func (s *Store) AllowWebhook(ctx context.Context, by Actor, botID int64, allowed bool, reason string) error {
	reason, err := CheckWhy("reason", reason)
	if err != nil {
		return err
	}
	return s.queue.AllowWebhook(ctx, botID, allowed, func(ctx context.Context, tx *sqlx.Tx, on bool) error {
		return s.support(ctx, tx, by, mayAct, audit.Entry{
			BotID: botID, Action: "webhook_" + onOff(allowed), Before: "webhook_allowed=" + onOff(on), After: "webhook_allowed=" + onOff(allowed), Reason: reason,
		})
	})
}

// RunSpace lets a space run its bots or stops them (P-16, F-04); see
// queue.Queue.RunBots. The owners see the reason. delivery.ErrNotFound: there is no
// such space, or the actor hasn't the right.
func (s *Store) RunSpace(ctx context.Context, by Actor, spaceID int64, running bool, reason string) error {
	reason, err := CheckWhy("reason", reason)
	if err != nil {
		return err
	}
	return s.queue.RunBots(ctx, running, func(ctx context.Context, tx *sqlx.Tx) (ids []int64, err error) {
		var runs bool // the lock keeps new bots away: they are born as the space is (Create)
		err = tx.GetContext(ctx, &runs, `SELECT runs_bots FROM spaces WHERE space_id = $1 FOR UPDATE`, spaceID)
		if err := found(err, fmt.Sprintf("space %d", spaceID)); err != nil {
			return nil, err
		}
		if err := tx.SelectContext(ctx, &ids, `SELECT bot_id FROM bots WHERE space_id = $1 AND deleted_at IS NULL`, spaceID); err != nil {
			return nil, fmt.Errorf("bots of space %d: %w", spaceID, err)
		}
		err = s.support(ctx, tx, by, mayAct, audit.Entry{
			SpaceID: spaceID, Action: "space_" + onOff(running), Detail: fmt.Sprintf("bots=%d", len(ids)),
			Before: "running=" + onOff(runs), After: "running=" + onOff(running), Reason: reason,
		})
		if err != nil {
			return nil, err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE spaces SET runs_bots = $2 WHERE space_id = $1`, spaceID, running); err != nil {
			return nil, fmt.Errorf("switch space %d: %w", spaceID, err)
		}
		return ids, nil
	})
}

// Maintain begins or ends the platform's maintenance; see queue.Queue.Maintain.
// The texts are for everybody; none is needed. delivery.ErrNotFound: the actor
// hasn't the right.
func (s *Store) Maintain(ctx context.Context, by Actor, m queue.Maintenance, reason string) error {
	var err error
	for _, f := range []struct {
		name string
		text *string
	}{{"message", &m.Text}, {"message_ru", &m.TextRU}, {"reason", &reason}} {
		if *f.text, err = CheckWhy(f.name, *f.text); err != nil {
			return err
		}
	}
	if !m.On {
		m.Text, m.TextRU = "", ""
	}
	return s.queue.Maintain(ctx, m, func(ctx context.Context, tx *sqlx.Tx, on bool) error {
		return s.support(ctx, tx, by, mayAct, audit.Entry{
			Action: "maintenance_" + onOff(m.On), Detail: cmp.Or(m.Text, m.TextRU), Before: "maintenance=" + onOff(on), After: "maintenance=" + onOff(m.On), Reason: reason,
		})
	})
}

// Unmask returns an update with its payload. Support must say why. A
// *delivery.Invalid: no reason; delivery.ErrNotFound: the update is neither waiting
// nor FAILED, or the actor hasn't the right.
func (s *Store) Unmask(ctx context.Context, by Actor, botID, updateID int64, reason string) (queue.Kept, []byte, error) {
	reason, err := CheckWhy("reason", reason)
	if err == nil && reason == "" {
		err = &delivery.Invalid{Field: "reason", Rule: "is needed"}
	}
	if err != nil {
		return queue.Kept{}, nil, err
	}
	return s.queue.Reveal(ctx, botID, updateID, func(ctx context.Context, tx *sqlx.Tx, k queue.Kept) error {
		place := "waiting"
		if k.Failed {
			place = "failed"
		}
		return s.support(ctx, tx, by, mayUnmask, audit.Entry{
			BotID: botID, Action: "unmask", Detail: fmt.Sprintf("update=%d %s type=%s", updateID, place, k.Type), Before: "masked", After: "shown", Reason: reason,
		})
	})
}

// Off is the platform's last word about something that it switched off.
type Off struct {
	At     pg.Time `db:"at"`
	Reason string  `db:"reason"` // for the owner to read; "" for none
}

// Zero rows: it was switched off before there was a log of that.
const offSQL = `
SELECT at, reason FROM audit WHERE bot_id = $1 AND space_id = $2 AND action = $3 ORDER BY audit_id DESC LIMIT 1`

// WebhookOff tells since when and why the platform has switched the bot's
// webhook off. Whether it has, the queue's status says; a zero time: nobody wrote
// it down.
func (s *Store) WebhookOff(ctx context.Context, botID int64) (Off, error) {
	return s.off(ctx, botID, 0, "webhook_off")
}

// SpaceOff is WebhookOff for a space that runs no bots.
func (s *Store) SpaceOff(ctx context.Context, spaceID int64) (Off, error) {
	return s.off(ctx, 0, spaceID, "space_off")
}

func (s *Store) off(ctx context.Context, botID, spaceID int64, action string) (Off, error) {
	var list []Off
	if err := s.db.SelectContext(ctx, &list, offSQL, botID, spaceID, action); err != nil {
		return Off{}, pg.Mark(fmt.Errorf("look for %s: %w", action, err))
	}
	if len(list) == 0 {
		return Off{}, nil
	}
	return list[0], nil
}
