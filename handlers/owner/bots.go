package owner

import (
	"context"
	"net/http"
	"net/url"

	"mybots/delivery"
	"mybots/delivery/bots"
	views "mybots/views/owner"
	"mybots/views/ui"
	"mybots/views/words"
	"mybots/web"
)

// The addresses that belong to no bot.
const (
	botsURL = "/bots"
	newURL  = "/bots/new"
)

// Bots shows a card for each of the owner's bots (UI-02).
func (h *Handler) Bots(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	cards, err := h.bots.Cards(ctx, web.PersonOf(r).ID)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	page := views.Bots{URL: botsURL, NewURL: newURL, Cards: h.botCards(ctx, cards), BotFatherURL: botFatherURL(web.PersonOf(r).SpaceID)}
	if page.Started, err = h.started(r); err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	if page.Started && !web.PersonOf(r).May(web.Look) {
		page.BotFatherURL = "" // it stands in the menu, which has no room for it beside support's own
	}
	troubled := 0
	for _, c := range page.Cards {
		if c.State.Kind == ui.Trouble {
			troubled++
		}
	}
	if troubled > 0 {
		page.Attention = words.N(ctx, "bots.attention", troubled)
	}
	page.Seen = seen(ctx, page)
	if nothingNew(w, r, page.Seen) {
		return
	}
	if web.Partial(r) {
		web.Render(w, r, http.StatusOK, views.BotsPiece(page))
		return
	}
	f := web.Frame(r, words.T(ctx, "bots.title"))
	if len(page.Cards) > 0 {
		f.Actions = views.CreateLink(newURL)
	}
	web.Render(w, r, http.StatusOK, views.BotsPage(f, page))
}

func (h *Handler) botCards(ctx context.Context, cards []bots.Card) []views.BotCard {
	list := make([]views.BotCard, len(cards))
	for i, c := range cards {
		c.Status = h.allow(c.Status)
		list[i] = views.BotCard{
			URL: at(c.ID, "connection"), Name: c.Name, Username: c.Username,
			Mode: mode(ctx, c.Status.Mode), State: stateOf(c.Status).say(ctx, c.Status),
			Waiting: words.T(ctx, "bots.waiting_of", "Waiting", c.Status.Waiting, "Limit", delivery.MaxWaiting),
			Oldest:  c.Status.OldestWaiting, Errors: c.Status.Failed, ErrorsURL: at(c.ID, "failed"),
		}
		if c.Status.Mode == delivery.Webhook {
			list[i].Host = host(c.Status.HookURL)
		}
	}
	return list
}

// host is whom a webhook's address leads to. The path and the query may hold what
// not everybody should read.
func host(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "" // none that was saved
	}
	return u.Host
}

func mode(ctx context.Context, m delivery.Mode) string {
	if m == delivery.Webhook {
		return words.T(ctx, "bots.mode_webhook")
	}
	return words.T(ctx, "bots.mode_polling")
}
