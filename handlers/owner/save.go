package owner

import (
	"errors"
	"net/http"

	"mybots/delivery"
	"mybots/views/layout"
	views "mybots/views/owner"
	"mybots/views/ui"
	"mybots/views/words"
	"mybots/web"
)

// SaveConnection saves the delivery mode, with what shall become of the waiting
// updates (M-01, M-02). Settings that changed meanwhile: 409 and the present
// ones (M-05).
func (h *Handler) SaveConnection(w http.ResponseWriter, r *http.Request) {
	b, s, form, err := h.deed(w, r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	ctx := r.Context()
	version, drop, why := parseSave(r, form)
	if why.code != "" {
		h.showConnection(w, r, http.StatusUnprocessableEntity, b, s, why)
		return
	}
	cancelled, err := h.bots.SavePolling(ctx, actor(r), b.ID, version, drop)
	if errors.Is(err, delivery.ErrStale) {
		h.showStale(w, r)
		return
	}
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	done := words.N(ctx, "conn.cancelled", cancelled)
	if !drop {
		done = words.N(ctx, "conn.kept", s.Waiting)
	}
	web.SetFlash(r, ui.Fine, done)
	web.Answer(w, r, nil, at(b.ID, "connection"))
}

// parseSave reads the form, or says in the reader's words what is wrong with it.
func parseSave(r *http.Request, f form) (version int64, drop bool, why refusal) {
	ctx := r.Context()
	mode, ok := f.one("mode", string(delivery.Polling), string(delivery.Webhook))
	if !ok {
		return 0, false, refusal{"INVALID", words.T(ctx, "conn.error_mode")}
	}
	if mode == string(delivery.Webhook) {
		return 0, false, refusal{"WEBHOOKS_UNAVAILABLE", words.T(ctx, "conn.error_webhooks")}
	}
	pending, ok := f.one("pending", "keep", "drop")
	if !ok {
		return 0, false, refusal{"INVALID", words.T(ctx, "conn.error_pending")}
	}
	if version, ok = delivery.ParseID(f.Get("version")); !ok {
		return 0, false, refusal{"INVALID", words.T(ctx, "conn.error_version")}
	}
	return version, pending == "drop", refusal{}
}

// showStale shows the settings as they are now, after the save that came too late.
func (h *Handler) showStale(w http.ResponseWriter, r *http.Request) {
	b, s, err := h.open(r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	h.showConnection(w, r, http.StatusConflict, b, s, refusal{"STALE", words.T(r.Context(), "conn.error_stale")})
}

// ConfirmDrop asks before a save that cancels what waits. The form's fields come
// in the query and go on as they are, with the version that the page showed.
func (h *Handler) ConfirmDrop(w http.ResponseWriter, r *http.Request) {
	b, s, err := h.open(r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	ctx := r.Context()
	version := r.URL.Query().Get("version")
	if _, ok := delivery.ParseID(version); !ok {
		version = number(s.SettingsVersion)
	}
	f := frame(r, b, s, layout.Connection, words.T(ctx, "drop.title"))
	web.Render(w, r, http.StatusOK, views.ConfirmPage(f, views.Confirm{
		Question: words.N(ctx, "drop.question", s.Waiting), Effect: words.T(ctx, "drop.effect"),
		Stops:  []string{words.N(ctx, "drop.stops", s.Waiting), words.T(ctx, "drop.stops_lease")},
		Stays:  words.T(ctx, "drop.stays"),
		Action: at(b.ID, "connection"), Verb: words.N(ctx, "drop.verb", s.Waiting),
		Hidden: []ui.Hidden{{Name: "mode", Value: string(delivery.Polling)}, {Name: "pending", Value: "drop"}, {Name: "version", Value: version}},
		Back:   words.T(ctx, "drop.back"), BackURL: at(b.ID, "connection"),
	}))
}
