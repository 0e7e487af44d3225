package chat

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/pg"
)

// testChats is where the ids of test chats begin: far above a messenger's own.
const testChats = 1_000_000_000_000_000_000

// TestChatID is the id of the chat in which an owner tries a bot (UI-09).
func TestChatID(ownerID int64) int64 { return testChats + ownerID }

// Person is who writes in the test chat.
type Person struct {
	ID          int64
	DisplayName string
}

func (p Person) sender() Sender {
	return Sender{ID: strconv.FormatInt(p.ID, 10), DisplayName: p.DisplayName}
}

// Entry is one message of the test chat as its page shows it.
type Entry struct {
	MessageID int64
	FromBot   bool
	Text      string
	ReplyTo   int64 // 0: no reply
	Buttons   [][]Button
	SentAt    time.Time
	State     string        // sent, sending (its way to the queue was cut off), refused
	Refused   delivery.Code // why it was refused
	Answer    string        // what the bot answered to the last press of one of its buttons
}

type messageRow struct {
	MessageID int64          `db:"message_id"`
	FromBot   bool           `db:"from_bot"`
	Text      string         `db:"text"`
	ReplyTo   int64          `db:"reply_to"`
	Buttons   string         `db:"buttons"`
	SentAt    time.Time      `db:"sent_at"`
	EventID   sql.NullString `db:"event_id"`
	State     string         `db:"state"`
	Refused   string         `db:"refused"`
	Answer    string         `db:"answer"`
}

const selectMessages = `
SELECT m.message_id, m.from_bot, m.text, m.reply_to, m.buttons, m.sent_at, m.event_id, m.state, m.refused,
       coalesce((SELECT c.answer FROM callbacks c WHERE c.bot_id = m.bot_id AND c.chat_id = m.chat_id AND c.message_id = m.message_id
                  AND c.answered_at IS NOT NULL ORDER BY c.answered_at DESC LIMIT 1), '') AS answer
  FROM messages m`

// Entries returns the last messages of the owner's test chat with the bot, the
// oldest first, at most limit.
func (s *Store) Entries(ctx context.Context, botID, ownerID int64, limit int) ([]Entry, error) {
	var rows []messageRow
	err := s.db.SelectContext(ctx, &rows, selectMessages+` WHERE m.bot_id = $1 AND m.chat_id = $2 ORDER BY m.message_id DESC LIMIT $3`,
		botID, TestChatID(ownerID), limit)
	if err != nil {
		return nil, pg.Mark(fmt.Errorf("read the test chat of bot %d: %w", botID, err))
	}
	slices.Reverse(rows)
	entries := make([]Entry, len(rows))
	for i, r := range rows {
		buttons, err := r.buttons()
		if err != nil {
			return nil, err
		}
		entries[i] = Entry{MessageID: r.MessageID, FromBot: r.FromBot, Text: r.Text, ReplyTo: r.ReplyTo, Buttons: buttons,
			SentAt: r.SentAt.UTC(), State: r.State, Refused: delivery.Code(r.Refused), Answer: r.Answer}
	}
	return entries, nil
}

