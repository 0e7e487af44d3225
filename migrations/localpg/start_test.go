//go:build unix

package localpg

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestStart(t *testing.T) {
	t.Parallel()

	t.Run("G-02 makes a cluster, and the next start finds its data", func(t *testing.T) {
		t.Parallel()
		cfg, _ := config(t)
		s := mustStart(t, cfg)
		put(t, s.URL())
		stop(t, s)
		if !gone(t, s.Dir()) {
			t.Error("processes are left after Stop")
		}
		select {
		case <-s.Done():
			t.Error("Done is closed after Stop")
		default:
		}
		stop(t, s) // again is no error
		again := mustStart(t, cfg)
		kept(t, again.URL())
	})

	t.Run("settings of a small install", func(t *testing.T) {
		t.Parallel()
		cfg, _ := made(t)
		cfg.Params = map[string]string{"work_mem": "5MB"}
		s := mustStart(t, cfg)
		db := open(t, s.URL())
		for name, want := range map[string]string{
			"listen_addresses": "", "fsync": "on", "synchronous_commit": "on", "data_checksums": "on", "full_page_writes": "on",
			"server_encoding": "UTF8", "shared_buffers": "128MB", "max_connections": "100", "work_mem": "5MB", "TimeZone": "UTC",
		} {
			var got string
			if err := db.QueryRow(`SELECT current_setting($1)`, name).Scan(&got); err != nil || got != want {
				t.Errorf("%s = %q, %v, want %q", name, got, err, want)
			}
		}
		var ctype string
		if err := db.QueryRow(`SELECT datctype FROM pg_database WHERE datname = 'mybots'`).Scan(&ctype); err != nil || ctype != "C.UTF-8" {
			t.Errorf("datctype = %q, %v, want C.UTF-8", ctype, err)
		}
	})

	t.Run("nobody else can reach the socket", func(t *testing.T) {
		t.Parallel()
		cfg, _ := made(t)
		s := mustStart(t, cfg)
		for _, dir := range []string{s.socketDir, s.Dir()} {
			st, err := os.Stat(dir)
			if err != nil {
				t.Fatal(err)
			}
			if got := st.Mode().Perm(); got != 0o700 {
				t.Errorf("%s has mode %04o, want 0700", dir, got)
			}
			owner := int(st.Sys().(*syscall.Stat_t).Uid)
			if owner == 0 || owner != s.p.as.uid {
				t.Errorf("%s belongs to user %d, want %d, and never root", dir, owner, s.p.as.uid)
			}
		}
	})

	t.Run("the locale and PG variables of the environment do not matter", func(t *testing.T) {
		t.Parallel()
		cfg, _ := config(t)
		h, _ := spawn(t, cfg.Dir, "LC_ALL=tlh_KX.UTF-8", "LANG=tlh_KX", "PGDATA=/nowhere", "PGPORT=1", "PGHOST=/nowhere")
		var lower string
		if err := open(t, h.URL).QueryRow(`SELECT lower('Ё')`).Scan(&lower); err != nil || lower != "ё" {
			t.Errorf("lower('Ё') = %q, %v, want ё", lower, err)
		}
	})

	t.Run("a cluster half made is made again", func(t *testing.T) {
		t.Parallel()
		cfg, _ := config(t)
		rest := filepath.Join(cfg.Dir, "pgdata.init")
		if err := os.MkdirAll(rest, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Chmod(cfg.Dir, 0o711), os.WriteFile(filepath.Join(rest, "PG_VERSION"), []byte("15\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
		mustStart(t, cfg)
		if _, err := os.Stat(rest); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v, want it gone", rest, err)
		}
	})
}

func TestPaths(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"G-02 too long for a socket":  strings.Repeat("long/", 20) + strings.Repeat("x", 60),
		"spaces and other characters": "my bots' \"data\" %41 +ё",
		"a comma":                     "a,b",
	}
	for name, sub := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, _ := config(t)
			if err := os.MkdirAll(filepath.Join(cfg.Dir, sub), 0o711); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(cfg.Dir, 0o711); err != nil {
				t.Fatal(err)
			}
			cfg.Dir = filepath.Join(cfg.Dir, sub)
			s := mustStart(t, cfg)
			put(t, s.URL())
			if u, ok := find(cfg); !ok || u != s.URL() {
				t.Errorf("Find = %q, %v, want %q, true", u, ok, s.URL())
			}
			if n := len(s.socketDir); n > maxSocketDir {
				t.Errorf("the socket's folder has %d bytes, want at most %d", n, maxSocketDir)
			}
			stop(t, s)
			if _, err := os.Stat(s.socketDir); s.socketDir != filepath.Join(s.p.home, "run") && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: %v, want it gone after Stop", s.socketDir, err)
			}
		})
	}
}

