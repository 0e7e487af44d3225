package web

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"time"

	"mybots/delivery"

	"github.com/gorilla/sessions"
)

// How long a session lasts at most, and without a request.
const (
	sessionLife = 12 * time.Hour
	sessionIdle = 2 * time.Hour
	// touchEvery is how old the last request's time may get in the database.
	touchEvery = time.Minute
)

// Session is a row of the sessions, with its person.
type Session struct {
	Person  Person
	Created time.Time
	Seen    time.Time // of the last request, at most touchEvery behind
	Flash   string    // what SetFlash kept; never a secret
}

// sessionRows keeps the sessions. They are found by the SHA-256 of their id; who
// reads the database can't sign in with what they find.
type sessionRows interface {
	// CreateSession keeps a new session of the person.
	CreateSession(ctx context.Context, idHash []byte, personID int64, at time.Time) error
	// Session returns delivery.ErrNotFound where there is none, or its person is gone.
	Session(ctx context.Context, idHash []byte) (Session, error)
	// TouchSession notes a request. No such session is no error.
	TouchSession(ctx context.Context, idHash []byte, at time.Time) error
	// SetFlash keeps a short text for the next page. No such session is no error.
	SetFlash(ctx context.Context, idHash []byte, flash string) error
	// DeleteSession ends a session. No such session is no error.
	DeleteSession(ctx context.Context, idHash []byte) error
	// DeleteSessions ends all sessions of a person.
	DeleteSessions(ctx context.Context, personID int64) error
}

// The values that a gorilla session carries through a request.
type (
	rowKey      struct{} // Session, of a signed-in reader
	personIDKey struct{} // int64, of who signs in
)

// store is a sessions.Store that keeps a random id in the cookie and the rest
// in rows.
type store struct {
	rows   sessionRows
	clock  Clock
	name   string // of the cookie
	secure bool
}

var _ sessions.Store = (*store)(nil)

func newStore(rows sessionRows, clock Clock, secure bool) *store {
	name := "smeet"
	if secure {
		name = "__Host-smeet" // a browser takes it from this host alone, with Secure and Path=/
	}
	return &store{rows: rows, clock: clock, name: name, secure: secure}
}

// Get implements sessions.Store.
func (s *store) Get(r *http.Request, name string) (*sessions.Session, error) {
	return sessions.GetRegistry(r).Get(s, name)
}

// New implements sessions.Store: the session of the request's cookie, or a new
// one where there is no cookie, garbage, or a session that has ended. Its error
// is one of the database.
func (s *store) New(r *http.Request, name string) (*sessions.Session, error) {
	ctx := r.Context()
	fresh := s.fresh()
	id := cookieValue(r, name)
	hash, ok := hashOf(id)
	if !ok {
		return fresh, nil
	}
	row, err := s.rows.Session(ctx, hash)
	if errors.Is(err, delivery.ErrNotFound) {
		return fresh, nil
	}
	if err != nil {
		return fresh, fmt.Errorf("read the session: %w", err)
	}
	now := s.clock.Now()
	if now.Sub(row.Created) >= sessionLife || now.Sub(row.Seen) >= sessionIdle {
		if err := s.rows.DeleteSession(ctx, hash); err != nil {
			return fresh, fmt.Errorf("end an old session: %w", err)
		}
		return fresh, nil
	}
	if now.Sub(row.Seen) >= touchEvery {
		if err := s.rows.TouchSession(ctx, hash, now); err != nil {
			return fresh, fmt.Errorf("touch the session: %w", err)
		}
	}
	fresh.ID, fresh.IsNew = id, false
	fresh.Values[rowKey{}] = row
	return fresh, nil
}

// fresh is a session that nobody has yet, with the cookie's options.
func (s *store) fresh() *sessions.Session {
	session := sessions.NewSession(s, s.name)
	session.IsNew = true
	session.Options = &sessions.Options{Path: "/", HttpOnly: true, Secure: s.secure, SameSite: http.SameSiteLaxMode}
	return session
}

// newID is a random id of a session, 256 bits.
func newID() string {
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(random[:])
}

// Save implements sessions.Store. A session with a negative MaxAge ends; a new
// one, whose person is in its values, gets its id and its cookie.
func (s *store) Save(r *http.Request, w http.ResponseWriter, session *sessions.Session) error {
	ctx := r.Context()
	if session.Options.MaxAge < 0 {
		if hash, ok := hashOf(session.ID); ok {
			if err := s.rows.DeleteSession(ctx, hash); err != nil {
				return fmt.Errorf("end the session: %w", err)
			}
		}
		http.SetCookie(w, sessions.NewCookie(session.Name(), "", session.Options))
		return nil
	}
	personID, ok := session.Values[personIDKey{}].(int64)
	if !ok || !session.IsNew {
		return nil // nothing to keep
	}
	session.ID = newID()
	hash, _ := hashOf(session.ID)
	if err := s.rows.CreateSession(ctx, hash, personID, s.clock.Now()); err != nil {
		return fmt.Errorf("begin a session: %w", err)
	}
	session.IsNew = false
	http.SetCookie(w, sessions.NewCookie(session.Name(), session.ID, session.Options))
	return nil
}

// begin signs the person in and tells who that is: whatever session the browser
// had ends, and a new one with a new id begins.
func (s *store) begin(w http.ResponseWriter, r *http.Request, old *sessions.Session, personID int64) (Person, error) {
	if old != nil {
		if hash, ok := hashOf(old.ID); ok {
			if err := s.rows.DeleteSession(r.Context(), hash); err != nil {
				return Person{}, fmt.Errorf("end the session before: %w", err)
			}
		}
	}
	session := s.fresh()
	session.Values[personIDKey{}] = personID
	if err := s.Save(r, w, session); err != nil {
		return Person{}, err
	}
	hash, _ := hashOf(session.ID)
	row, err := s.rows.Session(r.Context(), hash)
	if err != nil {
		return Person{}, fmt.Errorf("read the new session: %w", err)
	}
	return row.Person, nil
}

// end signs out: the row goes, and the cookie with it.
func (s *store) end(w http.ResponseWriter, r *http.Request, session *sessions.Session) error {
	session.Options.MaxAge = -1
	return s.Save(r, w, session)
}

// hashOf returns the hash by which a session of that id is kept, or false for
// what can't be an id.
func hashOf(id string) ([]byte, bool) {
	raw, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil || len(raw) != 32 {
		return nil, false
	}
	sum := sha256.Sum256(raw)
	return sum[:], true
}

func rowOf(session *sessions.Session) (Session, bool) {
	row, ok := session.Values[rowKey{}].(Session)
	return row, ok
}
