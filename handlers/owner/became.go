package owner

import (
	"context"
	"net/http"
	"slices"

	"mybots/delivery"
	"mybots/views/layout"
	views "mybots/views/owner"
	"mybots/views/ui"
	"mybots/views/words"
	"mybots/web"
)

// deed is what an owner can do to failed updates.
type deed int

const (
	retry deed = iota
	skip
)

// showBecame tells what became of each update (F-01, UI-11). The bot is looked
// at once more, since the number of its failed updates has changed.
func (h *Handler) showBecame(w http.ResponseWriter, r *http.Request, did deed, c selection, outcomes []delivery.Outcome) {
	b, s, err := h.open(r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	ctx := r.Context()
	page := became(ctx, did, outcomes)
	page.BackURL = listURL(b.ID, c.filter, 0)
	if c.left > 0 {
		page.Next = nextGo(ctx, did, b.ID, c)
	}
	title := words.T(ctx, "became.title_retry")
	if did == skip {
		title = words.T(ctx, "became.title_skip")
	}
	f := frame(r, b, s, layout.Failed, title)
	web.Render(w, r, http.StatusOK, views.BecamePage(f, page))
}

// became puts the outcomes into words, the refused ones first.
func became(ctx context.Context, did deed, outcomes []delivery.Outcome) views.Became {
	page := views.Became{Rows: make([]views.BecameRow, 0, len(outcomes))}
	refused := map[delivery.RefusedFor]int{}
	reasons := map[delivery.RefusedFor]views.Reason{}
	var ids []int64 // the new ones
	for _, o := range outcomes {
		row := views.BecameRow{ID: number(o.UpdateID), Result: string(o.Result), Reason: string(o.Reason)}
		switch o.Result {
		case delivery.Refused:
			if _, ok := reasons[o.Reason]; !ok {
				reasons[o.Reason] = whyNot(ctx, o.Reason)
			}
			refused[o.Reason]++
			row.Word, row.More = words.T(ctx, "became.refused"), reasons[o.Reason].Words
		case delivery.Replayed:
			ids = append(ids, o.NewID)
			row.Word, row.More = words.T(ctx, "became.replayed"), words.T(ctx, "became.new_place", "ID", number(o.NewID))
		case delivery.Skipped:
			row.Word, row.More = words.T(ctx, "became.skipped"), words.T(ctx, "became.gone")
		}
		page.Rows = append(page.Rows, row)
	}
	slices.SortStableFunc(page.Rows, func(a, b views.BecameRow) int { return refusedFirst(a) - refusedFirst(b) })
	page.Reasons = countedReasons(ctx, refused, reasons)
	page.Kind, page.Summary = summary(ctx, did, len(outcomes), ids, refused)
	return page
}

func refusedFirst(r views.BecameRow) int {
	if r.Reason != "" {
		return 0
	}
	return 1
}

// countedReasons lists the reasons that occurred in the order of refusals, then
// those that we don't know.
func countedReasons(ctx context.Context, refused map[delivery.RefusedFor]int, reasons map[delivery.RefusedFor]views.Reason) (list []views.Reason) {
	order := slices.Clone(refusals)
	for code := range refused {
		if !slices.Contains(order, code) {
			order = append(order, code)
		}
	}
	for _, code := range order {
		if n := refused[code]; n > 0 {
			r := reasons[code]
			r.Count = words.N(ctx, "became.updates", n)
			list = append(list, r)
		}
	}
	return list
}

// summary says in a few sentences what happened, the news first.
func summary(ctx context.Context, did deed, all int, ids []int64, refused map[delivery.RefusedFor]int) (kind ui.Kind, sentences []string) {
	if all == 0 {
		return ui.Waiting, []string{words.T(ctx, "became.nothing_title"), words.T(ctx, "became.nothing_text")}
	}
	before := refused[delivery.NotFailed]
	no := 0
	for _, n := range refused {
		no += n
	}
	no -= before
	done := all - no - before
	kind = ui.Fine
	switch {
	case no > 0:
		kind = ui.Trouble
	case done == 0:
		kind = ui.Waiting
	}
	if done > 0 && did == retry {
		sentences = append(sentences, words.N(ctx, "became.replayed_n", done, "Where", where(ctx, ids)), words.T(ctx, "became.reach"))
	}
	if done > 0 && did == skip {
		sentences = append(sentences, words.N(ctx, "became.skipped_n", done))
	}
	if no > 0 {
		sentences = append(sentences, words.N(ctx, "became.refused_n", no))
	}
	if before > 0 {
		sentences = append(sentences, words.N(ctx, "became.done_before_n", before))
	}
	return kind, sentences
}

// where names the places at the end of the queue: they follow one another.
func where(ctx context.Context, ids []int64) string {
	if len(ids) == 1 {
		return words.T(ctx, "became.queued_as", "ID", number(ids[0]))
	}
	return words.T(ctx, "became.queued_range", "From", number(slices.Min(ids)), "To", number(slices.Max(ids)))
}

// nextGo is the form for the updates that one go was too small for.
func nextGo(ctx context.Context, did deed, botID int64, c selection) *views.Next {
	n := min(c.left, oneGo)
	next := &views.Next{
		Text: words.N(ctx, "became.left", c.left, "Limit", oneGo), Verb: words.N(ctx, "became.retry_next", n),
		Look: ui.Plain, Method: http.MethodPost, URL: at(botID, "failed/retry"),
		Hidden: append(filterFields(c.filter), ui.Hidden{Name: "all", Value: "1"}, ui.Hidden{Name: "after", Value: number(c.ids[len(c.ids)-1])}),
	}
	if did == skip {
		next.Verb, next.Look, next.Method, next.URL = words.N(ctx, "became.skip_next", n), ui.Danger, http.MethodGet, at(botID, "failed/skip")
	}
	return next
}
