//go:build unix

package localpg

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// helperEnv makes the test binary a program that runs the server of the named directory until it is
// told to stop, or killed.
const helperEnv = "LOCALPG_TEST_HELPER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperEnv); dir != "" {
		if err := helper(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	if readyMade.dir != "" {
		os.RemoveAll(readyMade.dir)
	}
	os.Exit(code)
}

// hello is what the helper says when its server runs.
type hello struct {
	URL string
	PID int
}

func helper(dir string) error {
	ctx := context.Background()
	s, err := Start(ctx, Config{Dir: dir, Params: noSync, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(hello{s.URL(), s.PID()}); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return s.Stop(ctx)
}

// noSync makes clusters faster; the tests kill processes, not machines.
var noSync = map[string]string{"fsync": "off"}

// spawn starts the helper and returns when its server runs.
func spawn(t *testing.T, dir string, env ...string) (hello, *exec.Cmd) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), env...), helperEnv+"="+dir)
	var said bytes.Buffer
	cmd.Stderr = &said
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait() // killed in some tests
	})
	var h hello
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &h)
	}
	if err != nil {
		cmd.Process.Kill()
		t.Fatalf("helper: %v: %s", err, said.String())
	}
	return h, cmd
}

// logBuffer keeps what was logged.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// parent is where clusters go: below TMPDIR if that is ours alone, as in TestAsNobody.
func parent() string {
	if d := os.Getenv("TMPDIR"); d != "" {
		return d
	}
	return testFolder()
}

// workDir is a folder with a short path that any user can pass through.
func workDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(parent(), "lpg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

// config is one for a new data directory. The log can be read.
func config(t *testing.T) (Config, *logBuffer) {
	t.Helper()
	log := &logBuffer{}
	base := workDir(t)
	return Config{
		Dir: filepath.Join(base, "data"), Params: noSync, fallback: filepath.Join(base, "fallback"),
		Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}, log
}

// readyMade is one cluster whose copies save most tests the making of their own.
var readyMade struct {
	once sync.Once
	dir  string
	err  error
}

// made is a config whose data directory has a cluster in it.
func made(t *testing.T) (Config, *logBuffer) {
	t.Helper()
	readyMade.once.Do(func() {
		if readyMade.dir, readyMade.err = os.MkdirTemp(parent(), "lpg"); readyMade.err != nil {
			return
		}
		readyMade.err = os.Chmod(readyMade.dir, 0o711)
		if s, err := Start(context.Background(), Config{Dir: readyMade.dir, Params: noSync, Log: slog.New(slog.DiscardHandler)}); err != nil {
			readyMade.err = err
		} else {
			readyMade.err = errors.Join(readyMade.err, s.Stop(context.Background()))
		}
	})
	if readyMade.err != nil {
		t.Fatal(readyMade.err)
	}
	cfg, log := config(t)
	if out, err := exec.Command("cp", "-a", readyMade.dir, cfg.Dir).CombinedOutput(); err != nil {
		t.Fatalf("copy the cluster: %v: %s", err, out)
	}
	return cfg, log
}

// mustStart starts a server that is stopped at the end of the test.
func mustStart(t *testing.T, cfg Config) *Server {
	t.Helper()
	s, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	t.Cleanup(func() { stop(t, s) })
	return s
}

func stop(t *testing.T, s *Server) {
	t.Helper()
	if err := s.Stop(context.Background()); err != nil {
		t.Errorf("Stop: %v", err)
	}
}

func open(t *testing.T, url string) *sql.DB {
	t.Helper()
	db, err := sql.Open("postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// put makes a table with one row, kept checks that it is there.
func put(t *testing.T, url string) {
	t.Helper()
	db := open(t, url)
	for _, q := range []string{`CREATE TABLE kept (n int)`, `INSERT INTO kept VALUES (42)`} {
		if _, err := db.Exec(q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	db.Close()
}

func kept(t *testing.T, url string) {
	t.Helper()
	var n int
	if err := open(t, url).QueryRow(`SELECT n FROM kept`).Scan(&n); err != nil || n != 42 {
		t.Errorf("the row of the former server: %d, %v, want 42", n, err)
	}
}

// eventually asks until ok says yes, for at most ten seconds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for !ok() {
		if pause(ctx, 5*time.Millisecond) != nil {
			t.Fatalf("after 10 s: not %s", what)
		}
	}
}

func await(t *testing.T, what string, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(15 * time.Second):
		t.Fatalf("after 15 s: not %s", what)
	}
}

// gone tells whether no process runs on the cluster.
func gone(t *testing.T, pgdata string) bool {
	t.Helper()
	pids, err := place{home: filepath.Dir(pgdata)}.processes(0)
	if err != nil {
		t.Fatal(err)
	}
	return len(pids) == 0
}
