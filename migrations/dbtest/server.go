package dbtest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"mybots/migrations"
	"mybots/migrations/localpg"
)

// server is what all tests of a process share.
type server struct {
	url      string
	admin    *sqlx.DB // on a database that no test touches
	template string

	private  *localpg.Server // nil: somebody else's
	base     string          // the private server's folder
	watchdog io.Closer       // kept open as long as the process lives
}

// shared returns the server, the same for all tests of the process.
var shared = sync.OnceValues(func() (*server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	s := &server{url: lookup()}
	if s.url == "" {
		if err := s.startPrivate(ctx); err != nil {
			return nil, err
		}
	}
	admin := s.url
	if s.private != nil {
		admin = withParams(s.url, map[string]string{"dbname": "postgres"})
	}
	var err error
	if s.admin, err = sqlx.Open("postgres", admin); err != nil {
		return nil, err
	}
	s.admin.SetMaxOpenConns(4)
	s.admin.SetMaxIdleConns(4)
	return s, s.makeTemplate(ctx)
})

// startPrivate starts a server that ends with this process.
func (s *server) startPrivate(ctx context.Context) error {
	removeOldKept()
	base, err := os.MkdirTemp(parentFolder(), "mybots-test-")
	if err != nil {
		return err
	}
	s.base = base
	if os.Geteuid() == 0 {
		if err := os.Chmod(base, 0o711); err != nil { // the server runs as another user
			return err
		}
	}
	s.private, err = localpg.Start(ctx, localpg.Config{
		Dir: base,
		Params: map[string]string{
			"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "autovacuum": "off",
			"max_connections": "300", "shared_buffers": "64MB", "max_wal_size": "128MB",
		},
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return errors.Join(err, os.RemoveAll(base))
	}
	s.url = s.private.URL()
	return s.startWatchdog()
}

// watchdogScript waits until nobody holds the other end of its input, then ends the server (which on
// Linux the kernel has told already) and removes the folders, unless a failed test wants them kept.
const watchdogScript = `cat >/dev/null
kill -INT "$1" 2>/dev/null
n=0
while [ -e "$2/postmaster.pid" ] && [ $n -lt 100 ]; do sleep 0.1; n=$((n+1)); done
[ -e "$3/keep" ] || rm -rf "$3" "$4"
`

func (s *server) startWatchdog() error {
	cmd := exec.Command("sh", "-c", watchdogScript, "sh",
		strconv.Itoa(s.private.PID()), s.private.Dir(), s.base, filepath.Dir(s.private.Dir()))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the tests; it must outlive them
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the watchdog: %w", err)
	}
	s.watchdog = in
	return nil
}

// keep sees to it that the database outlives the process and tells how to look into it.
func (s *server) keep(name string) string {
	if s.private == nil {
		return "on the server of " + EnvURL
	}
	if err := os.WriteFile(filepath.Join(s.base, "keep"), nil, 0o600); err != nil {
		return fmt.Sprintf("it will be lost: %v", err)
	}
	return fmt.Sprintf("in %[1]s for a day; to look into it run, as that folder's owner: "+
		"postgres -D %[1]s -c listen_addresses= -k %[1]s & psql -h %[1]s -U mybots %[2]s", s.private.Dir(), name)
}

// How much of what failed tests left is kept.
const (
	keptServers = 5
	keptFor     = 24 * time.Hour
)

// removeOldKept removes what former failed tests kept, but for the newest few. A server that still
// runs is another test process' own; what cannot be removed belongs to another user.
func removeOldKept() {
	marks, err := filepath.Glob(filepath.Join(parentFolder(), "mybots-test-*", "keep"))
	if err != nil {
		return
	}
	age := map[string]time.Duration{}
	for _, m := range marks {
		if st, err := os.Stat(m); err == nil {
			age[m] = time.Since(st.ModTime())
		}
	}
	slices.SortFunc(marks, func(a, b string) int { return cmp.Compare(age[a], age[b]) })
	for i, m := range marks {
		dir := filepath.Dir(m)
		if _, running := localpg.Find(dir); running || i < keptServers && age[m] < keptFor {
			continue
		}
		os.RemoveAll(dir)
	}
}

// templateLock is an advisory lock: one process makes the template, the others wait.
const templateLock = 6_207_001

// makeTemplate makes the migrated database that the tests' databases are copies of, if it is not there.
func (s *server) makeTemplate(ctx context.Context) (err error) {
	hash, err := filesHash()
	if err != nil {
		return err
	}
	s.template = "mybots_template_" + hash
	conn, err := s.admin.Connx(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close() // and the lock with the session, if unlocking fails
	if _, err := conn.ExecContext(ctx, `SELECT pg_advisory_lock($1)`, templateLock); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	defer func() {
		_, unlockErr := conn.ExecContext(ctx, `SELECT pg_advisory_unlock($1)`, templateLock)
		err = errors.Join(err, unlockErr)
	}()
	var there bool
	if err := conn.GetContext(ctx, &there, `SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = $1)`, s.template); err != nil || there {
		return err
	}
	making := s.template + "_making"
	for _, q := range []string{`DROP DATABASE IF EXISTS ` + pq.QuoteIdentifier(making) + ` WITH (FORCE)`, `CREATE DATABASE ` + pq.QuoteIdentifier(making)} {
		if _, err := conn.ExecContext(ctx, q); err != nil {
			return fmt.Errorf("%s: %w", q, err)
		}
	}
	if err := s.migrate(ctx, making); err != nil {
		return err
	}
	if _, err := conn.ExecContext(ctx, `ALTER DATABASE `+pq.QuoteIdentifier(making)+` RENAME TO `+pq.QuoteIdentifier(s.template)); err != nil {
		return fmt.Errorf("rename the template: %w", err)
	}
	return nil
}

func (s *server) migrate(ctx context.Context, database string) error {
	db, err := sqlx.Open("postgres", withParams(s.url, map[string]string{"dbname": database, "binary_parameters": "yes"}))
	if err != nil {
		return err
	}
	return errors.Join(migrations.Apply(ctx, db.DB, slog.New(slog.DiscardHandler)), db.Close())
}

// filesHash tells one set of migration files from another.
func filesHash() (string, error) {
	h := sha256.New()
	err := fs.WalkDir(migrations.Files(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(migrations.Files(), path)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(h, "%s %d\n%s", path, len(b), b)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read the migration files: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)[:6]), nil
}
