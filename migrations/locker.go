package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pressly/goose/v3/lock"
)

// lockPatience is how long a replica waits for another one that migrates.
const lockPatience = 5 * time.Minute

var errLockTimeout = errors.New("another process holds the migration lock")

// locker is goose's session lock, asked for several times a second at odd moments: with whole seconds,
// replicas that start together would come through one per second. It asks instead of waiting inside
// the database, because a waiting statement would in turn block CREATE INDEX CONCURRENTLY.
type locker struct{ lock.SessionLocker }

func newLocker() (locker, error) {
	l, err := lock.NewPostgresSessionLocker(lock.WithLockID(lock.DefaultLockID))
	return locker{l}, err
}

// One row: did we get it?
const tryLockSQL = `SELECT pg_try_advisory_lock($1)`

func (l locker) SessionLock(ctx context.Context, conn *sql.Conn) error {
	ctx, cancel := context.WithTimeoutCause(ctx, lockPatience, errLockTimeout)
	defer cancel()
	for {
		var got bool
		if err := conn.QueryRowContext(ctx, tryLockSQL, lock.DefaultLockID).Scan(&got); err != nil {
			return fmt.Errorf("take the migration lock: %w", err)
		}
		if got {
			return nil
		}
		t := time.NewTimer(50*time.Millisecond + rand.N(100*time.Millisecond))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return fmt.Errorf("take the migration lock: %w", context.Cause(ctx))
		}
	}
}
