//go:build unix

package localpg

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRefusals(t *testing.T) {
	t.Parallel()

	t.Run("G-02 a second server on the directory, a server that does not start", func(t *testing.T) {
		t.Parallel()
		cfg, _ := made(t)
		s := mustStart(t, cfg)
		_, err := Start(t.Context(), cfg)
		if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), cfg.Dir) {
			t.Errorf("Start = %v, want ErrInUse and the name %s", err, cfg.Dir)
		}
		put(t, s.URL()) // the first is unharmed
		stop(t, s)

		bad := cfg
		bad.Params = map[string]string{"fsync": "off", "work_mem": "nonsense"}
		if _, err := Start(t.Context(), bad); err == nil || !strings.Contains(err.Error(), `invalid value for parameter "work_mem"`) {
			t.Errorf("Start with a bad setting = %v, want PostgreSQL's words", err)
		}
		again := mustStart(t, cfg) // a start that failed holds nothing
		kept(t, again.URL())
	})

	t.Run("G-02 no binaries", func(t *testing.T) {
		t.Parallel()
		cfg, _ := config(t)
		cfg.BinDir = workDir(t)
		_, err := Start(t.Context(), cfg)
		if !errors.Is(err, ErrNoBinaries) {
			t.Fatalf("Start = %v, want ErrNoBinaries", err)
		}
		for _, want := range []string{"apt-get install postgresql", "dnf install", "apk add", "brew install", "MYBOTS_DATABASE_URL", cfg.BinDir} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not in: %v", want, err)
			}
		}
	})

	t.Run("G-02 a cluster of another version, and nothing is wiped", func(t *testing.T) {
		t.Parallel()
		cfg, _ := made(t)
		s := mustStart(t, cfg)
		put(t, s.URL())
		stop(t, s)
		file := filepath.Join(s.Dir(), "PG_VERSION")
		was, err := os.ReadFile(file)
		if err := errors.Join(err, os.WriteFile(file, []byte("9.1\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
		_, err = Start(t.Context(), cfg)
		if !errors.Is(err, ErrNoBinaries) || !strings.Contains(err.Error(), "made by PostgreSQL 9.1") || !strings.Contains(err.Error(), s.p.bin.major) {
			t.Errorf("Start = %v, want ErrNoBinaries, 9.1 and what is installed", err)
		}
		if err := os.WriteFile(file, was, 0o600); err != nil {
			t.Fatal(err)
		}
		again := mustStart(t, cfg)
		kept(t, again.URL())
	})

	t.Run("G-02 files that are no cluster, and nothing is wiped", func(t *testing.T) {
		t.Parallel()
		cfg, _ := config(t)
		file := filepath.Join(cfg.Dir, "pgdata", "precious")
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.Chmod(cfg.Dir, 0o755), os.WriteFile(file, []byte("x"), 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, err := Start(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "no whole cluster") {
			t.Errorf("Start = %v, want it to refuse", err)
		}
		if _, err := os.Stat(file); err != nil {
			t.Error(err)
		}
	})

	t.Run("a cancelled start leaves nothing running", func(t *testing.T) {
		t.Parallel()
		cfg, _ := config(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if s, err := Start(ctx, cfg); err == nil {
			stop(t, s)
			t.Fatal("Start = nil, want an error")
		} else if !errors.Is(err, context.Canceled) {
			t.Errorf("Start = %v, want it to say that it was cancelled", err)
		}
		if _, err := os.Stat(cfg.fallback); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v, want nothing there", cfg.fallback, err)
		}
		if l, _, err := (place{dir: cfg.Dir, home: cfg.Dir}).tryLock(""); err != nil {
			t.Errorf("the directory is still locked: %v", err)
		} else if err := l.release(); err != nil {
			t.Error(err)
		}
	})
}
