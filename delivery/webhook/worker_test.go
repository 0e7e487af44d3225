package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/delivery/queue"
	"mybots/migrations/dbtest"
)

// place is a database with bots that receive by webhook, and workers on it.
type place struct {
	t     *testing.T
	db    *sqlx.DB
	clock *delivery.ShiftedClock
	queue *queue.Queue
	bots  *bots.Store
	owner int64
	space int64

	mu      sync.Mutex
	workers []*Worker
}

func newPlace(t *testing.T) *place {
	t.Helper()
	s := &place{t: t, db: dbtest.Open(t), clock: delivery.NewClock(0)}
	s.queue = queue.New(s.db, s.clock, func(botID int64) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, w := range s.workers {
			w.Ring(botID)
		}
	})
	t.Cleanup(s.queue.Close)
	sealer, err := bots.NewSealer(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	s.bots = bots.New(s.db, s.clock, s.queue, sealer)
	if s.space, err = s.bots.AddSpace(t.Context(), "Space"); err != nil {
		t.Fatal(err)
	}
	if err := s.db.GetContext(t.Context(), &s.owner, `
INSERT INTO people (space_id, email, email_key, password_hash, role, created_at) VALUES ($1, 'a@example.com', 'a@example.com', 'none', 'owner', $2) RETURNING user_id`,
		s.space, s.clock.Now()); err != nil {
		t.Fatal(err)
	}
	return s
}

// bot adds a bot with a webhook.
func (s *place) bot(name string) int64 {
	s.t.Helper()
	b, _, err := s.bots.Create(s.t.Context(), bots.NewBot{SpaceID: s.space, OwnerID: s.owner, Username: name, Name: name})
	if err != nil {
		s.t.Fatal(err)
	}
	s.save(b.ID)
	return b.ID
}

// save makes a new secret for the bot's webhook.
func (s *place) save(botID int64) delivery.Secret {
	s.t.Helper()
	secret, _, err := s.bots.SaveWebhook(s.t.Context(), bots.Actor{UserID: s.owner}, botID, s.status(botID).SettingsVersion, "https://hooks.example.com/", false)
	if err != nil {
		s.t.Fatal(err)
	}
	return secret
}

func (s *place) status(botID int64) queue.Status {
	s.t.Helper()
	st, err := s.queue.Status(s.t.Context(), botID)
	if err != nil {
		s.t.Fatal(err)
	}
	return st
}

func (s *place) append(botID int64, n int) {
	s.t.Helper()
	events := make([]delivery.Event, n)
	for i := range events {
		events[i] = delivery.Event{BotID: botID, EventID: uuid.NewString(), Type: "message", ChatID: 5, Date: s.clock.Now(), Payload: []byte(`{}`)}
	}
	if _, err := s.queue.Append(s.t.Context(), events); err != nil {
		s.t.Fatal(err)
	}
}

// work starts a worker; it and its stop end with the test.
func (s *place) work(p Poster, change func(*Worker)) (stop func()) {
	s.t.Helper()
	w := newWorker(s.queue, s.bots, p, s.clock, slog.New(slog.NewTextHandler(s.t.Output(), nil)))
	if change != nil {
		change(w)
	}
	s.mu.Lock()
	s.workers = append(s.workers, w)
	s.mu.Unlock()
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	done := make(chan struct{})
	go func() { // ends with cancel
		defer close(done)
		w.Run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	s.t.Cleanup(stop)
	return stop
}

// posted is a request that an endpoint got and hasn't answered.
type posted struct {
	Request
	ctx    context.Context
	answer chan<- delivery.Answer
}

// answerer hands every request to the test and notes overlaps.
type answerer struct {
	calls chan posted
	mu    sync.Mutex
	busy  map[int64]int
	most  int // requests of one bot at a time
}

func newAnswerer() *answerer { return &answerer{calls: make(chan posted, 1000), busy: map[int64]int{}} }

func (e *answerer) Send(ctx context.Context, r Request) delivery.Answer {
	e.mu.Lock()
	e.busy[r.BotID]++
	e.most = max(e.most, e.busy[r.BotID])
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.busy[r.BotID]--
	}()
	answer := make(chan delivery.Answer, 1)
	e.calls <- posted{r, ctx, answer}
	select {
	case a := <-answer:
		return a
	case <-ctx.Done():
		return delivery.Answer{Kind: delivery.Cut}
	}
}

func (e *answerer) Forget(int64) {}

// next waits for the next request.
func (e *answerer) next(t *testing.T) posted {
	t.Helper()
	select {
	case c := <-e.calls:
		return c
	case <-time.After(20 * time.Second):
		t.Fatal("no request came")
		return posted{}
	}
}

