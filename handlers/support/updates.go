package support

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/delivery/queue"
	views "mybots/views/support"
	"mybots/views/words"
	"mybots/web"
)

const updateRows = 50

// Updates lists what waits, or with list=failed what failed, without content.
func (h *Handler) Updates(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	b, _, err := h.open(r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	failed := r.URL.Query().Get("list") == "failed"
	after, _ := delivery.ParseID(r.URL.Query().Get("after")) // 0: from the beginning
	read, title, list := h.queue.WaitingMasked, words.T(ctx, "support.updates_waiting"), ""
	if failed {
		read, title, list = h.queue.FailedMasked, words.T(ctx, "support.updates_failed"), "failed"
	}
	kept, err := read(ctx, b.ID, after, updateRows+1)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	page := views.Updates{Failed: failed, Back: views.Link{URL: botURL(b.ID), Text: words.T(ctx, "support.back_bot")}}
	if after > 0 {
		page.Pages.FirstURL = at(botURL(b.ID)+"/updates", "list", list)
	}
	if len(kept) > updateRows {
		kept = kept[:updateRows]
		page.Pages.NextURL = at(botURL(b.ID)+"/updates", "list", list, "after", number(kept[updateRows-1].UpdateID))
	}
	for _, k := range kept {
		page.Rows = append(page.Rows, updateRow(ctx, b.ID, k))
	}
	f := web.Frame(r, title)
	f.Lead = "@" + b.Username + ". " + words.T(ctx, "support.updates_lead")
	web.Render(w, r, http.StatusOK, views.UpdatesPage(f, page))
}

func updateURL(botID, updateID int64) string { return botURL(botID) + "/updates/" + number(updateID) }

func updateRow(ctx context.Context, botID int64, k queue.Kept) views.UpdateRow {
	row := views.UpdateRow{
		URL: updateURL(botID, k.UpdateID), ID: number(k.UpdateID), Type: k.Type, Date: k.Date, Size: web.Size(ctx, int64(k.Size)), Chat: k.Chat,
		Tries: int64(k.Attempts), FailedAt: k.FailedAt,
	}
	row.Reason, row.Why = reasonWords(ctx, k)
	return row
}

// reasonWords are the code of a failed update and what it means; a program's own
// words stay masked.
func reasonWords(ctx context.Context, k queue.Kept) (code, text string) {
	switch {
	case !k.Failed:
		return "", ""
	case k.ByWebhook:
		return k.Reason, why(ctx, k.Reason)
	}
	return "", words.T(ctx, "support.own_words") + " " + k.Reason
}

// Update shows one update, its content masked.
func (h *Handler) Update(w http.ResponseWriter, r *http.Request) {
	h.showUpdate(w, r, http.StatusOK, "", "", "")
}

// showUpdate shows the update with its content masked, and why it was refused to
// show it.
func (h *Handler) showUpdate(w http.ResponseWriter, r *http.Request, status int, code, bad, typed string) {
	ctx := r.Context()
	botID, updateID, err := updateOf(r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	k, shape, err := h.queue.Peek(ctx, botID, updateID)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	page := updatePage(ctx, botID, k)
	page.Payload, page.May, page.Code, page.Bad, page.Value = shape, web.PersonOf(r).May(web.Unmask), code, bad, typed
	f := web.Frame(r, words.T(ctx, "support.update_title", "ID", number(updateID)))
	f.Lead = words.T(ctx, "support.update_lead")
	web.Render(w, r, status, views.UpdatePage(f, page))
}

// Unmask shows the content of one update, this once, to who says why (UI-06).
func (h *Handler) Unmask(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	form, err := web.Form(w, r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	botID, updateID, err := updateOf(r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	k, payload, err := h.bots.Unmask(ctx, actor(r), botID, updateID, form.Get("reason"))
	if errors.Is(err, delivery.ErrInvalid) {
		bad := words.T(ctx, "support.unmask_needed")
		if _, err := bots.CheckWhy("reason", form.Get("reason")); err != nil {
			bad = words.T(ctx, "support.reason_long")
		}
		h.showUpdate(w, r, http.StatusBadRequest, "REASON_NEEDED", bad, form.Get("reason"))
		return
	}
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	page := updatePage(ctx, botID, k)
	page.Payload, page.Shown = indented(payload), true
	f := web.Frame(r, words.T(ctx, "support.update_title", "ID", number(updateID)))
	f.Lead = words.T(ctx, "support.update_lead_shown")
	web.Render(w, r, http.StatusOK, views.UpdatePage(f, page))
}

func updateOf(r *http.Request) (botID, updateID int64, err error) {
	if botID, err = pathID(r, "id"); err != nil {
		return 0, 0, err
	}
	updateID, err = pathID(r, "update")
	return botID, updateID, err
}

// indented breaks the lines of a JSON text and changes nothing else in it.
func indented(payload []byte) string {
	var b bytes.Buffer
	if err := json.Indent(&b, payload, "", "  "); err != nil {
		return string(payload) // not JSON, so it has no lines to break
	}
	return b.String()
}

func updatePage(ctx context.Context, botID int64, k queue.Kept) views.Update {
	place := "place_waiting"
	switch {
	case k.Failed:
		place = "place_failed"
	case k.Issued:
		place = "place_issued"
	}
	chat := k.Chat
	if chat == "" {
		chat = words.T(ctx, "support.no_chat")
	}
	page := views.Update{
		Facts: []views.Fact{
			{Term: words.T(ctx, "support.place"), Value: words.T(ctx, "support."+place)},
			{Term: words.T(ctx, "support.col_type"), Value: k.Type},
			{Term: words.T(ctx, "support.event_id"), Value: k.EventID, Code: true},
			{Term: words.T(ctx, "support.col_size"), Value: web.Size(ctx, int64(k.Size))},
			{Term: words.T(ctx, "support.col_chat"), Value: chat},
		},
		Date: k.Date, Expires: k.ExpiresAt, Failed: k.Failed, FailedAt: k.FailedAt,
		Action: updateURL(botID, k.UpdateID) + "/unmask", Back: views.Link{URL: botURL(botID), Text: words.T(ctx, "support.back_bot")},
	}
	if k.ReplayOf > 0 {
		page.Facts = append(page.Facts, views.Fact{Term: words.T(ctx, "support.replay_of"), Value: number(k.ReplayOf), Code: true})
	}
	if code, text := reasonWords(ctx, k); text != "" || code != "" {
		if code != "" {
			text = code + " · " + text
		}
		page.Facts = append(page.Facts, views.Fact{Term: words.T(ctx, "support.col_reason"), Value: text},
			views.Fact{Term: words.T(ctx, "support.tries"), Value: words.Number(ctx, int64(k.Attempts))})
	}
	return page
}
