package bots

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/audit"
	"mybots/delivery/pg"
)

// What people do with their own sign-in. Each deed leaves a line in the audit log.

// ZoneUTC is the zone of people who read all times in UTC.
const ZoneUTC = "utc"

// MinOwnPassword is how many bytes a password has at least that a person gives
// themselves.
const MinOwnPassword = 10

// SetZone keeps in which zone the person reads times: ZoneUTC, or "" for their
// browser's (UI-05). A *delivery.Invalid: it is another one.
func (s *Store) SetZone(ctx context.Context, by Actor, zone string) error {
	if zone != "" && zone != ZoneUTC {
		return &delivery.Invalid{Field: "zone", Rule: "is browser or utc"}
	}
	return pg.InTx(ctx, s.db, func(tx *sqlx.Tx) error {
		var before string
		err := tx.GetContext(ctx, &before, `SELECT time_zone FROM people WHERE user_id = $1 FOR UPDATE`, by.UserID)
		if err := found(err, fmt.Sprintf("person %d", by.UserID)); err != nil || before == zone {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE people SET time_zone = $2 WHERE user_id = $1`, by.UserID, zone); err != nil {
			return fmt.Errorf("set the zone of person %d: %w", by.UserID, err)
		}
		return s.account(ctx, tx, by, audit.Entry{Action: "set_zone", Before: "zone=" + zoneName(before), After: "zone=" + zoneName(zone)})
	})
}

func zoneName(zone string) string {
	if zone == "" {
		return "browser"
	}
	return zone
}

// PasswordChange is what a person changes their password with.
type PasswordChange struct {
	Old, New delivery.Secret
	Session  []byte // the hash of the id under which they go on: a new one
}

// ChangePassword gives the person another password, if they know the present
// one: all their sessions end, and the one of c begins. A *delivery.Invalid: the new password breaks its rule. delivery.ErrNotFound: the
// old one is wrong. delivery.ErrStale: the password was changed meanwhile.
func (s *Store) ChangePassword(ctx context.Context, by Actor, c PasswordChange) error {
	if len(c.New) < MinOwnPassword || len(c.New) > MaxPassword {
		return &delivery.Invalid{Field: "password", Rule: "must be 10 to 256 bytes"}
	}
	var stored string
	err := s.db.GetContext(ctx, &stored, `SELECT password_hash FROM people WHERE user_id = $1`, by.UserID)
	if err := found(err, fmt.Sprintf("person %d", by.UserID)); err != nil {
		return err
	}
	old := c.Old
	if len(old) > MaxPassword {
		old = "" // nobody has one like that; the check costs the same
	}
	same, err := s.verify(ctx, stored, old)
	if err != nil {
		return err
	}
	if !same || len(c.Old) > MaxPassword {
		return fmt.Errorf("the old password of person %d: %w", by.UserID, delivery.ErrNotFound)
	}
	hash, err := s.hash(ctx, c.New)
	if err != nil {
		return err
	}
	return pg.InTx(ctx, s.db, func(tx *sqlx.Tx) error {
		var one int
		err := tx.GetContext(ctx, &one, `
UPDATE people SET password_hash = $3 WHERE user_id = $1 AND password_hash = $2 RETURNING 1`, by.UserID, stored, hash)
		if err := found(err, "the password that was checked"); errors.Is(err, delivery.ErrNotFound) {
			return fmt.Errorf("change the password of person %d: %w", by.UserID, delivery.ErrStale)
		} else if err != nil {
			return err
		}
		ended, err := endSessions(ctx, tx, by.UserID)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `
INSERT INTO sessions (session_hash, user_id, created_at, seen_at) VALUES ($1, $2, $3, $3)`, c.Session, by.UserID, s.clock.Now())
		if err != nil {
			return fmt.Errorf("begin the session after a new password: %w", err)
		}
		return s.account(ctx, tx, by, audit.Entry{Action: "change_password", Detail: "sessions_ended=" + strconv.Itoa(ended)})
	})
}

// SignOutEverywhere ends all sessions of the person.
func (s *Store) SignOutEverywhere(ctx context.Context, by Actor) error {
	return pg.InTx(ctx, s.db, func(tx *sqlx.Tx) error {
		ended, err := endSessions(ctx, tx, by.UserID)
		if err != nil {
			return err
		}
		return s.account(ctx, tx, by, audit.Entry{Action: "sign_out_everywhere", Detail: "sessions_ended=" + strconv.Itoa(ended)})
	})
}

func endSessions(ctx context.Context, tx *sqlx.Tx, userID int64) (int, error) {
	done, err := tx.ExecContext(ctx, `DELETE FROM sessions WHERE user_id = $1`, userID)
	if err != nil {
		return 0, fmt.Errorf("end the sessions of person %d: %w", userID, err)
	}
	n, err := done.RowsAffected()
	return int(n), err
}

// account writes the line of a deed that is about the person alone.
func (s *Store) account(ctx context.Context, tx *sqlx.Tx, by Actor, e audit.Entry) error {
	e.At, e.UserID, e.RequestID, e.Address = s.clock.Now(), by.UserID, by.RequestID, by.Address
	return audit.Write(ctx, tx, e)
}

// OpenSession is a session that hasn't ended.
type OpenSession struct {
	Created time.Time
	Seen    time.Time // of the last request, up to a minute behind
	This    bool      // the one that was named
}

// OpenSessions returns up to limit of the person's sessions that began after
// begun and were seen after seen, and how many there are: the one with the hash
// this first, then the last seen.
func (s *Store) OpenSessions(ctx context.Context, userID int64, this []byte, begun, seen time.Time, limit int) ([]OpenSession, int, error) {
	rows, err := s.db.QueryContext(ctx, `
SELECT created_at, seen_at, session_hash = $2 AS this, count(*) OVER ()
  FROM sessions WHERE user_id = $1 AND created_at > $3 AND seen_at > $4
 ORDER BY session_hash = $2 DESC, seen_at DESC, created_at DESC LIMIT $5`, userID, this, begun, seen, limit)
	if err != nil {
		return nil, 0, pg.Mark(fmt.Errorf("sessions of person %d: %w", userID, err))
	}
	defer rows.Close()
	var open []OpenSession
	total := 0
	for rows.Next() {
		var o OpenSession
		if err := rows.Scan(&o.Created, &o.Seen, &o.This, &total); err != nil {
			return nil, 0, pg.Mark(fmt.Errorf("sessions of person %d: %w", userID, err))
		}
		open = append(open, o)
	}
	if err := rows.Err(); err != nil {
		return nil, 0, pg.Mark(fmt.Errorf("sessions of person %d: %w", userID, err))
	}
	return open, total, nil
}
