package botapi

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Registerer is where the metrics are shown.
type Registerer = prometheus.Registerer

// metrics are the Bot API's (G-07).
type metrics struct {
	requests  *prometheus.CounterVec
	duration  *prometheus.HistogramVec
	waiting   prometheus.Gauge
	conflicts prometheus.Counter
}

func newMetrics(r Registerer) *metrics {
	f := promauto.With(r)
	return &metrics{
		requests: f.NewCounterVec(prometheus.CounterOpts{Name: "mybots_bot_api_requests_total", Help: "Bot API calls by method and code."}, []string{"method", "code"}),
		duration: f.NewHistogramVec(prometheus.HistogramOpts{Name: "mybots_bot_api_duration_seconds", Help: "Time to a Bot API answer, a poll's wait included.",
			Buckets: []float64{.001, .005, .02, .1, .5, 2, 10, 26}}, []string{"method"}),
		waiting:   f.NewGauge(prometheus.GaugeOpts{Name: "mybots_getupdates_waiting", Help: "getUpdates calls that wait in this process."}),
		conflicts: f.NewCounter(prometheus.CounterOpts{Name: "mybots_lease_conflicts_total", Help: "getUpdates calls refused with CONSUMER_CONFLICT."}),
	}
}

func (m *metrics) answered(method, code string, took time.Duration) {
	m.requests.WithLabelValues(method, code).Inc()
	m.duration.WithLabelValues(method).Observe(took.Seconds())
	if method == "getUpdates" && code == "CONSUMER_CONFLICT" {
		m.conflicts.Inc()
	}
}