func withStatus(status int) delivery.Answer {
	return delivery.Answer{Kind: delivery.Answered, Status: status}
}

// until waits for a state of a bot's queue.
func (s *place) until(botID int64, what string, is func(queue.Status) bool) {
	s.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		st := s.status(botID)
		if is(st) {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("waited in vain for: %s; %+v", what, st)
		}
	}
}

func TestWorker(t *testing.T) {
	t.Parallel()
	t.Run("W-05 in order, one at a time, each once", func(t *testing.T) {
		t.Parallel()
		s, e := newPlace(t), newAnswerer()
		bot := s.bot("robot")
		s.append(bot, 20)
		s.work(e, nil)
		s.work(e, nil)
		s.append(bot, 20)
		for want := int64(1); want <= 40; want++ {
			c := e.next(t)
			if c.Update.UpdateID != want || c.Attempt != 1 {
				t.Fatalf("got update %d, attempt %d; want %d, 1", c.Update.UpdateID, c.Attempt, want)
			}
			c.answer <- withStatus(200)
		}
		s.until(bot, "an empty queue", func(st queue.Status) bool { return st.Waiting == 0 })
		if e.most != 1 {
			t.Errorf("%d requests at a time", e.most)
		}
	})
	t.Run("W-10 a wait ends by the product's clock", func(t *testing.T) {
		t.Parallel()
		s, e := newPlace(t), newAnswerer()
		bot := s.bot("robot")
		s.append(bot, 1)
		s.work(e, nil)
		e.next(t).answer <- withStatus(500)
		s.until(bot, "a charged attempt", func(st queue.Status) bool { return st.Hook.Head.Charged == 1 })
		s.clock.SetShift(5 * time.Second)
		if c := e.next(t); c.Attempt != 2 {
			t.Errorf("attempt %d, want 2", c.Attempt)
		} else {
			c.answer <- withStatus(422)
		}
		s.until(bot, "FAILED", func(st queue.Status) bool { return st.Failed == 1 && st.Waiting == 0 })
	})
	t.Run("W-13 a new secret cuts the request off and the next one begins after that", func(t *testing.T) {
		t.Parallel()
		s, e := newPlace(t), newAnswerer()
		bot := s.bot("robot")
		s.append(bot, 1)
		s.work(e, nil)
		first := e.next(t)
		secret := s.save(bot)
		select {
		case <-first.ctx.Done():
		case <-time.After(10 * time.Second):
			t.Fatal("the request wasn't cut off")
		}
		second := e.next(t)
		if string(second.Secret) != string(secret) || second.Update.EventID != first.Update.EventID || second.Attempt != 2 {
			t.Errorf("the next request: update %s, attempt %d, new secret %v", second.Update.EventID, second.Attempt, string(second.Secret) == string(secret))
		}
		second.answer <- withStatus(200)
		s.until(bot, "an empty queue", func(st queue.Status) bool { return st.Waiting == 0 })
		if e.most != 1 {
			t.Errorf("%d requests at a time", e.most)
		}
	})
	for name, late := range map[string]delivery.Answer{"200": withStatus(200), "422": withStatus(422)} {
		t.Run("W-13 a "+name+" that comes between the fence and the cut: the next request begins at once", func(t *testing.T) {
			t.Parallel()
			s, e := newPlace(t), newAnswerer()
			bot := s.bot("robot")
			s.append(bot, 1)
			s.work(e, func(w *Worker) { w.queue = blind{s.queue} })
			first := e.next(t)
			s.save(bot)
			began := time.Now()
			first.answer <- late
			second := e.next(t)
			if took := time.Since(began); took > queue.ClaimTime/2 {
				t.Errorf("the next request came after %v: the claim wasn't given up", took)
			}
			second.answer <- withStatus(200)
			s.until(bot, "an empty queue", func(st queue.Status) bool { return st.Waiting == 0 && st.Failed == 0 })
		})
	}
	t.Run("W-13 over replicas the new request waits until the old one's claim is given up", func(t *testing.T) {
		t.Parallel()
		s, e, other := newPlace(t), newAnswerer(), newAnswerer()
		bot := s.bot("robot")
		s.append(bot, 1)
		stop := s.work(e, nil)
		first := e.next(t)
		s.work(other, nil)
		s.save(bot)
		<-first.ctx.Done()
		stop()
		other.next(t).answer <- withStatus(200)
		s.until(bot, "an empty queue", func(st queue.Status) bool { return st.Waiting == 0 })
	})
	t.Run("G-04 at the stop a request finishes and counts, and nothing new is claimed", func(t *testing.T) {
		t.Parallel()
		s, e := newPlace(t), newAnswerer()
		bot := s.bot("robot")
		s.append(bot, 2)
		stop := s.work(e, nil)
		c := e.next(t)
		stopped := make(chan struct{})
		go func() { defer close(stopped); stop() }()
		c.answer <- withStatus(200)
		want := int64(2)
		for open := true; open; {
			select {
			case c := <-e.calls: // the answer was faster than the stop
				c.answer <- withStatus(200)
				want = 3
			case <-stopped:
				open = false
			}
		}
		if st := s.status(bot); st.Confirmed != want {
			t.Errorf("the position is %d, want %d", st.Confirmed, want)
		}
	})
	t.Run("W-05 bots in trouble leave slots to the others", func(t *testing.T) {
		t.Parallel()
		s, e := newPlace(t), newAnswerer()
		var holes []int64
		for i := range 4 {
			holes = append(holes, s.bot(fmt.Sprintf("hole%d", i)))
			s.append(holes[i], 1)
		}
		// They failed before, and are due again.
		s.db.MustExec(`UPDATE queues SET connect_failures = 1, due_at = $1`, s.clock.Now().Add(-time.Second))
		s.work(e, func(w *Worker) { w.slots, w.calm = 4, 2 })
		first, second := e.next(t), e.next(t)
		well := s.bot("well")
		s.append(well, 1)
		third := e.next(t)
		if third.BotID != well || slices.Contains(holes, third.BotID) {
			t.Fatalf("the third request is bot %d's, want the healthy one's, %d", third.BotID, well)
		}
		third.answer <- withStatus(200)
		first.answer <- withStatus(200)
		if c := e.next(t); !slices.Contains(holes, c.BotID) {
			t.Errorf("then came bot %d", c.BotID)
		} else {
			c.answer <- withStatus(200)
		}
		second.answer <- withStatus(200)
		e.next(t).answer <- withStatus(200)
	})
	t.Run("W-05 an answer is confirmed although the database was away for a while", func(t *testing.T) {
		t.Parallel()
		s, e := newPlace(t), newAnswerer()
		bot := s.bot("robot")
		s.append(bot, 1)
		away := &flaky{queues: s.queue, left: 3}
		s.work(e, func(w *Worker) { w.queue = away })
		e.next(t).answer <- withStatus(200)
		s.until(bot, "an empty queue", func(st queue.Status) bool { return st.Waiting == 0 })
		select {
		case c := <-e.calls:
			t.Errorf("the update was sent again: %+v", c.Update)
		default:
		}
	})
	t.Run("W-13 a secret that doesn't open pauses nobody", func(t *testing.T) {
		t.Parallel()
		s, e := newPlace(t), newAnswerer()
		bot, well := s.bot("robot"), s.bot("well")
		s.db.MustExec(`UPDATE webhooks SET secret = (SELECT secret FROM webhooks WHERE bot_id = $2) WHERE bot_id = $1`, bot, well)
		s.append(bot, 1)
		s.append(well, 1)
		s.work(e, nil)
		if c := e.next(t); c.BotID != well {
			t.Errorf("a request went out for bot %d", c.BotID)
		} else {
			c.answer <- withStatus(200)
		}
		s.until(well, "an empty queue", func(st queue.Status) bool { return st.Waiting == 0 })
		if st := s.status(bot); st.Waiting != 1 || st.Hook.Paused != "" || st.Hook.LastError.Code != "" {
			t.Errorf("the bot whose secret doesn't open: %+v", st.Hook)
		}
	})
	t.Run("Q-01 an expired head makes room for the next", func(t *testing.T) {
		t.Parallel()
		s, e := newPlace(t), newAnswerer()
		bot := s.bot("robot")
		s.append(bot, 1)
		s.clock.SetShift(delivery.Retention + time.Hour)
		s.append(bot, 1)
		s.work(e, nil)
		if c := e.next(t); c.Update.UpdateID != 2 {
			t.Errorf("got update %d, want 2", c.Update.UpdateID)
		} else {
			c.answer <- withStatus(200)
		}
		s.until(bot, "an empty queue", func(st queue.Status) bool { return st.Waiting == 0 })
	})
}

// blind is a queue in which no fence is seen before the answer.
type blind struct{ queues }

func (blind) Fenced(context.Context, []int64, []int64) ([]int64, error) { return nil, nil }

// flaky is a queue whose first confirmations don't reach the database.
type flaky struct {
	queues
	mu   sync.Mutex
	left int
}

func (f *flaky) Confirm(ctx context.Context, c queue.Claim, status int, took time.Duration, next bool) (*queue.Claim, error) {
	f.mu.Lock()
	away := f.left > 0
	f.left--
	f.mu.Unlock()
	if away {
		return nil, errors.Join(delivery.ErrUnavailable, errors.New("connection refused"))
	}
	return f.queues.Confirm(ctx, c, status, took, next)
}
