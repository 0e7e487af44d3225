package account

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"mybots/delivery"
	"mybots/delivery/notice"
	views "mybots/views/account"
	"mybots/views/ui"
	"mybots/views/words"
	"mybots/web"
)

// linker is what the card about MAX asks of package notice.
type linker interface {
	MAX() bool
	LinkedSince(ctx context.Context, userID int64) (time.Time, error)
	NewCode(ctx context.Context, userID int64) (delivery.Secret, error)
	Unlink(ctx context.Context, by notice.Actor) error
}

// MAXCode answers with a new linking code (N-07). It is in this answer alone: a
// reload asks for another one, which takes its place.
func (h *Handler) MAXCode(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	code, err := h.notices.NewCode(ctx, web.PersonOf(r).ID)
	if errors.Is(err, notice.ErrOff) {
		err = fmt.Errorf("a code for MAX: %w: %w", delivery.ErrNotFound, err)
	}
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	f := web.Frame(r, words.T(ctx, "max.code_title"))
	f.Path = settingsURL
	web.Render(w, r, http.StatusOK, views.MAXCodePage(f, string(code)))
}

// UnlinkMAX forgets the person's account at MAX.
func (h *Handler) UnlinkMAX(w http.ResponseWriter, r *http.Request) {
	a := actor(r)
	if err := h.notices.Unlink(r.Context(), notice.Actor{UserID: a.UserID, RequestID: a.RequestID, Address: a.Address}); err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	web.SetFlash(r, ui.Fine, words.T(r.Context(), "max.unlinked"))
	web.Answer(w, r, nil, settingsURL)
}
