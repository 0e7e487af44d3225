package owner

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"mybots/delivery"
	"mybots/delivery/notice"
	views "mybots/views/owner"
	"mybots/views/ui"
	"mybots/views/words"
	"mybots/web"
)

// noticeRows is how many of BotFather's messages a page shows.
const noticeRows = 30

// noticeStore is what the BotFather chat asks of package notice.
type noticeStore interface {
	ChatOf(ctx context.Context, spaceID, userID int64) (notice.Chat, error)
	OpenChat(ctx context.Context, spaceID, userID int64, language string) error
	Messages(ctx context.Context, spaceID, userID, before int64, limit int) ([]notice.Message, error)
}

// ownSpace reads the space of the path. delivery.ErrNotFound: it isn't the
// reader's (UI-07).
func ownSpace(r *http.Request) (int64, error) {
	id, ok := delivery.ParseID(r.PathValue("space"))
	if !ok || id != web.PersonOf(r).SpaceID {
		return 0, fmt.Errorf("space of the path: %w", delivery.ErrNotFound)
	}
	return id, nil
}

func botFatherURL(spaceID int64) string { return "/botfather/" + number(spaceID) }

// BotFather shows the reader's chat with BotFather in the space (N-01, UI-11).
func (h *Handler) BotFather(w http.ResponseWriter, r *http.Request) {
	space, err := ownSpace(r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	ctx := r.Context()
	page, err := h.botFather(r, space)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	if nothingNew(w, r, page.Seen) {
		return
	}
	if web.Partial(r) {
		web.Render(w, r, http.StatusOK, views.BotFatherPiece(page))
		return
	}
	f := web.Frame(r, words.T(ctx, "botfather.title"))
	f.Lead = words.T(ctx, "botfather.lead")
	web.Render(w, r, http.StatusOK, views.BotFatherPage(f, page))
}

func (h *Handler) botFather(r *http.Request, space int64) (views.BotFather, error) {
	ctx, person := r.Context(), web.PersonOf(r)
	page := views.BotFather{URL: botFatherURL(space), StartURL: botFatherURL(space) + "/start"}
	c, err := h.notices.ChatOf(ctx, space, person.ID)
	if errors.Is(err, delivery.ErrNotFound) {
		return page, nil
	}
	if err != nil {
		return page, err
	}
	page.Language = c.Language
	before, _ := delivery.ParseID(r.URL.Query().Get("before")) // 0: the latest
	list, err := h.notices.Messages(ctx, space, person.ID, before, noticeRows+1)
	if err != nil {
		return page, err
	}
	if before > 0 {
		page.FirstURL = page.URL
	}
	if len(list) > noticeRows {
		list = list[:noticeRows]
		page.OlderURL = page.URL + "?before=" + number(list[noticeRows-1].ID)
	}
	slices.Reverse(list) // the latest at the bottom, as chats have it
	for _, m := range list {
		v := views.BotFatherMessage{ID: number(m.ID), Language: m.Language, Text: m.Text, Button: m.Button, At: m.At}
		if m.Live {
			v.URL = notice.ConnectionPath(m.BotID)
		}
		page.Messages = append(page.Messages, v)
	}
	page.Seen = seen(ctx, page)
	return page, nil
}

// StartBotFather opens the chat, or changes its language (UI-11).
func (h *Handler) StartBotFather(w http.ResponseWriter, r *http.Request) {
	space, err := ownSpace(r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	form, err := web.Form(w, r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	ctx, person := r.Context(), web.PersonOf(r)
	said := "botfather.language_set"
	if _, err := h.notices.ChatOf(ctx, space, person.ID); errors.Is(err, delivery.ErrNotFound) {
		said = "botfather.started"
	}
	language, _ := web.One(form, "language", words.English, words.Russian) // "" is refused below
	if err := h.notices.OpenChat(ctx, space, person.ID, language); err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	web.SetFlash(r, ui.Fine, words.T(ctx, said))
	web.Answer(w, r, nil, botFatherURL(space))
}

// started tells whether the reader has opened BotFather in their space.
func (h *Handler) started(r *http.Request) (bool, error) {
	person := web.PersonOf(r)
	_, err := h.notices.ChatOf(r.Context(), person.SpaceID, person.ID)
	if errors.Is(err, delivery.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
