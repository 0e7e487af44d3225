package main_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// program is an example bot that survives crashes.
type program struct {
	name    string
	command func(t testing.TB, webhook bool) []string // the program with its arguments
	store   string                                    // the setting that names its store, when it receives by webhook
}

// programs are the example bots of all languages.
var programs = []program{
	{"Python", func(t testing.TB, webhook bool) []string {
		if webhook {
			return []string{tool(t, "python3"), "../../examples/python/webhook_bot.py", "--behind-proxy"}
		}
		return []string{tool(t, "python3"), "../../examples/python/production_poller.py"}
	}, "SMEET_WEBHOOK_STORE"},
	{"Node.js", func(t testing.TB, webhook bool) []string {
		if webhook {
			return []string{tool(t, "node"), "../../examples/node/webhook_bot.mjs", "--behind-proxy"}
		}
		return []string{tool(t, "node"), "../../examples/node/production_poller.mjs"}
	}, "SMEET_WEBHOOK_STORE"},
	{"Go", func(t testing.TB, webhook bool) []string {
		if webhook {
			return []string{kitbot(t), "--webhook", "--behind-proxy"}
		}
		return []string{kitbot(t)}
	}, "SMEET_STORE"},
}

func tool(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// built is the Go kit's example bot, which is a module of its own.
var built = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "kitbot")
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, "kitbot")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Dir = "../../examples/go/kitbot"
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the kit's example: %w\n%s", err, out)
	}
	return path, nil
})

func kitbot(t testing.TB) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// running is a bot's process.
type running struct {
	cmd    *exec.Cmd
	exited chan struct{}
	log    *logBuffer
}

func startProgram(t testing.TB, command []string, settings ...string) *running {
	t.Helper()
	r := &running{cmd: exec.Command(command[0], command[1:]...), exited: make(chan struct{}), log: newLogBuffer()}
	r.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, settings...)
	r.cmd.Stdout, r.cmd.Stderr = r.log, r.log
	r.cmd.SysProcAttr = childAttr()
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the process
		defer close(r.exited)
		_ = r.cmd.Wait()
	}()
	t.Cleanup(r.kill)
	return r
}

// kill is kill -9; twice is harmless.
func (r *running) kill() {
	_ = r.cmd.Process.Kill() // it may be gone by now
	<-r.exited
}

// fault is what a proxy does with a call.
type fault int

const (
	passes    fault = iota
	cutBefore       // the connection breaks, the server never saw the call
	cutAfter        // the server did it, the answer is lost
)

// flaky is a proxy between a bot and the server.
type flaky struct {
	*httptest.Server
	mu    sync.Mutex
	calls int
	// at says what becomes of a call; before tells whether the server has seen it.
	at func(method string, before bool) fault
}

func newFlaky(t testing.TB, to string) *flaky {
	t.Helper()
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	f := &flaky{at: func(string, bool) fault { return passes }}
	pass := httputil.NewSingleHostReverseProxy(u)
	pass.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		if f.decide(method, true) == cutBefore {
			panic(http.ErrAbortHandler)
		}
		answer := httptest.NewRecorder()
		pass.ServeHTTP(answer, r)
		if f.decide(method, false) == cutAfter {
			panic(http.ErrAbortHandler)
		}
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()) // a bot that was killed reads nothing
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *flaky) decide(method string, before bool) fault {
	f.mu.Lock()
	at := f.at
	f.calls++
	f.mu.Unlock()
	return at(method, before)
}

func (f *flaky) set(at func(method string, before bool) fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at = at
}

// lossy loses every fifth call or answer.
func lossy() func(string, bool) fault {
	var mu sync.Mutex
	n := 0
	return func(_ string, before bool) fault {
		mu.Lock()
		defer mu.Unlock()
		if n++; n%5 != 0 {
			return passes
		}
		if before {
			return cutBefore
		}
		return cutAfter
	}
}

