package bots

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jmoiron/sqlx"
	"golang.org/x/crypto/argon2"

	"mybots/delivery"
	"mybots/delivery/audit"
	"mybots/delivery/pg"
)

// How long a password must and may be, in bytes.
const (
	MinPassword = 8
	MaxPassword = 256
)

var passwordRule = &delivery.Invalid{Field: "password", Rule: "must be 8 to 256 bytes"}

// Person is somebody with a sign-in.
type Person struct {
	ID        int64
	Email     string
	Role      string // owner, support or admin
	SpaceID   int64
	SpaceName string
	Language  string // en, ru, or "" for what the browser asks for
	Zone      string // of times: ZoneUTC, or "" for the browser's
	MayAct    bool   // of support: may switch things on and off; admins may anyway
	MayUnmask bool   // of support: may look into an update; admins may anyway
}

// AddSpace makes a space and returns its id. A *delivery.Invalid: the name is
// empty or too long.
func (s *Store) AddSpace(ctx context.Context, name string) (int64, error) {
	name = strings.TrimSpace(name)
	if l := utf8.RuneCountInString(name); l == 0 || l > 128 || !utf8.ValidString(name) || delivery.HasControl(name) {
		return 0, &delivery.Invalid{Field: "name", Rule: "must be 1 to 128 characters without control characters"}
	}
	var id int64
	err := s.db.GetContext(ctx, &id, `INSERT INTO spaces (name, created_at) VALUES ($1, $2) RETURNING space_id`, name, s.clock.Now())
	if err != nil {
		return 0, pg.Mark(fmt.Errorf("add a space: %w", err))
	}
	return id, nil
}

// NewPerson is what a person is added with.
type NewPerson struct {
	Email    string
	SpaceID  int64
	Role     string
	Rights   []string // of support, beside looking: act, unmask; none for other roles
	Password delivery.Secret
}

// AddPerson adds a person and returns the id. A *delivery.Invalid names a field
// that breaks its rule; delivery.ErrConflict: the address is taken;
// delivery.ErrNotFound: there is no such space.
func (s *Store) AddPerson(ctx context.Context, n NewPerson) (int64, error) {
	email := strings.TrimSpace(n.Email)
	switch at := strings.LastIndexByte(email, '@'); {
	case at < 1 || at == len(email)-1 || len(email) > 254 || strings.ContainsAny(email, " \t") || !delivery.Storable(email) || delivery.HasControl(email):
		return 0, &delivery.Invalid{Field: "email", Rule: "must be an address like anna@example.com"}
	case n.Role != "owner" && n.Role != "support" && n.Role != "admin":
		return 0, &delivery.Invalid{Field: "role", Rule: "must be owner, support or admin"}
	case n.Role != "support" && len(n.Rights) > 0:
		return 0, &delivery.Invalid{Field: "rights", Rule: "are for the role support only; an admin has all of them"}
	case !knownRights(n.Rights):
		return 0, rightsRule
	case len(n.Password) < MinPassword || len(n.Password) > MaxPassword:
		return 0, passwordRule
	}
	hash, err := s.hash(ctx, n.Password)
	if err != nil {
		return 0, err
	}
	var id int64
	err = s.db.GetContext(ctx, &id, `
INSERT INTO people (space_id, email, email_key, password_hash, role, created_at, may_act, may_unmask)
SELECT space_id, $2, $3, $4, $5, $6, $7, $8 FROM spaces WHERE space_id = $1 RETURNING user_id`,
		n.SpaceID, email, strings.ToLower(email), hash, n.Role, s.clock.Now(), slices.Contains(n.Rights, "act"), slices.Contains(n.Rights, "unmask"))
	if pg.State(err) == pg.UniqueViolation {
		return 0, fmt.Errorf("person %s: %w", email, delivery.ErrConflict)
	}
	return id, found(err, fmt.Sprintf("space %d", n.SpaceID))
}

var rightsRule = &delivery.Invalid{Field: "rights", Rule: "must be some of look, act and unmask, separated by commas"}

func knownRights(rights []string) bool {
	return !slices.ContainsFunc(rights, func(r string) bool { return r != "look" && r != "act" && r != "unmask" })
}

// SetRights gives a support person these rights and no others, by an operator's
// command; deeds under way are done before or refused after. A *delivery.Invalid: a
// right is unknown, or the person isn't of support. delivery.ErrNotFound: there is
// no such person.
func (s *Store) SetRights(ctx context.Context, email string, rights []string) error {
	if !knownRights(rights) {
		return rightsRule
	}
	return pg.InTx(ctx, s.db, func(tx *sqlx.Tx) error {
		var p struct {
			ID        int64  `db:"user_id"`
			Role      string `db:"role"`
			MayAct    bool   `db:"may_act"`
			MayUnmask bool   `db:"may_unmask"`
		}
		err := tx.GetContext(ctx, &p, `SELECT user_id, role, may_act, may_unmask FROM people WHERE email_key = $1 FOR UPDATE`, strings.ToLower(strings.TrimSpace(email)))
		if err := found(err, "person"); err != nil {
			return err
		}
		if p.Role != "support" {
			return &delivery.Invalid{Field: "email", Rule: "must be of a support person; other roles have no rights to choose"}
		}
		act, unmask := slices.Contains(rights, "act"), slices.Contains(rights, "unmask")
		if _, err := tx.ExecContext(ctx, `UPDATE people SET may_act = $2, may_unmask = $3 WHERE user_id = $1`, p.ID, act, unmask); err != nil {
			return fmt.Errorf("set the rights of person %d: %w", p.ID, err)
		}
		return audit.Write(ctx, tx, audit.Entry{At: s.clock.Now(), Action: "set_rights", Detail: fmt.Sprintf("person=%d", p.ID),
			Before: fmt.Sprintf("act=%s unmask=%s", onOff(p.MayAct), onOff(p.MayUnmask)), After: fmt.Sprintf("act=%s unmask=%s", onOff(act), onOff(unmask))})
	})
}