func TestFallback(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Log("only root runs the server as another user")
		return
	}

	t.Run("G-02 in a folder closed to the server's user", func(t *testing.T) {
		t.Parallel()
		cfg, log := config(t)
		closed := filepath.Join(filepath.Dir(cfg.Dir), "closed")
		if err := os.Mkdir(closed, 0o700); err != nil {
			t.Fatal(err)
		}
		cfg.Dir = filepath.Join(closed, "clone", "data")
		s := mustStart(t, cfg)
		if want := filepath.Join(cfg.fallback, shortHash(cfg.Dir), "pgdata"); s.Dir() != want {
			t.Errorf("Dir = %s, want %s", s.Dir(), want)
		}
		for _, want := range []string{s.Dir(), "cannot enter " + closed + " (mode 0700)"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log does not say %q:\n%s", want, log)
			}
		}
		put(t, s.URL())
		if u, ok := find(cfg); !ok || u != s.URL() {
			t.Errorf("Find = %q, %v, want %q, true", u, ok, s.URL())
		}
		other := cfg
		other.Dir = filepath.Join(closed, "other", "data")
		if o := mustStart(t, other); o.Dir() == s.Dir() {
			t.Errorf("two data directories share the cluster %s", o.Dir())
		}
		stop(t, s)
		if err := os.Chmod(closed, 0o755); err != nil {
			t.Fatal(err)
		}
		again := mustStart(t, cfg) // now it could go into the data directory, but the data is here
		kept(t, again.URL())
	})

	t.Run("the folder that is used in earnest", func(t *testing.T) {
		t.Parallel()
		dir, fallback, err := Config{Dir: "/root/clone/data"}.homes()
		if err != nil || dir != "/root/clone/data" || fallback != "/var/lib/mybots/"+shortHash(dir) {
			t.Errorf("homes = %s, %s, %v", dir, fallback, err)
		}
	})

	t.Run("a cluster restored by root with another mode, and one of another owner", func(t *testing.T) {
		t.Parallel()
		cfg, _ := made(t)
		s := mustStart(t, cfg)
		put(t, s.URL())
		stop(t, s)
		err := filepath.WalkDir(s.Dir(), func(path string, _ os.DirEntry, err error) error {
			return errors.Join(err, os.Lchown(path, 0, 0))
		})
		if err := errors.Join(err, os.Chmod(s.Dir(), 0o755)); err != nil {
			t.Fatal(err)
		}
		again := mustStart(t, cfg)
		kept(t, again.URL())
		stop(t, again)

		nobody, err := chooseNobody()
		if err != nil {
			t.Fatal(err)
		}
		err = filepath.WalkDir(s.Dir(), func(path string, _ os.DirEntry, err error) error {
			return errors.Join(err, os.Lchown(path, nobody.uid, nobody.gid))
		})
		if err := errors.Join(err, os.RemoveAll(s.socketDir)); err != nil {
			t.Fatal(err)
		}
		again = mustStart(t, cfg)
		kept(t, again.URL())
		st, err := os.Stat(fmt.Sprintf("/proc/%d", again.PID()))
		if err != nil {
			t.Fatal(err)
		}
		if got := int(st.Sys().(*syscall.Stat_t).Uid); got != nobody.uid {
			t.Errorf("the server runs as user %d, want %d", got, nobody.uid)
		}
	})
}
