package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/pg"
	"mybots/delivery/queue"
	"mybots/delivery/wake"
	"mybots/migrations"
	"mybots/migrations/localpg"
)

// The pools of connections: the product's default, and the plain limit's.
const (
	productConns = 20
	plainConns   = 64
)

// site is all that a run needs: a folder, a PostgreSQL, the product's queue on
// it, bots, and the program to start.
type site struct {
	say     func(string, ...any)
	folder  string
	server  *localpg.Server
	version string   // of PostgreSQL
	notes   []string // what the reader should know
	binary  string   // of mybots
	files   int      // how many a process may open

	inspects bool // the server can count what is in its WAL

	db    *sqlx.DB // the queue's, as the product opens it
	plain *sqlx.DB // the plain limit's
	queue *queue.Queue
	stop  func() // ends the bell's carrier
	bots
}

// newSite makes the site; close removes it.
func newSite(ctx context.Context, p plan, say func(string, ...any)) (s *site, err error) {
	s = &site{say: say, binary: p.binary}
	made := s
	defer func() {
		if err != nil {
			err = errors.Join(err, made.close())
		}
	}()
	if s.files, err = raiseFiles(); err != nil {
		return nil, err
	}
	if s.folder, err = os.MkdirTemp(p.dir, "mybots-loadtest-"); err != nil {
		return nil, err
	}
	if os.Geteuid() == 0 {
		if err := os.Chmod(s.folder, 0o711); err != nil { // PostgreSQL runs as another user
			return nil, err
		}
	}
	if inMemory(s.folder) {
		s.notes = append(s.notes, "the database lies in memory, so commits cost nothing and no ratio means anything: use --dir")
	}
	if s.binary == "" {
		say("building mybots")
		s.binary = filepath.Join(s.folder, "mybots")
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", s.binary, "mybots/cmd/mybots")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build mybots: %w\n%s", err, out)
		}
	}
	say("starting PostgreSQL in %s", s.folder)
	s.server, err = localpg.Start(ctx, localpg.Config{Dir: filepath.Join(s.folder, "data"), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	pollers := 0
	for _, n := range p.polls {
		pollers += n
	}
	hooked := 0
	if p.hooks > 0 {
		hooked = hookSides * hookBots
	}
	return s, s.open(ctx, pollers, hooked)
}

// open brings the schema up to date, makes the bots and starts the queue.
func (s *site) open(ctx context.Context, pollers, hooked int) (err error) {
	if s.db, err = pg.Open(s.server.URL(), productConns); err != nil {
		return err
	}
	if s.plain, err = pg.Open(s.server.URL(), plainConns); err != nil {
		return err
	}
	if err := migrations.Apply(ctx, s.db.DB, slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	if err := s.db.GetContext(ctx, &s.version, `SHOW server_version`); err != nil {
		return err
	}
	for _, name := range []string{"fsync", "synchronous_commit"} {
		var value string
		if err := s.db.GetContext(ctx, &value, `SHOW `+name); err != nil {
			return err
		}
		if value != "on" {
			return fmt.Errorf("PostgreSQL runs with %s = %s", name, value)
		}
	}
	_, err = s.db.ExecContext(ctx, `CREATE EXTENSION IF NOT EXISTS pg_walinspect`)
	s.inspects = err == nil
	// The bell and its carrier as in the product: an append's cost has its NOTIFY in it.
	bell := wake.NewBell()
	ring := wake.NewReplicas(bell, s.db, s.server.URL(), slog.New(slog.DiscardHandler))
	s.queue = queue.New(s.db, delivery.NewClock(0), ring.Ring)
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { ring.Run(background, s.queue) }) // ends with background
	s.stop = func() {
		cancel()
		running.Wait()
	}
	if err := s.queue.MakeWeeks(ctx); err != nil {
		return err
	}
	s.say("making bots")
	if err := s.makeBots(ctx, pollers, hooked); err != nil {
		return err
	}
	if err := s.makePlain(ctx); err != nil {
		return err
	}
	return s.warmLog(ctx)
}

// warmLog writes so much WAL that a checkpoint leaves files of it to use again,
// as in a server that has run for a while. In a fresh one each new file is first
// filled with zeros, 16 MB at a time, and everybody waits for that.
func (s *site) warmLog(ctx context.Context) error {
	const megabytes = 600
	s.say("writing %d MB of WAL", megabytes)
	for range megabytes / 50 {
		if _, err := s.db.ExecContext(ctx, `SELECT pg_logical_emit_message(false, 'warm', repeat('x', 1 << 20)) FROM generate_series(1, 50)`); err != nil {
			return fmt.Errorf("write WAL: %w", err)
		}
	}
	if _, err := s.db.ExecContext(ctx, `CHECKPOINT`); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}

// stopQueue ends this process' use of the database. Calling it twice is harmless.
func (s *site) stopQueue() {
	if s.stop != nil {
		s.queue.Close()
		s.stop()
		s.stop = nil
	}
	for _, db := range []*sqlx.DB{s.plain, s.db} {
		if db != nil {
			db.SetMaxIdleConns(0) // the connections are the child's now
		}
	}
}

// empty takes all updates out of all queues, as if their bots had confirmed
// them. It runs between slices, outside of what is measured.
func (s *site) empty(ctx context.Context) error {
	_, err := s.db.ExecContext(ctx, `
TRUNCATE updates, plain_updates;
UPDATE queues SET confirmed = next_update_id, max_issued = next_update_id - 1, waiting = 0, waiting_bytes = 0 WHERE waiting > 0`)
	if err != nil {
		return fmt.Errorf("empty the queues: %w", err)
	}
	return nil
}

// close stops what runs and removes the folder.
func (s *site) close() error {
	s.stopQueue()
	var errs []error
	for _, db := range []*sqlx.DB{s.plain, s.db} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	if s.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		// The cluster may lie elsewhere, where its user can reach it.
		errs = append(errs, s.server.Stop(ctx), os.RemoveAll(filepath.Dir(s.server.Dir())))
	}
	if s.folder != "" {
		errs = append(errs, os.RemoveAll(s.folder))
	}
	return errors.Join(errs...)
}