// words are what people write to a bot: each text once.
func (s *server) words(t testing.TB, b *bot, from, n int) (texts []string) {
	t.Helper()
	var events []event
	for i := from; i < from+n; i++ {
		text := fmt.Sprint("words ", i)
		texts = append(texts, text)
		id, chat := strconv.Itoa(i), strconv.Itoa(550+i%3)
		events = append(events, event{bot: b, chat: chat, message: id, payload: fmt.Sprintf(
			`{"message_id":"%s","chat":{"id":"%s","type":"private"},"from":{"id":"812","display_name":"Anna","is_bot":false},"date":"2026-09-26T10:00:00Z","text":"%s"}`, id, chat, text)})
	}
	s.write(t, events...)
	return texts
}

// answersOnce waits until the messenger has every text, and fails where one came
// under two keys: the messenger knows a repeat by its key, and so did the bot.
func answersOnce(t testing.TB, m *messenger, texts []string, bot *running) {
	t.Helper()
	keys := func() map[string]map[string]bool {
		got := map[string]map[string]bool{}
		for _, p := range m.requests() {
			text := strings.TrimPrefix(p.text, "sendMessage ")
			if got[text] == nil {
				got[text] = map[string]bool{}
			}
			got[text][p.key] = true
		}
		return got
	}
	deadline := time.NewTimer(2 * time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for missing := slices.Clone(texts); len(missing) > 0; {
		got := keys()
		missing = slices.DeleteFunc(missing, func(text string) bool { return len(got[text]) > 0 })
		select {
		case <-deadline.C:
			t.Fatalf("K-01 not answered within two minutes: %v; the bot's log:\n%s", missing, bot.log)
		case <-tick.C:
		}
	}
	for text, k := range keys() {
		if len(k) != 1 {
			t.Errorf("K-06 %q was sent %d times", text, len(k))
		}
	}
}

// The example bots against the real server through a proxy that loses answers and
// cuts connections, killed at every step.
func TestBotsThatSurvive(t *testing.T) {
	t.Parallel()
	steps := []struct {
		name, method string
		before       bool
	}{
		{"before it has a batch", "getUpdates", true},
		{"with a batch on its way", "getUpdates", false},
		{"before an answer goes out", "sendMessage", true},
		{"after an answer went out, before the bot knows", "sendMessage", false},
	}
	for _, p := range programs {
		t.Run("K-01 K-06 P-12 A-06 by long polling in "+p.name, func(t *testing.T) {
			t.Parallel()
			m := newMessenger(t)
			w := newWorld(t, testClock, "MYBOTS_OUTBOUND_URL="+m.URL)
			s := w.serve(t)
			b := w.bot(t)
			f := newFlaky(t, s.base)
			settings := []string{"SMEET_URL=" + f.URL, "SMEET_TOKEN=" + b.token, "SMEET_CONSUMER_ID=me", "SMEET_STORE=" + filepath.Join(t.TempDir(), "store")}
			command := p.command(t, false)
			var texts []string
			for i, step := range steps {
				texts = append(texts, s.words(t, b, 1+5*i, 5)...)
				var seen atomic.Int64
				killed := make(chan struct{})
				var bot *running
				started := make(chan struct{})
				losing := lossy()
				f.set(func(method string, before bool) fault {
					<-started
					select {
					case <-killed:
						return cutBefore
					default:
					}
					if method == step.method && before == step.before {
						if seen.Add(1) == 2 { // in the middle of its work
							bot.kill()
							close(killed)
							return map[bool]fault{true: cutBefore, false: cutAfter}[before]
						}
						return passes
					}
					return losing(method, before)
				})
				bot = startProgram(t, command, settings...)
				close(started)
				select {
				case <-killed:
				case <-time.After(time.Minute):
					t.Fatalf("%s: it never came to that; the bot's log:\n%s", step.name, bot.log)
				}
				s.advance(t, 30*time.Second) // the poll that died with it counts as waiting until then (P-09)
			}
			f.set(lossy())
			texts = append(texts, s.words(t, b, 100, 5)...)
			last := startProgram(t, command, settings...)
			answersOnce(t, m, texts, last)
			eventually(t, 20*time.Second, "all is confirmed", func() bool { return s.info(t, b).Pending == 0 })
			if i := s.info(t, b); i.Failed != 0 {
				t.Errorf("%d updates failed, want none", i.Failed)
			}
			w.checkSecrets(t, "the bot's log", last.log.String())
		})
		t.Run("K-01 K-07 W-05 W-13 by webhook in "+p.name, func(t *testing.T) {
			t.Parallel()
			m := newMessenger(t)
			w, e := newHookWorld(t, "MYBOTS_OUTBOUND_URL="+m.URL)
			s := w.serve(t)
			o := s.signIn(t)
			h := o.hooked(t, e)
			port := freePort(t)
			settings := []string{"SMEET_URL=" + s.base, "SMEET_TOKEN=" + h.token, "SMEET_WEBHOOK_SECRET=" + h.secret, "SMEET_WEBHOOK_PORT=" + port, p.store + "=" + filepath.Join(t.TempDir(), "store")}
			command := p.command(t, true)
			forward := func(v *visit) (int, error) {
				req, err := http.NewRequest(http.MethodPost, "http://127.0.0.1:"+port+"/smeet", bytes.NewReader([]byte(v.body)))
				if err != nil {
					return 0, err
				}
				req.Header = v.request.Header.Clone()
				resp, err := http.DefaultTransport.RoundTrip(req)
				if err != nil {
					return 0, err
				}
				defer func() { _ = resp.Body.Close() }()
				_, err = io.Copy(io.Discard, resp.Body)
				return resp.StatusCode, err
			}
			var mu sync.Mutex
			var bot *running
			up := func() { // starts it and waits until it takes requests
				r := startProgram(t, command, settings...)
				eventually(t, 20*time.Second, "the bot listens", func() bool {
					c, err := net.Dial("tcp", "127.0.0.1:"+port)
					if err != nil {
						return false
					}
					return c.Close() == nil
				})
				mu.Lock()
				defer mu.Unlock()
				bot = r
			}
			up()
			n := 0
			h.does(func(v *visit) {
				mu.Lock()
				n++
				dies, now := n, bot
				mu.Unlock()
				if dies == 4 { // before it has the update
					now.kill()
					breaks(v)
				}
				status, err := forward(v)
				switch {
				case err != nil:
					breaks(v)
				case dies == 7: // it has it, and dies before its answer counts
					now.kill()
					breaks(v)
				case dies%5 == 0: // the answer is lost
					breaks(v)
				}
				says(status)(v)
			})
			// A request that waits for its time is made at once, as long as the signature's
			// time, which is the product's, stays within what the bot takes by the real one (K-07).
			hurry := func() {
				i := s.hookInfo(t, h.bot)
				if i.State == "paused" {
					t.Fatalf("delivery is paused: %+v; the bot's log:\n%s", i.LastError, bot.log)
				}
				if i.NextAttempt == nil {
					return
				}
				if wait := i.NextAttempt.Sub(w.now()); wait > 0 && time.Duration(w.ahead.Load())+wait < 4*time.Minute {
					s.advance(t, wait)
				}
			}
			texts := s.words(t, h.bot, 1, 12)
			for range 2 { // the two deaths
				eventually(t, 60*time.Second, "the bot is killed", func() bool {
					hurry()
					select {
					case <-bot.exited:
						return true
					default:
						return false
					}
				})
				up()
			}
			eventually(t, 2*time.Minute, "all is delivered", func() bool {
				hurry()
				return s.info(t, h.bot).Pending == 0
			})
			if i := s.info(t, h.bot); i.Failed != 0 {
				t.Errorf("%d updates failed, want none; the bot's log:\n%s", i.Failed, bot.log)
			}
			answersOnce(t, m, texts, bot)
			h.check(t)
			w.checkSecrets(t, "the bot's log", bot.log.String())
		})
	}
}

// freePort is a port that nobody listens on now.
func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}
