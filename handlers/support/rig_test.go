package support_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
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
	"mybots/delivery/wake"
	"mybots/delivery/webhook"
	"mybots/handlers"
	"mybots/migrations/dbtest"
)

func TestMain(m *testing.M) { browsertest.Main(m) }

const password = "correct horse"

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

// rig is the whole public side on a real database, served on 127.0.0.1.
type rig struct {
	t       *testing.T
	db      *sqlx.DB
	clock   *handClock
	queue   *queue.Queue
	bots    *bots.Store
	chats   *chat.Store
	notices *notice.Store
	log     *logged
	url     string
	list    []handlers.Route
	space   int64
	names   int
}

// hooks lets any address be a webhook, and answers test requests with 200.
type hooks struct{}

func (hooks) CheckName(_ context.Context, address string) (string, error) { return address, nil }

func (hooks) Send(context.Context, webhook.Request) delivery.Answer {
	return delivery.Answer{Kind: delivery.Answered, Status: http.StatusOK}
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, db: dbtest.Open(t), clock: &handClock{delivery.NewClock(0)}, log: &logged{}}
	bell := wake.NewBell()
	t.Cleanup(bell.Close)
	server := httptest.NewUnstartedServer(nil)
	base := &url.URL{Scheme: "http", Host: server.Listener.Addr().String()}
	r.notices = notice.New(notice.Options{DB: r.db, Clock: r.clock, BaseURL: func() *url.URL { return base }, MAX: true})
	r.queue = queue.New(r.db, r.clock, bell.Ring, queue.Telling(r.notices.Record))
	t.Cleanup(r.queue.Close)
	sealer, err := bots.NewSealer(make([]byte, 32))
	r.must(err)
	r.bots = bots.New(r.db, r.clock, r.queue, sealer)
	r.chats = chat.New(r.db, r.clock, r.queue, false)
	r.url = base.String()
	site := handlers.Routes(handlers.Options{
		Log: slog.New(slog.NewJSONHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})), Clock: r.clock, Bots: r.bots, Queue: r.queue, Chats: r.chats, Bell: bell,
		BaseURL: base, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Metrics: prometheus.NewRegistry(),
		Ready: func(context.Context) map[string]string { return nil }, Pages: true, API: true, Guard: hooks{}, Sender: hooks{}, Notices: r.notices, MAXSecret: "max-secret-marker",
	})
	r.list = site.Pages
	server.Config.Handler = site
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

// append writes an event with the payload into the bot's queue.
func (r *rig) append(botID int64, payload string) {
	r.t.Helper()
	results, err := r.queue.Append(r.t.Context(), []delivery.Event{{
		BotID: botID, EventID: uuid.NewString(), Type: "message", ChatID: 5512345678, MessageID: 1, Date: r.clock.Now(), Payload: []byte(payload),
	}})
	r.must(err)
	if results[0].Refusal != nil {
		r.t.Fatalf("append: got %v, want no refusal", results[0].Refusal)
	}
}

// fail makes an update FAILED by the bot's own program.
func (r *rig) fail(botID int64, payload, reason string) {
	r.t.Helper()
	ctx := r.t.Context()
	r.append(botID, payload)
	got, err := r.queue.Receive(ctx, botID, delivery.Poll{ConsumerID: "w", Limit: 100}, "203.0.113.9")
	r.must(err)
	last := got.Batch.Updates[len(got.Batch.Updates)-1].UpdateID
	_, _, err = r.queue.Reject(ctx, queue.Once{BotID: botID, Key: uuid.NewString(), Fingerprint: []byte("x")},
		delivery.Rejection{UpdateID: last, Reason: reason, ConsumerID: "w", Epoch: got.Batch.Lease.Epoch})
	r.must(err)
	r.must(r.queue.Reset(ctx, botID, func(context.Context, *sqlx.Tx) error { return nil }))
}

// settle claims the bot's head and settles it with an answer, as the worker does.
func (r *rig) settle(botID int64, a delivery.Answer) {
	r.t.Helper()
	got, err := r.queue.Claim(r.t.Context(), []int64{botID}, 1)
	r.must(err)
	if len(got.Claims) != 1 {
		r.t.Fatalf("claim bot %d: got %+v, want one claim", botID, got)
	}
	_, _, err = r.queue.Settle(r.t.Context(), got.Claims[0], a, 12*time.Millisecond)
	r.must(err)
}

// count counts rows.
func (r *rig) count(statement string, args ...any) int {
	r.t.Helper()
	var n int
	r.must(r.db.GetContext(r.t.Context(), &n, statement, args...))
	return n
}

// notify runs the worker until everything that BotFather should write is written.
func (r *rig) notify(senders map[string]notice.Sender) {
	r.t.Helper()
	log := slog.New(slog.NewJSONHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w := notice.NewWorker(r.notices, senders, log, prometheus.NewRegistry())
	ctx, stop := context.WithCancel(r.t.Context())
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx) }) // ends with ctx
	routes := `'botfather'`
	for route := range senders {
		routes += `, '` + route + `'`
	}
	for end := time.Now().Add(time.Minute); r.count(`SELECT count(*) FROM notices WHERE state IN ('queued', 'sending') AND route IN (`+routes+`)`) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatal("the worker leaves notices unsent")
		}
	}
	stop()
	running.Wait()
}

// answers is a route that answers everything alike.
type answers notice.Result

func (a answers) Send(context.Context, notice.Job) notice.Result { return notice.Result(a) }
