package support

import (
	"net/http"
	"strings"

	"mybots/delivery"
	"mybots/delivery/bots"
	views "mybots/views/support"
	"mybots/views/ui"
	"mybots/views/words"
	"mybots/web"
)

const (
	foundRows      = 50
	needyRows      = 25
	maxQuery       = 200 // bytes that are looked for
	maintenanceURL = "/support/maintenance"
)

// Home finds bots, and without a question shows who needs attention (UI-06).
func (h *Handler) Home(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	query := strings.TrimSpace(r.URL.Query().Get("q"))
	if len(query) > maxQuery || !delivery.Storable(query) {
		query = strings.ToValidUTF8(strings.ReplaceAll(query[:min(len(query), maxQuery)], "\x00", ""), "")
	}
	page := views.Home{Query: query, AuditURL: "/support/audit"}
	fill := h.attention
	if query != "" {
		fill = h.found
	}
	if err := fill(r, &page); err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	f := web.Frame(r, words.T(ctx, "support.title"))
	f.Lead = words.T(ctx, "support.lead")
	f.SearchURL = "" // the page's own is larger
	web.Render(w, r, http.StatusOK, views.HomePage(f, page))
}

// found fills in the bots that were looked for.
func (h *Handler) found(r *http.Request, page *views.Home) error {
	ctx := r.Context()
	after, _ := delivery.ParseID(r.URL.Query().Get("after")) // 0: from the beginning
	list, err := h.bots.Find(ctx, page.Query, after, foundRows+1)
	if err != nil {
		return err
	}
	n, err := h.bots.Count(ctx, page.Query, countMost+1)
	if err != nil {
		return err
	}
	page.Total = foundWords(ctx, n)
	if after > 0 {
		page.FoundPages.FirstURL = at("/support", "q", page.Query)
	}
	if len(list) > foundRows {
		list = list[:foundRows]
		page.FoundPages.NextURL = at("/support", "q", page.Query, "after", number(list[foundRows-1].ID))
	}
	for _, b := range list {
		page.Found = append(page.Found, botRow(b))
	}
	return nil
}

func botRow(b bots.Found) views.BotRow {
	return views.BotRow{
		URL: botURL(b.ID), ID: number(b.ID), Name: b.Name, Username: b.Username, Owner: b.Owner, Space: b.Space, Deleted: !b.Deleted.IsZero(),
	}
}

// attention fills in who needs attention, and how the platform is.
func (h *Handler) attention(r *http.Request, page *views.Home) error {
	ctx := r.Context()
	m, err := h.bots.Maintenance(ctx)
	if err != nil {
		return err
	}
	page.Maintenance = views.Maintenance{On: m.On, Since: m.Since}
	for _, text := range []string{m.Text, m.TextRU} {
		if text != "" {
			page.Maintenance.Said = append(page.Maintenance.Said, text)
		}
	}
	if web.PersonOf(r).May(web.Act) {
		page.Maintenance.SwitchURL = maintenanceURL
	}
	if page.Notices, err = h.noticesHome(ctx); err != nil {
		return err
	}
	rankText, afterText, _ := strings.Cut(r.URL.Query().Get("from"), "-")
	rank, _ := delivery.ParseID(rankText) // 0: from the beginning
	rank = min(rank, bots.NeedsOwner+1)
	after, _ := delivery.ParseID(afterText)
	list, err := h.bots.Attention(ctx, int(rank), after, needyRows+1)
	if err != nil {
		return err
	}
	n, err := h.bots.CountAttention(ctx, countMost+1)
	if err != nil {
		return err
	}
	page.NeedyTotal = foundWords(ctx, n) + "."
	if rank > 0 {
		page.NeedyPages.FirstURL = "/support"
	}
	if len(list) > needyRows {
		list = list[:needyRows]
		last := list[needyRows-1]
		page.NeedyPages.NextURL = at("/support", "from", number(int64(last.Rank))+"-"+number(last.ID))
	}
	for _, b := range list {
		row := botRow(b.Found)
		row.Needs, row.Kind = words.T(ctx, "support.need_"+number(int64(b.Rank))), needKind(b.Rank)
		row.Waiting, row.Failed, row.Oldest = int64(b.Waiting), int64(b.Failed), b.Oldest.Time
		if b.Rank <= bots.NeedsEndpoint {
			row.Why = b.Why
		}
		page.Needy = append(page.Needy, row)
	}
	return nil
}

func needKind(rank int) ui.Kind {
	switch rank {
	case bots.NeedsPlatform:
		return ui.Off
	case bots.NeedsOwner:
		return ui.Waiting
	}
	return ui.Trouble
}
