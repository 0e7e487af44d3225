//go:build unix

package localpg

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// fastStop is how long Stop gives a fast shutdown before it asks for an immediate one.
	fastStop = 10 * time.Second
	// quitStop is how long an immediate shutdown gets; the server itself kills its children after 5 s.
	quitStop = 7 * time.Second
	// memoryPatience is how long Start waits for children of a killed server to let go of its memory.
	memoryPatience = 10 * time.Second
)

// Server is a running private PostgreSQL.
type Server struct {
	p         place
	cfg       Config
	socketDir string
	lock      *lockFile
	cmd       *exec.Cmd
	out       *output

	exited chan struct{} // closed when the process is gone
	done   chan struct{} // closed when it went by itself

	mu       sync.Mutex
	stopping bool
}

// Start runs the private PostgreSQL of cfg.Dir and returns when it answers. It makes the cluster if
// there is none, stops what a killed program left behind, recovers after a crash (which takes as long
// as it takes: ctx is the limit), and sees to it that the database "mybots" exists.
//
// As root the server runs as the owner of the cluster, else as postgres, else as nobody. If that user
// cannot reach cfg.Dir, a new cluster goes to /var/lib/mybots/ and a hash of the directory's path, and
// the log says so.
//
// ErrInUse: another process runs the server of this directory. ErrNoBinaries: PostgreSQL is not
// installed, or not in the cluster's version. The error of a server that does not start has its last
// words.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	return start(ctx, cfg, "")
}

func start(ctx context.Context, cfg Config, role string) (*Server, error) {
	p, err := locate(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("private PostgreSQL: %w", err)
	}
	lock, err := p.takeLock(ctx, cfg.Log, role)
	if err != nil {
		return nil, fmt.Errorf("private PostgreSQL: %w", err)
	}
	s := &Server{p: p, cfg: cfg, lock: lock}
	if err := s.prepareAndRun(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("private PostgreSQL: %w", err), lock.release())
	}
	if p.why != "" {
		cfg.Log.WarnContext(ctx, "private PostgreSQL is not in the data directory", "dir", p.pgdata(), "data_dir", p.dir, "why", p.why)
	}
	cfg.Log.InfoContext(ctx, "private PostgreSQL runs; set MYBOTS_DATABASE_URL to use a server of your own",
		"version", p.bin.version, "dir", p.pgdata(), "user", p.as.name)
	return s, nil
}

