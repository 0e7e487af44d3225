package owner

import (
	"context"
	"net/http"

	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/delivery/queue"
	"mybots/views/layout"
	views "mybots/views/owner"
	"mybots/views/ui"
	"mybots/views/words"
	"mybots/web"
)

// saveForm is the form with the delivery mode: as it is saved, or as it was typed
// and refused.
func (h *Handler) saveForm(ctx context.Context, b bots.Bot, s queue.Status, e extra) views.SaveForm {
	f := views.SaveForm{
		URL: at(b.ID, "connection"), DropURL: at(b.ID, "connection/drop"), Version: number(s.SettingsVersion),
		Webhook: s.Mode == delivery.Webhook, Address: s.HookURL, Bad: e.bad,
		CanDrop: s.Waiting > 0, Keep: words.T(ctx, "conn.save"),
		Effect: words.T(ctx, "conn.mode_effect"), Secret: words.T(ctx, "hook.save_first_secret"),
	}
	if s.Mode == delivery.Webhook {
		f.Effect, f.Secret = words.T(ctx, "hook.polling_effect"), words.T(ctx, "hook.save_secret")
	}
	if s.Waiting > 0 {
		f.Keep = words.N(ctx, "conn.save_keep", s.Waiting)
	}
	if e.typed != nil {
		f.Address = e.typed.url
		if e.typed.mode != "" {
			f.Webhook = e.typed.mode == delivery.Webhook
		}
	}
	switch {
	case h.webhooksOff:
		f.Off = words.T(ctx, "hook.mode_unavailable_here")
	case !s.HookAllowed:
		f.Off = words.T(ctx, "hook.mode_unavailable_bot")
	}
	f.Webhook = f.Webhook && f.Off == ""
	return f
}

// ConfirmDrop asks before a save that cancels what waits. The form's fields are
// posted, as the address may hold a token, and go on as they are. What couldn't be
// saved isn't asked about.
func (h *Handler) ConfirmDrop(w http.ResponseWriter, r *http.Request) {
	b, s, d, ok := h.draft(w, r, "drop")
	if !ok {
		return
	}
	ctx := r.Context()
	c := views.Confirm{
		Question: words.N(ctx, "drop.question", s.Waiting), Effect: words.T(ctx, "drop.effect"),
		Stays:  words.T(ctx, "drop.stays"),
		Action: at(b.ID, "connection"), Verb: words.N(ctx, "drop.verb", s.Waiting),
		Hidden: []ui.Hidden{{Name: "mode", Value: string(d.mode)}, {Name: "pending", Value: "drop"}, {Name: "version", Value: number(d.version)}},
		Back:   words.T(ctx, "drop.back"), BackURL: at(b.ID, "connection"),
	}
	was, becomes := s.Mode == delivery.Webhook, d.mode == delivery.Webhook
	switch {
	case was && becomes:
		c.Stops = []string{words.N(ctx, "hook.drop_stops", s.Waiting), words.T(ctx, "hook.drop_stops_secret")}
	case becomes:
		c.Stops = []string{words.N(ctx, "hook.drop_stops", s.Waiting), words.T(ctx, "hook.drop_stops_polling")}
		c.Effect += " " + words.T(ctx, "hook.drop_new_secret")
	case was:
		c.Stops = []string{words.N(ctx, "drop.stops", s.Waiting), words.T(ctx, "hook.drop_stops_webhook")}
	default:
		c.Stops = []string{words.N(ctx, "drop.stops", s.Waiting), words.T(ctx, "drop.stops_lease")}
	}
	if becomes {
		c.Hidden = append(c.Hidden, ui.Hidden{Name: "url", Value: d.url})
	}
	f := frame(r, b, s, layout.Connection, words.T(ctx, "drop.title"))
	web.Render(w, r, http.StatusOK, views.ConfirmPage(f, c))
}
