package intake

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"mybots/delivery"
	"mybots/web"
)

// TestClock is the clock that a test may move (G-05).
type TestClock interface {
	// Advance moves the clock of all replicas ahead and returns the new time of
	// this one. A *delivery.Invalid: it can't be moved by d.
	Advance(ctx context.Context, d time.Duration) (time.Time, error)
}

// Advance moves the test clock: {"seconds": n}, n a whole number or a fraction,
// 0 or more. Where there is no test clock the address doesn't exist.
func (h *Handler) Advance(w http.ResponseWriter, r *http.Request) {
	if err := h.authorize(w, r); err != nil {
		web.RefuseJSON(w, r, h.log, err)
		return
	}
	body, err := web.ReadJSON(w, r, delivery.MaxRequestBody)
	if err != nil {
		web.RefuseJSON(w, r, h.log, err)
		return
	}
	var in struct {
		Seconds *float64 `json:"seconds"`
	}
	const most = 70 * 365 * 24 * 60 * 60.0
	if err := json.Unmarshal(body, &in); err != nil || in.Seconds == nil || *in.Seconds < 0 || *in.Seconds > most {
		web.RefuseJSON(w, r, h.log, &delivery.Invalid{Field: "seconds", Rule: "is required: a number, 0 or more, at most " + strconv.FormatFloat(most, 'f', 0, 64)})
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), workTime)
	defer cancel()
	now, err := h.clock.Advance(ctx, time.Duration(*in.Seconds*float64(time.Second)))
	if err != nil {
		web.RefuseJSON(w, r, h.log, err)
		return
	}
	answer(w, map[string]any{"now": delivery.FormatTime(now)})
}
