package owner_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/prometheus/client_golang/prometheus"

	"mybots/browsertest"
	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/delivery/chat"
	"mybots/delivery/notice"
	"mybots/delivery/queue"
	"mybots/handlers/owner"
	"mybots/migrations/dbtest"
	"mybots/static"
	"mybots/web"
)

// update rewrites the pictures in docs/screens.
var update = flag.Bool("update", false, "take the screenshots of docs/screens anew")

func TestMain(m *testing.M) { browsertest.Main(m) }

const password = "correct horse"

// handClock is moved by hand.
type handClock struct{ *delivery.ShiftedClock }

func (c *handClock) advance(d time.Duration) { c.SetShift(c.Shift() + d) }

// sessionRows gives web the sessions in its own words.
type sessionRows struct{ *bots.Store }

func (s sessionRows) Session(ctx context.Context, hash []byte) (web.Session, error) {
	row, err := s.Store.Session(ctx, hash)
	p := row.Person
	return web.Session{
		Person:  web.Person{ID: p.ID, Email: p.Email, Role: p.Role, SpaceID: p.SpaceID, SpaceName: p.SpaceName, Language: p.Language},
		Created: row.Created, Seen: row.Seen, Flash: row.Flash,
	}, err
}

// route is one address of the pages, with a posted form that works.
type route struct {
	method, path string // {id} stands for the bot's id
	handler      http.HandlerFunc
	form         url.Values
}

// pattern is the route as the mux takes it.
func (r route) pattern() string { return r.method + " " + r.path }

// routes are all addresses of the handlers (UI-11).
func routes(h *owner.Handler) []route {
	const get, post = http.MethodGet, http.MethodPost
	return []route{
		{get, "/bots", h.Bots, nil},
		{get, "/bots/new", h.NewBot, nil},
		{post, "/bots/new", h.CreateBot, url.Values{"username": {"another_bot"}, "name": {"Another"}}},
		{get, "/bots/{id}/token", h.Token, nil},
		{get, "/bots/{id}/connection", h.Connection, nil},
		{post, "/bots/{id}/connection", h.SaveConnection, url.Values{"mode": {"polling"}, "pending": {"keep"}, "version": {"1"}}},
		{post, "/bots/{id}/connection/drop", h.ConfirmDrop, url.Values{"mode": {"polling"}, "version": {"1"}}},
		{get, "/bots/{id}/connection/secret", h.Secret, nil},
		{post, "/bots/{id}/connection/resume", h.ResumeDelivery, url.Values{}},
		{post, "/bots/{id}/connection/probe", h.ProbeNow, url.Values{}},
		{post, "/bots/{id}/connection/test", h.SendTest, url.Values{}},
		{post, "/bots/{id}/connection/check", h.CheckSignature, url.Values{"header": {"t=1"}, "body": {"{}"}}},
		{get, "/bots/{id}/connection/reset", h.ConfirmReset, nil},
		{post, "/bots/{id}/connection/reset", h.Reset, url.Values{}},
		{get, "/bots/{id}/connection/emergency-reset", h.ConfirmEmergencyReset, nil},
		{post, "/bots/{id}/connection/emergency-reset", h.EmergencyReset, url.Values{}},
		{post, "/bots/{id}/pause", h.Pause, url.Values{"paused": {"on"}}},
		{get, "/bots/{id}/failed", h.Failed, nil},
		{post, "/bots/{id}/failed/retry", h.Retry, url.Values{"update_id": {"1"}}},
		{get, "/bots/{id}/failed/skip", h.ConfirmSkip, url.Values{"update_id": {"1"}}},
		{post, "/bots/{id}/failed/skip", h.Skip, url.Values{"update_id": {"1"}}},
		{get, "/bots/{id}/settings", h.Settings, nil},
		{get, "/bots/{id}/delete", h.ConfirmDelete, nil},
		{post, "/bots/{id}/delete", h.Delete, url.Values{"username": {"robot"}}},
		{get, "/bots/{id}/chat", h.Chat, nil},
		{post, "/bots/{id}/chat", h.Write, url.Values{"text": {"hello"}}},
		{post, "/bots/{id}/chat/press", h.Press, url.Values{"message_id": {"1"}, "row": {"0"}, "place": {"0"}}},
		{post, "/bots/{id}/chat/again", h.Again, url.Values{"message_id": {"1"}}},
		{post, "/bots/{id}/chat/edit", h.EditMessage, url.Values{"message_id": {"1"}, "text": {"hello again"}}},
		{post, "/bots/{id}/chat/delete", h.DeleteMessage, url.Values{"message_id": {"1"}}},
		{post, "/bots/{id}/chat/access", h.ChangeAccess, url.Values{"access": {"stopped"}}},
		{post, "/bots/{id}/chat/file", h.AttachFile, url.Values{"name": {"invoice.pdf"}}},
		{post, "/bots/{id}/chat/check", h.FinishCheck, url.Values{"message_id": {"1"}, "result": {"clean"}}},
		{get, "/botfather/{space}", h.BotFather, nil},
		{post, "/botfather/{space}/start", h.StartBotFather, url.Values{"language": {"en"}}},
	}
}

// rig is the pages on a real database, served on 127.0.0.1.
type rig struct {
	t       *testing.T
	db      *sqlx.DB
	clock   *handClock
	queue   *queue.Queue
	bots    *bots.Store
	chats   *chat.Store
	notices *notice.Store
	hooks   *hooks
	url     string
	list    []route
	space   int64
}

