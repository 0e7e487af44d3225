package owner

import (
	"errors"
	"net/http"

	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/views/layout"
	views "mybots/views/owner"
	"mybots/views/words"
	"mybots/web"
)

// leadToToken keeps a new token for one look from this session and leads there.
func (h *Handler) leadToToken(w http.ResponseWriter, r *http.Request, botID int64, token delivery.Secret) {
	if err := h.bots.KeepToShow(r.Context(), web.SessionHash(r), botID, bots.ShownToken, token); err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	web.Answer(w, r, nil, at(botID, "token"))
}

// Token shows a new token, once: the look uses it up, so a second one finds what
// to do without it (UI-02). HEAD looks at nothing.
func (h *Handler) Token(w http.ResponseWriter, r *http.Request) {
	b, s, err := h.open(r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	ctx := r.Context()
	var token delivery.Secret
	if r.Method == http.MethodGet {
		token, err = h.bots.ShowOnce(ctx, web.SessionHash(r), b.ID, bots.ShownToken)
		if err != nil && !errors.Is(err, delivery.ErrNotFound) {
			web.Fail(w, r, h.log, err)
			return
		}
	}
	w.Header().Set("Cache-Control", "no-store")
	f := frame(r, b, s, layout.Connection, words.T(ctx, "token.title"))
	web.Render(w, r, http.StatusOK, views.TokenPage(f, views.Token{
		Token: string(token), Examples: h.examples(ctx, string(token)),
		ChatURL: at(b.ID, "chat"), ConnectionURL: at(b.ID, "connection"), EmergencyURL: at(b.ID, "connection/emergency-reset"),
	}))
}
