package notice

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/audit"
	"mybots/delivery/bots"
	"mybots/delivery/queue"
	"mybots/migrations/dbtest"
)

// rig is an outbox that a queue tells of trouble, with one bot that receives by
// webhook and whose owner has opened BotFather.
type rig struct {
	*Store
	t     *testing.T
	db    *sqlx.DB
	clock *handClock
	queue *queue.Queue
	bots  *bots.Store
	bot   bots.Bot
}

var base = &url.URL{Scheme: "https", Host: "bots.example.com"}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, db: dbtest.Open(t), clock: &handClock{now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}}
	r.Store = New(Options{DB: r.db, Clock: r.clock, BaseURL: func() *url.URL { return base }, MAX: true})
	r.queue = queue.New(r.db, r.clock, func(int64) {}, queue.Telling(r.Record))
	t.Cleanup(r.queue.Close)
	sealer, err := bots.NewSealer(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	r.bots = bots.New(r.db, r.clock, r.queue, sealer)
	r.bot = r.addBot("robot")
	r.open(r.bot, English)
	return r
}

// addBot adds a bot that receives by webhook, with a space and an owner of its own.
func (r *rig) addBot(username string) bots.Bot {
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
	b, _, err := r.bots.Create(ctx, bots.NewBot{SpaceID: space, OwnerID: owner, Username: username, Name: "The " + username})
	if err != nil {
		r.t.Fatal(err)
	}
	if _, _, err := r.bots.SaveWebhook(ctx, bots.Actor{UserID: owner}, b.ID, 1, "https://hooks.example.com/?token=hush-hush", false); err != nil {
		r.t.Fatal(err)
	}
	return b
}

// open opens BotFather for the bot's owner.
func (r *rig) open(b bots.Bot, language string) {
	r.t.Helper()
	if err := r.OpenChat(r.t.Context(), b.SpaceID, b.OwnerID, language); err != nil {
		r.t.Fatal(err)
	}
}

// linkMAX links the bot's owner to an account at MAX.
func (r *rig) linkMAX(b bots.Bot, account int64) {
	r.t.Helper()
	code, err := r.NewCode(r.t.Context(), b.OwnerID)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.Link(r.t.Context(), account, string(code)); err != nil {
		r.t.Fatal(err)
	}
}

// closeChat is an owner who never opened BotFather.
func (r *rig) closeChat(b bots.Bot) {
	r.db.MustExec(`DELETE FROM botfather_chats WHERE user_id = $1`, b.OwnerID)
}

// answer lets the webhook of the bot answer an attempt for an update.
func (r *rig) answer(b bots.Bot, a delivery.Answer) {
	r.t.Helper()
	if err := r.tryAnswer(b, a); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) tryAnswer(b bots.Bot, a delivery.Answer) error {
	r.t.Helper()
	ctx := r.t.Context()
	var waiting int
	if err := r.db.GetContext(ctx, &waiting, `SELECT waiting FROM queues WHERE bot_id = $1`, b.ID); err != nil {
		r.t.Fatal(err)
	}
	if waiting == 0 {
		_, err := r.queue.Append(ctx, []delivery.Event{{BotID: b.ID, EventID: uuid.NewString(), Type: "message", Date: r.clock.Now(), Payload: []byte(`{"text":"private-words"}`)}})
		if err != nil {
			r.t.Fatal(err)
		}
	}
	got, err := r.queue.Claim(ctx, []int64{b.ID}, 1)
	if err != nil || len(got.Claims) != 1 {
		r.t.Fatalf("claim: %d, %v; want 1", len(got.Claims), err)
	}
	_, _, err = r.queue.Settle(ctx, got.Claims[0], a, time.Millisecond)
	return err
}

func status(code int) delivery.Answer { return delivery.Answer{Kind: delivery.Answered, Status: code} }

func (r *rig) resume(b bots.Bot) {
	r.t.Helper()
	if err := r.bots.ResumeWebhook(r.t.Context(), bots.Actor{UserID: b.OwnerID}, b.ID); err != nil {
		r.t.Fatal(err)
	}
}

// pause lets delivery pause, once more if it is paused.
func (r *rig) pause(b bots.Bot) {
	r.t.Helper()
	r.resume(b)
	r.answer(b, status(401))
}

// lines are all notices, the first first.
func (r *rig) lines() []Line {
	r.t.Helper()
	list, err := r.List(r.t.Context(), Filter{}, 0, 10_000)
	if err != nil {
		r.t.Fatal(err)
	}
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
	return list
}

// only is the one notice that there is.
func (r *rig) only() Line {
	r.t.Helper()
	list := r.lines()
	if len(list) != 1 {
		r.t.Fatalf("got %d notices, want 1: %+v", len(list), list)
	}
	return list[0]
}

// step lets the worker's lane take one notice.
func (r *rig) step(route string, urgent bool) claimed {
	r.t.Helper()
	c, err := r.next(r.t.Context(), lane{route, urgent})
	if err != nil {
		r.t.Fatalf("next by %s: %v", route, err)
	}
	return c
}

// chat are the texts in the owner's BotFather chat, the first first.
func (r *rig) chat(b bots.Bot) []Message {
	r.t.Helper()
	list, err := r.Messages(r.t.Context(), b.SpaceID, b.OwnerID, 0, 10_000)
	if err != nil {
		r.t.Fatal(err)
	}
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
	return list
}

// anybody is support that may do everything; what it did stands in deeds.
type deeds struct{ list []audit.Entry }

func (d *deeds) within(_ context.Context, _ *sqlx.Tx, e audit.Entry) error {
	d.list = append(d.list, e)
	return nil
}

func (d *deeds) last() string {
	if len(d.list) == 0 {
		return "none"
	}
	e := d.list[len(d.list)-1]
	return fmt.Sprintf("%s %s %s -> %s", e.Action, e.Detail, e.Before, e.After)
}

// handClock stands still until it is moved by hand.
type handClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// At implements delivery.Clock; nothing that these tests step through sets a timer.
func (c *handClock) At(time.Time) (<-chan struct{}, func()) { return make(chan struct{}), func() {} }

func (c *handClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
