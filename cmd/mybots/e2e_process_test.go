package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// startTime is how long a server may take to listen, a new cluster included, on
// a busy machine.
const startTime = 60 * time.Second

// server is one process of `mybots serve`.
type server struct {
	t       testing.TB
	w       *world
	cmd     *exec.Cmd
	base    string // http://host:port
	log     *logBuffer
	client  *http.Client
	exited  chan struct{}
	trouble bool // the test makes trouble: ERROR lines are to be expected
}

// serve starts a server on the world's database and waits until it listens.
// extra are settings of its own. It is ended with the test; then its log must
// hold nothing that it may not.
func (w *world) serve(t testing.TB, extra ...string) *server {
	t.Helper()
	return w.command(t, []string{"serve"}, extra...)
}

func (w *world) command(t testing.TB, args []string, extra ...string) *server {
	t.Helper()
	s := w.start(t, args, extra...)
	s.awaitListening()
	return s
}

// start starts a server and doesn't wait for it.
func (w *world) start(t testing.TB, args []string, extra ...string) *server {
	t.Helper()
	s := &server{t: t, w: w, log: newLogBuffer(), exited: make(chan struct{})}
	s.client = &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	s.cmd = exec.Command(binary, args...)
	s.cmd.Env = w.environ(append([]string{"MYBOTS_ADDR=127.0.0.1:0"}, extra...)...)
	s.cmd.Stderr, s.cmd.Stdout = s.log, s.log.stdout()
	s.cmd.SysProcAttr = childAttr()
	s.cmd.WaitDelay = 5 * time.Second
	if err := s.cmd.Start(); err != nil {
		t.Fatalf("start the server: %v", err)
	}
	t.Cleanup(s.cleanup) // before the database is dropped
	go func() {          // ends with the process
		_ = s.cmd.Wait() // how it ended is in ProcessState
		close(s.exited)
	}()
	return s
}

func (s *server) awaitListening() {
	s.t.Helper()
	select {
	case address := <-s.log.listening:
		s.base = "http://" + address
	case <-s.exited:
		s.t.Fatalf("the server ended instead of listening: %v\n%s", s.cmd.ProcessState, s.log)
	case <-time.After(startTime):
		s.t.Fatalf("the server doesn't listen after %v\n%s", startTime, s.log)
	}
}

func (s *server) cleanup() {
	s.t.Helper()
	s.client.CloseIdleConnections()
	if s.running() {
		_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may be gone by now
		select {
		case <-s.exited:
		case <-time.After(20 * time.Second):
			s.t.Error("the server isn't gone 20 s after SIGTERM")
			s.kill()
		}
	}
	text := s.log.String()
	s.w.checkSecrets(s.t, "the server's log", text)
	if !s.trouble {
		for line := range strings.Lines(text) {
			if strings.Contains(line, `"level":"ERROR"`) || strings.Contains(line, `"msg":"panic"`) {
				s.t.Errorf("an error in the log: %s", line)
			}
		}
	}
	if s.t.Failed() {
		s.t.Logf("log of the server at %s:\n%s\nand its last requests:\n%s", s.base, s.log.tail(30, false), s.log.tail(15, true))
	}
}

func (s *server) running() bool {
	select {
	case <-s.exited:
		return false
	default:
		return true
	}
}

// kill ends the process as kill -9 does and waits until it is gone.
func (s *server) kill() {
	_ = s.cmd.Process.Kill() // it may be gone by now
	<-s.exited
}

// term asks the process to stop and returns its exit code and how long it took.
// It must be out within 15 s (G-04).
func (s *server) term() (code int, took time.Duration) {
	s.t.Helper()
	began := time.Now()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatalf("SIGTERM: %v", err)
	}
	select {
	case <-s.exited:
	case <-time.After(15 * time.Second):
		s.t.Fatalf("the server isn't out 15 s after SIGTERM\n%s", s.log.tail(20, false))
	}
	return s.cmd.ProcessState.ExitCode(), time.Since(began)
}

// address is the host:port that the server listens on.
func (s *server) address() string { return strings.TrimPrefix(s.base, "http://") }

// dial opens a plain connection to the server, for what http.Client won't send.
func (s *server) dial(t testing.TB) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.address())
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

// logBuffer keeps what a process says and looks for the line "listening".
type logBuffer struct {
	listening chan string // the first address that the process listens on

	mu    sync.Mutex
	whole bytes.Buffer
	rest  []byte // an unfinished line
	said  bool
	out   bytes.Buffer
}

func newLogBuffer() *logBuffer { return &logBuffer{listening: make(chan string, 1)} }

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.whole.Write(p)
	l.rest = append(l.rest, p...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		l.rest = rest
		var said struct{ Msg, Addr string }
		if json.Unmarshal(line, &said) == nil && said.Msg == "listening" && !l.said {
			l.said = true
			l.listening <- said.Addr
		}
	}
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.whole.String()
}

// stdout is where the process' standard output goes.
func (l *logBuffer) stdout() io.Writer { return lockedWriter{&l.mu, &l.out} }

func (l *logBuffer) printed() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.String()
}

// tail returns the last lines that tell of requests, or that tell of all else,
// of these at most 5 with the same message.
func (l *logBuffer) tail(lines int, requests bool) string {
	var all []string
	count := map[string]int{}
	text := strings.Split(strings.TrimRight(l.String(), "\n"), "\n")
	for _, line := range slices.Backward(text) {
		_, rest, _ := strings.Cut(line, `"msg":"`)
		message, _, _ := strings.Cut(rest, `"`)
		if strings.HasPrefix(message, "request") != requests || len(all) >= lines {
			continue
		}
		if count[message]++; requests || count[message] <= 5 {
			all = append(all, line)
		}
	}
	slices.Reverse(all)
	return strings.Join(all, "\n")
}

type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// signalTo sends a signal to a process that isn't a child of the test.
func signalTo(t testing.TB, pid int, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, syscall.ESRCH) {
		t.Fatalf("signal %v to %d: %v", sig, pid, err)
	}
}
