package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"mybots/delivery"
	"mybots/delivery/notice"
	"mybots/migrations"
)

// workerSilence is how long webhook delivery may go without a look at the queues.
const workerSilence = 30 * time.Second

// ready tells whether this process can serve (G-07): the database answers, the
// schema is current, and nobody asked it to stop.
func (s *server) ready(ctx context.Context) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	checks := map[string]string{"database": "ok", "schema": "ok", "stopping": "ok"}
	if s.stopping.Load() {
		checks["stopping"] = "stopping"
	}
	if s.worker != nil && s.worker.Progress() > workerSilence {
		checks["webhooks"] = "the worker has not seen the database for long"
	}
	if err := s.bots.Ping(ctx); err != nil {
		checks["database"], checks["schema"] = "can't be reached", "unknown"
		return checks
	}
	switch pending, err := migrations.Pending(ctx, s.db.DB.DB); {
	case err != nil:
		checks["schema"] = "unknown"
	case pending:
		checks["schema"] = "older than this binary"
	}
	return checks
}

// adminServer serves metrics and profiles, never on the public address (G-07).
type adminServer struct {
	http.Server
	listener net.Listener
}

// listenAdmin opens MYBOTS_ADMIN_ADDR; nil when there is none.
func (s *server) listenAdmin() (*adminServer, error) {
	s.registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewDBStatsCollector(s.db.DB.DB, "mybots"), newQueueCollector(s), notice.NewCollector(s.notices, s.log))
	if s.config.adminAddr == "" {
		return nil, nil
	}
	listener, err := net.Listen("tcp", s.config.adminAddr)
	if err != nil {
		return nil, fmt.Errorf("MYBOTS_ADMIN_ADDR: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	s.log.Info("metrics and profiles", "addr", listener.Addr().String())
	return &adminServer{Server: http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}, listener: listener}, nil
}

func (a *adminServer) serve() error {
	if err := a.Serve(a.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// queueCollector shows sums over all queues, read when they are asked for.
type queueCollector struct {
	s                                                     *server
	waiting, bytes, failed, bots, full, age, hooks, build *prometheus.Desc
}

func newQueueCollector(s *server) queueCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("mybots_"+name, help, labels, nil)
	}
	return queueCollector{s: s,
		waiting: desc("queue_updates_waiting", "Updates that wait, all bots."),
		bytes:   desc("queue_waiting_bytes", "Bytes of payload that wait, all bots."),
		failed:  desc("queue_updates_failed", "FAILED updates, all bots."),
		bots:    desc("bots", "Bots that aren't deleted."),
		full:    desc("queue_full_bots", "Bots whose queue is full."),
		age:     desc("queue_oldest_update_age_seconds", "Age of the oldest update that waits, by its date; 0 when none waits."),
		hooks:   desc("webhook_bots", "Bots that receive by webhook, by state: active, retrying, circuit_open, paused, disabled.", "state"),
		build:   desc("build_info", "1, with the release and the commit.", "version", "commit"),
	}
}

// Describe implements prometheus.Collector.
func (q queueCollector) Describe(c chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{q.waiting, q.bytes, q.failed, q.bots, q.full, q.age, q.hooks, q.build} {
		c <- d
	}
}

// Collect implements prometheus.Collector. With the database down the gauges
// are missing, not zero.
func (q queueCollector) Collect(c chan<- prometheus.Metric) {
	c <- prometheus.MustNewConstMetric(q.build, prometheus.GaugeValue, 1, release, commit)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	t, err := q.s.queue.Totals(ctx)
	if err != nil {
		q.s.log.WarnContext(ctx, "the queues can't be added up for the metrics", "err", err)
		return
	}
	gauge := func(d *prometheus.Desc, v float64) { c <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v) }
	gauge(q.waiting, float64(t.Waiting))
	gauge(q.bytes, float64(t.WaitingBytes))
	gauge(q.failed, float64(t.Failed))
	gauge(q.bots, float64(t.Bots))
	gauge(q.full, float64(t.Full))
	age := 0.0
	if !t.Oldest.IsZero() {
		age = max(0, q.s.clock.Now().Sub(t.Oldest.Time).Seconds())
	}
	gauge(q.age, age)
	for state, n := range map[string]int64{
		delivery.HookDisabled: t.Disabled, delivery.HookPaused: t.Paused, delivery.HookOpen: t.Open, delivery.HookRetrying: t.Retrying,
		delivery.HookActive: t.Webhooks - t.Disabled - t.Paused - t.Open - t.Retrying,
	} {
		c <- prometheus.MustNewConstMetric(q.hooks, prometheus.GaugeValue, float64(n), state)
	}
}
