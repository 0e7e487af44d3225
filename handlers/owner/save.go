package owner

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/delivery/queue"
	"mybots/delivery/webhook"
	"mybots/views/ui"
	"mybots/views/words"
	"mybots/web"
)

// draft is what a posted form wants the connection to be.
type draft struct {
	mode    delivery.Mode
	url     string // as it was typed; of a webhook that passed, in its canonical form
	version int64  // of the settings that the owner decided from
	drop    bool   // cancel what waits
}

// SaveConnection saves the delivery mode, with what shall become of the waiting
// updates (M-01, M-02). Settings that changed meanwhile: 409 and the present
// ones (M-05). A webhook's new secret is shown once, on the next page (M-04).
func (h *Handler) SaveConnection(w http.ResponseWriter, r *http.Request) {
	b, s, d, ok := h.draft(w, r, "")
	if !ok {
		return
	}
	ctx := r.Context()
	var secret delivery.Secret
	var cancelled int
	var err error
	if d.mode == delivery.Webhook {
		secret, cancelled, err = h.bots.SaveWebhook(ctx, actor(r), b.ID, d.version, d.url, d.drop)
	} else {
		cancelled, err = h.bots.SavePolling(ctx, actor(r), b.ID, d.version, d.drop)
	}
	if refused := (*delivery.Refusal)(nil); errors.As(err, &refused) && refused.Code == delivery.WebhooksUnavailable {
		s.HookAllowed = false // since the look above
		h.showConnection(w, r, http.StatusUnprocessableEntity, b, s, extra{why: h.unavailable(ctx), typed: &d})
		return
	}
	if errors.Is(err, delivery.ErrStale) {
		h.showStale(w, r, d)
		return
	}
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	web.SetFlash(r, ui.Fine, saved(ctx, s, d, cancelled))
	if d.mode == delivery.Webhook {
		h.leadToSecret(w, r, b.ID, secret)
		return
	}
	web.Answer(w, r, nil, at(b.ID, "connection"))
}

// saved says what a save did.
func saved(ctx context.Context, was queue.Status, d draft, cancelled int) string {
	switch {
	case d.mode == delivery.Webhook && d.drop:
		return words.N(ctx, "hook.saved_cancelled", cancelled)
	case d.mode == delivery.Webhook && was.Waiting > 0:
		return words.N(ctx, "hook.saved_kept", was.Waiting)
	case d.mode == delivery.Webhook:
		return words.T(ctx, "hook.saved_none")
	case d.drop:
		return words.N(ctx, "conn.cancelled", cancelled)
	case was.Mode == delivery.Webhook:
		return words.N(ctx, "hook.polling_kept", was.Waiting)
	}
	return words.N(ctx, "conn.kept", was.Waiting)
}

// draft reads and checks the posted form. When it can't be saved, the page says
// why and ok is false. pending is what becomes of the waiting updates; "": the form
// says so. The version is looked at before the address, so that nobody waits for a
// look-up in vain; the database decides about both again.
func (h *Handler) draft(w http.ResponseWriter, r *http.Request, pending string) (b bots.Bot, s queue.Status, d draft, ok bool) {
	b, s, form, err := h.deed(w, r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return b, s, d, false
	}
	if pending != "" {
		form.Set("pending", pending)
	}
	ctx := r.Context()
	d, e := parseSave(ctx, form)
	if e.why.code == "" && d.version != s.SettingsVersion {
		h.showStale(w, r, d)
		return b, s, d, false
	}
	if e.why.code == "" && d.mode == delivery.Webhook {
		if e, err = h.checkAddress(ctx, s, &d); err != nil {
			web.Fail(w, r, h.log, err)
			return b, s, d, false
		}
	}
	if e.why.code != "" {
		e.typed = &d
		h.showConnection(w, r, http.StatusUnprocessableEntity, b, s, e)
		return b, s, d, false
	}
	return b, s, d, true
}

// parseSave reads the form, or says in the reader's words what is wrong with it.
func parseSave(ctx context.Context, f form) (d draft, e extra) {
	d.url = f.Get("url")
	mode, ok := f.one("mode", string(delivery.Polling), string(delivery.Webhook))
	if !ok {
		return d, extra{why: refusal{"INVALID", words.T(ctx, "conn.error_mode")}}
	}
	d.mode = delivery.Mode(mode)
	pending, ok := f.one("pending", "keep", "drop")
	if !ok {
		return d, extra{why: refusal{"INVALID", words.T(ctx, "conn.error_pending")}}
	}
	d.drop = pending == "drop"
	if d.version, ok = delivery.ParseID(f.Get("version")); !ok {
		return d, extra{why: refusal{"INVALID", words.T(ctx, "conn.error_version")}}
	}
	return d, e
}

// checkAddress asks whether the bot may have a webhook there (W-01, W-03), and
// puts the address into the form in which it is saved.
func (h *Handler) checkAddress(ctx context.Context, s queue.Status, d *draft) (e extra, err error) {
	if !s.HookAllowed {
		return extra{why: h.unavailable(ctx)}, nil
	}
	canonical, err := h.guard.CheckName(ctx, d.url)
	if forbidden := (*webhook.ForbiddenError)(nil); errors.As(err, &forbidden) {
		rule := ruleBroken(ctx, forbidden.Rule)
		return extra{bad: rule, why: refusal{string(delivery.WebhookURLForbidden), words.T(ctx, "hook.error_url", "Why", rule)}}, nil
	}
	if err != nil {
		return e, fmt.Errorf("check a webhook's address: %w", err)
	}
	d.url = canonical
	return e, nil
}

// ruleBroken says what is wrong with an address and what is allowed. It names
// nothing that a look-up said (W-01).
func ruleBroken(ctx context.Context, rule webhook.Rule) string {
	key := "hook.rule_" + string(rule)
	if text := words.T(ctx, key); text != key {
		return text
	}
	return words.T(ctx, "hook.rule_other")
}

// unavailable says why the bot can't have a webhook.
func (h *Handler) unavailable(ctx context.Context) refusal {
	if h.webhooksOff {
		return refusal{string(delivery.WebhooksUnavailable), words.T(ctx, "hook.error_unavailable_here")}
	}
	return refusal{string(delivery.WebhooksUnavailable), words.T(ctx, "hook.error_unavailable_bot")}
}

// showStale shows the settings as they are now, after the save that came too late.
func (h *Handler) showStale(w http.ResponseWriter, r *http.Request, d draft) {
	b, s, err := h.open(r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	h.showConnection(w, r, http.StatusConflict, b, s, extra{why: refusal{"STALE", words.T(r.Context(), "conn.error_stale")}, late: &d})
}