// PersonByEmail finds a person; delivery.ErrNotFound when there is none.
func (s *Store) PersonByEmail(ctx context.Context, email string) (Person, error) {
	return s.person(ctx, `p.email_key = $1`, strings.ToLower(strings.TrimSpace(email)))
}

// Person finds a person by id; delivery.ErrNotFound when there is none.
func (s *Store) Person(ctx context.Context, userID int64) (Person, error) {
	return s.person(ctx, `p.user_id = $1`, userID)
}

func (s *Store) person(ctx context.Context, where string, arg any) (Person, error) {
	var p Person
	err := s.db.QueryRowContext(ctx, `
SELECT p.user_id, p.email, p.role, p.space_id, s.name, p.language, p.time_zone, p.may_act, p.may_unmask FROM people p JOIN spaces s USING (space_id) WHERE `+where, arg).
		Scan(&p.ID, &p.Email, &p.Role, &p.SpaceID, &p.SpaceName, &p.Language, &p.Zone, &p.MayAct, &p.MayUnmask)
	return p, found(err, "person")
}

// SetLanguage keeps the language that the person chose: en, ru, or "".
func (s *Store) SetLanguage(ctx context.Context, userID int64, language string) error {
	_, err := s.db.ExecContext(ctx, `UPDATE people SET language = $2 WHERE user_id = $1`, userID, language)
	if err != nil {
		return pg.Mark(fmt.Errorf("set the language of person %d: %w", userID, err))
	}
	return nil
}

// SignIn returns the id of the person with that address and password. An
// unknown address and a wrong password are both delivery.ErrNotFound and cost
// the same.
func (s *Store) SignIn(ctx context.Context, email, password string) (int64, error) {
	var id int64
	stored := dummyHash
	err := s.db.QueryRowContext(ctx, `SELECT user_id, password_hash FROM people WHERE email_key = $1`,
		strings.ToLower(strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(email, "\x00", ""), "")))).Scan(&id, &stored)
	if err = found(err, "person"); err != nil && !errors.Is(err, delivery.ErrNotFound) {
		return 0, err
	}
	known := err == nil
	if len(password) > MaxPassword {
		known, password = false, ""
	}
	same, err := s.verify(ctx, stored, delivery.Secret(password))
	if err != nil {
		return 0, err
	}
	if !known || !same {
		return 0, fmt.Errorf("sign in: %w", delivery.ErrNotFound)
	}
	return id, nil
}

// SetPassword gives a person another password and signs them out everywhere.
func (s *Store) SetPassword(ctx context.Context, userID int64, password delivery.Secret) error {
	if len(password) < MinPassword || len(password) > MaxPassword {
		return passwordRule
	}
	hash, err := s.hash(ctx, password)
	if err != nil {
		return err
	}
	return pg.InTx(ctx, s.db, func(tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(ctx, `UPDATE people SET password_hash = $2 WHERE user_id = $1`, userID, hash); err != nil {
			return fmt.Errorf("set the password of person %d: %w", userID, err)
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM sessions WHERE user_id = $1`, userID); err != nil {
			return fmt.Errorf("sign person %d out: %w", userID, err)
		}
		return nil
	})
}

// The cost of a password hash, stored with each (argon2id, PHC string).
const (
	argonMemory = 19456 // KiB
	argonTime   = 2
	argonLanes  = 1
	argonKey    = 32
)

// dummyHash is what an unknown person's password is compared with: no password
// has it.
var dummyHash = encodeHash(make([]byte, 16), make([]byte, argonKey))

func encodeHash(salt, key []byte) string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonLanes,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(key))
}

func (s *Store) hash(ctx context.Context, password delivery.Secret) (string, error) {
	if err := s.takeTurn(ctx); err != nil {
		return "", err
	}
	defer func() { <-s.hashing }()
	salt := make([]byte, 16)
	rand.Read(salt) // never fails
	return encodeHash(salt, argon2.IDKey([]byte(password), salt, argonTime, argonMemory, argonLanes, argonKey)), nil
}

func (s *Store) verify(ctx context.Context, stored string, password delivery.Secret) (bool, error) {
	var version, memory, rounds, lanes int
	var salt64, key64 string
	parts := strings.Split(stored, "$")
	if len(parts) == 6 {
		salt64, key64 = parts[4], parts[5]
		if _, err := fmt.Sscanf(parts[2]+" "+parts[3], "v=%d m=%d,t=%d,p=%d", &version, &memory, &rounds, &lanes); err != nil {
			return false, errors.New("a stored password hash can't be read")
		}
	}
	salt, err1 := base64.RawStdEncoding.DecodeString(salt64)
	key, err2 := base64.RawStdEncoding.DecodeString(key64)
	if err := errors.Join(err1, err2); err != nil || len(key) == 0 || version != argon2.Version {
		return false, errors.New("a stored password hash can't be read")
	}
	if err := s.takeTurn(ctx); err != nil {
		return false, err
	}
	defer func() { <-s.hashing }()
	got := argon2.IDKey([]byte(password), salt, uint32(rounds), uint32(memory), uint8(lanes), uint32(len(key)))
	return subtle.ConstantTimeCompare(got, key) == 1, nil
}

func (s *Store) takeTurn(ctx context.Context) error {
	select {
	case s.hashing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return pg.Mark(ctx.Err())
	}
}