// Write writes a person's message in the test chat and gives it to the bot
// through intake. A *delivery.Invalid: the text is empty or too long. A
// *delivery.Refusal is intake's no (the queue is full, the bot is paused): the
// message then stands in the chat as not sent.
func (s *Store) Write(ctx context.Context, botID int64, by Person, text string) error {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if l := utf8.RuneCountInString(text); strings.TrimSpace(text) == "" || l > delivery.MaxText || !delivery.Storable(text) {
		return &delivery.Invalid{Field: "text", Rule: "must be 1 to 4096 characters"}
	}
	chatID, now, eventID := TestChatID(by.ID), s.clock.Now(), uuid.NewString()
	var messageID int64
	err := pg.InTx(ctx, s.db, func(tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(ctx, `INSERT INTO chats (bot_id, chat_id) VALUES ($1, $2) ON CONFLICT DO NOTHING`, botID, chatID); err != nil {
			return fmt.Errorf("open the test chat of bot %d: %w", botID, err)
		}
		var err error
		if messageID, err = nextMessageID(ctx, tx, botID, chatID); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `
INSERT INTO messages (bot_id, chat_id, message_id, from_bot, text, sent_at, event_id, state) VALUES ($1, $2, $3, false, $4, $5, $6, 'sending')`,
			botID, chatID, messageID, text, now, eventID)
		if err != nil {
			return fmt.Errorf("write in the test chat of bot %d: %w", botID, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.hand(ctx, botID, by, messageID, text, now, eventID)
}

// Again gives the bot a message whose way to the queue was cut off, or that was
// refused; delivery.ErrNotFound when there is no such message. Its event keeps
// its id, so that it arrives once whatever became of the first try (I-03).
func (s *Store) Again(ctx context.Context, botID int64, by Person, messageID int64) error {
	var r messageRow
	err := s.db.GetContext(ctx, &r, selectMessages+`
 WHERE m.bot_id = $1 AND m.chat_id = $2 AND m.message_id = $3 AND NOT m.from_bot AND m.state <> 'sent'`, botID, TestChatID(by.ID), messageID)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("message %d of bot %d: %w", messageID, botID, delivery.ErrNotFound)
	}
	if err != nil {
		return pg.Mark(fmt.Errorf("message %d of bot %d: %w", messageID, botID, err))
	}
	return s.hand(ctx, botID, by, messageID, r.Text, r.SentAt, r.EventID.String)
}

// hand gives a message to intake and keeps what came of it.
func (s *Store) hand(ctx context.Context, botID int64, by Person, messageID int64, text string, at time.Time, eventID string) error {
	chatID := TestChatID(by.ID)
	payload, err := encode(message(messageID, chatID, by.sender(), at, text, 0, nil))
	if err != nil {
		return err
	}
	refusal, err := s.append(ctx, delivery.Event{BotID: botID, EventID: eventID, Type: "message", Date: at, ChatID: chatID, MessageID: messageID, Payload: payload})
	if err != nil {
		return err
	}
	state, code := "sent", ""
	if refusal != nil {
		state, code = "refused", string(refusal.Code)
	}
	_, err = s.db.ExecContext(ctx, `UPDATE messages SET state = $4, refused = $5 WHERE bot_id = $1 AND chat_id = $2 AND message_id = $3`,
		botID, chatID, messageID, state, code)
	if err != nil {
		return pg.Mark(fmt.Errorf("keep what became of message %d of bot %d: %w", messageID, botID, err))
	}
	if refusal != nil {
		return refusal
	}
	return nil
}

// append gives intake one event; the refusal is intake's no.
func (s *Store) append(ctx context.Context, e delivery.Event) (*delivery.Refusal, error) {
	results, err := s.queue.Append(ctx, []delivery.Event{e})
	if err != nil {
		return nil, err
	}
	return results[0].Refusal, nil
}

type callbackQuery struct {
	CallbackQueryID string  `json:"callback_query_id"`
	From            Sender  `json:"from"`
	Message         Message `json:"message"`
	Data            string  `json:"data"`
}

// Press presses a button of a bot's message: row and place count from 0. A
// *delivery.Refusal is intake's no; delivery.ErrNotFound: there is no such button.
func (s *Store) Press(ctx context.Context, bot Bot, by Person, messageID int64, row, place int) error {
	chatID, now := TestChatID(by.ID), s.clock.Now()
	var m Message
	err := pg.InTx(ctx, s.db, func(tx *sqlx.Tx) (err error) {
		m, err = readMessage(ctx, tx, bot, chatID, messageID)
		return err
	})
	if errors.Is(err, sql.ErrNoRows) || err == nil && (row < 0 || row >= len(m.Buttons) || place < 0 || place >= len(m.Buttons[row])) {
		return fmt.Errorf("button of message %d of bot %d: %w", messageID, bot.ID, delivery.ErrNotFound)
	}
	if err != nil {
		return err
	}
	payload, err := encode(callbackQuery{CallbackQueryID: uuid.NewString(), From: by.sender(), Message: m, Data: m.Buttons[row][place].Data})
	if err != nil {
		return err
	}
	refusal, err := s.append(ctx, delivery.Event{BotID: bot.ID, EventID: uuid.NewString(), Type: "callback_query", Date: now, ChatID: chatID, MessageID: messageID, Payload: payload})
	if err != nil {
		return err
	}
	if refusal != nil {
		return refusal
	}
	return nil
}
