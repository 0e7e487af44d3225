//go:build unix

package localpg

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/lib/pq"
)

// cannotConnectNow is what a server says that starts, recovers or stops.
const cannotConnectNow = "57P03"

var errEnded = errors.New("the process ended")

// awaitReady waits until the server takes connections and makes the database.
func (s *Server) awaitReady(ctx context.Context) error {
	db, err := sql.Open("postgres", connection(s.socketDir, "postgres"))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	said := time.Now()
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, 250*time.Millisecond) {
		err := db.PingContext(ctx)
		if err == nil {
			return makeDatabase(ctx, db)
		}
		if !notYet(err) {
			return fmt.Errorf("connect: %w", err)
		}
		if time.Since(said) > 5*time.Second {
			said = time.Now()
			s.cfg.Log.InfoContext(ctx, "private PostgreSQL is recovering, still waiting", "dir", s.p.pgdata())
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-s.exited:
			t.Stop()
			return errEnded
		case <-ctx.Done():
			t.Stop()
			return fmt.Errorf("wait for the server: %w", ctx.Err())
		}
	}
}

// notYet tells whether a later try may succeed.
func notYet(err error) bool {
	var pe *pq.Error
	if errors.As(err, &pe) {
		return pe.Code == cannotConnectNow
	}
	for _, e := range []error{os.ErrNotExist, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, io.EOF, driver.ErrBadConn} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// One row: is the database there?
const hasDatabaseSQL = `SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = 'mybots')`

func makeDatabase(ctx context.Context, db *sql.DB) error {
	var there bool
	if err := db.QueryRowContext(ctx, hasDatabaseSQL).Scan(&there); err != nil {
		return fmt.Errorf("look for the database: %w", err)
	}
	if there {
		return nil
	}
	if _, err := db.ExecContext(ctx, `CREATE DATABASE mybots`); err != nil {
		return fmt.Errorf("create the database: %w", err)
	}
	return nil
}
