package migrations

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/lib/pq"

	"mybots/migrations/localpg"
)

// testURL is a server for this package's tests, which cannot use dbtest: that imports this package.
var testURL = sync.OnceValues(func() (string, error) {
	if u := os.Getenv("TEST_DATABASE_URL"); u != "" {
		return u, nil
	}
	dir, err := os.MkdirTemp("", "mig")
	if err != nil {
		return "", err
	}
	atEnd = append(atEnd, func() error { return os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		return "", err
	}
	s, err := localpg.Start(context.Background(), localpg.Config{
		Dir: dir, Params: map[string]string{"fsync": "off", "max_connections": "300"}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return "", err
	}
	atEnd = append(atEnd, func() error { return s.Stop(context.Background()) })
	return s.URL(), nil
})

var atEnd []func() error

func TestMain(m *testing.M) {
	code := m.Run()
	for i := len(atEnd) - 1; i >= 0; i-- {
		if err := atEnd[i](); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// schema returns a way to connect to a schema of the test's own, empty, as if it were a database.
func schema(t *testing.T) func() *sql.DB {
	t.Helper()
	url, err := testURL()
	if err != nil {
		t.Fatalf("no PostgreSQL for tests: %v", err)
	}
	name := "t_" + strings.ToLower(rand.Text())
	connect := func() *sql.DB {
		cfg, err := pq.NewConfig(url)
		if err != nil {
			t.Fatal(err)
		}
		cfg.BinaryParameters = true
		cfg.Runtime = map[string]string{"search_path": name}
		c, err := pq.NewConnectorConfig(cfg)
		if err != nil {
			t.Fatal(err)
		}
		db := sql.OpenDB(c)
		t.Cleanup(func() { db.Close() })
		return db
	}
	db := connect()
	if _, err := db.Exec(`CREATE SCHEMA ` + name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := db.Exec(`DROP SCHEMA ` + name + ` CASCADE`); err != nil {
			t.Error(err)
		}
	})
	return connect
}

func file(up string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte("-- +goose Up\n" + up + "\n")}
}

var (
	one   = fstest.MapFS{"0001_one.sql": file(`CREATE TABLE one (n int);`)}
	three = fstest.MapFS{
		"0001_one.sql":   file(`CREATE TABLE one (n int);`),
		"0002_two.sql":   file(`SELECT pg_sleep(0.1); CREATE TABLE two (n int);`),
		"0003_three.sql": file(`CREATE TABLE three (n int);`),
	}
	broken = fstest.MapFS{
		"0001_one.sql": file(`CREATE TABLE one (n int);`),
		"0002_two.sql": file("CREATE TABLE half (n int);\nCREATE TABLE nonsense (n no_such_type);"),
	}
)

func logTo(b *bytes.Buffer) *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }

func isPending(t *testing.T, db *sql.DB, fsys fs.FS) bool {
	t.Helper()
	p, err := pending(context.Background(), db, fsys)
	if err != nil {
		t.Fatalf("pending: %v", err)
	}
	return p
}

func tables(t *testing.T, db *sql.DB) string {
	t.Helper()
	var s string
	err := db.QueryRow(`SELECT coalesce(string_agg(tablename, ' ' ORDER BY tablename), '') FROM pg_tables
		WHERE schemaname = current_schema() AND tablename <> 'goose_db_version'`).Scan(&s)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestApply(t *testing.T) {
	t.Parallel()
	ctx := context.Background()

	t.Run("G-02 applies what is missing, logs it, and only once", func(t *testing.T) {
		t.Parallel()
		db := schema(t)()
		if !isPending(t, db, one) {
			t.Error("Pending = false on an empty schema, want true")
		}
		if got := tables(t, db); got != "" {
			t.Errorf("tables %q after Pending, want none: it only reads", got)
		}
		var log bytes.Buffer
		if err := apply(ctx, db, one, logTo(&log)); err != nil {
			t.Fatal(err)
		}
		if !isPending(t, db, three) {
			t.Error("Pending = false with two files to come, want true")
		}
		if err := apply(ctx, db, three, logTo(&log)); err != nil {
			t.Fatal(err)
		}
		if isPending(t, db, three) {
			t.Error("Pending = true after Apply, want false")
		}
		if err := apply(ctx, db, three, logTo(&log)); err != nil {
			t.Errorf("again: %v", err)
		}
		if got, want := tables(t, db), "one three two"; got != want {
			t.Errorf("tables %q, want %q", got, want)
		}
		for _, f := range []string{"0001_one.sql", "0002_two.sql", "0003_three.sql"} {
			if got := strings.Count(log.String(), "file="+f); got != 1 {
				t.Errorf("%s is logged %d times, want once:\n%s", f, got, log.String())
			}
		}
	})

	t.Run("a newer schema is left alone and is not pending", func(t *testing.T) {
		t.Parallel()
		db := schema(t)()
		var log bytes.Buffer
		if err := apply(ctx, db, three, logTo(&log)); err != nil {
			t.Fatal(err)
		}
		log.Reset()
		if err := apply(ctx, db, one, logTo(&log)); err != nil {
			t.Errorf("the former release: %v", err)
		}
		if isPending(t, db, one) {
			t.Error("Pending = true for the former release, want false")
		}
		if got, want := tables(t, db), "one three two"; got != want || log.Len() > 0 {
			t.Errorf("tables %q, want %q; log %q, want none", got, want, log.String())
		}
	})

	t.Run("a file that fails leaves nothing of itself, and those before it", func(t *testing.T) {
		t.Parallel()
		db := schema(t)()
		var log bytes.Buffer
		err := apply(ctx, db, broken, logTo(&log))
		var pe *pq.Error
		if !errors.As(err, &pe) || !strings.Contains(err.Error(), "0002_two.sql") {
			t.Fatalf("Apply = %v, want the database's error and the file's name", err)
		}
		if got, want := tables(t, db), "one"; got != want {
			t.Errorf("tables %q, want %q", got, want)
		}
		if !strings.Contains(log.String(), "0001_one.sql") || strings.Contains(log.String(), "0002_two.sql") {
			t.Errorf("the log should name the first file only:\n%s", log.String())
		}
		if !isPending(t, db, broken) {
			t.Error("Pending = false, want true")
		}
	})

	t.Run("G-02 many replicas at once", func(t *testing.T) {
		t.Parallel()
		connect := schema(t)
		const replicas = 8
		logs := make([]bytes.Buffer, replicas)
		errs := make([]error, replicas)
		var wg sync.WaitGroup
		for i := range replicas {
			db := connect()
			wg.Go(func() { errs[i] = apply(ctx, db, three, logTo(&logs[i])) }) // ends when the schema is there
		}
		wg.Wait()
		applied := 0
		for i := range replicas {
			if errs[i] != nil {
				t.Errorf("replica %d: %v", i, errs[i])
			}
			applied += strings.Count(logs[i].String(), "migration applied")
		}
		if applied != 3 {
			t.Errorf("%d files applied by all together, want 3", applied)
		}
	})

	t.Run("the files of this program", func(t *testing.T) {
		t.Parallel()
		db := schema(t)()
		var log bytes.Buffer
		if err := Apply(ctx, db, logTo(&log)); err != nil {
			t.Fatal(err)
		}
		p, err := Pending(ctx, db)
		if p || err != nil {
			t.Errorf("Pending = %v, %v, want false, nil", p, err)
		}
	})
}
