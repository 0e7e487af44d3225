package account

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"mybots/delivery"
	"mybots/delivery/bots"
	views "mybots/views/account"
	"mybots/views/ui"
	"mybots/views/words"
	"mybots/web"
)

// ChangePassword takes the form. The old password is checked at full cost, and
// wrong ones count as attempts to sign in. Afterwards all other sessions have
// ended, and this one has a new id.
func (h *Handler) ChangePassword(w http.ResponseWriter, r *http.Request) {
	form, err := web.Form(w, r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	ctx := r.Context()
	old, fresh := form.Get("old"), form.Get("new")
	why := passwordMistakes(r, old, fresh, form.Get("again"))
	if why.Code != "" {
		h.refuse(w, r, http.StatusUnprocessableEntity, why)
		return
	}
	wait, err := h.front.TryPassword(r, old, func() error {
		return h.front.Renew(w, r, func(session []byte) error {
			return h.bots.ChangePassword(ctx, actor(r), bots.PasswordChange{Old: delivery.Secret(old), New: delivery.Secret(fresh), Session: session})
		})
	})
	switch {
	case wait > 0:
		seconds := int((wait + time.Second - 1) / time.Second)
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
		h.refuse(w, r, http.StatusTooManyRequests, views.Password{Code: "RATE_LIMITED", Wait: seconds})
	case errors.Is(err, delivery.ErrNotFound):
		h.refuse(w, r, http.StatusUnprocessableEntity, views.Password{Code: "WRONG_PASSWORD", OldError: words.T(ctx, "account.old_wrong")})
	case err != nil:
		web.Fail(w, r, h.log, err)
	default:
		web.SetFlash(r, ui.Fine, words.T(ctx, "account.changed"))
		web.Answer(w, r, nil, settingsURL)
	}
}

// passwordMistakes is what is wrong about the form before anything is checked;
// its Code is "" for nothing.
func passwordMistakes(r *http.Request, old, fresh, again string) views.Password {
	ctx := r.Context()
	var why views.Password
	if old == "" {
		why.OldError = words.T(ctx, "account.old_missing")
	}
	switch {
	case len(fresh) < bots.MinOwnPassword:
		why.NewError = words.T(ctx, "account.too_short")
	case len(fresh) > bots.MaxPassword:
		why.NewError = words.T(ctx, "account.too_long")
	case fresh == old:
		why.NewError = words.T(ctx, "account.same")
	case again != fresh:
		why.AgainError = words.T(ctx, "account.differs")
	}
	if why.OldError+why.NewError+why.AgainError != "" {
		why.Code = "INVALID"
	}
	return why
}

// refuse shows the form again, with what is wrong and none of the passwords.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, status int, why views.Password) {
	if web.Partial(r) {
		why.Email = web.PersonOf(r).Email
		web.Render(w, r, status, views.PasswordForm(why))
		return
	}
	h.show(w, r, status, views.Settings{Password: why})
}
