//go:build unix

package localpg

import (
	"strings"
	"testing"
)

func TestUse(t *testing.T) {
	t.Parallel()

	t.Run("G-08 beside a running server", func(t *testing.T) {
		t.Parallel()
		cfg, _ := made(t)
		h, _ := spawn(t, cfg.Dir)
		url, release, err := Use(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if url != h.URL {
			t.Errorf("Use = %q, want %q", url, h.URL)
		}
		put(t, url)
		if err := release(); err != nil {
			t.Error(err)
		}
		kept(t, h.URL) // it still runs
		if u, ok := Find(cfg.Dir); !ok || u != h.URL {
			t.Errorf("Find = %q, %v, want %q, true", u, ok, h.URL)
		}
	})

	t.Run("G-02 without a server", func(t *testing.T) {
		t.Parallel()
		cfg, _ := made(t)
		for i := range 2 {
			url, release, err := Use(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				put(t, url)
			}
			kept(t, url)
			if err := release(); err != nil {
				t.Error(err)
			}
			if u, ok := find(cfg); ok {
				t.Errorf("Find = %q after release, want nothing", u)
			}
		}
	})

	t.Run("a command's server waits for other commands, and Start waits for it", func(t *testing.T) {
		t.Parallel()
		cfg, log := made(t)
		first, releaseFirst, err := Use(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		second, releaseSecond, err := Use(t.Context(), cfg)
		if err != nil || second != first {
			t.Fatalf("second Use = %q, %v, want %q", second, err, first)
		}
		put(t, second)
		released := make(chan error, 1)
		go func() { released <- releaseFirst() }() // ends after releaseSecond
		type result struct {
			s   *Server
			err error
		}
		started := make(chan result, 1)
		go func() { // ends when the command's server is stopped
			s, err := Start(t.Context(), cfg)
			started <- result{s, err}
		}()
		for _, words := range []string{"used by another command, waiting", "run by a command, waiting"} {
			eventually(t, words, func() bool { return strings.Contains(log.String(), words) })
		}
		select {
		case err := <-released:
			t.Fatalf("the server was stopped (%v) while the second command uses it", err)
		case r := <-started:
			t.Fatalf("Start = %v while a command's server runs", r.err)
		default:
		}
		kept(t, second)
		if err := releaseSecond(); err != nil {
			t.Error(err)
		}
		if err := <-released; err != nil {
			t.Error(err)
		}
		r := <-started
		if r.err != nil {
			t.Fatal(r.err)
		}
		defer stop(t, r.s)
		kept(t, r.s.URL())
	})
}
