package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/delivery/pg"
	"mybots/migrations"
	"mybots/migrations/localpg"
)

// database is the open database and what must be done when it isn't needed any more.
type database struct {
	*sqlx.DB
	url     string
	lost    <-chan struct{} // closed when its own server can't be kept running; nil for another's
	release func() error
}

// openForServer opens the database that the settings name, or runs one of its
// own and keeps it running (G-02), and brings the schema up to date.
func openForServer(ctx context.Context, c config, log *slog.Logger) (*database, error) {
	if c.databaseURL != "" {
		log.InfoContext(ctx, "using the database of MYBOTS_DATABASE_URL")
		return open(ctx, c, log, string(c.databaseURL), nil, func() error { return nil })
	}
	cfg := localpg.Config{Dir: c.dataDir, Log: log}
	server, err := localpg.Start(ctx, cfg)
	if err != nil {
		return nil, err
	}
	k := &keeper{cfg: cfg, log: log, server: server, lost: make(chan struct{})}
	k.ctx, k.cancel = context.WithCancel(context.WithoutCancel(ctx))
	k.wg.Go(k.watch) // ends with k.stop
	log.InfoContext(ctx, "running its own PostgreSQL; set MYBOTS_DATABASE_URL to use another", "dir", server.Dir())
	return open(ctx, c, log, server.URL(), k.lost, k.stop)
}

// openForCommand opens the database for an operator's command, whether a server
// runs or not (G-08).
func openForCommand(ctx context.Context, c config, log *slog.Logger) (*database, error) {
	if c.databaseURL != "" {
		return open(ctx, c, log, string(c.databaseURL), nil, func() error { return nil })
	}
	url, release, err := localpg.Use(ctx, localpg.Config{Dir: c.dataDir, Log: log})
	if err != nil {
		return nil, err
	}
	return open(ctx, c, log, url, nil, release)
}

// openTime bounds how long a start waits for a database that isn't there yet.
const openTime = 60 * time.Second

func open(ctx context.Context, c config, log *slog.Logger, url string, lost <-chan struct{}, release func() error) (*database, error) {
	db, err := pg.Open(url, c.dbConns)
	if err != nil {
		return nil, errors.Join(err, release())
	}
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	err = migrations.Apply(ctx, db.DB, log)
	for errors.Is(pg.Mark(err), delivery.ErrUnavailable) && ctx.Err() == nil {
		log.WarnContext(ctx, "the database can't be reached yet; trying again", "err", err)
		select {
		case <-time.After(time.Second):
			err = migrations.Apply(ctx, db.DB, log)
		case <-ctx.Done():
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("bring the schema up to date: %w", err), db.Close(), release())
	}
	return &database{DB: db, url: url, lost: lost, release: release}, nil
}

// close closes the pool and stops the database's own server, if it is ours.
func (d *database) close() error {
	if err := d.DB.Close(); err != nil && !errors.Is(pg.Mark(err), delivery.ErrUnavailable) {
		return errors.Join(err, d.release())
	}
	return d.release() // saying goodbye on a connection that was dead already is no failure
}

// keeper runs the private PostgreSQL and starts it again when it ends by itself.
type keeper struct {
	cfg    localpg.Config
	log    *slog.Logger
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	server *localpg.Server // watch's own until wg is done
	lost   chan struct{}
}

// The pauses between tries to start it again.
const (
	firstPause   = 500 * time.Millisecond
	longestPause = 5 * time.Second
	calm         = time.Minute // so long it must have run for the pauses to begin anew
)

// watch starts the server again whenever it has ended, until it is told to stop.
// Only what no repetition can heal makes it give up.
func (k *keeper) watch() {
	pause, began := firstPause, time.Now()
	for {
		select {
		case <-k.server.Done():
		case <-k.ctx.Done():
			return
		}
		k.log.ErrorContext(k.ctx, "PostgreSQL has ended; starting it again", "dir", k.server.Dir())
		if time.Since(began) > calm {
			pause = firstPause
		}
		for {
			began = time.Now()
			server, err := localpg.Start(k.ctx, k.cfg)
			if err == nil {
				k.server = server
				break
			}
			if k.ctx.Err() != nil {
				return
			}
			k.log.ErrorContext(k.ctx, "PostgreSQL doesn't start again", "err", err, "next_try", pause)
			if errors.Is(err, localpg.ErrInUse) || errors.Is(err, localpg.ErrNoBinaries) {
				close(k.lost)
				return
			}
			select {
			case <-time.After(pause):
			case <-k.ctx.Done():
				return
			}
			pause = min(2*pause, longestPause)
		}
	}
}

func (k *keeper) stop() error {
	k.cancel()
	k.wg.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return k.server.Stop(ctx)
}

// secretKey returns the key that seals what is kept secret. With its own
// database the program makes one and keeps it beside the data.
func secretKey(c config) ([]byte, error) {
	if c.secretKey != nil {
		return c.secretKey, nil
	}
	if c.databaseURL != "" {
		return nil, errors.New("MYBOTS_SECRET_KEY is needed with MYBOTS_DATABASE_URL: 32 bytes as base64 or hex, the same for all replicas; `openssl rand -base64 32` makes one")
	}
	path := filepath.Join(c.dataDir, "secret.key")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		key := make([]byte, 32)
		rand.Read(key) // never fails
		text = []byte(base64.StdEncoding.EncodeToString(key))
		err = keepFile(path, text)
	}
	if err != nil {
		return nil, fmt.Errorf("keep the secret key: %w", err)
	}
	key, err := bots.ParseKey(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s %w", path, err)
	}
	return key, nil
}

// keepFile writes a file that only its owner may read, whole or not at all.
func keepFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already when all went well
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
