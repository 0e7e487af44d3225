package owner

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/delivery/chat"
	"mybots/delivery/queue"
	views "mybots/views/owner"
	"mybots/views/ui"
	"mybots/views/words"
	"mybots/web"
)

const (
	// chatLimit is how many messages the page shows.
	chatLimit = 100
	// cutOff is how long a message may be on its way to the queue.
	cutOff = 10 * time.Second
	// replyLength is how much of a message is shown above a reply to it, in runes.
	replyLength = 80
)

// writer is the reader as the bot sees them: by the name in their address.
func writer(r *http.Request) chat.Person {
	p := web.PersonOf(r)
	name, _, _ := strings.Cut(p.Email, "@")
	return chat.Person{ID: p.ID, DisplayName: name}
}

// chatPage is everything on the page but the form.
func (h *Handler) chatPage(r *http.Request, b bots.Bot, s queue.Status) (views.Chat, error) {
	ctx := r.Context()
	entries, err := h.chat.Entries(ctx, b.ID, web.PersonOf(r).ID, chatLimit+1)
	if err != nil {
		return views.Chat{}, err
	}
	state := stateOf(s)
	page := views.Chat{
		URL: at(b.ID, "chat"), PressURL: at(b.ID, "chat/press"), AgainURL: at(b.ID, "chat/again"), ConnectionURL: at(b.ID, "connection"),
		State: state.say(ctx, s), Failed: s.Failed, Calm: state.kind() == ui.Fine, Echo: h.echo(words.T(ctx, "chat.echo"), "YOUR_TOKEN"),
	}
	if len(entries) > chatLimit {
		entries = entries[1:]
		page.More = words.T(ctx, "chat.last", "Limit", chatLimit)
	}
	page.Messages = messages(ctx, b.Name, entries, s.At)
	for _, e := range entries {
		if e.FromBot {
			page.Said = words.T(ctx, "chat.from_bot") + " " + e.Text
		}
	}
	page.Seen = seen(ctx, page)
	return page, nil
}

func messages(ctx context.Context, botName string, entries []chat.Entry, now time.Time) []views.Message {
	list := make([]views.Message, len(entries))
	texts := map[int64]string{}
	for i, e := range entries {
		texts[e.MessageID] = e.Text
		m := views.Message{
			ID: number(e.MessageID), FromBot: e.FromBot, Author: words.T(ctx, "chat.you"), Text: e.Text, SentAt: e.SentAt,
			Rows: buttons(e.Buttons), Answer: e.Answer,
		}
		if e.FromBot {
			m.Author = botName
		}
		if e.ReplyTo != 0 {
			m.ReplyTo = words.T(ctx, "chat.reply_unknown")
			if text, ok := texts[e.ReplyTo]; ok {
				m.ReplyTo = beginning(text)
			}
		}
		switch {
		case e.State == "refused":
			m.Trouble, m.Again = words.T(ctx, "chat.not_sent")+" "+whyRefused(ctx, e.Refused), true
		case e.State == "sending" && now.Sub(e.SentAt) > cutOff:
			m.Trouble, m.Again = words.T(ctx, "chat.not_sent")+" "+words.T(ctx, "chat.cut_off"), true
		case e.State == "sending":
			m.Note = words.T(ctx, "chat.sending")
		}
		list[i] = m
	}
	return list
}

func buttons(rows [][]chat.Button) [][]views.Button {
	list := make([][]views.Button, len(rows))
	for i, row := range rows {
		for j, b := range row {
			list[i] = append(list[i], views.Button{Text: b.Text, Row: strconv.Itoa(i), Place: strconv.Itoa(j)})
		}
	}
	return list
}

// beginning is the first line of a text, cut where it gets long.
func beginning(text string) string {
	line, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	if runes := []rune(line); len(runes) > replyLength {
		line, more = string(runes[:replyLength]), true
	}
	if more {
		line += "…"
	}
	return line
}

// whyRefused says in the reader's words why intake took no message.
func whyRefused(ctx context.Context, code delivery.Code) string {
	switch code {
	case delivery.QueueFull, delivery.BotPaused, delivery.BotDisabled, delivery.PayloadTooLarge:
		return words.T(ctx, "chat.refused_"+string(code))
	}
	return words.T(ctx, "chat.refused_other")
}
