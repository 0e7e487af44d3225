package queue_test

import (
	"fmt"
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

// rig is a queue with one bot on a database and a clock of its own.
type rig struct {
	*queue.Queue
	t     *testing.T
	db    *sqlx.DB
	clock *handClock
	bots  *bots.Store
	bot   int64
	rings chan int64
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return rigOn(t, dbtest.Open(t))
}

func rigOn(t *testing.T, db *sqlx.DB) *rig {
	t.Helper()
	r := &rig{t: t, db: db, clock: newHandClock(), rings: make(chan int64, 10_000)}
	r.Queue = queue.New(db, r.clock, func(bot int64) {
		select {
		case r.rings <- bot:
		default:
		}
	})
	t.Cleanup(r.Close)
	sealer, err := bots.NewSealer(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	r.bots = bots.New(db, r.clock, r.Queue, sealer)
	r.bot = r.addBot("robot")
	return r
}

// addBot adds a bot with a space and an owner of its own.
func (r *rig) addBot(username string) int64 {
	r.t.Helper()
	ctx := r.t.Context()
	space, err := r.bots.AddSpace(ctx, "Space of "+username)
	if err != nil {
		r.t.Fatal(err)
	}
	var owner int64
	err = r.db.GetContext(ctx, &owner, `
INSERT INTO people (space_id, email, email_key, password_hash, role, created_at) VALUES ($1, $2, $2, 'none', 'owner', $3) RETURNING user_id`,
		space, username+"@example.com", r.clock.Now())
	if err != nil {
		r.t.Fatal(err)
	}
	b, _, err := r.bots.Create(ctx, bots.NewBot{SpaceID: space, OwnerID: owner, Username: username, Name: username})
	if err != nil {
		r.t.Fatal(err)
	}
	return b.ID
}

func event(bot int64, text string) delivery.Event {
	return delivery.Event{
		BotID: bot, EventID: uuid.NewString(), Type: "message", ChatID: 550,
		Date:    time.Date(2026, 9, 26, 10, 0, 0, 0, time.UTC),
		Payload: fmt.Appendf(nil, `{"text":%q}`, text),
	}
}

// append takes n new events in for the bot and returns their ids.
func (r *rig) append(n int) []int64 {
	r.t.Helper()
	events := make([]delivery.Event, n)
	for i := range events {
		events[i] = event(r.bot, fmt.Sprint("event ", i))
	}
	results, err := r.Append(r.t.Context(), events)
	if err != nil {
		r.t.Fatalf("append %d events: %v", n, err)
	}
	ids := make([]int64, n)
	for i, res := range results {
		if res.Refusal != nil {
			r.t.Fatalf("event %d was refused: %v", i, res.Refusal)
		}
		ids[i] = res.UpdateID
	}
	return ids
}

// handClock stands still until it is moved by hand.
type handClock struct {
	mu  sync.Mutex
	now time.Time
}

func newHandClock() *handClock {
	return &handClock{now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}
}

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// At implements delivery.Clock; the queue sets no timers.
func (c *handClock) At(time.Time) (<-chan struct{}, func()) { return make(chan struct{}), func() {} }

func (c *handClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
