// Package pg opens the database and holds what every room with SQL needs of
// it: the pool, transactions, the word for «can't be reached» and arrays in
// PostgreSQL's binary format.
package pg

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"mybots/delivery"
)

// silence is how long the server may keep a connection waiting for an answer
// before it counts as unreachable: a frozen server must not hang a call.
const silence = 8 * time.Second

// lockTime is how long a statement waits for a lock, where it sets no shorter time
// itself. It is below silence: a wait that only this side gave up would go on in
// the server, with all that its transaction had locked, for as long as somebody
// holds the lock.
const lockTime = 5 * time.Second

// Open returns a pool of at most conns connections to the database at address,
// a postgres:// address or key=value pairs. It dials nothing yet.
func Open(address string, conns int) (*sqlx.DB, error) {
	dsn, err := withParameters(address)
	if err != nil {
		return nil, err
	}
	connector, err := pq.NewConnector(dsn)
	if err != nil {
		return nil, errors.New("the database's address can't be understood") // the reader's error may hold the password
	}
	connector.Dialer(dialer{})
	db := sqlx.NewDb(sql.OpenDB(marking{connector}), "postgres")
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}

// marking marks what goes wrong while a connection is made: whatever it is, a
// changed password, a database that lets nobody in, the database can't be
// reached now.
type marking struct{ *pq.Connector }

// Connect implements driver.Connector.
func (m marking) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := m.Connector.Connect(ctx)
	if err != nil && !errors.Is(err, driver.ErrBadConn) { // that one makes the pool try again
		return nil, fmt.Errorf("%w: connect: %w", delivery.ErrUnavailable, err)
	}
	return c, err
}

// withParameters adds what every connection has, where the address doesn't say
// otherwise: binary_parameters=yes, which saves a trip per statement, and
// lock_timeout, in milliseconds.
func withParameters(address string) (string, error) {
	wanted := [][2]string{{"binary_parameters", "yes"}, {"lock_timeout", strconv.FormatInt(lockTime.Milliseconds(), 10)}}
	wanted = slices.DeleteFunc(wanted, func(p [2]string) bool { return strings.Contains(address, p[0]+"=") })
	if !strings.HasPrefix(address, "postgres://") && !strings.HasPrefix(address, "postgresql://") {
		for _, p := range wanted {
			address += " " + p[0] + "=" + p[1]
		}
		return address, nil
	}
	u, err := url.Parse(address)
	if err != nil {
		// The parser's error holds the address and with it the password.
		return "", errors.New("the database's address is no valid postgres:// address")
	}
	q := u.Query()
	for _, p := range wanted {
		q.Set(p[0], p[1])
	}
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// dialer makes connections that give up on a silent server.
type dialer struct{ net.Dialer }

func (d dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

func (d dialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return d.DialContext(ctx, network, address)
}

func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	c, err := d.Dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return conn{c}, nil
}

type conn struct{ net.Conn }

func (c conn) Read(b []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(silence)); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

func (c conn) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(silence)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// InTx runs f in a transaction and commits it. When f or the commit fails, the
// error comes back, marked delivery.ErrUnavailable where the database couldn't
// be reached; then the commit may have happened all the same.
func InTx(ctx context.Context, db *sqlx.DB, f func(*sqlx.Tx) error) error {
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return Mark(err)
	}
	if err := f(tx); err != nil {
		// What ended the transaction is the error that matters; a failed
		// rollback means that the connection is gone, and the transaction with it.
		_ = tx.Rollback()
		return Mark(err)
	}
	return Mark(tx.Commit())
}

// Mark wraps err with delivery.ErrUnavailable when it means that the database
// can't be reached or can't serve now, and returns any other error as it is.
func Mark(err error) error {
	if err == nil || errors.Is(err, delivery.ErrUnavailable) || !unreachable(err) {
		return err
	}
	return fmt.Errorf("%w: %w", delivery.ErrUnavailable, err)
}

func unreachable(err error) bool {
	var netErr net.Error
	if errors.As(err, &netErr) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, sql.ErrTxDone) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return true
	}
	var opErr *net.OpError
	if errors.As(err, &opErr) {
		return true
	}
	state := State(err)
	if len(state) != 5 {
		return false
	}
	switch state[:2] {
	case "08", // connection exception
		"53", // insufficient resources
		"57", // operator intervention: shutdown, starting up, cancelled
		"58": // system error
		return true
	}
	switch state {
	case "25006", // read only: a standby took over
		"40001", "40P01", // undone in favour of another transaction
		"55P03": // somebody else holds what it needs for long
		return true
	}
	return false
}

// State returns the SQLSTATE that the server gave err, "" if it gave none.
func State(err error) string {
	var e *pq.Error
	if errors.As(err, &e) {
		return string(e.Code)
	}
	return ""
}

// The SQLSTATEs that rooms ask for.
const (
	UniqueViolation  = "23505"
	CheckViolation   = "23514" // also: no partition takes the row
	LockNotAvailable = "55P03" // lock_timeout
)
