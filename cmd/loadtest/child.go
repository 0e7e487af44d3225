package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// child is a process `mybots serve` on the site's database, with its default
// settings.
type child struct {
	cmd     *exec.Cmd
	log     string // the file that it logs to
	address string // of its public side
	admin   string
	exited  chan struct{}
}

// startTime and stopTime bound the child's start and its end.
const (
	startTime = 60 * time.Second
	stopTime  = 20 * time.Second
)

// startChild starts a child with these settings beside the default ones and
// waits until it listens.
func (s *site) startChild(ctx context.Context, settings ...string) (*child, error) {
	log, err := os.Create(filepath.Join(s.folder, "mybots.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own handle
	c := &child{log: log.Name(), exited: make(chan struct{})}
	c.cmd = exec.Command(s.binary, "serve")
	c.cmd.Dir = s.folder
	c.cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.folder,
		"MYBOTS_ADDR=127.0.0.1:0", "MYBOTS_ADMIN_ADDR=127.0.0.1:0", "MYBOTS_DATABASE_URL=" + s.server.URL(),
		"MYBOTS_SECRET_KEY=" + strings.Repeat("00", 32),
	}, settings...)
	c.cmd.Stdout, c.cmd.Stderr = log, log
	c.cmd.SysProcAttr = childAttr()
	started := make(chan error, 1)
	go func() { // ends with the child; the signal that ends it with us follows this thread
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.cmd.Start()
		started <- err
		if err == nil {
			_ = c.cmd.Wait() // how it ended is in ProcessState
			close(c.exited)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start mybots: %w", err)
	}
	if err := c.awaitListening(ctx); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

func (c *child) awaitListening(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		text, err := os.ReadFile(c.log)
		if err != nil {
			return err
		}
		for line := range bytes.Lines(text) {
			var said struct{ Msg, Addr string }
			if json.Unmarshal(line, &said) != nil {
				continue
			}
			switch said.Msg {
			case "metrics and profiles":
				c.admin = said.Addr
			case "listening":
				c.address = said.Addr
			}
		}
		if c.address != "" && c.admin != "" {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-c.exited:
			return fmt.Errorf("mybots ended instead of listening: %v\n%s", c.cmd.ProcessState, text)
		case <-ctx.Done():
			return fmt.Errorf("mybots doesn't listen: %w\n%s", ctx.Err(), text)
		}
	}
}

// stop asks the child to stop and waits for its end.
func (c *child) stop() error {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-c.exited:
		if !c.cmd.ProcessState.Success() {
			return fmt.Errorf("mybots ended with %v; it said at last:\n%s", c.cmd.ProcessState, tail(c.log))
		}
		return nil
	case <-time.After(stopTime):
	}
	err := c.cmd.Process.Kill()
	<-c.exited
	return errors.Join(fmt.Errorf("mybots wasn't gone %v after SIGTERM", stopTime), err)
}

// tail returns the end of a file, for the reader of an error.
func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2_000):])
}

// metrics returns the child's plain metrics by name; those with labels are added up.
func (c *child) metrics(ctx context.Context) (map[string]float64, error) {
	text, err := c.get(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	list := map[string]float64{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		line := lines.Text()
		name, value := line, ""
		if i := strings.LastIndexByte(line, ' '); i > 0 {
			name, value = line[:i], line[i+1:]
		}
		name, _, _ = strings.Cut(name, "{")
		if v, err := strconv.ParseFloat(value, 64); err == nil && !strings.HasPrefix(line, "#") {
			list[name] += v
		}
	}
	return list, nil
}

func (c *child) get(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.admin+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept-Encoding", "identity") // packing would take memory that is measured
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(resp.Body); err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", path, resp.Status)
	}
	return b.Bytes(), nil
}
