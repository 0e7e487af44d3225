package botkit_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mybots/botkit"
	"mybots/botkit/bottest"
)

// rig is a bot against a fake server. It lives inside a synctest bubble, which
// also fails a test that leaves a goroutine behind.
type rig struct {
	t      *testing.T
	server *bottest.Server
	bot    *botkit.Bot
	cancel context.CancelFunc
	ended  chan error
}

// newRig makes a bot named "test"; nothing runs yet.
func newRig(t *testing.T, handler botkit.Handler, o botkit.Options) *rig {
	t.Helper()
	server := bottest.New(t)
	return &rig{t: t, server: server, bot: newBot(t, server, handler, o)}
}

func newBot(t *testing.T, server *bottest.Server, handler botkit.Handler, o botkit.Options) *botkit.Bot {
	t.Helper()
	if o.ConsumerID == "" {
		o.ConsumerID = "test"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	bot, err := botkit.New(server.Client(), handler, o)
	if err != nil {
		t.Fatal(err)
	}
	return bot
}

// poll starts polling.
func (r *rig) poll() {
	ctx, cancel := context.WithCancel(r.t.Context())
	r.cancel, r.ended = cancel, make(chan error, 1)
	go func() { r.ended <- r.bot.Poll(ctx) }() // ends with cancel
}

// stop ends polling and returns what Poll returned.
func (r *rig) stop() error {
	r.t.Helper()
	r.cancel()
	synctest.Wait()
	select {
	case err := <-r.ended:
		return err
	case <-time.After(30 * time.Second):
		r.t.Fatal("Poll goes on after its context has ended")
		return nil
	}
}

// after lets the bubble's time run.
func after(d time.Duration) {
	time.Sleep(d) // the bubble's own clock: it takes no time
	synctest.Wait()
}

// seen is a handler that writes down what it was given.
type seen struct {
	mu    sync.Mutex
	ids   []botkit.ID
	texts []string
	do    func(ctx context.Context, u *botkit.Update) error // nil: succeeds
}

func (s *seen) Handle(ctx context.Context, u *botkit.Update) error {
	s.mu.Lock()
	s.ids = append(s.ids, u.UpdateID)
	if u.Message != nil {
		s.texts = append(s.texts, u.Message.Text)
	}
	s.mu.Unlock()
	if s.do != nil {
		return s.do(ctx, u)
	}
	return nil
}

func (s *seen) got() []botkit.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]botkit.ID{}, s.ids...)
}

var errBug = errors.New("a bug")

// bubble runs a parallel test in a synctest bubble.
func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, f)
	})
}
