package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"mybots/migrations/dbtest"
)

// The settings that more than one test gives.
const (
	testClock = "MYBOTS_TEST_CLOCK=1"
	sealKey   = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=" // MYBOTS_SECRET_KEY of the tests
	ownerMail = "Owner@example.com"
	ownerPass = "correct horse battery"
)

// world is one installation: a database, the settings that its processes share,
// and what the operator's commands made there.
type world struct {
	settings []string // MYBOTS_… of every process
	dsn      string   // of the database; "" where the server runs its own
	space    string
	key      string       // an intake key
	ahead    atomic.Int64 // how far the tests moved the clock, in ns

	mu      sync.Mutex
	secrets []string // what no log may hold
}

// newWorld is an installation on a fresh database of the shared PostgreSQL.
func newWorld(t testing.TB, settings ...string) *world {
	t.Helper()
	dsn := dbtest.URL(t)
	w := &world{dsn: dsn, settings: append([]string{"MYBOTS_DATABASE_URL=" + dsn, "MYBOTS_SECRET_KEY=" + sealKey, "MYBOTS_DB_CONNS=8"}, settings...)}
	w.populate(t)
	return w
}

// populate makes a space, its owner and an intake key.
func (w *world) populate(t testing.TB) {
	t.Helper()
	w.space = w.operate(t, "", "space", "add", "--name", "Space", "--json")["space_id"]
	w.operate(t, ownerPass+"\n", "user", "add", "--email", ownerMail, "--space", w.space, "--role", "owner", "--password-stdin", "--json")
	w.key = w.operate(t, "", "key", "add", "--name", "messenger", "--json")["key"]
	w.secret(ownerPass, w.key, sealKey)
}

// environ is the whole environment of a process: nothing of the test's own gets in.
func (w *world) environ(extra ...string) []string {
	return slices.Concat([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, w.settings, extra)
}

func (w *world) secret(s ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.secrets = append(w.secrets, s...)
}

// checkSecrets fails the test when a text holds a secret of the world.
func (w *world) checkSecrets(t testing.TB, what, text string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.secrets {
		if i := strings.Index(text, s); i >= 0 {
			t.Errorf("%s holds the secret %.8s…: …%s…", what, s, text[max(0, i-100):min(len(text), i+20)])
		}
	}
}

// outcome is how a command ended.
type outcome struct {
	code           int
	stdout, stderr string
}

// commandTime bounds one command; a new cluster takes a while.
const commandTime = 60 * time.Second

// run runs the binary with the world's settings to its end.
func (w *world) run(t testing.TB, stdin string, args ...string) outcome {
	t.Helper()
	return runBinary(t, w.environ(), stdin, args...)
}

func runBinary(t testing.TB, environ []string, stdin string, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), commandTime)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = environ, strings.NewReader(stdin), &out, &errs
	cmd.SysProcAttr = childAttr()
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("mybots %s doesn't end within %v\n%s", strings.Join(args, " "), commandTime, &errs)
	}
	if cmd.ProcessState == nil {
		t.Fatalf("mybots %s: %v", strings.Join(args, " "), err)
	}
	return outcome{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// operate runs an operator's command with --json and returns its one object,
// whose values must all be strings.
func (w *world) operate(t testing.TB, stdin string, args ...string) map[string]string {
	t.Helper()
	o := w.run(t, stdin, args...)
	if o.code != 0 {
		t.Fatalf("mybots %s: exit code %d\n%s", strings.Join(args, " "), o.code, o.stderr)
	}
	var fields map[string]string
	if err := json.Unmarshal([]byte(o.stdout), &fields); err != nil {
		t.Fatalf("mybots %s printed %q, want one JSON object of strings: %v", strings.Join(args, " "), o.stdout, err)
	}
	return fields
}

// bot is one bot of a world.
type bot struct {
	w               *world
	id, token, name string
}

var botNumber atomic.Int64

// bot adds a bot by the operator's command.
func (w *world) bot(t testing.TB) *bot {
	t.Helper()
	name := fmt.Sprintf("test_%d_bot", botNumber.Add(1))
	made := w.operate(t, "", "bot", "add", "--space", w.space, "--owner", ownerMail, "--username", name, "--name", "Bot "+name, "--json")
	w.secret(made["token"])
	return &bot{w: w, id: made["bot_id"], token: made["token"], name: name}
}

// bots adds n bots.
func (w *world) bots(t testing.TB, n int) []*bot {
	t.Helper()
	list := make([]*bot, n)
	for i := range list {
		list[i] = w.bot(t)
	}
	return list
}

// db opens the world's database, for races and for looking at its size.
func (w *world) db(t testing.TB) *sqlx.DB {
	t.Helper()
	db, err := sqlx.Open("postgres", w.dsn)
	if err != nil {
		t.Fatalf("open the database: %v", err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close the database: %v", err)
		}
	})
	return db
}

// newAdmin returns a way to send statements to the server's own database.
func newAdmin(t testing.TB, w *world) func(statement string) {
	t.Helper()
	u, err := url.Parse(w.dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/postgres"
	db, err := sqlx.Open("postgres", u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return func(statement string) {
		t.Helper()
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}
