package bots

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/pg"
)

// AddKey makes an intake key and returns it this once (I-01).
func (s *Store) AddKey(ctx context.Context, name string) (delivery.Secret, error) {
	name = strings.TrimSpace(name)
	if l := utf8.RuneCountInString(name); l == 0 || l > 128 || !utf8.ValidString(name) || delivery.HasControl(name) {
		return "", &delivery.Invalid{Field: "name", Rule: "must be 1 to 128 characters without control characters"}
	}
	key := delivery.NewSecret(delivery.IntakeKeyPrefix)
	_, err := s.db.ExecContext(ctx, `INSERT INTO intake_keys (key_hash, name, created_at) VALUES ($1, $2, $3)`, key.Hash(), name, s.clock.Now())
	if err != nil {
		return "", pg.Mark(fmt.Errorf("add an intake key: %w", err))
	}
	return key, nil
}

// RemoveKeys takes back the intake keys with that name and returns how many
// there were; delivery.ErrNotFound when there was none.
func (s *Store) RemoveKeys(ctx context.Context, name string) (int64, error) {
	res, err := s.db.ExecContext(ctx, `DELETE FROM intake_keys WHERE name = $1`, strings.TrimSpace(name))
	if err != nil {
		return 0, pg.Mark(fmt.Errorf("remove intake keys: %w", err))
	}
	n, err := res.RowsAffected()
	if err == nil && n == 0 {
		err = fmt.Errorf("intake key %q: %w", name, delivery.ErrNotFound)
	}
	return n, err
}

// CheckKey returns nil for an intake key, delivery.ErrNotFound for anything else.
func (s *Store) CheckKey(ctx context.Context, key delivery.Secret) error {
	var one int
	return found(s.db.GetContext(ctx, &one, `SELECT 1 FROM intake_keys WHERE key_hash = $1`, key.Hash()), "intake key")
}

// ClockShift returns how far the test clock runs ahead (G-05).
func ClockShift(ctx context.Context, db *sqlx.DB) (time.Duration, error) {
	var us int64
	if err := db.GetContext(ctx, &us, `SELECT clock_shift_us FROM platform`); err != nil {
		return 0, pg.Mark(fmt.Errorf("read the clock's shift: %w", err))
	}
	return time.Duration(us) * time.Microsecond, nil
}

// AdvanceClock moves the test clock of all replicas ahead and returns the new
// shift. A *delivery.Invalid: d is negative, or takes the clock past what it can tell.
func AdvanceClock(ctx context.Context, db *sqlx.DB, d time.Duration) (time.Duration, error) {
	shift, err := ClockShift(ctx, db)
	if err != nil {
		return 0, err
	}
	if d < 0 || d > math.MaxInt64/4-shift {
		return 0, &delivery.Invalid{Field: "seconds", Rule: "must be 0 or more and keep the clock's lead under 70 years"}
	}
	var us int64
	err = db.GetContext(ctx, &us, `UPDATE platform SET clock_shift_us = clock_shift_us + $1 RETURNING clock_shift_us`, d.Microseconds())
	if err != nil {
		return 0, pg.Mark(fmt.Errorf("advance the clock: %w", err))
	}
	return time.Duration(us) * time.Microsecond, nil
}

// Ping tells whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	var one int
	if err := s.db.GetContext(ctx, &one, `SELECT 1`); err != nil {
		return pg.Mark(errors.Join(errors.New("ping the database"), err))
	}
	return nil
}

// Maintenance is what the platform says about itself.
type Maintenance struct {
	On     bool
	Text   string    // what people are told, in English
	TextRU string    // in Russian; "": Text serves both
	Since  time.Time // zero while it isn't on
}

// Maintenance tells whether the platform is in maintenance, and what it says.
func (s *Store) Maintenance(ctx context.Context) (Maintenance, error) {
	var m Maintenance
	var since pg.Time
	err := s.db.QueryRowContext(ctx, `SELECT maintenance, maintenance_en, maintenance_ru, maintenance_since FROM platform`).
		Scan(&m.On, &m.Text, &m.TextRU, &since)
	if err != nil {
		return Maintenance{}, pg.Mark(fmt.Errorf("read the maintenance: %w", err))
	}
	if m.On {
		m.Since = since.Time
	}
	return m, nil
}
