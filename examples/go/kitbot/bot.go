package main

import (
	"context"
	"strings"

	"mybots/botkit"
)

// shop is what the bot does: it takes orders and echoes the rest. Replace it
// with your own.
//
// An update can come more than once, so every call has a key made of the event:
// u.Key("reply") is the same each time, and the message is sent once.
type shop struct{ client *botkit.Client }

// newRouter returns the bot's routes; the first that matches gets the update.
func newRouter(client *botkit.Client, username string) *botkit.Router {
	s := shop{client}
	r := botkit.NewRouter(username)
	r.Use(peopleOnly)
	r.Command("start", s.start)
	r.Command("order", s.order)
	r.CallbackPrefix("confirm:", botkit.AutoAnswer(client, "Thank you", s.confirm))
	r.Callback("cancel", botkit.AutoAnswer(client, "Cancelled", s.nothing))
	r.On(botkit.TypeMessage, s.echo)
	// Of other types there is nothing to do: no route is a good outcome.
	r.OnError(botkit.ErrorIs(botkit.ChatNotFound, theyLeft))
	return r
}

// peopleOnly stops what bots wrote: two bots that answer each other never end.
// To stop an update on purpose is a good outcome.
func peopleOnly(next botkit.Handler) botkit.Handler {
	return botkit.HandlerFunc(func(ctx context.Context, u *botkit.Update) error {
		if u.Message != nil && u.Message.From.IsBot {
			return nil
		}
		return next.Handle(ctx, u)
	})
}

// theyLeft says that an answer is no longer needed: the chat is gone or closed
// to the bot. Say Handled only to errors that are such an end.
func theyLeft(context.Context, *botkit.Update, error) (botkit.Decision, error) {
	return botkit.Handled, nil
}

func (s shop) start(ctx context.Context, u *botkit.Update) error {
	return s.send(ctx, u, "Hello! Write /order and what you would like.", nil)
}

func (s shop) order(ctx context.Context, u *botkit.Update) error {
	_, _, what, _ := u.Command()
	if what == "" {
		return s.send(ctx, u, "What would you like? Write it after /order.", nil)
	}
	return s.send(ctx, u, "Your order: "+what+". Is that right?", [][]botkit.Button{{
		{Text: "Yes", Data: "confirm:" + short(what, 200)}, {Text: "No", Data: "cancel"},
	}})
}

func (s shop) confirm(ctx context.Context, u *botkit.Update) error {
	return s.send(ctx, u, "Ordered: "+strings.TrimPrefix(u.CallbackQuery.Data, "confirm:"), nil)
}

func (s shop) nothing(context.Context, *botkit.Update) error { return nil }

func (s shop) echo(ctx context.Context, u *botkit.Update) error {
	if u.Message.Text == "" {
		return nil // a file, or something newer than this bot
	}
	return s.send(ctx, u, u.Message.Text, nil)
}

func (s shop) send(ctx context.Context, u *botkit.Update, text string, buttons [][]botkit.Button) error {
	m := botkit.Outgoing{ChatID: u.ChatID(), Text: text, Buttons: buttons}
	if u.Message != nil {
		m.ReplyToMessageID = u.Message.MessageID
	}
	_, err := s.client.SendMessage(ctx, u.Key("reply"), m)
	return err
}

// short cuts a text to so many bytes, between characters.
func short(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}
