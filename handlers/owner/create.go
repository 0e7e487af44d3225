package owner

import (
	"errors"
	"net/http"

	"mybots/delivery"
	"mybots/delivery/bots"
	views "mybots/views/owner"
	"mybots/views/words"
	"mybots/web"
)

// NewBot shows the form for a new bot.
func (h *Handler) NewBot(w http.ResponseWriter, r *http.Request) {
	showNewBot(w, r, http.StatusOK, views.NewBot{})
}

// CreateBot makes the bot and leads to the page that shows its token once (UI-02).
func (h *Handler) CreateBot(w http.ResponseWriter, r *http.Request) {
	form, err := web.Form(w, r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	ctx, person := r.Context(), web.PersonOf(r)
	b, token, err := h.bots.Create(ctx, bots.NewBot{
		SpaceID: person.SpaceID, OwnerID: person.ID, Username: form.Get("username"), Name: form.Get("name"), By: actor(r),
	})
	again := views.NewBot{Username: form.Get("username"), Name: form.Get("name")}
	switch invalid := (*delivery.Invalid)(nil); {
	case errors.As(err, &invalid):
		again.Code = "INVALID"
		if invalid.Field == "name" {
			again.NameError = words.T(ctx, "newbot.name_bad")
		} else {
			again.UsernameError = words.T(ctx, "newbot.username_bad")
		}
		showNewBot(w, r, http.StatusUnprocessableEntity, again)
		return
	case errors.Is(err, delivery.ErrConflict):
		again.Code, again.UsernameError = "USERNAME_TAKEN", words.T(ctx, "newbot.username_taken")
		showNewBot(w, r, http.StatusConflict, again)
		return
	case err != nil:
		web.Fail(w, r, h.log, err)
		return
	}
	h.leadToToken(w, r, b.ID, token)
}

func showNewBot(w http.ResponseWriter, r *http.Request, status int, n views.NewBot) {
	ctx := r.Context()
	n.Action, n.CancelURL = newURL, botsURL
	f := web.Frame(r, words.T(ctx, "newbot.title"))
	f.Narrow, f.Lead = true, words.T(ctx, "newbot.lead")
	web.Render(w, r, status, views.NewBotPage(f, n))
}
