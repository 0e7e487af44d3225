package support

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/delivery/queue"
	views "mybots/views/support"
	"mybots/views/ui"
	"mybots/views/words"
	"mybots/web"
)

func spaceURL(spaceID int64) string { return "/support/spaces/" + number(spaceID) + "/running" }

// ask shows what a switch does; status and bad are those of a refused form.
func ask(w http.ResponseWriter, r *http.Request, status int, title string, s views.Switch, bad *delivery.Invalid, form url.Values) {
	ctx := r.Context()
	if bad != nil {
		text := words.T(ctx, "support.reason_long")
		s.Value = form.Get("reason")
		if s.Messages != nil {
			s.Messages.Text, s.Messages.TextRU = form.Get("message"), form.Get("message_ru")
		}
		switch bad.Field {
		case "message":
			s.Messages.Bad = text
		case "message_ru":
			s.Messages.BadRU = text
		default:
			s.Bad = text
		}
	}
	f := web.Frame(r, title)
	web.Render(w, r, status, views.SwitchPage(f, s))
}

// settle answers for a switch that was tried: done leads on, a text that breaks
// its rule asks again.
func (h *Handler) settle(w http.ResponseWriter, r *http.Request, err error, done, location string, again func(status int, bad *delivery.Invalid)) {
	if bad := (*delivery.Invalid)(nil); errors.As(err, &bad) {
		again(http.StatusUnprocessableEntity, bad)
		return
	}
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	web.SetFlash(r, ui.Fine, done)
	web.Answer(w, r, nil, location)
}

// onOff reads the form's one switch.
func (h *Handler) onOff(w http.ResponseWriter, r *http.Request, field string) (on bool, form url.Values, err error) {
	if form, err = web.Form(w, r); err != nil {
		return false, nil, err
	}
	value, ok := web.One(form, field, "on", "off")
	if !ok {
		return false, nil, &delivery.Invalid{Field: field, Rule: "must be on or off"}
	}
	return value == "on", form, nil
}

// AskWebhook asks before a bot's webhook is switched, the way that it isn't.
func (h *Handler) AskWebhook(w http.ResponseWriter, r *http.Request) {
	b, s, err := h.open(r)
	if err == nil && s.Deleted {
		err = delivery.ErrNotFound
	}
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	h.askWebhook(w, r, http.StatusOK, b, !s.HookAllowed, nil, nil)
}

func (h *Handler) askWebhook(w http.ResponseWriter, r *http.Request, status int, b bots.Found, on bool, bad *delivery.Invalid, form url.Values) {
	ctx := r.Context()
	s := views.Switch{
		Action: botURL(b.ID) + "/webhook", Hidden: []ui.Hidden{{Name: "allowed", Value: "off"}}, Hint: words.T(ctx, "support.reason_owner"), Look: ui.Danger,
		Back: views.Link{URL: botURL(b.ID), Text: words.T(ctx, "support.back_bot")}, Question: words.T(ctx, "support.hook_off_question", "Bot", b.Username),
		Effects: []string{words.T(ctx, "support.hook_off_effect_1"), words.T(ctx, "support.hook_off_effect_2"), words.T(ctx, "support.hook_off_effect_3")},
		Verb:    words.T(ctx, "support.hook_off_verb"),
	}
	title := words.T(ctx, "support.hook_off_title")
	if on {
		o, err := h.bots.WebhookOff(ctx, b.ID)
		if err != nil {
			web.Fail(w, r, h.log, err)
			return
		}
		title, s.Off, s.Hint = words.T(ctx, "support.hook_on_title"), off(o), words.T(ctx, "support.reason_log")
		s.Hidden[0].Value, s.Look, s.Question = "on", ui.Primary, words.T(ctx, "support.hook_on_question", "Bot", b.Username)
		s.Effects, s.Verb = []string{words.T(ctx, "support.hook_on_effect_1"), words.T(ctx, "support.hook_on_effect_2")}, words.T(ctx, "support.hook_on_verb")
	}
	ask(w, r, status, title, s, bad, form)
}

