package owner

import (
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

// Chat shows the test chat (UI-09).
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
	if web.Partial(r) {
		web.Render(w, r, http.StatusOK, views.ChatPiece(page))
		return
	}
	f := frame(r, b, s, layout.Chat, words.T(r.Context(), "chat.title"))
	web.Render(w, r, http.StatusOK, views.ChatPage(f, page))
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
	if errors.Is(err, delivery.ErrInvalid) {
		h.showChat(w, r, http.StatusUnprocessableEntity, b, s, views.Compose{Text: text, Error: words.T(ctx, "chat.text_bad"), Focus: true})
		return
	}
	if err != nil && !refused(err) {
		web.Fail(w, r, h.log, err)
		return
	}
	if web.Partial(r) {
		h.showChat(w, r, http.StatusOK, b, s, views.Compose{Focus: true})
		return
	}
	web.Answer(w, r, nil, at(b.ID, "chat"))
}

// Again sends a message once more whose way was cut off, or that was refused.
func (h *Handler) Again(w http.ResponseWriter, r *http.Request) {
	b, s, form, err := h.deed(w, r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	messageID, ok := delivery.ParseID(form.Get("message_id"))
	if !ok {
		web.Fail(w, r, h.log, &delivery.Invalid{Field: "message_id", Rule: "must be a message's id"})
		return
	}
	if err := h.chat.Again(r.Context(), b.ID, writer(r), messageID); err != nil && !refused(err) {
		web.Fail(w, r, h.log, err)
		return
	}
	h.answerChat(w, r, b, s, layout.Flash{})
}

// Press presses a button under one of the bot's messages.
func (h *Handler) Press(w http.ResponseWriter, r *http.Request) {
	b, s, form, err := h.deed(w, r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	ctx := r.Context()
	messageID, ok := delivery.ParseID(form.Get("message_id"))
	row, errRow := strconv.Atoi(form.Get("row"))
	place, errPlace := strconv.Atoi(form.Get("place"))
	if !ok || errRow != nil || errPlace != nil {
		web.Fail(w, r, h.log, &delivery.Invalid{Field: "message_id, row, place", Rule: "must name a button"})
		return
	}
	flash := layout.Flash{}
	err = h.chat.Press(ctx, chat.Bot{ID: b.ID, Username: b.Username, Name: b.Name}, writer(r), messageID, row, place)
	switch refusal := (*delivery.Refusal)(nil); {
	case errors.As(err, &refusal):
		flash = layout.Flash{Kind: ui.Trouble, Text: words.T(ctx, "chat.press_refused") + " " + whyRefused(ctx, refusal.Code)}
	case errors.Is(err, delivery.ErrNotFound):
		flash = layout.Flash{Kind: ui.Trouble, Text: words.T(ctx, "chat.press_bad")}
	case err != nil:
		web.Fail(w, r, h.log, err)
		return
	}
	h.answerChat(w, r, b, s, flash)
}

// answerChat ends a deed on the messages: the piece, or 303 to the page.
func (h *Handler) answerChat(w http.ResponseWriter, r *http.Request, b bots.Bot, s queue.Status, flash layout.Flash) {
	if web.Partial(r) {
		page, err := h.chatPage(r, b, s)
		if err != nil {
			web.Fail(w, r, h.log, err)
			return
		}
		web.Render(w, r, http.StatusOK, views.PressedPiece(page, flash))
		return
	}
	if flash.Text != "" {
		web.SetFlash(r, flash.Kind, flash.Text)
	}
	web.Answer(w, r, nil, at(b.ID, "chat"))
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
		web.Render(w, r, status, views.WrittenPiece(page))
		return
	}
	f := frame(r, b, s, layout.Chat, words.T(r.Context(), "chat.title"))
	web.Render(w, r, status, views.ChatPage(f, page))
}

func refused(err error) bool {
	var refusal *delivery.Refusal
	return errors.As(err, &refusal)
}
