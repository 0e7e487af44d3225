package owner

import (
	"errors"
	"net/http"

	"mybots/delivery"
	"mybots/delivery/chat"
	views "mybots/views/owner"
	"mybots/views/words"
	"mybots/web"
)

// EditMessage gives one of the reader's messages a new text. Where that is
// refused, the form stays with what was written.
func (h *Handler) EditMessage(w http.ResponseWriter, r *http.Request) {
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
	ctx, text := r.Context(), form.Get("text")
	err = h.chat.Edit(ctx, b.ID, writer(r), messageID, text)
	kept := views.Compose{EditID: number(messageID), Text: text, Focus: true}
	refusal := (*delivery.Refusal)(nil)
	switch {
	case errors.Is(err, delivery.ErrInvalid):
		kept.Error = words.T(ctx, "chat.text_bad")
		h.showChat(w, r, http.StatusUnprocessableEntity, b, s, kept)
	case errors.As(err, &refusal):
		kept.Error = words.T(ctx, "chat.edit_refused") + " " + whyRefused(ctx, refusal.Code)
		h.showChat(w, r, http.StatusConflict, b, s, kept)
	default:
		h.chatDone(w, r, b, s, err, "", answer{compose: &views.Compose{Focus: true}})
	}
}

// DeleteMessage deletes one of the reader's messages.
func (h *Handler) DeleteMessage(w http.ResponseWriter, r *http.Request) {
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
	err = h.chat.Delete(r.Context(), b.ID, writer(r), messageID)
	h.chatDone(w, r, b, s, err, "chat.delete_refused", answer{focus: number(messageID)})
}

// ChangeAccess stops the bot, leaves the space, or allows the bot again.
func (h *Handler) ChangeAccess(w http.ResponseWriter, r *http.Request) {
	b, s, form, err := h.deed(w, r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	access, ok := form.one("access", chat.Allowed, chat.Stopped, chat.Left)
	if !ok {
		web.Fail(w, r, h.log, &delivery.Invalid{Field: "access", Rule: "must be allowed, stopped or left"})
		return
	}
	err = h.chat.SetAccess(r.Context(), b.ID, writer(r), access)
	h.chatDone(w, r, b, s, err, "chat.access_refused", answer{compose: &views.Compose{Focus: true}})
}

// AttachFile writes a message with a file whose check isn't finished. Like a
// text that intake refuses, it then stands in the chat as not sent.
func (h *Handler) AttachFile(w http.ResponseWriter, r *http.Request) {
	b, s, form, err := h.deed(w, r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	ctx, name := r.Context(), form.Get("name")
	err = h.chat.Attach(ctx, b.ID, writer(r), name)
	if errors.Is(err, delivery.ErrInvalid) {
		h.showChat(w, r, http.StatusUnprocessableEntity, b, s, views.Compose{FileName: name, FileError: words.T(ctx, "chat.file_bad")})
		return
	}
	if refused(err) {
		err = nil
	}
	h.chatDone(w, r, b, s, err, "", answer{})
}

// FinishCheck says what the check of a file has found.
func (h *Handler) FinishCheck(w http.ResponseWriter, r *http.Request) {
	b, s, form, err := h.deed(w, r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	messageID, ok := delivery.ParseID(form.Get("message_id"))
	result, known := form.one("result", chat.Clean, chat.Infected)
	if !ok || !known {
		web.Fail(w, r, h.log, &delivery.Invalid{Field: "message_id, result", Rule: "must be a message's id, and clean or infected"})
		return
	}
	err = h.chat.Check(r.Context(), b.ID, writer(r), messageID, result)
	h.chatDone(w, r, b, s, err, "chat.check_refused", answer{focus: number(messageID), gone: "chat.check_gone"})
}
