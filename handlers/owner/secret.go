package owner

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/http"

	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/examples"
	"mybots/views/layout"
	views "mybots/views/owner"
	"mybots/views/words"
	"mybots/web"
)

// leadToSecret keeps a webhook's new secret for one look from this session and
// leads there.
func (h *Handler) leadToSecret(w http.ResponseWriter, r *http.Request, botID int64, secret delivery.Secret) {
	if err := h.bots.KeepToShow(r.Context(), web.SessionHash(r), botID, bots.ShownSecret, secret); err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	web.Answer(w, r, nil, at(botID, "connection/secret"))
}

// Secret shows a webhook's new secret, once: the look uses it up, so a second one
// finds what to do without it (UI-02, M-04). HEAD looks at nothing.
func (h *Handler) Secret(w http.ResponseWriter, r *http.Request) {
	b, s, err := h.open(r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	ctx := r.Context()
	var secret delivery.Secret
	if r.Method == http.MethodGet {
		if secret, err = h.secretToShow(r, b.ID); err != nil {
			web.Fail(w, r, h.log, err)
			return
		}
	}
	list, err := snippetList(ctx)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	f := frame(r, b, s, layout.Connection, words.T(ctx, "hook.secret_title"))
	web.Render(w, r, http.StatusOK, views.SecretPage(f, views.Secret{
		Secret: string(secret), Snippets: list, ConnectionURL: at(b.ID, "connection"),
		Examples: []views.Example{
			example(words.T(ctx, "hook.secret_env"), "SMEET_WEBHOOK_SECRET=", string(secret), ""),
			example(words.T(ctx, "hook.secret_start"), "SMEET_WEBHOOK_SECRET=", string(secret), " \\\n  python3 examples/python/webhook_bot.py --behind-proxy"),
		},
	}))
}

// secretToShow gives the secret that waits for this session, "" for none, or one
// that another save has replaced since.
func (h *Handler) secretToShow(r *http.Request, botID int64) (delivery.Secret, error) {
	ctx := r.Context()
	targets, err := h.bots.Targets(ctx, []int64{botID})
	if err != nil {
		return "", err
	}
	secret, err := h.bots.ShowOnce(ctx, web.SessionHash(r), botID, bots.ShownSecret)
	if errors.Is(err, delivery.ErrNotFound) {
		return "", nil
	}
	if err != nil || !same(secret, targets[botID].Secret) {
		return "", err
	}
	return secret, nil
}

// same compares secrets, in a time that depends on their length alone.
func same(a, b delivery.Secret) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// snippetList is the code that checks a signature, in each language.
func snippetList(ctx context.Context) ([]views.Snippet, error) {
	var list []views.Snippet
	for _, language := range examples.Languages {
		code, err := examples.Snippet("verify", language)
		if err != nil {
			return nil, err
		}
		list = append(list, views.Snippet{Language: words.T(ctx, "hook.snippet_"+language), Code: code})
	}
	return list, nil
}
