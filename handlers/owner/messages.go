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

// chatPage is everything on the page but what the form was filled in with.
func (h *Handler) chatPage(r *http.Request, b bots.Bot, s queue.Status) (views.Chat, error) {
	ctx := r.Context()
	c, err := h.chat.Conversation(ctx, b.ID, web.PersonOf(r).ID, chatLimit)
	if err != nil {
		return views.Chat{}, err
	}
	state := stateOf(s)
	page := views.Chat{
		URL: at(b.ID, "chat"), ConnectionURL: at(b.ID, "connection"),
		State: state.say(ctx, s), Failed: s.Failed, Calm: state.kind() == ui.Fine, Echo: h.echo(words.T(ctx, "chat.echo"), "YOUR_TOKEN"),
	}
	if c.More {
		page.More = words.T(ctx, "chat.last", "Limit", chatLimit)
	}
	if c.Access != chat.Allowed {
		page.Closed = &views.Closed{
			Title: closedTitle(ctx, c.Access), Text: words.T(ctx, "chat.closed_text_"+c.Access), Verb: words.T(ctx, "chat.allow_"+c.Access),
		}
	}
	page.Items = items(ctx, page.URL, b.Name, c, s.At)
	for _, e := range c.Entries {
		if e.FromBot {
			page.Said = words.T(ctx, "chat.from_bot") + " " + e.Text
		}
	}
	page.Seen = seen(ctx, page)
	return page, nil
}

// items are the messages of the conversation, and each deed where it was done.
func items(ctx context.Context, url, botName string, c chat.Conversation, now time.Time) (list []views.Item) {
	entries := map[int64]chat.Entry{}
	for _, e := range c.Entries {
		entries[e.MessageID] = e
	}
	underWay := map[int64]bool{} // messages that are being deleted, or whose file's check is being ended
	for _, d := range c.Deeds {
		underWay[d.MessageID] = underWay[d.MessageID] || d.Sending && d.Type != "message_edited"
	}
	deeds := c.Deeds
	for _, e := range c.Entries {
		for len(deeds) > 0 && deeds[0].After < e.MessageID {
			list, deeds = append(list, views.Item{Event: event(ctx, deeds[0], entries, now)}), deeds[1:]
		}
		m := message(ctx, e, entries, now)
		if e.FromBot {
			m.Author = botName
		}
		if c.Access == chat.Allowed && !underWay[e.MessageID] {
			offer(&m, e, url)
		}
		m.Shut = c.Access != chat.Allowed
		list = append(list, views.Item{Message: &m})
	}
	for _, d := range deeds {
		list = append(list, views.Item{Event: event(ctx, d, entries, now)})
	}
	return list
}

// message is one message in the reader's words.
func message(ctx context.Context, e chat.Entry, entries map[int64]chat.Entry, now time.Time) views.Message {
	m := views.Message{
		ID: number(e.MessageID), FromBot: e.FromBot, Author: words.T(ctx, "chat.you"), Text: e.Text, SentAt: e.SentAt,
		EditedAt: e.EditedAt, DeletedAt: e.DeletedAt, Rows: buttons(e.Buttons), Answer: e.Answer,
	}
	if e.ReplyTo != 0 {
		m.ReplyTo = words.T(ctx, "chat.reply_unknown")
		if to, ok := entries[e.ReplyTo]; ok {
			m.ReplyTo = quoted(ctx, to)
		}
	}
	if e.File != nil && e.DeletedAt.IsZero() {
		m.File = file(ctx, *e.File)
	}
	switch {
	case e.State == "refused":
		m.Trouble, m.Again = words.T(ctx, "chat.not_sent")+" "+whyRefused(ctx, e.Refused), true
	case e.State == "sending" && now.Sub(e.SentAt) > cutOff:
		m.Trouble, m.Again = words.T(ctx, "chat.not_sent")+" "+words.T(ctx, "chat.cut_off"), true
	case e.State == "sending":
		m.Note = words.T(ctx, "chat.sending")
	}
	return m
}

// offer adds what the reader can do with a message of theirs that the bot got.
func offer(m *views.Message, e chat.Entry, url string) {
	if e.FromBot || e.State != "sent" || !e.DeletedAt.IsZero() {
		return
	}
	m.Delete = true
	if e.File == nil {
		m.EditURL = url + "?edit=" + m.ID
	} else {
		m.Check = e.File.Status == chat.Checking
	}
}

// quoted is how a message stands above a reply to it.
func quoted(ctx context.Context, e chat.Entry) string {
	switch {
	case !e.DeletedAt.IsZero():
		return words.T(ctx, "chat.deleted")
	case e.File != nil:
		return beginning(e.File.Name)
	}
	return beginning(e.Text)
}

// file is a file in the reader's words.
func file(ctx context.Context, f chat.File) *views.File {
	kind := map[string]ui.Kind{chat.Checking: ui.Waiting, chat.Clean: ui.Fine, chat.Infected: ui.Trouble}[f.Status]
	return &views.File{Kind: words.T(ctx, "chat.file_"+f.Kind), Name: f.Name, Status: f.Status, State: kind, Word: words.T(ctx, "chat.file_"+f.Status)}
}

// event is a deed as a line of the conversation.
func event(ctx context.Context, d chat.Deed, entries map[int64]chat.Entry, now time.Time) *views.Event {
	e := views.Event{DeedID: number(d.ID), Type: d.Type, At: d.At}
	switch d.Type {
	case "chat_access_changed":
		e.Text = words.T(ctx, "chat.event_"+d.Value)
	case "file_status_changed":
		name := words.T(ctx, "chat.event_file_gone")
		if m, ok := entries[d.MessageID]; ok && m.File != nil && m.DeletedAt.IsZero() {
			name = m.File.Name
		}
		e.Text = words.T(ctx, "chat.event_"+d.Value, "File", name)
	case "message_edited":
		e.Text = words.T(ctx, "chat.event_edit")
	case "message_deleted":
		e.Text = words.T(ctx, "chat.event_delete")
	}
	switch {
	case d.Sending && now.Sub(d.At) > cutOff:
		e.Trouble = words.T(ctx, "chat.cut_off")
	case d.Sending:
		e.Note = words.T(ctx, "chat.sending")
	}
	return &e
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