func (s *Server) prepareAndRun(ctx context.Context) error {
	exists, err := hasCluster(s.p.home) // again: now we have the lock
	if err != nil {
		return err
	}
	if !exists {
		if err := s.p.create(ctx, s.cfg); err != nil {
			return err
		}
	}
	if err := s.p.own(); err != nil {
		return err
	}
	if s.socketDir, err = s.p.socketDir(); err != nil {
		return err
	}
	if err := s.p.makeSocketDir(s.socketDir); err != nil {
		return err
	}
	begin := time.Now()
	for {
		if err := s.p.clearLeftovers(ctx, s.cfg, s.socketDir); err != nil {
			return err
		}
		err := s.run(ctx)
		if err == nil || !memoryInUse(s.out.tail()) || time.Since(begin) > memoryPatience {
			return err
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// memoryInUse recognizes what a server says that starts while children of its predecessor live.
func memoryInUse(words string) bool {
	return strings.Contains(words, "pre-existing shared memory block") || strings.Contains(words, "is still in use")
}

// run starts the process once and waits until it answers. After an error it is gone.
func (s *Server) run(ctx context.Context) error {
	s.cmd = exec.Command(filepath.Join(s.p.bin.dir, "postgres"), s.p.arguments(s.cfg, s.socketDir)...)
	s.cmd.Dir, s.cmd.Env = s.p.pgdata(), cleanEnv(s.p.home)
	s.cmd.SysProcAttr = childAttr(s.p.as, syscall.SIGINT)
	s.cmd.WaitDelay = time.Second // children of a killed server may hold its output open
	s.out = &output{log: s.cfg.Log, program: "postgres"}
	s.cmd.Stdout, s.cmd.Stderr = s.out, s.out
	s.exited, s.done = make(chan struct{}), make(chan struct{})
	s.stopping = true // until it answers, its end is an error of Start

	started := make(chan error, 1)
	go s.watch(started) // ends with the process
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", s.cmd.Path, err)
	}
	if err := s.awaitReady(ctx); err != nil {
		select {
		case <-s.exited:
			return fmt.Errorf("%s ended instead of starting (%s); it said:\n%s", s.cmd.Path, s.cmd.ProcessState, s.out.tail())
		default:
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fastStop)
		defer cancel()
		return errors.Join(fmt.Errorf("%w; it said:\n%s", err, s.out.tail()), s.end(ctx))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.exited:
		return fmt.Errorf("%s ended at once (%s); it said:\n%s", s.cmd.Path, s.cmd.ProcessState, s.out.tail())
	default:
	}
	s.stopping = false
	return nil
}

// watch starts the process and waits for its end, on one thread: the signal that ends the server with
// us follows the thread that started it.
func (s *Server) watch(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := s.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	err = s.cmd.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.exited)
	if s.stopping {
		return
	}
	s.stopping = true
	s.cfg.Log.Error("private PostgreSQL ended by itself", "dir", s.p.pgdata(), "err", err, "said", s.out.tail())
	if err := s.lock.release(); err != nil {
		s.cfg.Log.Error("private PostgreSQL: release the lock", "err", err)
	}
	close(s.done)
}

// URL is the connection string of the database "mybots".
func (s *Server) URL() string { return connection(s.socketDir, "mybots") }

// connection is a URL, so that a caller can add parameters to it with net/url.
func connection(socketDir, database string) string {
	q := url.Values{"host": {socketDir}, "port": {"5432"}, "sslmode": {"disable"}}
	u := url.URL{
		Scheme: "postgres", User: url.User(superuser), Path: "/" + database,
		RawQuery: strings.ReplaceAll(q.Encode(), "+", "%20"), // libpq knows no other way to write a space
	}
	return u.String()
}

// Dir is the folder of the cluster. It lies in the data directory, or in what stands in for it.
func (s *Server) Dir() string { return s.p.pgdata() }

// PID is the number of the server's process.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Done is closed when PostgreSQL ended by itself, not by Stop. The data directory is free then: call
// Start to run it again.
func (s *Server) Done() <-chan struct{} { return s.done }

// Stop ends the server: connections are closed and open transactions rolled back. If that takes more
// than ten seconds or ctx ends first, it asks for an immediate stop, from which the next start has to
// recover. It returns nil when the process is gone, also if that was before.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	first := !s.stopping
	s.stopping = true
	s.mu.Unlock()
	if !first {
		return s.awaitExit(ctx, fastStop+quitStop)
	}
	err := s.end(ctx)
	if s.socketDir != filepath.Join(s.p.home, "run") {
		err = errors.Join(err, os.Remove(s.socketDir))
	}
	if err = errors.Join(err, s.lock.release()); err != nil {
		return fmt.Errorf("stop the private PostgreSQL: %w", err)
	}
	return nil
}

// end signals the process until it is gone.
func (s *Server) end(ctx context.Context) error {
	if err := s.signal(syscall.SIGINT); err != nil {
		return err
	}
	if s.awaitExit(ctx, fastStop) == nil {
		return nil
	}
	s.cfg.Log.WarnContext(ctx, "private PostgreSQL does not stop, asking for an immediate stop", "dir", s.p.pgdata())
	if err := s.signal(syscall.SIGQUIT); err != nil {
		return err
	}
	if err := s.awaitExit(context.WithoutCancel(ctx), quitStop); err != nil {
		return fmt.Errorf("process %d of %s: %w", s.PID(), s.p.pgdata(), err)
	}
	return nil
}

func (s *Server) signal(sig syscall.Signal) error {
	if err := s.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal process %d: %w", s.PID(), err)
	}
	return nil
}

var errStillRunning = errors.New("still running")

func (s *Server) awaitExit(ctx context.Context, patience time.Duration) error {
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-s.exited:
		return nil
	case <-t.C:
		return errStillRunning
	case <-ctx.Done():
		return errors.Join(errStillRunning, ctx.Err())
	}
}