func newRig(t *testing.T, change ...func(*owner.Options)) *rig {
	t.Helper()
	return newRigAt(t, 0, change...)
}

// newRigAt is newRig with a clock that is ahead of the real one by shift.
func newRigAt(t *testing.T, shift time.Duration, change ...func(*owner.Options)) *rig {
	t.Helper()
	r := &rig{t: t, hooks: &hooks{answer: delivery.Answer{Kind: delivery.Answered, Status: 200}}, db: dbtest.Open(t), clock: &handClock{delivery.NewClock(shift)}}
	r.notices = notice.New(notice.Options{DB: r.db, Clock: r.clock, BaseURL: func() *url.URL { return nil }})
	r.queue = queue.New(r.db, r.clock, func(int64) {}, queue.Telling(r.notices.Record))
	t.Cleanup(r.queue.Close)
	sealer, err := bots.NewSealer(make([]byte, 32))
	r.must(err)
	r.bots = bots.New(r.db, r.clock, r.queue, sealer)
	r.chats = chat.New(r.db, r.clock, r.queue, false)
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))

	server := httptest.NewUnstartedServer(nil)
	base := &url.URL{Scheme: "http", Host: server.Listener.Addr().String()}
	r.url = base.String()
	f := web.New(web.Options{Log: log, Clock: r.clock, Rows: sessionRows{r.bots}, Accounts: r.bots, BaseURL: base})
	m := http.NewServeMux()
	m.HandleFunc("GET /{$}", f.Root)
	m.HandleFunc("GET /login", f.SignInPage)
	m.HandleFunc("POST /login", f.SignIn)
	m.HandleFunc("POST /logout", f.SignOut)
	m.HandleFunc("POST /settings/language", f.SetLanguage)
	m.HandleFunc("POST /settings/theme", f.SetTheme)
	options := owner.Options{Log: log, Bots: r.bots, Queue: r.queue, Chat: r.chats, Notices: r.notices, BaseURL: base, Guard: r.hooks, Sender: r.hooks}
	for _, c := range change {
		c(&options)
	}
	r.list = routes(owner.New(options))
	for _, route := range r.list {
		m.Handle(route.pattern(), f.RequireRole(route.handler, web.Owner))
	}
	root := http.NewServeMux()
	root.Handle("GET "+static.Prefix, static.Handler())
	root.Handle("/", f.Browser(web.Pages(m)))
	server.Config.Handler = web.Observe(slog.New(slog.DiscardHandler), root)
	server.Start()
	t.Cleanup(server.Close)
	r.space, err = r.bots.AddSpace(t.Context(), "Green shop")
	r.must(err)
	return r
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// fill appends n events to the bot's queue; they happened age ago.
func (r *rig) fill(botID int64, n int, age ...time.Duration) {
	r.t.Helper()
	date := r.clock.Now()
	for _, a := range age {
		date = date.Add(-a)
	}
	for n > 0 {
		events := make([]delivery.Event, min(n, 500))
		for i := range events {
			events[i] = delivery.Event{
				BotID: botID, EventID: uuid.NewString(), Type: "message", ChatID: 550, Date: date,
				Payload: []byte(`{"text":"hello"}`),
			}
		}
		results, err := r.queue.Append(r.t.Context(), events)
		r.must(err)
		for _, res := range results {
			if res.Refusal != nil {
				r.t.Fatalf("append: got %v, want no refusal", res.Refusal)
			}
		}
		n -= len(events)
	}
}

// poll does one getUpdates call as the bot's program would.
func (r *rig) poll(botID int64, consumer string, timeout time.Duration) (queue.Received, error) {
	r.t.Helper()
	return r.queue.Receive(r.t.Context(), botID, delivery.Poll{ConsumerID: consumer, Timeout: timeout, Limit: 100}, "203.0.113.9")
}

// reply writes into the person's test chat as the bot.
func (p *person) reply(botID int64, text string, buttons ...[]chat.Button) {
	p.rig.t.Helper()
	ctx := p.rig.t.Context()
	b, err := p.rig.bots.Owned(ctx, p.id, botID)
	p.rig.must(err)
	_, _, err = p.rig.chats.Send(ctx, chat.Bot{ID: b.ID, Username: b.Username, Name: b.Name},
		queue.Once{BotID: botID, Key: uuid.NewString(), Fingerprint: []byte("x")},
		chat.Outgoing{ChatID: chat.TestChatID(p.id), Text: text, Buttons: buttons})
	p.rig.must(err)
}

// here is a page of the bot.
func here(botID int64, page string) string { return fmt.Sprintf("/bots/%d/%s", botID, page) }

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// notify runs the worker until BotFather has written all that it should.
func (r *rig) notify() {
	r.t.Helper()
	w := notice.NewWorker(r.notices, nil, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	ctx, stop := context.WithCancel(r.t.Context())
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx) }) // ends with ctx
	for waiting, end := 1, time.Now().Add(time.Minute); waiting > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatal("the worker leaves notices unsent")
		}
		r.must(r.db.GetContext(ctx, &waiting, `SELECT count(*) FROM notices WHERE state = 'queued'`))
	}
	stop()
	running.Wait()
}
