package owner

import (
	"errors"
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

// ConfirmDelete asks for the username before the bot is deleted.
func (h *Handler) ConfirmDelete(w http.ResponseWriter, r *http.Request) {
	b, s, err := h.open(r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	showDelete(w, r, http.StatusOK, b, s, views.Delete{})
}

// Delete deletes the bot whose username was typed again (M-09).
func (h *Handler) Delete(w http.ResponseWriter, r *http.Request) {
	b, s, form, err := h.deed(w, r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	ctx := r.Context()
	typed := form.Get("username")
	err = h.bots.Delete(ctx, actor(r), b.ID, typed)
	if errors.Is(err, delivery.ErrInvalid) {
		showDelete(w, r, http.StatusUnprocessableEntity, b, s, views.Delete{
			Typed: typed, Code: "INVALID", Error: words.T(ctx, "delete.wrong", "Username", b.Username),
		})
		return
	}
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	web.SetFlash(r, ui.Fine, words.T(ctx, "delete.done", "Username", b.Username))
	web.Answer(w, r, nil, botsURL)
}

func showDelete(w http.ResponseWriter, r *http.Request, status int, b bots.Bot, s queue.Status, d views.Delete) {
	ctx := r.Context()
	d.Username = b.Username
	d.Question, d.Effect = words.T(ctx, "delete.question", "Username", b.Username), words.T(ctx, "delete.effect")
	d.Action, d.Verb = at(b.ID, "delete"), words.T(ctx, "delete.verb", "Username", b.Username)
	d.Back, d.BackURL = words.T(ctx, "confirm.back"), at(b.ID, "settings")
	d.Stops = []string{words.T(ctx, "delete.stops_token")}
	if s.Waiting > 0 {
		d.Stops = append(d.Stops, words.N(ctx, "delete.stops_waiting", s.Waiting))
	}
	if s.Failed > 0 {
		d.Stops = append(d.Stops, words.N(ctx, "delete.stops_failed", s.Failed))
	}
	d.Stops = append(d.Stops, words.T(ctx, "delete.stops_chat"))
	d.Stays = words.T(ctx, "delete.stays")
	f := frame(r, b, s, layout.Settings, words.T(ctx, "delete.title"))
	web.Render(w, r, status, views.DeletePage(f, d))
}
