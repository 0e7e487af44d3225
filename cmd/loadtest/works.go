package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/prometheus/client_golang/prometheus"

	"mybots/delivery"
	store "mybots/delivery/bots"
	"mybots/delivery/pg"
	"mybots/delivery/queue"
	"mybots/delivery/wake"
	"mybots/delivery/webhook"
	"mybots/handlers/intake"
	"mybots/web"
)

// works are the product's parts in this process, put together as `serve` does,
// on a pool of connections of their own.
type works struct {
	log   *slog.Logger
	clock delivery.Clock
	db    *sqlx.DB
	bell  *wake.Bell
	queue *queue.Queue
	bots  *store.Store

	metrics *prometheus.Registry
	running sync.WaitGroup
	cancel  context.CancelFunc
	started context.Context // ends with stop
	server  *http.Server    // of intake; nil until serve
}

// newWorks puts them together; stop must follow.
func (s *site) newWorks() (*works, error) {
	w := &works{log: slog.New(slog.NewJSONHandler(io.Discard, nil)), clock: delivery.NewClock(0), bell: wake.NewBell(), metrics: prometheus.NewRegistry()}
	var err error
	if w.db, err = pg.Open(s.server.URL(), productConns); err != nil {
		return nil, err
	}
	sealer, err := store.NewSealer(make([]byte, 32)) // the child's key
	if err != nil {
		return nil, errors.Join(err, w.db.Close())
	}
	ring := wake.NewReplicas(w.bell, w.db, s.server.URL(), w.log)
	w.queue = queue.New(w.db, w.clock, ring.Ring)
	w.bots = store.New(w.db, w.clock, w.queue, sealer)
	w.started, w.cancel = context.WithCancel(context.Background())
	w.running.Go(func() { ring.Run(w.started, w.queue) }) // ends with stop
	return w, nil
}

// deliver starts the worker; it ends with stop.
func (w *works) deliver(p webhook.Poster) {
	worker := webhook.NewWorker(webhook.Options{Queue: w.queue, Bots: w.bots, Sender: p, Clock: w.clock, Log: w.log, Metrics: w.metrics})
	w.bell.Observe(worker.Ring, worker.RingAll)
	w.running.Go(func() { worker.Run(w.started) }) // ends with stop
}

// serve starts intake on the loopback and returns its address.
func (w *works) serve() (address string, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	mux := http.NewServeMux()
	mux.HandleFunc(eventsPath, intake.New(w.log, w.bots, w.queue, nil, w.metrics).Events)
	w.server = &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: web.Observe(w.log, mux)}
	go func() { _ = w.server.Serve(listener) }() // ends with stop; what goes wrong before shows in the calls
	return listener.Addr().String(), nil
}

// stop ends all of it and waits for what is under way.
func (w *works) stop() error {
	var err error
	if w.server != nil {
		err = w.server.Close()
	}
	w.cancel()
	w.running.Wait()
	w.queue.Close()
	w.bell.Close()
	return errors.Join(err, w.db.Close())
}
