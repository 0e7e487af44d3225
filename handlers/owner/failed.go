package owner

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"sort"

	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/delivery/queue"
	"mybots/views/layout"
	views "mybots/views/owner"
	"mybots/views/ui"
	"mybots/views/words"
	"mybots/web"
)

// failedRows is how many failed updates a page shows.
const failedRows = 50

// Failed shows the failed updates that the query's type and reason pick, from
// behind the update_id after (F-01, UI-04).
func (h *Handler) Failed(w http.ResponseWriter, r *http.Request) {
	b, s, err := h.open(r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	h.showFailed(w, r, http.StatusOK, b, s, r.URL.Query(), refusal{})
}

// showFailed shows the list; query has its filter, whether it came in the
// address or in a form.
func (h *Handler) showFailed(w http.ResponseWriter, r *http.Request, status int, b bots.Bot, s queue.Status, query url.Values, why refusal) {
	ctx := r.Context()
	filter, err := filterOf(query)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	after, _ := delivery.ParseID(query.Get("after")) // what isn't an id means the first page
	page, err := h.failed(ctx, b, s, filter, after)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	page.Code, page.Error = why.code, why.text
	f := frame(r, b, s, layout.Failed, words.T(ctx, "failed.title"))
	web.Render(w, r, status, views.FailedPage(f, page))
}

// filterOf reads type and reason. What no update can have is delivery.ErrInvalid.
func filterOf(query url.Values) (queue.FailedFilter, error) {
	f := queue.FailedFilter{Type: query.Get("type")}
	f.Reason, f.ByWebhook = readReason(query.Get("reason"))
	if !delivery.Storable(f.Type) || !delivery.Storable(f.Reason) {
		return f, &delivery.Invalid{Field: "type, reason", Rule: "must be texts"}
	}
	return f, nil
}

// failed is everything on the page.
func (h *Handler) failed(ctx context.Context, b bots.Bot, s queue.Status, filter queue.FailedFilter, after int64) (views.Failed, error) {
	groups, err := h.queue.FailedGroups(ctx, b.ID)
	if err != nil {
		return views.Failed{}, err
	}
	page := views.Failed{
		URL: at(b.ID, "failed"), RetryURL: at(b.ID, "failed/retry"), SkipURL: at(b.ID, "failed/skip"), ConnectionURL: at(b.ID, "connection"),
		Filter: filterOptions(ctx, groups, filter), Legend: legend(ctx, groups), Blocked: blocked(ctx, s),
	}
	for _, g := range groups {
		page.Total += g.Count
		if (filter.Type == "" || filter.Type == g.Type) && (filter.Reason == "" || filter.Reason == g.Reason && filter.ByWebhook == g.ByWebhook) {
			page.Match += g.Count
		}
	}
	if page.Match == 0 {
		return page, nil
	}
	list, err := h.queue.FailedPage(ctx, b.ID, filter, after, failedRows+1)
	if err != nil {
		return views.Failed{}, err
	}
	more := len(list) > failedRows
	list = list[:min(len(list), failedRows)]
	for _, u := range list {
		page.Rows = append(page.Rows, views.FailedRow{
			ID: number(u.UpdateID), Kind: kindOf(ctx, u.Type), Reason: reasonOf(ctx, u.Reason, u.ByWebhook), Attempts: int64(u.Attempts),
			Date: u.Date, FailedAt: u.FailedAt, ExpiresAt: u.ExpiresAt,
		})
	}
	page.Pager, err = h.failedPager(ctx, b.ID, filter, after, list, more, page.Match)
	return page, err
}

// failedPager leads on from a page of the list. Where the list's beginning isn't
// on it, the ids say which part of the whole it is and where the part before begins.
func (h *Handler) failedPager(ctx context.Context, botID int64, f queue.FailedFilter, after int64, list []queue.Failed, more bool, match int) (ui.PagerProps, error) {
	from, p := 0, ui.PagerProps{}
	if after > 0 {
		ids, err := h.queue.FailedIDs(ctx, botID, f)
		if err != nil {
			return p, err
		}
		from = sort.Search(len(ids), func(i int) bool { return ids[i] > after })
		match = len(ids)
		var before int64
		if start := from - failedRows; len(list) > 0 && start > 0 {
			before = ids[start-1]
		}
		p.PreviousURL = listURL(botID, f, before)
	}
	if more {
		p.NextURL = listURL(botID, f, list[len(list)-1].UpdateID)
	}
	p.Text = words.T(ctx, "failed.range", "From", from+1, "To", from+len(list), "Total", max(match, from+len(list)))
	return p, nil
}

// listURL is the address of the list with that filter, behind the update_id after.
func listURL(botID int64, f queue.FailedFilter, after int64) string {
	q := url.Values{}
	for _, field := range filterFields(f) {
		q.Set(field.Name, field.Value)
	}
	if after > 0 {
		q.Set("after", number(after))
	}
	if len(q) == 0 {
		return at(botID, "failed")
	}
	return at(botID, "failed") + "?" + q.Encode()
}

// filterFields is the filter as forms and addresses carry it.
func filterFields(f queue.FailedFilter) (fields []ui.Hidden) {
	if f.Type != "" {
		fields = append(fields, ui.Hidden{Name: "type", Value: f.Type})
	}
	if f.Reason != "" {
		fields = append(fields, ui.Hidden{Name: "reason", Value: writeReason(f.Reason, f.ByWebhook)})
	}
	return fields
}

// reasonChoices is how many reasons the filter offers, the most frequent ones.
// A program that puts something different into each has as many as updates.
const reasonChoices = 50

// filterOptions are the types and reasons that there are, with their numbers.
func filterOptions(ctx context.Context, groups []queue.FailedGroup, f queue.FailedFilter) views.FailedFilter {
	kinds, reasons := map[string]int{}, map[string]int{}
	for _, g := range groups {
		kinds[g.Type] += g.Count
		reasons[writeReason(g.Reason, g.ByWebhook)] += g.Count
	}
	filter := views.FailedFilter{Set: f.Type != "" || f.Reason != "", Hidden: filterFields(f)}
	filter.Kinds = options(ctx, words.T(ctx, "failed.all_kinds"), kinds, f.Type, func(code string) string {
		if k := kindOf(ctx, code); k.Words != "" {
			return k.Words
		}
		return code
	})
	chosen := ""
	if f.Reason != "" {
		chosen = writeReason(f.Reason, f.ByWebhook)
	}
	filter.Reasons = options(ctx, words.T(ctx, "failed.all_reasons"), reasons, chosen, func(field string) string {
		reason, hook := readReason(field)
		return inQuotes(ctx, short(reasonOf(ctx, reason, hook).Words), !hook && field != reason)
	})
	if len(reasons) > reasonChoices {
		filter.More = words.T(ctx, "failed.most", "Limit", reasonChoices)
	}
	return filter
}

// options offers everything, then the most frequent values; the chosen one is
// always among them.
func options(ctx context.Context, all string, counts map[string]int, chosen string, label func(string) string) []ui.Option {
	values := make([]string, 0, len(counts))
	for v := range counts {
		values = append(values, v)
	}
	slices.SortFunc(values, func(a, b string) int {
		if d := counts[b] - counts[a]; d != 0 {
			return d
		}
		if a < b {
			return -1
		}
		return 1
	})
	values = values[:min(len(values), reasonChoices)]
	if chosen != "" && !slices.Contains(values, chosen) {
		values = append(values, chosen)
	}
	list := []ui.Option{{Value: "", Label: all, Selected: chosen == ""}}
	for _, v := range values {
		list = append(list, ui.Option{
			Value: v, Label: words.T(ctx, "failed.option", "Label", label(v), "Number", counts[v]), Selected: v == chosen,
		})
	}
	return list
}
