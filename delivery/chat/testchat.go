package chat

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/pg"
	"mybots/delivery/queue"
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

// fit returns a text as it is kept; a *delivery.Invalid: it is empty or too long.
func fit(text string) (string, error) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if l := utf8.RuneCountInString(text); strings.TrimSpace(text) == "" || l > delivery.MaxText || !delivery.Storable(text) {
		return "", &delivery.Invalid{Field: "text", Rule: "must be 1 to 4096 characters"}
	}
	return text, nil
}

// Write writes a person's message in the test chat and gives it to the bot
// through intake. A *delivery.Invalid: the text is empty or too long. A *Closed:
// the chat doesn't allow the bot, and nothing was written. A *delivery.Refusal is
// intake's no (the queue is full, the bot is paused): the message then stands in
// the chat as not sent.
func (s *Store) Write(ctx context.Context, botID int64, by Person, text string) error {
	text, err := fit(text)
	if err != nil {
		return err
	}
	return s.write(ctx, botID, by, messageRow{Text: text})
}

// MaxFileName is how long a file's name may be, in code points.
const MaxFileName = 128

// Attach writes a message with a file of that name whose check isn't finished;
// Check finishes it. There is nothing in the file: the bot gets its id, its name
// and its status. The errors are those of Write.
func (s *Store) Attach(ctx context.Context, botID int64, by Person, name string) error {
	name = strings.TrimSpace(name)
	if l := utf8.RuneCountInString(name); l < 1 || l > MaxFileName || !delivery.Storable(name) || strings.ContainsFunc(name, unfit) {
		return &delivery.Invalid{Field: "name", Rule: "must be 1 to 128 characters, without slashes and control characters"}
	}
	return s.write(ctx, botID, by, messageRow{FileID: uuid.NewString(), FileName: name, FileStatus: Checking})
}

// unfit tells whether a file's name can't have the character.
func unfit(r rune) bool { return unicode.IsControl(r) || r == '/' || r == '\\' }

// kindOf tells a photo from a document by the file's name.
func kindOf(name string) string {
	switch strings.ToLower(path.Ext(name)) {
	case ".jpg", ".jpeg", ".png", ".gif", ".webp", ".heic":
		return "photo"
	}
	return "document"
}

// write keeps a person's message and hands it over; r has its text or its file.
func (s *Store) write(ctx context.Context, botID int64, by Person, r messageRow) error {
	chatID := TestChatID(by.ID)
	r.SentAt, r.EventID.String = s.clock.Now(), uuid.NewString()
	err := pg.InTx(ctx, s.db, func(tx *sqlx.Tx) error {
		if err := openIn(ctx, tx, botID, chatID); err != nil {
			return err
		}
		var err error
		if r.MessageID, err = nextMessageID(ctx, tx, botID, chatID); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `
INSERT INTO messages (bot_id, chat_id, message_id, from_bot, text, sent_at, event_id, state, file_id, file_name, file_status)
VALUES ($1, $2, $3, false, $4, $5, $6, 'sending', $7, $8, $9)`,
			botID, chatID, r.MessageID, r.Text, r.SentAt, r.EventID.String, r.FileID, r.FileName, r.FileStatus)
		if err != nil {
			return fmt.Errorf("write in the test chat of bot %d: %w", botID, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.hand(ctx, botID, by, r)
}

// Again gives the bot a message whose way to the queue was cut off, or that was
// refused; delivery.ErrNotFound when there is no such message, a *Closed when the
// chat doesn't allow the bot. Its event keeps its id, so that it arrives once
// whatever became of the first try (I-03).
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
	if err := s.open(ctx, botID, by); err != nil {
		return err
	}
	return s.hand(ctx, botID, by, r)
}

// hand gives a message to intake and keeps what came of it.
func (s *Store) hand(ctx context.Context, botID int64, by Person, r messageRow) error {
	chatID := TestChatID(by.ID)
	m := message(r.MessageID, chatID, by.sender(), r.SentAt, r.Text, 0, nil)
	m.File = r.file()
	payload, err := encode(m)
	if err != nil {
		return err
	}
	result, err := s.append(ctx, delivery.Event{
		BotID: botID, EventID: r.EventID.String, Type: "message", Date: r.SentAt, ChatID: chatID, MessageID: r.MessageID, Payload: payload,
	})
	if err != nil {
		return err
	}
	state, code := "sent", ""
	if result.Refusal != nil {
		state, code = "refused", string(result.Refusal.Code)
	}
	_, err = s.db.ExecContext(ctx, `UPDATE messages SET state = $4, refused = $5 WHERE bot_id = $1 AND chat_id = $2 AND message_id = $3`,
		botID, chatID, r.MessageID, state, code)
	if err != nil {
		return pg.Mark(fmt.Errorf("keep what became of message %d of bot %d: %w", r.MessageID, botID, err))
	}
	if result.Refusal != nil {
		return result.Refusal
	}
	return nil
}

// append gives intake one event.
func (s *Store) append(ctx context.Context, e delivery.Event) (queue.Appended, error) {
	results, err := s.queue.Append(ctx, []delivery.Event{e})
	if err != nil {
		return queue.Appended{}, err
	}
	return results[0], nil
}

type callbackQuery struct {
	CallbackQueryID string  `json:"callback_query_id"`
	From            Sender  `json:"from"`
	Message         Message `json:"message"`
	Data            string  `json:"data"`
}

// Press presses a button of a bot's message: row and place count from 0. A
// *delivery.Refusal is intake's no, a *Closed the chat's; delivery.ErrNotFound:
// there is no such button.
func (s *Store) Press(ctx context.Context, bot Bot, by Person, messageID int64, row, place int) error {
	chatID, now := TestChatID(by.ID), s.clock.Now()
	var m Message
	err := pg.InTx(ctx, s.db, func(tx *sqlx.Tx) (err error) {
		if err := openIn(ctx, tx, bot.ID, chatID); err != nil {
			return err
		}
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
	result, err := s.append(ctx, delivery.Event{BotID: bot.ID, EventID: uuid.NewString(), Type: "callback_query", Date: now, ChatID: chatID, MessageID: messageID, Payload: payload})
	if err != nil {
		return err
	}
	if result.Refusal != nil {
		return result.Refusal
	}
	return nil
}
