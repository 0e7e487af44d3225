//go:build unix

package localpg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// lockPatience is how long Start waits for a command that runs the server for a moment.
const lockPatience = 10 * time.Second

const shortLived = "for one command"

// holderPatience is how long who holds the lock has to write its name.
const holderPatience = 500 * time.Millisecond

// lockFile is held as long as its file is open. The kernel lets go when the process dies.
type lockFile struct{ f *os.File }

func (l *lockFile) release() error { return l.f.Close() }

// takeLock locks home/lock and writes into it who did. It returns ErrInUse if another process has it,
// unless that is a command that will be gone in a moment. Who has just taken the lock may not have
// written its name yet, so a holder is believed only when it is still the same a little later.
func (p place) takeLock(ctx context.Context, log *slog.Logger, role string) (*lockFile, error) {
	deadline, believed := time.Now().Add(lockPatience), time.Now().Add(holderPatience)
	for said := false; ; {
		l, holder, err := p.tryLock(role)
		if l != nil || !errors.Is(err, ErrInUse) {
			return l, err
		}
		brief := strings.HasSuffix(holder, shortLived)
		if role == shortLived || !brief && time.Now().After(believed) || time.Now().After(deadline) {
			return nil, err
		}
		if brief && !said {
			said = true
			log.InfoContext(ctx, "private PostgreSQL is run by a command, waiting for its end", "dir", p.dir, "holder", holder)
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

func (p place) tryLock(role string) (_ *lockFile, holder string, _ error) {
	path := filepath.Join(p.home, "lock")
	f, err := flock(path, syscall.LOCK_EX)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		if b, err := os.ReadFile(path); err == nil {
			holder = strings.TrimSpace(string(b))
		}
		return nil, holder, fmt.Errorf("%w: %s (process %s holds %s); stop it, or give this one another MYBOTS_DATA_DIR or a MYBOTS_DATABASE_URL",
			ErrInUse, p.dir, holder, path)
	}
	if err != nil {
		return nil, "", fmt.Errorf("lock the data directory %s: %w", p.dir, err)
	}
	who := strings.TrimSpace(strconv.Itoa(os.Getpid()) + " " + role)
	if err := errors.Join(f.Truncate(0), writeAt(f, who+"\n")); err != nil {
		return nil, "", errors.Join(fmt.Errorf("write %s: %w", path, err), f.Close())
	}
	return &lockFile{f}, "", nil
}

func writeAt(f *os.File, s string) error {
	_, err := f.WriteAt([]byte(s), 0)
	return err
}

// flock opens path and locks it without waiting. EWOULDBLOCK: somebody else has it.
func flock(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
