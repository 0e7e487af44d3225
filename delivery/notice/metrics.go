package notice

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Collector shows what the outbox holds, read when it is asked for (N-08). With
// the database down the gauges are missing, not zero.
type Collector struct {
	store                             *Store
	log                               *slog.Logger
	waiting, oldest, persons, stopped *prometheus.Desc
}

// NewCollector returns the metrics of s.
func NewCollector(s *Store, log *slog.Logger) Collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("mybots_"+name, help, append([]string{"route"}, labels...), nil)
	}
	return Collector{store: s, log: log,
		waiting: desc("notices_waiting", "Notices that wait to be sent, by lane: urgent, ordinary.", "lane"),
		oldest:  desc("notice_oldest_age_seconds", "Age of the oldest notice that waits to be sent; 0 when none waits."),
		persons: desc("notices_for_person", "Notices that wait for a person's decision: uncertain, blocked, dead."),
		stopped: desc("notice_route_stopped", "1 while the route is stopped, by a person or by itself."),
	}
}

// Describe implements prometheus.Collector.
func (c Collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.waiting, c.oldest, c.persons, c.stopped} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c Collector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	totals, err := c.store.Totals(ctx)
	if err != nil {
		c.log.WarnContext(ctx, "the notices can't be added up for the metrics", "err", err)
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, t := range totals {
		gauge(c.waiting, float64(t.Urgent), t.Route, "urgent")
		gauge(c.waiting, float64(t.Ordinary), t.Route, "ordinary")
		age, stopped := 0.0, 0.0
		if !t.Oldest.IsZero() {
			age = max(0, c.store.clock.Now().Sub(t.Oldest.Time).Seconds())
		}
		if t.Stopped {
			stopped = 1
		}
		gauge(c.oldest, age, t.Route)
		gauge(c.persons, float64(t.ForPerson), t.Route)
		gauge(c.stopped, stopped, t.Route)
	}
}
