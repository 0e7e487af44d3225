package owner

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"sort"
	"strings"

	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/delivery/queue"
	"mybots/views/layout"
	views "mybots/views/owner"
	"mybots/views/ui"
	"mybots/views/words"
	"mybots/web"
)

// oneGo is how many updates one Retry or Skip takes: what a page can still tell
// about, and as many as a queue holds.
const oneGo = delivery.MaxWaiting

// selection is the updates that a form names: one by one, or all that match.
type selection struct {
	all    bool
	filter queue.FailedFilter
	ids    []int64
	left   int // more that match, for another go
}

// choose reads update_id, repeated, or all=1 with the filter and after. A
// refusal says in the reader's words what is wrong with them.
func (h *Handler) choose(ctx context.Context, botID int64, v url.Values) (c selection, why refusal, err error) {
	if c.filter, err = filterOf(v); err != nil {
		return c, why, err
	}
	bad := refusal{"INVALID", words.T(ctx, "failed.error_ids")}
	if v.Has("all") {
		if _, ok := (form{v}).one("all", "1"); !ok {
			return c, bad, nil
		}
		c.all = true
		after, ok := delivery.ParseID(v.Get("after"))
		if !ok && v.Get("after") != "" {
			return c, bad, nil
		}
		if c.ids, err = h.queue.FailedIDs(ctx, botID, c.filter); err != nil {
			return c, why, err
		}
		c.ids = c.ids[sort.Search(len(c.ids), func(i int) bool { return c.ids[i] > after }):]
		c.left = max(0, len(c.ids)-oneGo)
		c.ids = c.ids[:len(c.ids)-c.left]
		return c, why, nil
	}
	known := map[int64]bool{}
	for _, text := range v["update_id"] {
		id, ok := delivery.ParseID(text)
		if !ok {
			return c, bad, nil
		}
		if !known[id] {
			known[id] = true
			c.ids = append(c.ids, id)
		}
	}
	if len(c.ids) == 0 {
		return c, refusal{"NOTHING_SELECTED", words.T(ctx, "failed.error_nothing")}, nil
	}
	return c, why, nil
}

// mark stands for exactly these updates.
func (c selection) mark() string {
	var text []byte
	for _, id := range c.ids {
		text = binary.BigEndian.AppendUint64(text, uint64(id))
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12])
}

// Retry appends the chosen failed updates at the end of the queue and tells what
// became of each (F-02). Doing it twice appends once.
func (h *Handler) Retry(w http.ResponseWriter, r *http.Request) {
	b, s, form, err := h.deed(w, r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	c, why, err := h.choose(r.Context(), b.ID, form.Values)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	if why.code != "" {
		h.showFailed(w, r, http.StatusUnprocessableEntity, b, s, form.Values, why)
		return
	}
	h.act(w, r, b.ID, retry, c)
}

// Skip removes the chosen failed updates for good and tells what became of each
// (F-03). A form that was asked about other updates than those that match now
// is asked again.
func (h *Handler) Skip(w http.ResponseWriter, r *http.Request) {
	b, s, form, err := h.deed(w, r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	c, why, err := h.choose(r.Context(), b.ID, form.Values)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	if why.code != "" {
		h.showFailed(w, r, http.StatusUnprocessableEntity, b, s, form.Values, why)
		return
	}
	if c.all && len(c.ids) > 0 && form.Has("seen") && form.Get("seen") != c.mark() {
		askSkip(w, r, http.StatusConflict, b, s, c, form.Get("after"), refusal{"STALE", words.T(r.Context(), "failed.error_changed")})
		return
	}
	h.act(w, r, b.ID, skip, c)
}

// act does the deed, if there is anything to do it to, and tells what became of it.
func (h *Handler) act(w http.ResponseWriter, r *http.Request, botID int64, do deed, c selection) {
	var outcomes []delivery.Outcome
	var err error
	switch {
	case len(c.ids) == 0:
	case do == retry:
		outcomes, err = h.bots.Replay(r.Context(), actor(r), botID, c.ids)
	default:
		outcomes, err = h.bots.Skip(r.Context(), actor(r), botID, c.ids)
	}
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	h.showBecame(w, r, do, c, outcomes)
}

// ConfirmSkip asks before the updates that the query names are skipped.
func (h *Handler) ConfirmSkip(w http.ResponseWriter, r *http.Request) {
	b, s, err := h.open(r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	query := r.URL.Query()
	c, why, err := h.choose(r.Context(), b.ID, query)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	switch {
	case why.code != "":
		h.showFailed(w, r, http.StatusUnprocessableEntity, b, s, query, why)
	case len(c.ids) == 0: // all that match, and none does any more
		h.showFailed(w, r, http.StatusOK, b, s, query, refusal{})
	default:
		askSkip(w, r, http.StatusOK, b, s, c, query.Get("after"), refusal{})
	}
}

// askSkip repeats how many updates would go, and that they go for good.
func askSkip(w http.ResponseWriter, r *http.Request, status int, b bots.Bot, s queue.Status, c selection, after string, why refusal) {
	ctx, n := r.Context(), len(c.ids)
	page := views.SkipAsked{Code: why.code, Error: why.text, Confirm: views.Confirm{
		Question: words.N(ctx, "skip.question", n), Effect: words.T(ctx, "skip.effect"),
		Stops:  []string{words.N(ctx, "skip.stops", n)},
		Stays:  words.T(ctx, "skip.stays"),
		Action: at(b.ID, "failed/skip"), Verb: words.N(ctx, "skip.verb", n),
		Hidden: filterFields(c.filter),
		Back:   words.T(ctx, "skip.back"), BackURL: listURL(b.ID, c.filter, 0),
	}}
	if c.all {
		page.Hidden = append(page.Hidden, ui.Hidden{Name: "all", Value: "1"}, ui.Hidden{Name: "seen", Value: c.mark()})
		if after != "" {
			page.Hidden = append(page.Hidden, ui.Hidden{Name: "after", Value: after})
		}
		if chosen := chosenBy(ctx, c.filter); chosen != "" {
			page.Stops = append(page.Stops, words.T(ctx, "skip.stops_filter", "Filter", chosen))
		}
	} else {
		list := make([]string, n)
		for i, id := range c.ids {
			list[i] = "#" + number(id)
			page.Hidden = append(page.Hidden, ui.Hidden{Name: "update_id", Value: number(id)})
		}
		if n <= failedRows {
			page.Stops = append(page.Stops, words.T(ctx, "skip.stops_these", "List", strings.Join(list, ", ")))
		}
	}
	page.Stops = append(page.Stops, words.T(ctx, "skip.stops_reported"))
	f := frame(r, b, s, layout.Failed, words.T(ctx, "skip.title"))
	web.Render(w, r, status, views.SkipPage(f, page))
}

// chosenBy puts the filter into words, "" when there is none.
func chosenBy(ctx context.Context, f queue.FailedFilter) string {
	var parts []string
	if f.Type != "" {
		parts = append(parts, fmt.Sprintf("%s = %s", words.T(ctx, "failed.kind_field"), f.Type))
	}
	if f.Reason != "" {
		parts = append(parts, fmt.Sprintf("%s = %s", words.T(ctx, "failed.reason_field"), reasonShown(ctx, f)))
	}
	return strings.Join(parts, ", ")
}
