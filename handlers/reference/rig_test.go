package reference_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/prometheus/client_golang/prometheus"

	"mybots/browsertest"
	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/delivery/chat"
	"mybots/delivery/notice"
	"mybots/delivery/pg"
	"mybots/delivery/queue"
	"mybots/delivery/wake"
	"mybots/handlers"
	"mybots/handlers/reference/referencetest"
	"mybots/migrations/dbtest"
)

func TestMain(m *testing.M) { browsertest.Main(m) }

const password = "correct horse battery"

// handClock is moved by hand.
type handClock struct{ *delivery.ShiftedClock }

func (c *handClock) advance(d time.Duration) { c.SetShift(c.Shift() + d) }

// logged keeps all that the program logs.
type logged struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// rig is the whole public side on a real database, served on 127.0.0.1, with one owner.
type rig struct {
	t        *testing.T
	db       *sqlx.DB
	clock    *handClock
	queue    *queue.Queue
	bots     *bots.Store
	chats    *chat.Store
	log      *logged
	url      string
	space    int64
	owner    int64
	contract *referencetest.Contract
	names    atomic.Int64 // of bots
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := newRigOn(t, dbtest.Open(t))
	var err error
	r.space, err = r.bots.AddSpace(t.Context(), "Green shop")
	r.must(err)
	r.owner, err = r.bots.AddPerson(t.Context(), bots.NewPerson{SpaceID: r.space, Email: "anna@example.org", Role: "owner", Password: password})
	r.must(err)
	return r
}

// newRigOn is newRig on a database that may be out of reach, without an owner.
func newRigOn(t *testing.T, db *sqlx.DB) *rig {
	t.Helper()
	r := &rig{t: t, db: db, clock: &handClock{delivery.NewClock(0)}, log: &logged{}}
	bell := wake.NewBell()
	t.Cleanup(bell.Close)
	r.queue = queue.New(r.db, r.clock, bell.Ring)
	t.Cleanup(r.queue.Close)
	sealer, err := bots.NewSealer(make([]byte, 32))
	r.must(err)
	r.bots = bots.New(r.db, r.clock, r.queue, sealer)
	r.chats = chat.New(r.db, r.clock, r.queue, false)
	r.contract, err = referencetest.New()
	r.must(err)
	server := httptest.NewUnstartedServer(nil)
	base := &url.URL{Scheme: "http", Host: server.Listener.Addr().String()}
	r.url = base.String()
	server.Config.Handler = handlers.Routes(handlers.Options{
		Log: slog.New(slog.NewJSONHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})), Clock: r.clock, Bots: r.bots, Queue: r.queue, Chats: r.chats, Bell: bell,
		BaseURL: base, Metrics: prometheus.NewRegistry(), Ready: func(context.Context) map[string]string { return nil }, Pages: true, API: true,
		Notices: notice.New(notice.Options{DB: r.db, Clock: r.clock, BaseURL: func() *url.URL { return base }}),
	})
	server.Start()
	t.Cleanup(server.Close)
	return r
}

// unreachable is a database where none listens.
func unreachable(t *testing.T) *sqlx.DB {
	t.Helper()
	db, err := pg.Open("postgres://nobody@127.0.0.1:1/nothing?sslmode=disable", 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// exec changes the database behind the product's back.
func (r *rig) exec(statement string, args ...any) {
	r.t.Helper()
	_, err := r.db.ExecContext(r.t.Context(), statement, args...)
	r.must(err)
}

// bot is a bot with its token, as its program knows it.
type bot struct {
	rig   *rig
	id    int64
	name  string
	token string
}

func (r *rig) bot(username string) *bot {
	r.t.Helper()
	b, token, err := r.bots.Create(r.t.Context(), bots.NewBot{SpaceID: r.space, OwnerID: r.owner, Username: username, Name: "Order helper"})
	r.must(err)
	return &bot{rig: r, id: b.ID, name: b.Username, token: string(token)}
}

// answer is an answer of the Bot API.
type answer struct {
	Result json.RawMessage
	Error  struct{ Code string }
	header http.Header
}

// call calls a method and holds the answer against the document. Headers are
// "Name: value" and stand over what would be there otherwise.
func (b *bot) call(method, body string, headers ...string) answer {
	b.rig.t.Helper()
	return b.send(http.MethodPost, method, body, headers...)
}

func (b *bot) send(verb, method, body string, headers ...string) answer {
	t := b.rig.t
	t.Helper()
	b.rig.clock.advance(time.Second) // never too many calls by accident
	req, err := http.NewRequestWithContext(t.Context(), verb, b.rig.url+"/bot-api/v1/"+method, strings.NewReader(body))
	b.rig.must(err)
	req.Header.Set("Authorization", "Bearer "+b.token)
	req.Header.Set("Content-Type", "application/json")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	got, err := http.DefaultClient.Do(req)
	b.rig.must(err)
	defer func() { _ = got.Body.Close() }()
	raw, err := io.ReadAll(got.Body)
	b.rig.must(err)
	if err := b.rig.contract.Check(method, got.StatusCode, got.Header, raw, false); err != nil {
		t.Errorf("UI-10 %s %s %.200s: %v\n%d %s", verb, method, body, err, got.StatusCode, raw)
	}
	a := answer{header: got.Header}
	b.rig.must(json.Unmarshal(raw, &a))
	return a
}

// wants calls a method that must answer with the code; "" for a success.
func (b *bot) wants(code, method, body string, headers ...string) answer {
	b.rig.t.Helper()
	a := b.call(method, body, headers...)
	if a.Error.Code != code {
		b.rig.t.Fatalf("%s %.200s: got %q, want %q", method, body, a.Error.Code, code)
	}
	return a
}

// poll takes a batch.
func (b *bot) poll(body string) (batch struct {
	NextOffset string `json:"next_offset"`
	Lease      struct{ Epoch string }
	Skipped    []json.RawMessage
	Updates    []struct {
		UpdateID string `json:"update_id"`
		Type     string
		Callback struct {
			ID string `json:"callback_query_id"`
		} `json:"callback_query"`
		Message struct {
			ID string `json:"message_id"`
		}
	}
}) {
	b.rig.t.Helper()
	b.rig.must(json.Unmarshal(b.wants("", "getUpdates", body).Result, &batch))
	return batch
}
