package owner

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"

	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/delivery/chat"
	"mybots/delivery/queue"
	"mybots/views/layout"
	views "mybots/views/owner"
	"mybots/views/ui"
	"mybots/views/words"
	"mybots/web"
)

// Chat shows the test chat (UI-09); with ?edit= and a message's id the form
// below it is the one that edits this message.
func (h *Handler) Chat(w http.ResponseWriter, r *http.Request) {
	b, s, err := h.open(r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	page, err := h.chatPage(r, b, s)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	if nothingNew(w, r, page.Seen) {
		return
	}
	flash := layout.Flash{}
	if id := r.URL.Query().Get("edit"); id != "" {
		if page.Compose = editing(page, id); page.Compose.EditID == "" {
			flash = layout.Flash{Kind: ui.Trouble, Text: words.T(r.Context(), "chat.gone")}
		}
		if web.Partial(r) {
			web.Render(w, r, http.StatusOK, views.ComposePiece(page, flash))
			return
		}
	}
	if web.Partial(r) {
		web.Render(w, r, http.StatusOK, views.ChatPiece(page))
		return
	}
	f := frame(r, b, s, layout.Chat, words.T(r.Context(), "chat.title"))
	if flash.Text != "" {
		f.Flash = flash
	}
	web.Render(w, r, http.StatusOK, views.ChatPage(f, page))
}

// editing is the form that edits a message; it has no EditID where the message can't be edited.
func editing(page views.Chat, id string) views.Compose {
	for _, item := range page.Items {
		if m := item.Message; m != nil && m.ID == id && m.EditURL != "" {
			return views.Compose{EditID: id, Text: m.Text, Focus: true}
		}
	}
	return views.Compose{Focus: true}
}

// Write writes to the bot as a person would. What intake refuses stands in the
// chat as not sent, with the reason.
func (h *Handler) Write(w http.ResponseWriter, r *http.Request) {
	b, s, form, err := h.deed(w, r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	ctx, text := r.Context(), form.Get("text")
	err = h.chat.Write(ctx, b.ID, writer(r), text)
	switch {
	case errors.Is(err, delivery.ErrInvalid):
		h.showChat(w, r, http.StatusUnprocessableEntity, b, s, views.Compose{Text: text, Error: words.T(ctx, "chat.text_bad"), Focus: true})
	case err == nil || refused(err):
		h.answerChat(w, r, b, s, answer{compose: &views.Compose{Focus: true}})
	default:
		h.chatDone(w, r, b, s, err, "", answer{compose: &views.Compose{Text: text}})
	}
}

// Again sends a message or a deed once more whose way was cut off, or a message
// that was refused.
func (h *Handler) Again(w http.ResponseWriter, r *http.Request) {
	b, s, form, err := h.deed(w, r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	messageID, isMessage := delivery.ParseID(form.Get("message_id"))
	deedID, isDeed := delivery.ParseID(form.Get("deed_id"))
	switch {
	case isMessage:
		if err = h.chat.Again(r.Context(), b.ID, writer(r), messageID); refused(err) {
			err = nil // it stands there as not sent
		}
	case isDeed:
		err = h.chat.AgainDeed(r.Context(), b.ID, writer(r), deedID)
	default:
		err = &delivery.Invalid{Field: "message_id", Rule: "must be a message's id"}
	}
	if errors.Is(err, delivery.ErrNotFound) {
		web.Fail(w, r, h.log, err)
		return
	}
	h.chatDone(w, r, b, s, err, "chat.deed_refused", answer{compose: &views.Compose{}})
}

// Press presses a button under one of the bot's messages.
func (h *Handler) Press(w http.ResponseWriter, r *http.Request) {
	b, s, form, err := h.deed(w, r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	messageID, ok := delivery.ParseID(form.Get("message_id"))
	row, errRow := strconv.Atoi(form.Get("row"))
	place, errPlace := strconv.Atoi(form.Get("place"))
	if !ok || errRow != nil || errPlace != nil {
		web.Fail(w, r, h.log, &delivery.Invalid{Field: "message_id, row, place", Rule: "must name a button"})
		return
	}
	err = h.chat.Press(r.Context(), chat.Bot{ID: b.ID, Username: b.Username, Name: b.Name}, writer(r), messageID, row, place)
	h.chatDone(w, r, b, s, err, "chat.press_refused", answer{gone: "chat.press_bad"})
}

// answer is how a deed in the chat is answered.
type answer struct {
	flash   layout.Flash
	gone    string         // the key that says that there is no such thing; "" for chat.gone
	compose *views.Compose // the form as it shall be; nil leaves it as it is
	focus   string         // the id of the message that takes the focus; "" for none
}

// chatDone ends a deed in the chat: err says what came of it, refusedKey that intake said no.
func (h *Handler) chatDone(w http.ResponseWriter, r *http.Request, b bots.Bot, s queue.Status, err error, refusedKey string, a answer) {
	ctx := r.Context()
	switch refusal, closed := (*delivery.Refusal)(nil), (*chat.Closed)(nil); {
	case errors.As(err, &refusal):
		a.flash = layout.Flash{Kind: ui.Trouble, Text: words.T(ctx, refusedKey) + " " + whyRefused(ctx, refusal.Code)}
	case errors.As(err, &closed):
		a.flash = layout.Flash{Kind: ui.Trouble, Text: words.T(ctx, "chat.closed_done") + " " + closedTitle(ctx, closed.Access)}
		if a.compose == nil {
			a.compose = &views.Compose{} // the form gives way to the reason
		}
	case errors.Is(err, delivery.ErrNotFound):
		a.flash = layout.Flash{Kind: ui.Trouble, Text: words.T(ctx, cmp.Or(a.gone, "chat.gone"))}
	case err != nil:
		web.Fail(w, r, h.log, err)
		return
	}
	h.answerChat(w, r, b, s, a)
}

// answerChat ends a deed in the chat: the piece, or 303 to the page.
func (h *Handler) answerChat(w http.ResponseWriter, r *http.Request, b bots.Bot, s queue.Status, a answer) {
	if !web.Partial(r) {
		if a.flash.Text != "" {
			web.SetFlash(r, a.flash.Kind, a.flash.Text)
		}
		web.Answer(w, r, nil, at(b.ID, "chat"))
		return
	}
	page, err := h.chatPage(r, b, s)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	page.Focus = a.focus
	if a.compose == nil {
		web.Render(w, r, http.StatusOK, views.DonePiece(page, a.flash))
		return
	}
	page.Compose = *a.compose
	web.Render(w, r, http.StatusOK, views.WrittenPiece(page, a.flash))
}

// showChat shows the chat with its form as it was filled in.
func (h *Handler) showChat(w http.ResponseWriter, r *http.Request, status int, b bots.Bot, s queue.Status, compose views.Compose) {
	page, err := h.chatPage(r, b, s)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	page.Compose = compose
	if web.Partial(r) {
		web.Render(w, r, status, views.WrittenPiece(page, layout.Flash{}))
		return
	}
	f := frame(r, b, s, layout.Chat, words.T(r.Context(), "chat.title"))
	web.Render(w, r, status, views.ChatPage(f, page))
}

func refused(err error) bool {
	var refusal *delivery.Refusal
	return errors.As(err, &refusal)
}

// closedTitle says who closed the chat.
func closedTitle(ctx context.Context, access string) string {
	return words.T(ctx, "chat.closed_"+access)
}
