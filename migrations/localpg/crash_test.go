//go:build unix

package localpg

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

func TestCrash(t *testing.T) {
	t.Parallel()

	t.Run("G-02 after kill -9 of PostgreSQL: Done, and a new start has the data", func(t *testing.T) {
		t.Parallel()
		cfg, log := made(t)
		s := mustStart(t, cfg)
		put(t, s.URL())
		if err := syscall.Kill(s.PID(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		await(t, "told by Done", s.Done())
		if !strings.Contains(log.String(), "ended by itself") {
			t.Errorf("the log does not say so:\n%s", log)
		}
		again := mustStart(t, cfg)
		kept(t, again.URL())
		stop(t, s) // of the dead one: no error, and no harm to the new one
		kept(t, again.URL())
	})

	t.Run("G-02 after kill -9 of PostgreSQL while a connection computes", func(t *testing.T) {
		t.Parallel()
		cfg, _ := made(t)
		s := mustStart(t, cfg)
		put(t, s.URL())
		db := open(t, s.URL())
		go db.Exec(`SELECT count(*) FROM generate_series(1, 100000000000)`) // ends when it is killed: it does not look whether its server lives
		eventually(t, "computing", func() bool {
			var n int
			err := open(t, s.URL()).QueryRow(`SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%generate_series(1,%' AND pid <> pg_backend_pid()`).Scan(&n)
			return err == nil && n == 1
		})
		if err := syscall.Kill(s.PID(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		await(t, "told by Done", s.Done())
		again := mustStart(t, cfg)
		kept(t, again.URL())
	})

	t.Run("G-02 after kill -9 of one connection's process the server lives", func(t *testing.T) {
		t.Parallel()
		cfg, log := made(t)
		s := mustStart(t, cfg)
		put(t, s.URL())
		var pid int
		if err := open(t, s.URL()).QueryRow(`SELECT pg_backend_pid()`).Scan(&pid); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, "noticed", func() bool { return strings.Contains(log.String(), "was terminated by signal 9") })
		eventually(t, "answering again", func() bool { return answers(s.URL()) })
		kept(t, s.URL())
	})

	t.Run("G-02 kill -9 of the program ends PostgreSQL, and the next start has the data", func(t *testing.T) {
		t.Parallel()
		cfg, _ := made(t)
		h, cmd := spawn(t, cfg.Dir)
		put(t, h.URL)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if runtime.GOOS == "linux" { // elsewhere the next start stops it
			eventually(t, "ended with its program", func() bool { return gone(t, filepath.Join(cfg.Dir, "pgdata")) })
		}
		s := mustStart(t, cfg)
		kept(t, s.URL())
		if s.PID() == h.PID {
			t.Errorf("process %d is still the same", h.PID)
		}
	})

	t.Run("G-02 both killed", func(t *testing.T) {
		t.Parallel()
		cfg, _ := made(t)
		h, cmd := spawn(t, cfg.Dir)
		put(t, h.URL)
		if err := syscall.Kill(h.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		s := mustStart(t, cfg)
		kept(t, s.URL())
	})

	t.Run("G-02 a server that outlived its program is stopped and started anew", func(t *testing.T) {
		t.Parallel()
		cfg, log := made(t)
		s := mustStart(t, cfg)
		put(t, s.URL())
		stop(t, s)
		if err := s.p.makeSocketDir(s.socketDir); err != nil {
			t.Fatal(err)
		}
		orphan := exec.Command(filepath.Join(s.p.bin.dir, "postgres"), s.p.arguments(cfg, s.socketDir)...)
		orphan.Dir, orphan.Env = s.Dir(), cleanEnv(s.p.home)
		orphan.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: s.p.as.credential()}
		if err := orphan.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { // ends with the orphan
			orphan.Wait()
			close(ended)
		}()
		eventually(t, "answering", func() bool { return answers(s.URL()) })
		busy, err := open(t, s.URL()).Conn(t.Context()) // a client that does not leave
		if err != nil {
			t.Fatal(err)
		}
		defer busy.Close()
		again := mustStart(t, cfg)
		await(t, "ended", ended)
		kept(t, again.URL())
		if !strings.Contains(log.String(), "still running, stopping it") {
			t.Errorf("the log does not say so:\n%s", log)
		}
	})
}

func TestStale(t *testing.T) {
	t.Parallel()

	// PostgreSQL takes any process of its user with the number in postmaster.pid for a server, a zombie too.
	t.Run("G-02 stale postmaster.pid", func(t *testing.T) {
		t.Parallel()
		cfg, _ := made(t)
		s := mustStart(t, cfg)
		put(t, s.URL())
		pidFile, err := os.ReadFile(filepath.Join(s.Dir(), "postmaster.pid"))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(pidFile), "\n")
		stop(t, s)
		zombie := child(t, s, "true")
		eventually(t, "a zombie", func() bool {
			out, err := exec.Command("ps", "-o", "stat=", "-p", fmt.Sprint(zombie)).Output()
			return err == nil && strings.HasPrefix(string(out), "Z")
		})
		for what, pid := range map[string]int{
			"no process": 1<<22 + 1, "a number that was given out again": child(t, s, "sleep", "60"), "a zombie": zombie,
		} {
			if err := s.p.makeSocketDir(s.socketDir); err != nil {
				t.Fatal(err)
			}
			for _, f := range []string{filepath.Join(s.Dir(), "postmaster.pid"), filepath.Join(s.socketDir, ".s.PGSQL.5432.lock")} {
				if err := os.WriteFile(f, fmt.Appendf(nil, "%d\n%s", pid, rest), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := s.p.as.give(f); err != nil {
					t.Fatal(err)
				}
			}
			if u, ok := find(cfg); ok {
				t.Errorf("%s: Find = %q, true, want false: nothing runs", what, u)
			}
			again, err := Start(t.Context(), cfg)
			if err != nil {
				t.Fatalf("%s: Start: %v", what, err)
			}
			kept(t, again.URL())
			stop(t, again)
		}
	})
}

// child starts a process of the server's user. It is not waited for until the test ends.
func child(t *testing.T, s *Server, name string, args ...string) int {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Credential: s.p.as.credential()}
	cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill() // it may have ended
		cmd.Wait()
	})
	return cmd.Process.Pid
}
