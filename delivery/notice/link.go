package notice

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/audit"
	"mybots/delivery/pg"
)

// CodeTime is how long a linking code holds.
const CodeTime = 10 * time.Minute

// codeLength is in letters of 5 bits: 60 bits, which nobody guesses in CodeTime.
const codeLength = 12

// ErrOff: there is no way to MAX here.
var ErrOff = errors.New("MAX isn't set up")

// Actor is who links: a person, with the request that the audit log names.
type Actor struct {
	UserID             int64
	RequestID, Address string
}

// NewCode makes the code that the person sends to our MAX bot, to link their
// account there (N-07). It replaces an earlier one, holds once, for CodeTime, and is
// kept as its SHA-256. ErrOff: there is no way to MAX.
func (s *Store) NewCode(ctx context.Context, userID int64) (delivery.Secret, error) {
	if !s.max {
		return "", ErrOff
	}
	code := rand.Text()[:codeLength]
	_, err := s.db.ExecContext(ctx, `
INSERT INTO max_codes (user_id, code_hash, expires_at) VALUES ($1, $2, $3)
ON CONFLICT (user_id) DO UPDATE SET code_hash = excluded.code_hash, expires_at = excluded.expires_at`, userID, codeHash(code), s.clock.Now().Add(CodeTime))
	if err != nil {
		return "", pg.Mark(fmt.Errorf("make a linking code for person %d: %w", userID, err))
	}
	return delivery.Secret(code[:4] + "-" + code[4:8] + "-" + code[8:]), nil
}

// codeHash is of the code without what people add to it.
func codeHash(code string) []byte {
	code = strings.ToUpper(strings.NewReplacer("-", "", " ", "", "\n", "", "\r", "", "\t", "").Replace(code))
	sum := sha256.Sum256([]byte(code))
	return sum[:]
}

// maxCodeText is how long a message may be that could be a code, in bytes.
const maxCodeText = 64

// Link takes what somebody wrote to our MAX bot. If it is a code that holds, the
// account is the person's from then on, the code is used up, and Link tells whose
// it is. delivery.ErrNotFound: it is no such code.
func (s *Store) Link(ctx context.Context, maxUserID int64, text string) (userID int64, err error) {
	notFound := fmt.Errorf("a linking code: %w", delivery.ErrNotFound)
	if !s.max || len(text) > maxCodeText || maxUserID <= 0 {
		return 0, notFound
	}
	err = pg.InTx(ctx, s.db, func(tx *sqlx.Tx) error {
		var code struct {
			UserID    int64     `db:"user_id"`
			ExpiresAt time.Time `db:"expires_at"`
		}
		err := tx.GetContext(ctx, &code, `DELETE FROM max_codes WHERE code_hash = $1 RETURNING user_id, expires_at`, codeHash(text))
		if errors.Is(err, sql.ErrNoRows) {
			return notFound
		}
		if err != nil {
			return fmt.Errorf("look for a linking code: %w", err)
		}
		now := s.clock.Now()
		if !now.Before(code.ExpiresAt) {
			return notFound // the row stays: it is refused again until another code replaces it
		}
		userID = code.UserID
		_, err = tx.ExecContext(ctx, `
INSERT INTO max_links (user_id, max_user_id, linked_at) VALUES ($1, $2, $3)
ON CONFLICT (user_id) DO UPDATE SET max_user_id = excluded.max_user_id, linked_at = excluded.linked_at`, userID, maxUserID, now)
		if err != nil {
			return fmt.Errorf("link person %d: %w", userID, err)
		}
		return audit.Write(ctx, tx, audit.Entry{At: now, UserID: userID, Action: "max_link"})
	})
	return userID, err
}

// LinkedSince tells since when the person's account at MAX is linked; a zero time:
// it isn't.
func (s *Store) LinkedSince(ctx context.Context, userID int64) (time.Time, error) {
	var list []time.Time
	if err := s.db.SelectContext(ctx, &list, `SELECT linked_at FROM max_links WHERE user_id = $1`, userID); err != nil {
		return time.Time{}, pg.Mark(fmt.Errorf("MAX account of person %d: %w", userID, err))
	}
	if len(list) == 0 {
		return time.Time{}, nil
	}
	return list[0].UTC(), nil
}

// Unlink forgets the person's account at MAX and any code: nothing more goes
// there. Twice is harmless.
func (s *Store) Unlink(ctx context.Context, by Actor) error {
	return pg.InTx(ctx, s.db, func(tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM max_codes WHERE user_id = $1`, by.UserID); err != nil {
			return fmt.Errorf("forget the code of person %d: %w", by.UserID, err)
		}
		done, err := tx.ExecContext(ctx, `DELETE FROM max_links WHERE user_id = $1`, by.UserID)
		if err != nil {
			return fmt.Errorf("unlink person %d: %w", by.UserID, err)
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			return err
		}
		return audit.Write(ctx, tx, audit.Entry{At: s.clock.Now(), UserID: by.UserID, Action: "max_unlink", RequestID: by.RequestID, Address: by.Address})
	})
}
