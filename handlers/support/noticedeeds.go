package support

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/delivery/notice"
	views "mybots/views/support"
	"mybots/views/ui"
	"mybots/views/words"
	"mybots/web"
)

// RetryNotice sends a notice again.
func (h *Handler) RetryNotice(w http.ResponseWriter, r *http.Request) {
	h.decideNotice(w, r, "retry", func(ctx context.Context, id int64, _ url.Values, within notice.Within) error {
		return h.notices.Retry(ctx, id, within)
	})
}

// ReaddressNotice sends a notice to somebody else.
func (h *Handler) ReaddressNotice(w http.ResponseWriter, r *http.Request) {
	h.decideNotice(w, r, "readdress", func(ctx context.Context, id int64, form url.Values, within notice.Within) error {
		return h.notices.Readdress(ctx, id, form.Get("route"), form.Get("recipient"), within)
	})
}

// CloseNotice ends a notice that isn't to be sent; it asks for a reason.
func (h *Handler) CloseNotice(w http.ResponseWriter, r *http.Request) {
	h.decideNotice(w, r, "close", func(ctx context.Context, id int64, form url.Values, within notice.Within) error {
		if reason, err := bots.CheckWhy("reason", form.Get("reason")); err == nil && reason == "" {
			return &delivery.Invalid{Field: "reason", Rule: "is needed"}
		}
		return h.notices.Close(ctx, id, within)
	})
}

// decideNotice does a person's deed about one notice; a form that was refused
// comes back with the notice as it is now.
func (h *Handler) decideNotice(w http.ResponseWriter, r *http.Request, name string, deed func(context.Context, int64, url.Values, notice.Within) error) {
	ctx := r.Context()
	id, err := pathID(r, "id")
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	form, err := web.Form(w, r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	within, err := h.bots.ActingFor(actor(r), form.Get("reason"))
	if err == nil {
		err = deed(ctx, id, form, within)
	}
	var bad *delivery.Invalid
	switch {
	case errors.As(err, &bad):
		refused := views.Refused{Deed: name, Code: "INVALID", Field: "reason", Bad: words.T(ctx, "notices.bad_reason"), Recipient: form.Get("recipient"), Reason: form.Get("reason")}
		if bad.Field != "reason" {
			refused.Field, refused.Bad = "recipient", words.T(ctx, "notices.bad_recipient")
		}
		page := views.Notice{Refused: refused}
		if name == "readdress" {
			page.Routes = routeOptions(ctx, form.Get("route"), "")
		}
		h.showNotice(w, r, http.StatusUnprocessableEntity, page)
	case errors.Is(err, delivery.ErrStale):
		h.showNotice(w, r, http.StatusConflict, views.Notice{Refused: views.Refused{Code: "STALE", Bad: words.T(ctx, "notices.bad_state")}})
	case err != nil:
		web.Fail(w, r, h.log, err)
	default:
		web.SetFlash(r, ui.Fine, words.T(ctx, "notices.done_"+name))
		web.Answer(w, r, nil, noticesURL+"/"+number(id))
	}
}

// Route stops a route or lets it send again.
func (h *Handler) Route(w http.ResponseWriter, r *http.Request) {
	ctx, route := r.Context(), r.PathValue("route")
	on, form, err := h.onOff(w, r, "sending")
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	within, err := h.bots.ActingFor(actor(r), form.Get("reason"))
	done := "notices.done_stop"
	switch {
	case err != nil:
	case on:
		portion, ok := web.One(form, "portion", "0", "10", "100")
		if !ok {
			err = &delivery.Invalid{Field: "portion", Rule: "must be 0, 10 or 100"}
			break
		}
		n, _ := delivery.ParseID(portion)
		done = "notices.done_resume"
		err = h.notices.ResumeRoute(ctx, route, int(n), within)
	default:
		err = h.notices.StopRoute(ctx, route, within)
	}
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	web.SetFlash(r, ui.Fine, words.T(ctx, done, "Route", words.T(ctx, "notices.route_"+route)))
	web.Answer(w, r, nil, noticesURL)
}
