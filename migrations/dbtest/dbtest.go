// Package dbtest gives each test a database of its own on a real PostgreSQL, with the product's schema
// in it.
//
// A test calls Open (or URL, if it starts processes) and needs nothing else, no TestMain either:
//
//	func TestTake(t *testing.T) {
//		t.Parallel()
//		db := dbtest.Open(t)
//
// The server is that of TEST_DATABASE_URL if it is set (its user must be allowed to create
// databases). Otherwise the first test of a package starts a private one without fsync in a temporary
// folder, which takes about a second. It ends with the test process, however that ends, and a small
// watchdog then removes the folder.
//
// Databases are copies of a migrated template, whose name has a hash of the migration files in it. A
// database is dropped when its test succeeds. When a test fails, its database is kept and the test's
// log says where. Without a server a test fails; it is never skipped.
//
// Tests that stop or kill PostgreSQL run their own with package localpg.
package dbtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

// EnvURL is the variable that names a server to use for tests.
const EnvURL = "TEST_DATABASE_URL"

// poolSize is how many connections a test's pool opens at most.
const poolSize = 50

// setupTimeout bounds all that is done to make or drop one database.
const setupTimeout = 60 * time.Second

// Open returns a pool on a fresh, migrated database for this test alone.
func Open(t testing.TB) *sqlx.DB {
	t.Helper()
	dsn := URL(t)
	db, err := sqlx.Open("postgres", dsn)
	if err != nil {
		t.Fatalf("dbtest: open: %v", err)
	}
	db.SetMaxOpenConns(poolSize)
	db.SetMaxIdleConns(poolSize)
	t.Cleanup(func() { // runs before the database is dropped
		if err := db.Close(); err != nil {
			t.Errorf("dbtest: close: %v", err)
		}
	})
	return db
}

// URL returns the connection string of a fresh, migrated database for this test alone, with
// binary_parameters=yes in it. If TEST_DATABASE_URL is a URL or unset, so is the result.
func URL(t testing.TB) string {
	t.Helper()
	s, err := shared()
	if err != nil {
		t.Fatalf("dbtest: no PostgreSQL for tests (%s is the way to name one): %v", EnvURL, err)
	}
	name := databaseName(t.Name())
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	if _, err := s.admin.ExecContext(ctx, `CREATE DATABASE `+pq.QuoteIdentifier(name)+` TEMPLATE `+pq.QuoteIdentifier(s.template)); err != nil {
		t.Fatalf("dbtest: create database %s: %v", name, err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("dbtest: kept database %s: %s", name, s.keep(name))
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
		defer cancel()
		if _, err := s.admin.ExecContext(ctx, `DROP DATABASE `+pq.QuoteIdentifier(name)+` WITH (FORCE)`); err != nil {
			t.Errorf("dbtest: drop database %s: %v", name, err)
		}
	})
	return withParams(s.url, map[string]string{"dbname": name, "binary_parameters": "yes"})
}

var notInName = regexp.MustCompile(`[^a-z0-9]+`)

// databaseName makes a name of at most 63 bytes that tells the test and is used once.
func databaseName(test string) string {
	b := make([]byte, 5)
	rand.Read(b) // never fails
	test = strings.Trim(notInName.ReplaceAllString(strings.ToLower(test), "_"), "_")
	return fmt.Sprintf("mybots_test_%s_%.38s", hex.EncodeToString(b), test)
}

// withParams sets parameters of a connection string in either of its two notations.
func withParams(dsn string, params map[string]string) string {
	if !strings.Contains(dsn, "://") {
		for k, v := range params {
			dsn += " " + k + "=" + v // the last one counts; ours are plain words
		}
		return dsn
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return dsn // what opens it says what is wrong
	}
	q := u.Query()
	for k, v := range params {
		if k == "dbname" {
			u.Path = "/" + v
			q.Del("dbname")
			continue
		}
		q.Set(k, v)
	}
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20")
	return u.String()
}

// Backends of this database that wait for a lock, of whatever kind.
const blockedSQL = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`

// WaitBlocked returns when at least n connections to the test's database wait for a lock, and fails
// the test if that is not so within ten seconds. It is how a test builds a race: hold a row, start the
// rivals, wait until they are blocked, let go.
func WaitBlocked(t testing.TB, db *sqlx.DB, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	got := 0
	for {
		if err := db.GetContext(ctx, &got, blockedSQL); err != nil {
			t.Fatalf("dbtest: count blocked connections: %v (last count %d, want %d)", err, got, n)
		}
		if got >= n {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("dbtest: %d connections wait for a lock after 10 s, want %d", got, n)
		}
	}
}

// lookup is what the package reads from the environment.
func lookup() string { return os.Getenv(EnvURL) }
