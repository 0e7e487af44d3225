package owner

import (
	"context"
	"net/http"
	"strings"

	"mybots/delivery"
	"mybots/delivery/webhook"
	views "mybots/views/owner"
	"mybots/views/ui"
	"mybots/views/words"
	"mybots/web"
)

// hookTools are the test request, the checker and the code to compare with.
func hookTools(ctx context.Context, botID int64, check views.CheckForm) (*views.HookTools, error) {
	list, err := snippetList(ctx)
	if err != nil {
		return nil, err
	}
	return &views.HookTools{TestURL: at(botID, "connection/test"), CheckURL: at(botID, "connection/check"), Snippets: list, Check: check}, nil
}

// CheckSignature names the mistake in a request that the owner pasted. What was
// pasted is in this answer alone, the secret not even there. Without a pasted
// secret, the one that requests are signed with is used.
func (h *Handler) CheckSignature(w http.ResponseWriter, r *http.Request) {
	b, s, form, err := h.deed(w, r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	ctx := r.Context()
	targets, err := h.bots.Targets(ctx, []int64{b.ID})
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	target, ok := targets[b.ID]
	if s.Mode != delivery.Webhook || !ok {
		h.showConnection(w, r, http.StatusConflict, b, s, extra{why: refusal{string(delivery.DeliveryModeConflict), words.T(ctx, "hook.check_refused_polling")}})
		return
	}
	paste := webhook.Paste{Secret: delivery.Secret(form.Get("secret")), Header: form.Get("header"), Body: []byte(form.Get("body")), Now: s.At}
	check := views.CheckForm{Header: paste.Header, Body: string(paste.Body), Found: diagnose(ctx, paste, target.Secret)}
	w.Header().Set("Cache-Control", "no-store")
	h.showConnection(w, r, http.StatusOK, b, s, extra{check: check})
}

// oldSecret is a mistake that only we can see: the signature is right with the
// secret of now, and the program has another one.
const oldSecret webhook.Mistake = "old_secret"

// diagnose looks with the pasted secret, or with ours when none was pasted.
func diagnose(ctx context.Context, p webhook.Paste, ours delivery.Secret) *views.Found {
	pasted := p.Secret != ""
	if !pasted {
		p.Secret = ours
	}
	f := webhook.Diagnose(p)
	if f.Mistake == webhook.MistakeOther && pasted {
		p.Secret = ours
		switch again := webhook.Diagnose(p); again.Mistake {
		case webhook.MistakeNone, webhook.MistakeOld, webhook.MistakeFuture:
			f.Mistake = oldSecret
		}
	}
	v := foundWords(ctx, f)
	v.Pasted = pasted
	return v
}

// foundWords puts a mistake into words: what is wrong, what to change.
func foundWords(ctx context.Context, f webhook.Finding) *views.Found {
	key := "hook.found_" + string(f.Mistake)
	v := &views.Found{Code: string(f.Mistake), Kind: ui.Trouble, Title: words.T(ctx, key)}
	switch f.Mistake {
	case webhook.MistakeNone:
		v.Kind = ui.Fine
	case webhook.MistakeOld:
		v.Kind = ui.Waiting
	}
	var codes []string
	for _, d := range f.Details {
		codes = append(codes, string(d))
		v.Lines = append(v.Lines, detailWords(ctx, d))
	}
	v.Details = strings.Join(codes, " ")
	if text := words.T(ctx, key+"_do"); text != key+"_do" {
		v.Lines = append(v.Lines, text)
	}
	switch {
	case !f.Stale() || f.Mistake == webhook.MistakeOld || f.Mistake == webhook.MistakeFuture: // said above
	case f.Off > 0:
		v.Lines = append(v.Lines, words.T(ctx, "hook.check_stale_ahead"))
	default:
		v.Lines = append(v.Lines, words.T(ctx, "hook.check_stale_ago"))
	}
	return v
}

func detailWords(ctx context.Context, d webhook.Detail) string {
	key := "hook.detail_" + string(d)
	if text := words.T(ctx, key); text != key {
		return text
	}
	return words.T(ctx, "hook.detail_other")
}
