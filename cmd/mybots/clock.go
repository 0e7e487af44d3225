package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/bots"
)

// startClock returns the product's clock: the real one, or with the test clock
// that of the database (G-05).
func startClock(ctx context.Context, c config, db *sqlx.DB) (*delivery.ShiftedClock, error) {
	if !c.testClock {
		return delivery.NewClock(0), nil
	}
	shift, err := bots.ClockShift(ctx, db)
	if err != nil {
		return nil, err
	}
	return delivery.NewClock(shift), nil
}

// testClock moves the clock of all replicas by way of the database.
type testClock struct {
	*delivery.ShiftedClock
	db  *sqlx.DB
	log *slog.Logger
}

// Advance moves the clock ahead for good, here at once and elsewhere within a second.
func (t testClock) Advance(ctx context.Context, d time.Duration) (time.Time, error) {
	shift, err := bots.AdvanceClock(ctx, t.db, d)
	if err != nil {
		return time.Time{}, err
	}
	t.SetShift(shift)
	t.log.WarnContext(ctx, "TEST CLOCK moved ahead", "by", d, "shift", shift, "now", t.Now())
	return t.Now(), nil
}

// follow takes over what other replicas did to the clock, until ctx ends.
func (t testClock) follow(ctx context.Context) {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		look, cancel := context.WithTimeout(ctx, time.Second)
		shift, err := bots.ClockShift(look, t.db)
		cancel()
		if err != nil {
			if ctx.Err() == nil {
				t.log.WarnContext(ctx, "the test clock can't be read", "err", err)
			}
			continue
		}
		t.SetShift(shift)
	}
}
