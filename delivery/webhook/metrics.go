package webhook

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"mybots/delivery"
)

// metrics are the worker's (G-07). A nil one counts nothing.
type metrics struct {
	attempts *prometheus.CounterVec
	duration *prometheus.HistogramVec
	claims   prometheus.Counter
}

func newMetrics(r prometheus.Registerer, w *Worker) *metrics {
	f := promauto.With(r)
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "mybots_webhook_requests_in_flight", Help: "Bots that this process serves by webhook just now."}, func() float64 {
		w.mu.Lock()
		defer w.mu.Unlock()
		return float64(len(w.flights))
	})
	return &metrics{
		attempts: f.NewCounterVec(prometheus.CounterOpts{Name: "mybots_webhook_attempts_total",
			Help: "Webhook requests by what follows (confirmed, failed, pause, budget, wait) and by answer: 2xx to 5xx, or how the connection failed."}, []string{"verdict", "answer"}),
		duration: f.NewHistogramVec(prometheus.HistogramOpts{Name: "mybots_webhook_attempt_duration_seconds", Help: "Time to the end of a webhook request.",
			Buckets: []float64{.005, .02, .1, .3, 1, 3, 5, 10}}, []string{"verdict"}),
		claims: f.NewCounter(prometheus.CounterOpts{Name: "mybots_webhook_claims_lost_total", Help: "Answers that counted for nothing, as their claim had been lost."}),
	}
}

func (m *metrics) attempted(a delivery.Answer, took time.Duration) {
	if m == nil {
		return
	}
	answer := string(a.Kind)
	if a.Kind == delivery.Answered {
		answer = "other"
		if class := a.Status / 100; class >= 1 && class <= 5 {
			answer = strconv.Itoa(class) + "xx"
		}
	}
	m.attempts.WithLabelValues(string(a.Verdict()), answer).Inc()
	m.duration.WithLabelValues(string(a.Verdict())).Observe(took.Seconds())
}

func (m *metrics) lost() {
	if m != nil {
		m.claims.Inc()
	}
}
