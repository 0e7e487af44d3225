package notice

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// look is the time between two looks for what is due, on the product's clock.
const look = time.Second

// slots are how many requests each lane of a route has under way at the most.
const slots = 2

// Sender is a route that needs the network.
type Sender interface {
	Send(ctx context.Context, j Job) Result
}

// Worker sends what the outbox holds. Every route and lane has goroutines of its
// own: a slow route delays no other, a thousand ordinary notices no urgent one (N-06).
type Worker struct {
	store   *Store
	senders map[string]Sender
	log     *slog.Logger
	results *prometheus.CounterVec
	failing atomic.Bool // the last look failed
}

// NewWorker returns the worker of s. senders are the routes that need the network;
// a route without one, BotFather aside, keeps its notices waiting.
func NewWorker(s *Store, senders map[string]Sender, log *slog.Logger, metrics prometheus.Registerer) *Worker {
	w := &Worker{store: s, senders: senders, log: log, results: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "mybots_notice_results_total",
		Help: "What came of tries to send notices: sent, temporary, permanent, authorisation, unknown, stale.",
	}, []string{"route", "result"})}
	metrics.MustRegister(w.results)
	for _, class := range []Class{ClassSent, ClassTemporary, ClassPermanent, ClassAuthorisation, ClassUnknown, Class(Stale)} {
		for route := range senders {
			w.results.WithLabelValues(route, string(class))
		}
	}
	for _, class := range []Class{ClassSent, ClassPermanent, Class(Stale)} { // nothing else can happen to it
		w.results.WithLabelValues(BotFather, string(class))
	}
	return w
}

// Run sends until ctx ends; requests that are under way then get to finish.
func (w *Worker) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	rings := map[lane][]chan struct{}{}
	start := func(l lane) {
		ring := make(chan struct{}, 1)
		rings[l] = append(rings[l], ring)
		running.Go(func() { w.serve(ctx, l, ring) }) // ends with ctx
	}
	for _, urgent := range []bool{true, false} {
		start(lane{BotFather, urgent})
		for route := range w.senders {
			for range slots {
				start(lane{route, urgent})
			}
		}
	}
	for w.look(ctx, rings); w.wait(ctx); w.look(ctx, rings) {
	}
}

// look rings for the lanes in which something is due, and finds what was left
// lying.
func (w *Worker) look(ctx context.Context, rings map[lane][]chan struct{}) {
	ids, err := w.store.sweep(ctx)
	for _, id := range ids {
		w.log.WarnContext(ctx, "notice without an answer", "notice_id", id)
	}
	var due []lane
	if err == nil {
		due, err = w.store.due(ctx)
	}
	w.report(ctx, err)
	for _, l := range due {
		for _, ring := range rings[l] {
			select {
			case ring <- struct{}{}:
			default: // it rings already
			}
		}
	}
}

// serve sends one notice of a lane after the other, when it is rung for.
func (w *Worker) serve(ctx context.Context, l lane, ring <-chan struct{}) {
	for {
		select {
		case <-ring:
		case <-ctx.Done():
			return
		}
		for more := true; more && ctx.Err() == nil; {
			c, err := w.store.next(ctx, l)
			w.report(ctx, err)
			switch {
			case c.job != nil:
				w.send(context.WithoutCancel(ctx), *c.job)
			case c.closed != "":
				w.results.WithLabelValues(l.Route, map[State]string{Sent: string(ClassSent), Dead: string(ClassPermanent), Stale: string(Stale)}[c.closed]).Inc()
			default:
				more = false
			}
		}
	}
}

// send makes a try and writes what came of it. It goes on when the process stops:
// a request has its own end.
func (w *Worker) send(ctx context.Context, j Job) {
	begun := time.Now()
	r := w.senders[j.Route].Send(ctx, j)
	took := time.Since(begun)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	state, err := w.store.settle(ctx, j, r)
	if err != nil {
		// Left as sending, it becomes uncertain: nothing is sent again.
		w.log.ErrorContext(ctx, "notice not settled", "notice_id", j.ID, "result", r.Class, "http_code", r.Code, "err", err)
		return
	}
	w.results.WithLabelValues(j.Route, string(r.Class)).Inc()
	level := slog.LevelInfo
	if state != Sent {
		level = slog.LevelWarn
	}
	w.log.Log(ctx, level, "notice", "notice_id", j.ID, "route", j.Route, "kind", j.Kind, "bot_id", j.BotID, "try", j.Tries, "state", state,
		"http_code", r.Code, "reason", r.Reason, "took", took)
	if state == Blocked {
		w.log.ErrorContext(ctx, "the route of notices has stopped: it refuses our authorisation", "route", j.Route)
	}
}

// report logs when looks begin to fail, and when they succeed again.
func (w *Worker) report(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
	case err == nil:
		if w.failing.Swap(false) {
			w.log.InfoContext(ctx, "notices can be looked for again")
		}
	case !w.failing.Swap(true):
		w.log.ErrorContext(ctx, "notices can't be looked for", "err", err)
	}
}

// wait waits until the next look and tells whether there is one.
func (w *Worker) wait(ctx context.Context) bool {
	due, stop := w.store.clock.At(w.store.clock.Now().Add(look))
	defer stop()
	select {
	case <-due:
		return true
	case <-ctx.Done():
		return false
	}
}
