package chat

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/queue"
)

// Bot is the bot that writes.
type Bot struct {
	ID       int64
	Username string
	Name     string
}

func (b Bot) sender() Sender {
	return Sender{ID: strconv.FormatInt(b.ID, 10), DisplayName: b.Name, Username: b.Username, IsBot: true}
}

// Outgoing is one sendMessage call, its fields checked (I-06). Its JSON is what
// makes two calls the same.
type Outgoing struct {
	ChatID  int64
	Text    string
	ReplyTo int64 // 0: no reply
	Buttons [][]Button
}

// Send writes a bot's message into a chat, once for each idempotency key, and
// returns the message's JSON and whether it is a stored one. A
// *delivery.Refusal: the bot may not write now, or no event has named the chat.
func (s *Store) Send(ctx context.Context, bot Bot, call queue.Once, m Outgoing) (answer []byte, replayed bool, err error) {
	return s.queue.Once(ctx, call, func(tx *sqlx.Tx) ([]byte, error) {
		if err := running(ctx, tx, bot.ID); err != nil {
			return nil, err
		}
		messageID, err := nextMessageID(ctx, tx, bot.ID, m.ChatID)
		if err != nil {
			return nil, err
		}
		now := s.clock.Now()
		buttons := ""
		if len(m.Buttons) > 0 {
			b, err := encode(m.Buttons)
			if err != nil {
				return nil, err
			}
			buttons = string(b)
		}
		_, err = tx.ExecContext(ctx, `
INSERT INTO messages (bot_id, chat_id, message_id, from_bot, text, reply_to, buttons, sent_at) VALUES ($1, $2, $3, true, $4, $5, $6, $7)`,
			bot.ID, m.ChatID, messageID, m.Text, m.ReplyTo, buttons, now)
		if err != nil {
			return nil, fmt.Errorf("write a message of bot %d: %w", bot.ID, err)
		}
		answer, err := encode(message(messageID, m.ChatID, bot.sender(), now, m.Text, m.ReplyTo, m.Buttons))
		if err != nil {
			return nil, err
		}
		return answer, s.passOn(ctx, tx, bot.ID, "sendMessage", answer)
	})
}

// nextMessageID takes the chat's next message id; the refusal CHAT_NOT_FOUND
// when the bot doesn't know the chat.
func nextMessageID(ctx context.Context, tx *sqlx.Tx, botID, chatID int64) (int64, error) {
	var id int64
	err := tx.GetContext(ctx, &id, `
UPDATE chats SET next_message_id = next_message_id + 1 WHERE bot_id = $1 AND chat_id = $2 RETURNING next_message_id - 1`, botID, chatID)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, delivery.Refuse(delivery.ChatNotFound, "this bot has had no event from chat "+strconv.FormatInt(chatID, 10)+"; a bot can write only to chats that wrote to it")
	}
	if err != nil {
		return 0, fmt.Errorf("take a message id: %w", err)
	}
	return id, nil
}

// running refuses what a bot that may not run asks for, in the order of A-04.
func running(ctx context.Context, tx *sqlx.Tx, botID int64) error {
	var c delivery.Connection
	err := tx.QueryRowContext(ctx, `
SELECT q.deleted, q.disabled, q.paused, p.maintenance FROM queues q CROSS JOIN platform p WHERE q.bot_id = $1`, botID).
		Scan(&c.Deleted, &c.Disabled, &c.Paused, &c.Maintenance)
	if err != nil {
		return fmt.Errorf("look at bot %d: %w", botID, err)
	}
	if refusal := c.Stopped(); refusal != nil {
		return refusal
	}
	return nil
}

// CallbackAnswer is one answerCallbackQuery call, its fields checked (I-06).
type CallbackAnswer struct {
	CallbackQueryID string
	Text            string
}

// Answered is answerCallbackQuery's result: the message whose button was pressed
// and what the person was told.
type Answered struct {
	CallbackQueryID string   `json:"callback_query_id"`
	Text            string   `json:"text,omitempty"`
	Message         *Message `json:"message,omitempty"`
}

// Answer answers a button press, once for each idempotency key. A
// *delivery.Refusal: the bot may not write now, or no such press came to it.
func (s *Store) Answer(ctx context.Context, bot Bot, call queue.Once, a CallbackAnswer) (answer []byte, replayed bool, err error) {
	return s.queue.Once(ctx, call, func(tx *sqlx.Tx) ([]byte, error) {
		if err := running(ctx, tx, bot.ID); err != nil {
			return nil, err
		}
		var chatID, messageID int64
		err := tx.QueryRowContext(ctx, `
UPDATE callbacks SET answered_at = $3, answer = $4 WHERE bot_id = $1 AND callback_id = $2 RETURNING chat_id, message_id`,
			bot.ID, a.CallbackQueryID, s.clock.Now(), a.Text).Scan(&chatID, &messageID)
		if errors.Is(err, sql.ErrNoRows) {
			return nil, delivery.Refuse(delivery.UpdateNotFound, "no callback_query with this callback_query_id has come to this bot")
		}
		if err != nil {
			return nil, fmt.Errorf("answer a button press: %w", err)
		}
		result := Answered{CallbackQueryID: a.CallbackQueryID, Text: a.Text}
		row, err := readMessage(ctx, tx, bot, chatID, messageID)
		switch {
		case err == nil:
			result.Message = &row
		case !errors.Is(err, sql.ErrNoRows): // the messenger's own messages aren't kept here
			return nil, fmt.Errorf("read message %d: %w", messageID, err)
		}
		answer, err := encode(result)
		if err != nil {
			return nil, err
		}
		return answer, s.passOn(ctx, tx, bot.ID, "answerCallbackQuery", answer)
	})
}

// readMessage reads a bot's own message.
func readMessage(ctx context.Context, tx *sqlx.Tx, bot Bot, chatID, messageID int64) (Message, error) {
	var r messageRow
	err := tx.GetContext(ctx, &r, selectMessages+` WHERE m.bot_id = $1 AND m.chat_id = $2 AND m.message_id = $3 AND m.from_bot`, bot.ID, chatID, messageID)
	if err != nil {
		return Message{}, err
	}
	buttons, err := r.buttons()
	if err != nil {
		return Message{}, err
	}
	return message(messageID, chatID, bot.sender(), r.SentAt, r.Text, r.ReplyTo, buttons), nil
}

func (r messageRow) buttons() ([][]Button, error) {
	if r.Buttons == "" {
		return nil, nil
	}
	var buttons [][]Button
	if err := json.Unmarshal([]byte(r.Buttons), &buttons); err != nil {
		return nil, fmt.Errorf("read the buttons of message %d: %w", r.MessageID, err)
	}
	return buttons, nil
}
