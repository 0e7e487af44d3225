//go:build unix

package localpg

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// findPatience is how long a running server gets to answer.
	findPatience = 2 * time.Second
	// usePatience is how long Use waits for the server of another process to come up.
	usePatience = 30 * time.Second
	// usersPatience is how long a command keeps its server for other commands that use it.
	usersPatience = time.Minute
)

// Find returns the connection string of the server that runs on the data directory dir, if one does
// and answers.
func Find(dir string) (string, bool) { return find(Config{Dir: dir}) }

func find(cfg Config) (string, bool) {
	dir, fallback, err := cfg.homes()
	if err != nil {
		return "", false
	}
	for _, home := range []string{dir, fallback} {
		st, err := readStatus(filepath.Join(home, "pgdata"))
		if err != nil || !st.ready || st.socketDir == "" {
			continue
		}
		u := connection(st.socketDir, "mybots")
		if answers(u) {
			return u, true
		}
	}
	return "", false
}

func answers(url string) bool {
	db, err := sql.Open("postgres", url)
	if err != nil {
		return false
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), findPatience)
	defer cancel()
	return db.PingContext(ctx) == nil
}

// Use gives a command the database for as long as it needs it (G-08): it attaches to the server that
// runs, and starts one if none does. release must be called; it stops what Use started, after other
// commands that attached to it are through. The errors are those of Start.
func Use(ctx context.Context, cfg Config) (url string, release func() error, err error) {
	deadline := time.Now().Add(usePatience)
	for {
		s, err := start(ctx, cfg, shortLived)
		if err == nil {
			return s.URL(), s.stopAfterUsers, nil
		}
		if !errors.Is(err, ErrInUse) {
			return "", nil, err
		}
		if url, release, ok := attach(cfg); ok {
			return url, release, nil
		}
		if time.Now().After(deadline) {
			return "", nil, fmt.Errorf("%w, and its server does not answer", err)
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil { // it is starting or stopping
			return "", nil, err
		}
	}
}

// attach notes, by a shared lock, that the other process' server is used, and finds it.
func attach(cfg Config) (url string, release func() error, ok bool) {
	dir, fallback, err := cfg.homes()
	if err != nil {
		return "", nil, false
	}
	home := dir
	if there, err := hasCluster(dir); err != nil || !there {
		home = fallback
	}
	f, err := flock(filepath.Join(home, "users"), syscall.LOCK_SH)
	if err != nil {
		return "", nil, false // its owner is about to stop it
	}
	if url, ok = find(cfg); !ok {
		f.Close() // nothing was written to it
		return "", nil, false
	}
	return url, f.Close, true
}

// stopAfterUsers stops the server of a command when no other command uses it.
func (s *Server) stopAfterUsers() error {
	ctx, cancel := context.WithTimeout(context.Background(), usersPatience)
	defer cancel()
	var users *os.File
	for said := false; ; {
		f, err := flock(filepath.Join(s.p.home, "users"), syscall.LOCK_EX)
		if err == nil {
			users = f
			break
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return errors.Join(fmt.Errorf("lock %s: %w", s.p.home, err), s.Stop(ctx))
		}
		if !said {
			said = true
			s.cfg.Log.Info("private PostgreSQL is used by another command, waiting for it before the stop", "dir", s.p.pgdata())
		}
		if pause(ctx, 50*time.Millisecond) != nil {
			s.cfg.Log.Warn("private PostgreSQL is stopped while another command uses it", "dir", s.p.pgdata())
			break
		}
	}
	stopCtx, cancelStop := context.WithTimeout(context.Background(), fastStop)
	defer cancelStop()
	err := s.Stop(stopCtx)
	if users != nil {
		err = errors.Join(err, users.Close())
	}
	return err
}
