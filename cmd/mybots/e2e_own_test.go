package main_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// spare is a data folder with a cluster, made once: making one takes seconds,
// copying it takes none.
var spare struct {
	once sync.Once
	dir  string
	key  string
	err  error
}

func removeSpare() {
	if spare.dir != "" {
		os.RemoveAll(spare.dir)
	}
}

// ownWorld is an installation that runs its own PostgreSQL, with its space, its
// owner and its key already there.
func ownWorld(t testing.TB, settings ...string) *world {
	t.Helper()
	spare.once.Do(func() {
		dir, err := os.MkdirTemp("", "mybots-e2e-spare-")
		if err == nil {
			spare.dir, err = dir, os.Chmod(dir, 0o755) // PostgreSQL's user must enter
		}
		if err != nil {
			spare.err = err
			return
		}
		w := &world{settings: []string{"MYBOTS_DATA_DIR=" + dir}}
		spare.err = errors.New("the spare installation couldn't be made")
		w.populate(t)
		spare.key, spare.err = w.key, nil
	})
	if spare.err != nil {
		t.Fatal(spare.err)
	}
	dir := dataDir(t)
	// Owners and modes are to be kept.
	if out, err := exec.Command("cp", "-a", spare.dir+"/.", dir).CombinedOutput(); err != nil {
		t.Fatalf("copy the spare installation: %v\n%s", err, out)
	}
	w := &world{settings: append([]string{"MYBOTS_DATA_DIR=" + dir}, settings...), space: "1", key: spare.key}
	w.secret(ownerPass, w.key)
	return w
}

// dataDir is an empty folder that PostgreSQL's user can enter, removed at the end.
func dataDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mybots-e2e-data-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the data folder: %v", err)
		}
	})
	return dir
}

// dir is the world's data folder.
func (w *world) dir() string {
	for _, s := range w.settings {
		if dir, ok := strings.CutPrefix(s, "MYBOTS_DATA_DIR="); ok {
			return dir
		}
	}
	return ""
}

// postmaster is the process of the world's own PostgreSQL.
func (w *world) postmaster(t testing.TB) int {
	t.Helper()
	pid, ok := w.startedPostmaster()
	if !ok {
		t.Fatalf("no PostgreSQL runs in %s", w.dir())
	}
	return pid
}

// startedPostmaster is postmaster for when there may be none.
func (w *world) startedPostmaster() (pid int, ok bool) {
	text, err := os.ReadFile(filepath.Join(w.dir(), "pgdata", "postmaster.pid"))
	if err != nil {
		return 0, false
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err = strconv.Atoi(strings.TrimSpace(first))
	return pid, err == nil && alive(pid)
}

// signalPostgres signals the world's PostgreSQL, all of its processes.
func (w *world) signalPostgres(t testing.TB, sig syscall.Signal) {
	t.Helper()
	pid := w.postmaster(t)
	out, err := exec.Command("ps", "-o", "pid=", "--ppid", strconv.Itoa(pid)).Output()
	if err != nil {
		t.Fatalf("look for PostgreSQL's processes: %v", err)
	}
	signalTo(t, pid, sig)
	for _, child := range strings.Fields(string(out)) {
		n, err := strconv.Atoi(child)
		if err != nil {
			t.Fatalf("a process number: %v", err)
		}
		signalTo(t, n, sig)
	}
}
