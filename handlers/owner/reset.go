package owner

import (
	"context"
	"net/http"

	"mybots/delivery"
	"mybots/delivery/queue"
	"mybots/views/layout"
	views "mybots/views/owner"
	"mybots/views/ui"
	"mybots/views/words"
	"mybots/web"
)

// ConfirmReset asks before the lease is taken away.
func (h *Handler) ConfirmReset(w http.ResponseWriter, r *http.Request) {
	b, s, err := h.open(r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	ctx := r.Context()
	f := frame(r, b, s, layout.Connection, words.T(ctx, "reset.title"))
	web.Render(w, r, http.StatusOK, views.ConfirmPage(f, views.Confirm{
		Question: words.T(ctx, "reset.question"), Effect: words.T(ctx, "reset.effect"),
		Stops: []string{words.T(ctx, "reset.stops")}, Stays: words.T(ctx, "reset.stays", "Queue", queueStays(ctx, s)),
		Action: at(b.ID, "connection/reset"), Verb: words.T(ctx, "reset.verb"),
		Back: words.T(ctx, "confirm.back"), BackURL: at(b.ID, "connection"),
	}))
}

// Reset takes the lease away, whoever holds it (M-06).
func (h *Handler) Reset(w http.ResponseWriter, r *http.Request) {
	b, _, err := h.open(r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	if err := h.bots.Reset(r.Context(), actor(r), b.ID); err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	web.SetFlash(r, ui.Fine, words.T(r.Context(), "reset.done"))
	web.Answer(w, r, nil, at(b.ID, "connection"))
}

// ConfirmEmergencyReset asks before the token is revoked.
func (h *Handler) ConfirmEmergencyReset(w http.ResponseWriter, r *http.Request) {
	b, s, err := h.open(r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	ctx := r.Context()
	stays := words.T(ctx, "emergency.stays", "Queue", queueStays(ctx, s))
	if s.Mode == delivery.Webhook {
		stays = words.T(ctx, "hook.emergency_stays", "Queue", queueStays(ctx, s))
	}
	f := frame(r, b, s, layout.Connection, words.T(ctx, "emergency.title"))
	web.Render(w, r, http.StatusOK, views.ConfirmPage(f, views.Confirm{
		Question: words.T(ctx, "emergency.question"), Effect: words.T(ctx, "emergency.effect"),
		Stops: []string{words.T(ctx, "emergency.stops")}, Stays: stays,
		Action: at(b.ID, "connection/emergency-reset"), Verb: words.T(ctx, "emergency.verb"),
		Back: words.T(ctx, "confirm.back"), BackURL: at(b.ID, "connection"),
	}))
}

// EmergencyReset takes the lease away, revokes the token and leads to the page
// that shows the new one once (M-06).
func (h *Handler) EmergencyReset(w http.ResponseWriter, r *http.Request) {
	b, _, err := h.open(r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	token, err := h.bots.EmergencyReset(r.Context(), actor(r), b.ID)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	h.leadToToken(w, r, b.ID, token)
}

// queueStays names the queue in a list of what an action leaves alone.
func queueStays(ctx context.Context, s queue.Status) string {
	return words.N(ctx, "confirm.queue", s.Waiting)
}
