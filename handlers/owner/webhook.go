package owner

import (
	"context"
	"net/http"

	"mybots/delivery"
	"mybots/delivery/queue"
	"mybots/views/ui"
	"mybots/views/words"
	"mybots/web"
)

// ResumeDelivery ends a pause of delivery: what waits goes out at once (W-11).
func (h *Handler) ResumeDelivery(w http.ResponseWriter, r *http.Request) {
	b, s, err := h.open(r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	if err := h.bots.ResumeWebhook(r.Context(), actor(r), b.ID); err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	kind, text := resumed(r.Context(), s)
	web.SetFlash(r, kind, text)
	web.Answer(w, r, nil, at(b.ID, "connection"))
}

// ProbeNow sends one probe through an open breaker, or ends the wait after failed
// connections (W-12).
func (h *Handler) ProbeNow(w http.ResponseWriter, r *http.Request) {
	b, s, err := h.open(r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	if err := h.bots.ProbeWebhook(r.Context(), actor(r), b.ID); err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	kind, text := probed(r.Context(), s)
	web.SetFlash(r, kind, text)
	web.Answer(w, r, nil, at(b.ID, "connection"))
}

// resumed says what Resume delivery did to a delivery that was so: what was
// queued, never that it succeeded.
func resumed(ctx context.Context, was queue.Status) (ui.Kind, string) {
	switch {
	case was.Mode != delivery.Webhook:
		return ui.Off, words.T(ctx, "hook.steer_polling")
	case !was.HookAllowed:
		return ui.Off, words.T(ctx, "hook.steer_off")
	case was.Hook.Paused == "" && was.Hook.Open():
		return probed(ctx, was)
	case was.Hook.Paused == "":
		return ui.Off, words.T(ctx, "hook.resume_not_paused")
	case was.Paused || was.Disabled:
		return ui.Waiting, words.T(ctx, "hook.resumed_bot_paused")
	case was.Hook.Open():
		return ui.Waiting, words.T(ctx, "hook.resumed_probe")
	case was.Waiting == 0:
		return ui.Fine, words.T(ctx, "hook.resumed_none")
	}
	return ui.Waiting, words.N(ctx, "hook.resumed", was.Waiting)
}

// probed is resumed for Probe now.
func probed(ctx context.Context, was queue.Status) (ui.Kind, string) {
	switch {
	case was.Mode != delivery.Webhook:
		return ui.Off, words.T(ctx, "hook.steer_polling")
	case !was.HookAllowed:
		return ui.Off, words.T(ctx, "hook.steer_off")
	case was.Hook.Paused != "":
		return ui.Off, words.T(ctx, "hook.probe_paused")
	case was.Hook.Open() && was.Waiting == 0:
		return ui.Waiting, words.T(ctx, "hook.probe_later")
	case was.Hook.Open():
		return ui.Waiting, words.T(ctx, "hook.probe_asked")
	case hookStateOf(was) == hookConnecting:
		return ui.Waiting, words.T(ctx, "hook.probe_connecting")
	}
	return ui.Off, words.T(ctx, "hook.probe_nothing")
}
