//go:build unix

package localpg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// How long a server that lost its program gets to stop before it is stopped harder.
const (
	orphanFast  = 30 * time.Second
	orphanQuit  = 10 * time.Second
	orphanCheck = 20 * time.Millisecond
)

// clearLeftovers stops what still runs on the cluster after a program was killed, and removes the
// files by which PostgreSQL would believe that something does: it only asks whether a process with
// that number exists, and so falls for zombies and for numbers that were given out again. Where no
// process has the number the files stay: by them PostgreSQL finds the shared memory of the server
// that was killed, and frees it. The lock must be held: nobody else starts a server here.
func (p place) clearLeftovers(ctx context.Context, cfg Config, socketDir string) error {
	main := p.postmasterPID()
	pids, err := p.processes(main)
	if err != nil {
		return err
	}
	if len(pids) > 0 {
		cfg.Log.WarnContext(ctx, "private PostgreSQL of a killed program is still running, stopping it", "dir", p.pgdata(), "pids", pids)
		if err := p.stopOrphans(ctx, main); err != nil {
			return err
		}
	}
	if main > 0 && errors.Is(syscall.Kill(main, 0), syscall.ESRCH) {
		return nil
	}
	for _, f := range []string{
		filepath.Join(p.pgdata(), "postmaster.pid"),
		filepath.Join(socketDir, ".s.PGSQL.5432"),
		filepath.Join(socketDir, ".s.PGSQL.5432.lock"),
	} {
		if err := os.Remove(f); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove what a killed server left: %w", err)
		}
	}
	return nil
}

// stopOrphans sends, until no process of the cluster is left: SIGINT to the server, then SIGQUIT to
// all. Killing children whose server is gone loses nothing: what was committed is in the log.
func (p place) stopOrphans(ctx context.Context, main int) error {
	start, sent := time.Now(), syscall.Signal(0)
	for {
		pids, err := p.processes(main)
		if err != nil || len(pids) == 0 {
			return err
		}
		alive := false
		for _, pid := range pids {
			alive = alive || pid == main
		}
		want, waited := syscall.SIGINT, time.Since(start)
		switch {
		case waited > orphanFast+orphanQuit+orphanQuit:
			return fmt.Errorf("processes %v of the cluster in %s do not stop", pids, p.pgdata())
		case waited > orphanFast+orphanQuit, !alive && waited > orphanQuit:
			want = syscall.SIGKILL
		case waited > orphanFast, !alive:
			want = syscall.SIGQUIT
		}
		if want != sent {
			sent = want
			for _, pid := range pids {
				if want == syscall.SIGINT && pid != main {
					continue
				}
				if err := syscall.Kill(pid, want); err != nil && !errors.Is(err, syscall.ESRCH) {
					return fmt.Errorf("stop process %d of the cluster in %s: %w", pid, p.pgdata(), err)
				}
			}
		}
		if err := pause(ctx, orphanCheck); err != nil {
			return err
		}
	}
}

// postmasterPID returns the number that the last server noted, or 0.
func (p place) postmasterPID() int {
	st, err := readStatus(p.pgdata())
	if err != nil {
		return 0
	}
	return st.pid
}

// status is what a running server tells in postmaster.pid.
type status struct {
	pid       int
	socketDir string
	ready     bool
}

func readStatus(pgdata string) (status, error) {
	b, err := os.ReadFile(filepath.Join(pgdata, "postmaster.pid"))
	if err != nil {
		return status{}, err
	}
	lines := strings.Split(string(b), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil {
		return status{}, fmt.Errorf("postmaster.pid: %w", err)
	}
	st := status{pid: pid}
	if len(lines) > 4 {
		st.socketDir = lines[4]
	}
	if len(lines) > 7 {
		st.ready = strings.TrimSpace(lines[7]) == "ready"
	}
	return st, nil
}
