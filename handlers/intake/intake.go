// Package intake is where the messenger writes events in (contract, part 11),
// and where a test moves the clock (G-05).
package intake

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"mybots/delivery"
	"mybots/delivery/queue"
	"mybots/web"
)

// What one request may ask of the database, in real time.
const (
	keyTime  = 5 * time.Second // to check the intake key
	workTime = 8 * time.Second // to write
)

type keys interface {
	CheckKey(ctx context.Context, key delivery.Secret) error
}

type appender interface {
	Append(ctx context.Context, events []delivery.Event) ([]queue.Appended, error)
}

// Handler serves intake.
type Handler struct {
	log    *slog.Logger
	keys   keys
	queues appender
	clock  TestClock // nil: there is no test clock
	events *prometheus.CounterVec
}

// New returns intake. clock is nil where the clock can't be moved.
func New(log *slog.Logger, keys keys, queues appender, clock TestClock, metrics prometheus.Registerer) *Handler {
	return &Handler{log: log, keys: keys, queues: queues, clock: clock,
		events: promauto.With(metrics).NewCounterVec(prometheus.CounterOpts{
			Name: "mybots_intake_events_total", Help: "Events that intake judged, by result."}, []string{"result"})}
}

// result is what became of one event (I-01).
type result struct {
	EventID   *string    `json:"event_id"`
	UpdateID  string     `json:"update_id,omitempty"`
	Duplicate *bool      `json:"duplicate,omitempty"`
	Error     *eventFail `json:"error,omitempty"`
}

type eventFail struct {
	Code    delivery.Code `json:"code"`
	Message string        `json:"message"`
}

// Events takes a batch of events in (I-01 to I-05). 200 means that what it says
// is durable (I-02); after any 5xx or a lost answer the same batch may be sent
// again.
func (h *Handler) Events(w http.ResponseWriter, r *http.Request) {
	if err := h.authorize(w, r); err != nil {
		web.RefuseJSON(w, r, h.log, err)
		return
	}
	batch, err := readBatch(w, r)
	if err != nil {
		web.RefuseJSON(w, r, h.log, err)
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), workTime)
	defer cancel()
	appended, err := h.queues.Append(ctx, batch.events)
	if err != nil {
		web.RefuseJSON(w, r, h.log, err)
		return
	}
	for i, a := range appended {
		batch.results[batch.places[i]] = resultOf(batch.events[i].EventID, a)
	}
	for _, res := range batch.results {
		h.events.WithLabelValues(res.label()).Inc()
	}
	web.Note(r.Context(), "events", len(batch.results))
	answer(w, map[string]any{"results": batch.results})
}

// authorize checks the method and the intake key.
func (h *Handler) authorize(w http.ResponseWriter, r *http.Request) error {
	c := http.NewResponseController(w)
	// Only test recorders have no deadlines; they need none.
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
	_ = c.SetWriteDeadline(time.Now().Add(60 * time.Second))
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return delivery.Refuse(delivery.MethodNotAllowed, "only POST is allowed here")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), keyTime)
	defer cancel()
	err := h.keys.CheckKey(ctx, web.Bearer(r, delivery.IntakeKeyPrefix))
	if errors.Is(err, delivery.ErrNotFound) {
		return delivery.Refuse(delivery.Unauthorized, "the Authorization header must carry a valid intake key: Bearer "+delivery.IntakeKeyPrefix+"…")
	}
	return err
}

func resultOf(eventID string, a queue.Appended) result {
	if a.Refusal != nil {
		return result{EventID: &eventID, Error: &eventFail{a.Refusal.Code, a.Refusal.Message}}
	}
	return result{EventID: &eventID, UpdateID: strconv.FormatInt(a.UpdateID, 10), Duplicate: &a.Duplicate}
}

// label is the result's word in the metrics.
func (r result) label() string {
	switch {
	case r.Error != nil:
		return string(r.Error.Code)
	case *r.Duplicate:
		return "duplicate"
	}
	return "accepted"
}

func answer(w http.ResponseWriter, value any) {
	body, err := json.Marshal(map[string]any{"ok": true, "result": value})
	if err != nil {
		panic("encode an answer: " + err.Error()) // strings, numbers and booleans always encode
	}
	web.JSON(w, http.StatusOK, append(body, '\n'))
}
