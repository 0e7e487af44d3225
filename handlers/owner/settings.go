package owner

import (
	"net/http"

	"mybots/views/layout"
	views "mybots/views/owner"
	"mybots/views/ui"
	"mybots/views/words"
	"mybots/web"
)

// Settings shows what the bot is, with pause and delete.
func (h *Handler) Settings(w http.ResponseWriter, r *http.Request) {
	h.showSettings(w, r, http.StatusOK, refusal{})
}

func (h *Handler) showSettings(w http.ResponseWriter, r *http.Request, status int, why refusal) {
	b, s, err := h.open(r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	f := frame(r, b, s, layout.Settings, words.T(r.Context(), "settings.title"))
	web.Render(w, r, status, views.SettingsPage(f, views.Settings{
		BotID: number(b.ID), Name: b.Name, Username: b.Username, Created: b.CreatedAt, Paused: s.Paused,
		PauseURL: at(b.ID, "pause"), DeleteURL: at(b.ID, "delete"), Code: why.code, Error: why.text,
	}))
}

// Pause stops the bot or lets it go on (M-07). Doing it twice is doing it once.
func (h *Handler) Pause(w http.ResponseWriter, r *http.Request) {
	b, _, form, err := h.deed(w, r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	ctx := r.Context()
	paused, ok := form.one("paused", "on", "off")
	if !ok {
		h.showSettings(w, r, http.StatusUnprocessableEntity, refusal{"INVALID", words.T(ctx, "settings.pause_bad")})
		return
	}
	if err := h.bots.Pause(ctx, actor(r), b.ID, paused == "on"); err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	kind, done := ui.Fine, words.T(ctx, "settings.resumed_done")
	if paused == "on" {
		kind, done = ui.Off, words.T(ctx, "settings.paused_done")
	}
	web.SetFlash(r, kind, done)
	web.Answer(w, r, nil, at(b.ID, "connection"))
}
