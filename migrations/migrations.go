// Package migrations holds the database schema as numbered SQL files and brings a database up to
// date with them. Files go forward only; a file that was once applied never changes.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"strconv"
	"strings"

	"github.com/pressly/goose/v3"
)

//go:embed *.sql
var files embed.FS

// versionTable is where goose notes which files were applied.
const versionTable = "goose_db_version"

// Apply brings the schema of db up to date with the embedded files and logs each file it applied
// (G-02). Any number of replicas may call it at the same moment: one does the work under a session
// advisory lock, the others wait for it, five minutes at most. A schema that is newer than this
// program is left as it is and is no error, so a former release can start beside a new one.
//
// The error is that of the database or of the file that could not be applied; each file runs in a
// transaction of its own, so the files before it stay applied.
func Apply(ctx context.Context, db *sql.DB, log *slog.Logger) error {
	return apply(ctx, db, files, log)
}

// Pending tells whether an embedded file is not applied yet, for /readyz. It only reads. Versions
// that this program does not know are no concern of it.
func Pending(ctx context.Context, db *sql.DB) (bool, error) {
	return pending(ctx, db, files)
}

// Files returns the embedded migration files, for those who need to tell one schema from another.
func Files() fs.FS { return files }

func apply(ctx context.Context, db *sql.DB, fsys fs.FS, log *slog.Logger) error {
	locker, err := newLocker()
	if err != nil {
		return fmt.Errorf("migrations: lock: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, fsys,
		goose.WithSessionLocker(locker),
		goose.WithDisableGlobalRegistry(true),
		// What was applied is logged below; goose's own words would go to its standard logger.
		goose.WithSlog(slog.New(slog.DiscardHandler)))
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	done, err := provider.Up(ctx)
	var partial *goose.PartialError
	if errors.As(err, &partial) {
		done = partial.Applied
	}
	for _, r := range done {
		log.InfoContext(ctx, "migration applied", "file", path.Base(r.Source.Path),
			"version", r.Source.Version, "took", r.Duration)
	}
	switch {
	case err != nil && partial != nil && partial.Failed != nil:
		return fmt.Errorf("migrations: apply %s: %w", path.Base(partial.Failed.Source.Path), partial.Err)
	case err != nil:
		return fmt.Errorf("migrations: %w", err)
	}
	return nil
}

// Zero rows: the schema search path has no such table, nothing was ever applied.
const versionTableSQL = `SELECT 1 WHERE to_regclass('` + versionTable + `') IS NOT NULL`

const appliedSQL = `SELECT version_id FROM ` + versionTable + ` WHERE is_applied`

func pending(ctx context.Context, db *sql.DB, fsys fs.FS) (bool, error) {
	want, err := versions(fsys)
	if err != nil {
		return false, err
	}
	var one int
	switch err := db.QueryRowContext(ctx, versionTableSQL).Scan(&one); {
	case errors.Is(err, sql.ErrNoRows):
		return len(want) > 0, nil
	case err != nil:
		return false, fmt.Errorf("migrations: look for the version table: %w", err)
	}
	rows, err := db.QueryContext(ctx, appliedSQL)
	if err != nil {
		return false, fmt.Errorf("migrations: read versions: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var v int64
		if err := rows.Scan(&v); err != nil {
			return false, fmt.Errorf("migrations: read versions: %w", err)
		}
		delete(want, v)
	}
	if err := rows.Err(); err != nil {
		return false, fmt.Errorf("migrations: read versions: %w", err)
	}
	return len(want) > 0, nil
}

// versions returns the numbers in front of the names of the SQL files.
func versions(fsys fs.FS) (map[int64]bool, error) {
	names, err := fs.Glob(fsys, "*.sql")
	if err != nil {
		return nil, fmt.Errorf("migrations: list files: %w", err)
	}
	out := make(map[int64]bool, len(names))
	for _, name := range names {
		number, _, _ := strings.Cut(name, "_")
		v, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("migrations: %s has no number in front: %w", name, err)
		}
		out[v] = true
	}
	return out, nil
}
