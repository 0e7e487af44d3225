package pg_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"mybots/delivery"
	"mybots/delivery/pg"
	"mybots/migrations/dbtest"
)

func TestArrays(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	at := time.Date(1999, 12, 31, 23, 59, 59, 999_999_000, time.UTC)
	tests := map[string]struct {
		kind string
		in   driver.Valuer
		want string
	}{
		"numbers":         {"bigint[]", pg.Int8s{1, -1, 1<<63 - 1}, "{1,-1,9223372036854775807}"},
		"none":            {"bigint[]", pg.Int8s{}, "{}"},
		"truths":          {"boolean[]", pg.Bools{true, false}, "{t,f}"},
		"texts":           {"text[]", pg.Texts{"", `a"b`, "я"}, `{"","a\"b",я}`},
		"bytes":           {"bytea[]", pg.Byteas{{0, 255}, {}}, `{"\\x00ff","\\x"}`},
		"times":           {"timestamptz[]", pg.Times{at}, `{"1999-12-31 23:59:59.999999+00"}`},
		"identifications": {"uuid[]", pg.UUIDs{{1, 2, 15: 3}}, "{01020000-0000-0000-0000-000000000003}"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got string
			err := pg.InTx(t.Context(), db, func(tx *sqlx.Tx) error {
				if _, err := tx.Exec(`SET LOCAL timezone = 'UTC'`); err != nil {
					return err
				}
				return tx.Get(&got, `SELECT $1::`+tt.kind+`::text`, tt.in)
			})
			if err != nil || got != tt.want {
				t.Errorf("got %s %v, want %s", got, err, tt.want)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err  error
		want bool
	}{
		"A-07 no connection":              {&net.OpError{Op: "dial", Err: errors.New("refused")}, true},
		"A-07 a connection that broke":    {driver.ErrBadConn, true},
		"A-07 the time is over":           {context.DeadlineExceeded, true},
		"A-07 the server shuts down":      {&pq.Error{Code: "57P01"}, true},
		"A-07 too many connections":       {&pq.Error{Code: "53300"}, true},
		"A-07 read only: a standby":       {&pq.Error{Code: "25006"}, true},
		"A-07 our own mistake isn't that": {&pq.Error{Code: "42601"}, false},
		"A-07 nor is a broken rule":       {&pq.Error{Code: "23505"}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := pg.Mark(fmt.Errorf("what was tried: %w", tt.err))
			if got := errors.Is(err, delivery.ErrUnavailable); got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("got unavailable %v of %v, want %v and the cause kept", got, err, tt.want)
			}
		})
	}
	t.Run("A-07 a server that accepts and says nothing", func(t *testing.T) {
		t.Parallel()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		db, err := pg.Open(fmt.Sprintf("postgres://nobody:secret@%s/none?sslmode=disable", l.Addr()), 1)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		if err := pg.Mark(db.PingContext(ctx)); !errors.Is(err, delivery.ErrUnavailable) {
			t.Errorf("got %v, want unavailable", err)
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("it took %v", took)
		}
	})
	t.Run("the address's password is in no error", func(t *testing.T) {
		t.Parallel()
		_, err := pg.Open("postgres://u:hunter2@[::1/x", 1)
		if err == nil || fmt.Sprint(err) != "the database's address is no valid postgres:// address" {
			t.Errorf("got %v", err)
		}
	})
}

// A wait for a lock ends in the server before this side gives the answer up:
// nothing goes on there with the locks of a transaction that nobody wants any more.
func TestLockTime(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t)
	db, err := pg.Open(url, 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.MustExec(`CREATE TABLE held (id integer PRIMARY KEY); INSERT INTO held VALUES (1), (2)`)
	foreign := db.MustBegin()
	foreign.MustExec(`SELECT FROM held WHERE id = 2 FOR UPDATE`)
	err = pg.InTx(t.Context(), db, func(tx *sqlx.Tx) error {
		tx.MustExec(`SELECT FROM held WHERE id = 1 FOR UPDATE`)
		_, err := tx.Exec(`SELECT FROM held WHERE id = 2 FOR UPDATE`)
		return err
	})
	if pg.State(err) != pg.LockNotAvailable || !errors.Is(err, delivery.ErrUnavailable) {
		t.Fatalf("A-07 got %v, want the server to end the wait", err)
	}
	// What the transaction had locked is free, while the foreign one goes on.
	if _, err := db.Exec(`SELECT FROM held WHERE id = 1 FOR UPDATE NOWAIT`); err != nil {
		t.Errorf("A-07 after the wait was given up: %v, want the first row free", err)
	}
	if err := foreign.Rollback(); err != nil {
		t.Fatal(err)
	}
}
