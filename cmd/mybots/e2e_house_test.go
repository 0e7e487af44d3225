package main_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// alive tells whether a process runs.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func TestHouse(t *testing.T) {
	t.Parallel()
	w := &world{settings: []string{"MYBOTS_DATA_DIR=" + filepath.Join(dataDir(t), "new folder")}}
	s := w.serve(t) // makes the folder, the cluster, the schema and the key
	again := func() *server { return w.serve(t) }
	var b *bot

	t.Run("G-02 G-08 a first start needs nothing, and the commands work beside it", func(t *testing.T) {
		w.populate(t)
		b = s.chatting(t)
		s.ok(t, b, "getMe", "{}")
		key, err := os.ReadFile(filepath.Join(w.dir(), "secret.key"))
		if err != nil {
			t.Fatalf("the key isn't kept in the data folder: %v", err)
		}
		w.secret(strings.TrimSpace(string(key)))
		stat, err := os.Stat(filepath.Join(w.dir(), "secret.key"))
		if err != nil || stat.Mode().Perm() != 0o600 {
			t.Errorf("got the key's mode %v %v, want 0600", stat.Mode(), err)
		}
	})
	t.Run("G-02 a second server on the same folder is refused in plain words and harms nothing", func(t *testing.T) {
		began := time.Now()
		o := runBinary(t, w.environ("MYBOTS_ADDR=127.0.0.1:0"), "", "serve")
		if o.code == 0 || !strings.Contains(o.stderr, w.dir()) || !strings.Contains(o.stderr, "MYBOTS_DATA_DIR") {
			t.Errorf("got exit code %d and %q, want the folder and the way out named", o.code, o.stderr)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("the refusal took %v", took)
		}
		s.ok(t, b, "getMe", "{}")
	})
	t.Run("G-02 kill -9 of the server: its PostgreSQL ends, and a new server goes on", func(t *testing.T) {
		pid := w.postmaster(t)
		s.kill()
		s = again() // at once: what was left behind is its own affair
		if got := s.poll(t, b, at("a", "", "", now)); got.outline() != "1 | | 1..2" {
			t.Errorf("got %s", got.outline())
		}
		if now := w.postmaster(t); now == pid {
			t.Errorf("the killed server's PostgreSQL %d still serves", pid)
		}
	})
	t.Run("G-02 kill -9 of both at once", func(t *testing.T) {
		signalTo(t, w.postmaster(t), syscall.SIGKILL)
		s.kill()
		s = again()
		s.write(t, event{bot: b})
	})
	t.Run("G-02 SIGTERM stops its PostgreSQL too", func(t *testing.T) {
		pid := w.postmaster(t)
		if code, _ := s.term(); code != 0 {
			t.Errorf("got exit code %d, want 0", code)
		}
		if alive(pid) {
			t.Errorf("PostgreSQL %d still runs", pid)
		}
	})
	t.Run("G-08 the commands work without a server and leave none behind", func(t *testing.T) {
		made := w.bot(t)
		if _, err := os.Stat(filepath.Join(w.dir(), "pgdata", "postmaster.pid")); !os.IsNotExist(err) {
			t.Errorf("PostgreSQL's postmaster.pid is there after a command: %v", err)
		}
		s = again()
		s.ok(t, made, "getMe", "{}")
		s.ok(t, b, "getMe", "{}")
	})
	t.Run("G-02 a command that runs while a server starts harms neither", func(t *testing.T) {
		if code, _ := s.term(); code != 0 {
			t.Fatalf("got exit code %d", code)
		}
		s = w.start(t, []string{"serve"})
		s.t = t
		made := w.bot(t)
		s.awaitListening()
		s.ok(t, made, "getMe", "{}")
	})
}

func TestFirstStart(t *testing.T) {
	t.Parallel()
	empty := func(t *testing.T, name string) *world {
		t.Helper()
		w := newWorld(t)
		admin := newAdmin(t, w)
		name = "mybots_test_" + name
		admin(`DROP DATABASE IF EXISTS ` + name)
		admin(`CREATE DATABASE ` + name + ` TEMPLATE template0`)
		t.Cleanup(func() { admin(`DROP DATABASE ` + name + ` WITH (FORCE)`) })
		dsn := regexp.MustCompile(`/mybots_test_[^?]*`).ReplaceAllString(w.dsn, "/"+name)
		return &world{dsn: dsn, settings: []string{"MYBOTS_DATABASE_URL=" + dsn, "MYBOTS_SECRET_KEY=" + sealKey, "MYBOTS_DB_CONNS=8"}}
	}
	t.Run("G-02 G-03 replicas that start together on an empty database share its making", func(t *testing.T) {
		t.Parallel()
		w := empty(t, "together")
		var servers []*server
		for range 3 {
			servers = append(servers, w.start(t, []string{"serve"}))
		}
		for _, s := range servers {
			s.awaitListening()
		}
		w.populate(t)
		b := w.bot(t)
		for _, s := range servers {
			s.ok(t, b, "getMe", "{}")
		}
	})
	t.Run("G-01 migrate brings the schema up to date, again and again", func(t *testing.T) {
		t.Parallel()
		w := empty(t, "migrate")
		for range 2 {
			if o := w.run(t, "", "migrate"); o.code != 0 {
				t.Fatalf("got exit code %d: %s", o.code, o.stderr)
			}
		}
		w.populate(t)
	})
	t.Run("G-02 a database that isn't there yet is waited for", func(t *testing.T) {
		t.Parallel()
		w, p := behindProxy(t)
		p.turn(refuses)
		s := w.start(t, []string{"serve"})
		eventually(t, 10*time.Second, "the server says that it waits", func() bool { return strings.Contains(s.log.String(), `"level":"WARN"`) })
		p.turn(works)
		s.awaitListening()
		if got := s.status(t, "/readyz"); got != http.StatusOK {
			t.Errorf("/readyz: got %d, want 200", got)
		}
	})
	t.Run("G-02 a database that can't be used is named", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		dsn := regexp.MustCompile(`/mybots_test_[^?]*`).ReplaceAllString(w.dsn, "/no_such_database")
		s := w.start(t, []string{"serve"}, "MYBOTS_DATABASE_URL="+dsn)
		s.trouble = true
		eventually(t, 10*time.Second, "its name is told", func() bool { return strings.Contains(s.log.String(), "no_such_database") })
	})
}