// Webhook switches a bot's webhook off or on (W-03, UI-11).
func (h *Handler) Webhook(w http.ResponseWriter, r *http.Request) {
	b, _, err := h.open(r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	on, form, err := h.onOff(w, r, "allowed")
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	ctx := r.Context()
	done := words.T(ctx, "support.hook_done_off", "Bot", b.Username)
	if on {
		done = words.T(ctx, "support.hook_done_on", "Bot", b.Username)
	}
	err = h.bots.AllowWebhook(ctx, actor(r), b.ID, on, form.Get("reason"))
	h.settle(w, r, err, done, botURL(b.ID), func(status int, bad *delivery.Invalid) { h.askWebhook(w, r, status, b, on, bad, form) })
}

// AskRunning asks before a space's bots are switched, the way that they aren't.
func (h *Handler) AskRunning(w http.ResponseWriter, r *http.Request) {
	space, err := h.space(r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	h.askRunning(w, r, http.StatusOK, space, !space.Running, nil, nil)
}

func (h *Handler) space(r *http.Request) (bots.Space, error) {
	id, err := pathID(r, "id")
	if err != nil {
		return bots.Space{}, err
	}
	return h.bots.Space(r.Context(), id)
}

func (h *Handler) askRunning(w http.ResponseWriter, r *http.Request, status int, space bots.Space, on bool, bad *delivery.Invalid, form url.Values) {
	ctx := r.Context()
	s := views.Switch{
		Action: spaceURL(space.ID), Hidden: []ui.Hidden{{Name: "running", Value: "off"}}, Hint: words.T(ctx, "support.reason_owner"), Look: ui.Danger,
		Back: views.Link{URL: "/support", Text: words.T(ctx, "support.back_support")}, More: views.Link{URL: at("/support", "q", number(space.ID)), Text: words.T(ctx, "support.space_find")},
		Question: words.N(ctx, "support.space_off_question", space.Bots), Verb: words.N(ctx, "support.space_off_verb", space.Bots),
		Effects: []string{words.T(ctx, "support.space_off_effect_1"), words.T(ctx, "support.space_off_effect_2"), words.T(ctx, "support.space_off_effect_3"), words.T(ctx, "support.space_off_effect_4")},
	}
	if on {
		o, err := h.bots.SpaceOff(ctx, space.ID)
		if err != nil {
			web.Fail(w, r, h.log, err)
			return
		}
		s.Off, s.Hint, s.Hidden[0].Value, s.Look = off(o), words.T(ctx, "support.reason_log"), "on", ui.Primary
		s.Question, s.Verb = words.N(ctx, "support.space_on_question", space.Bots), words.N(ctx, "support.space_on_verb", space.Bots)
		s.Effects = []string{words.T(ctx, "support.space_on_effect_1")}
	}
	ask(w, r, status, words.T(ctx, "support.space_title", "Space", space.Name), s, bad, form)
}

// Running lets a space run its bots or stops them (P-16, F-04, UI-11).
func (h *Handler) Running(w http.ResponseWriter, r *http.Request) {
	space, err := h.space(r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	on, form, err := h.onOff(w, r, "running")
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	ctx := r.Context()
	done := words.T(ctx, "support.space_done_off", "Space", space.Name)
	if on {
		done = words.T(ctx, "support.space_done_on", "Space", space.Name)
	}
	err = h.bots.RunSpace(ctx, actor(r), space.ID, on, form.Get("reason"))
	h.settle(w, r, err, done, spaceURL(space.ID), func(status int, bad *delivery.Invalid) { h.askRunning(w, r, status, space, on, bad, form) })
}

// AskMaintenance asks before maintenance begins; while it goes on, its message
// can be changed and it can be ended there.
func (h *Handler) AskMaintenance(w http.ResponseWriter, r *http.Request) {
	h.askMaintenance(w, r, http.StatusOK, nil, nil)
}

func (h *Handler) askMaintenance(w http.ResponseWriter, r *http.Request, status int, bad *delivery.Invalid, form url.Values) {
	ctx := r.Context()
	m, err := h.bots.Maintenance(ctx)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	s := views.Switch{
		Question: words.T(ctx, "support.maintenance_question_on"), Action: maintenanceURL, Hidden: []ui.Hidden{{Name: "maintenance", Value: "on"}},
		Hint: words.T(ctx, "support.reason_log"), Look: ui.Danger, Verb: words.T(ctx, "support.maintenance_begin_verb"),
		Back: views.Link{URL: "/support", Text: words.T(ctx, "support.back_support")}, Messages: &views.Messages{Text: m.Text, TextRU: m.TextRU},
		Effects: maintenanceEffects(ctx),
	}
	if m.On {
		s.Question, s.Look, s.Verb = words.T(ctx, "support.maintenance_question_change"), ui.Plain, words.T(ctx, "support.maintenance_change_verb")
		s.End = words.T(ctx, "support.maintenance_end_verb")
	}
	ask(w, r, status, words.T(ctx, "support.maintenance_title"), s, bad, form)
}

func maintenanceEffects(ctx context.Context) []string {
	return []string{words.T(ctx, "support.maintenance_effect_1"), words.T(ctx, "support.maintenance_effect_2"), words.T(ctx, "support.maintenance_effect_3")}
}

// Maintenance begins or ends the platform's maintenance (UI-11).
func (h *Handler) Maintenance(w http.ResponseWriter, r *http.Request) {
	on, form, err := h.onOff(w, r, "maintenance")
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	ctx := r.Context()
	done := words.T(ctx, "support.maintenance_done_off")
	if on {
		done = words.T(ctx, "support.maintenance_done_on")
	}
	err = h.bots.Maintain(ctx, actor(r), queue.Maintenance{On: on, Text: form.Get("message"), TextRU: form.Get("message_ru")}, form.Get("reason"))
	h.settle(w, r, err, done, "/support", func(status int, bad *delivery.Invalid) { h.askMaintenance(w, r, status, bad, form) })
}
