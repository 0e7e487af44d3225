package bots

import (
	"context"
	"fmt"
	"time"

	"mybots/delivery/pg"
)

// Session is a signed-in person's session. It is kept under the SHA-256 of the
// id that the cookie holds.
type Session struct {
	Person  Person
	Created time.Time
	Seen    time.Time
	Flash   string // a short text for the next page; never a secret
}

// CreateSession keeps a new session.
func (s *Store) CreateSession(ctx context.Context, hash []byte, userID int64, at time.Time) error {
	return s.exec(ctx, "create a session", `
INSERT INTO sessions (session_hash, user_id, created_at, seen_at) VALUES ($1, $2, $3, $3)`, hash, userID, at)
}

// Session returns a session, delivery.ErrNotFound when there is none.
func (s *Store) Session(ctx context.Context, hash []byte) (Session, error) {
	var out Session
	p := &out.Person
	err := s.db.QueryRowContext(ctx, `
SELECT p.user_id, p.email, p.role, p.space_id, sp.name, p.language, p.time_zone, p.may_act, p.may_unmask, s.created_at, s.seen_at, s.flash
  FROM sessions s JOIN people p USING (user_id) JOIN spaces sp USING (space_id)
 WHERE s.session_hash = $1`, hash).
		Scan(&p.ID, &p.Email, &p.Role, &p.SpaceID, &p.SpaceName, &p.Language, &p.Zone, &p.MayAct, &p.MayUnmask, &out.Created, &out.Seen, &out.Flash)
	return out, found(err, "session")
}

// TouchSession notes a request of the session. No such session is no error.
func (s *Store) TouchSession(ctx context.Context, hash []byte, at time.Time) error {
	return s.exec(ctx, "touch a session", `UPDATE sessions SET seen_at = $2 WHERE session_hash = $1`, hash, at)
}

// SetFlash keeps a short text for the session's next page. No such session is no error.
func (s *Store) SetFlash(ctx context.Context, hash []byte, flash string) error {
	return s.exec(ctx, "keep a flash", `UPDATE sessions SET flash = $2 WHERE session_hash = $1`, hash, flash)
}

// DeleteSession ends a session. No such session is no error.
func (s *Store) DeleteSession(ctx context.Context, hash []byte) error {
	return s.exec(ctx, "delete a session", `DELETE FROM sessions WHERE session_hash = $1`, hash)
}

// DeleteSessions ends all sessions of a person.
func (s *Store) DeleteSessions(ctx context.Context, userID int64) error {
	return s.exec(ctx, "delete a person's sessions", `DELETE FROM sessions WHERE user_id = $1`, userID)
}

// DropOld removes sessions that were last seen before and secrets that waited
// too long to be shown.
func (s *Store) DropOld(ctx context.Context, before time.Time) error {
	if err := s.exec(ctx, "drop old sessions", `DELETE FROM sessions WHERE seen_at < $1`, before); err != nil {
		return err
	}
	return s.exec(ctx, "drop secrets that nobody looked at", `DELETE FROM shown_once WHERE expires_at < $1`, s.clock.Now())
}

func (s *Store) exec(ctx context.Context, what, statement string, args ...any) error {
	if _, err := s.db.ExecContext(ctx, statement, args...); err != nil {
		return pg.Mark(fmt.Errorf("%s: %w", what, err))
	}
	return nil
}
