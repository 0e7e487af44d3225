package chat

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/pg"
)

// The types of the updates that deeds become.
const (
	messageEdited  = "message_edited"
	messageDeleted = "message_deleted"
	accessChanged  = "chat_access_changed"
	fileChecked    = "file_status_changed"
)

// deedRow is a deed as it is kept: before intake is given its event, so that it
// can be given again under the same id whatever became of the first try (I-03).
type deedRow struct {
	DeedID    int64     `db:"deed_id"`
	AfterID   int64     `db:"after_id"`
	MessageID int64     `db:"message_id"`
	EventID   string    `db:"event_id"`
	Type      string    `db:"type"`
	Value     string    `db:"value"`
	DoneAt    time.Time `db:"done_at"`
	State     string    `db:"state"`
}

const selectDeeds = `SELECT deed_id, after_id, message_id, event_id, type, value, done_at, state FROM chat_deeds`

// Edit gives a person's message a new text. delivery.ErrNotFound: there is no
// such message that the bot got and that has a text. A *delivery.Invalid: the
// text is empty or too long. *Closed and *delivery.Refusal as for Write; then
// the message is as it was.
func (s *Store) Edit(ctx context.Context, botID int64, by Person, messageID int64, text string) error {
	text, err := fit(text)
	if err != nil {
		return err
	}
	return s.do(ctx, botID, by, deedRow{Type: messageEdited, MessageID: messageID, Value: text})
}

// Delete deletes a person's message, and its text for good. The errors are those of Edit.
func (s *Store) Delete(ctx context.Context, botID int64, by Person, messageID int64) error {
	return s.do(ctx, botID, by, deedRow{Type: messageDeleted, MessageID: messageID})
}

// Check ends the check of a file that came with a message: status is Clean or
// Infected. delivery.ErrNotFound: no file of this message is being checked. The
// other errors are those of Edit.
func (s *Store) Check(ctx context.Context, botID int64, by Person, messageID int64, status string) error {
	if status != Clean && status != Infected {
		return &delivery.Invalid{Field: "result", Rule: "must be clean or infected"}
	}
	return s.do(ctx, botID, by, deedRow{Type: fileChecked, MessageID: messageID, Value: status})
}

// SetAccess stops the bot in the test chat, leaves the space, or allows the bot
// again (I-05). What is so already stays so, and no event is written.
func (s *Store) SetAccess(ctx context.Context, botID int64, by Person, access string) error {
	if access != Allowed && access != Stopped && access != Left {
		return &delivery.Invalid{Field: "access", Rule: "must be allowed, stopped or left"}
	}
	err := s.do(ctx, botID, by, deedRow{Type: accessChanged, Value: access})
	if errors.Is(err, errSame) {
		return nil
	}
	return err
}

// AgainDeed gives the bot a deed whose way to the queue was cut off;
// delivery.ErrNotFound when there is none.
func (s *Store) AgainDeed(ctx context.Context, botID int64, by Person, deedID int64) error {
	var d deedRow
	err := s.db.GetContext(ctx, &d, selectDeeds+` WHERE bot_id = $1 AND chat_id = $2 AND deed_id = $3 AND state <> 'sent'`, botID, TestChatID(by.ID), deedID)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("deed %d of bot %d: %w", deedID, botID, delivery.ErrNotFound)
	}
	if err != nil {
		return pg.Mark(fmt.Errorf("deed %d of bot %d: %w", deedID, botID, err))
	}
	if d.Type != accessChanged {
		if err := s.open(ctx, botID, by); err != nil {
			return err
		}
	}
	return s.give(ctx, botID, by, d)
}

// errSame: the chat allows just what it is asked to.
var errSame = errors.New("the access is so already")

// do keeps a deed and gives it to the bot.
func (s *Store) do(ctx context.Context, botID int64, by Person, d deedRow) error {
	chatID := TestChatID(by.ID)
	d.EventID, d.DoneAt = uuid.NewString(), s.clock.Now()
	err := pg.InTx(ctx, s.db, func(tx *sqlx.Tx) error {
		access, err := lockChat(ctx, tx, botID, chatID)
		switch {
		case err != nil:
			return err
		case d.Type == accessChanged && access == d.Value:
			return errSame
		case d.Type != accessChanged && access != Allowed:
			return &Closed{Access: access}
		}
		if d.Type != accessChanged {
			if err := mayDo(ctx, tx, botID, chatID, d); err != nil {
				return err
			}
		}
		err = tx.GetContext(ctx, &d.DeedID, `
INSERT INTO chat_deeds (bot_id, chat_id, after_id, message_id, event_id, type, value, done_at)
SELECT bot_id, chat_id, next_message_id - 1, $3, $4, $5, $6, $7 FROM chats WHERE bot_id = $1 AND chat_id = $2 RETURNING deed_id`,
			botID, chatID, d.MessageID, d.EventID, d.Type, d.Value, d.DoneAt)
		if err != nil {
			return fmt.Errorf("keep a %s in the test chat of bot %d: %w", d.Type, botID, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.give(ctx, botID, by, d)
}

// mayDo tells whether the message is one that the deed can be about. The chat's
// row is locked, so of two deletions or two ends of a check one comes first.
func mayDo(ctx context.Context, tx *sqlx.Tx, botID, chatID int64, d deedRow) error {
	var may bool
	err := tx.GetContext(ctx, &may, `
SELECT EXISTS (SELECT FROM messages
                WHERE bot_id = $1 AND chat_id = $2 AND message_id = $3 AND NOT from_bot AND state = 'sent' AND deleted_at IS NULL
                  AND CASE $4 WHEN 'message_edited' THEN file_id = '' WHEN 'file_status_changed' THEN file_status = 'checking' ELSE true END)
   AND NOT EXISTS (SELECT FROM chat_deeds
                    WHERE bot_id = $1 AND chat_id = $2 AND message_id = $3 AND state = 'sending'
                      AND type IN ('message_deleted', 'file_status_changed') AND type IN ('message_deleted', $4))`,
		botID, chatID, d.MessageID, d.Type)
	if err != nil {
		return fmt.Errorf("look at message %d of bot %d: %w", d.MessageID, botID, err)
	}
	if !may {
		return fmt.Errorf("%s of message %d of bot %d: %w", d.Type, d.MessageID, botID, delivery.ErrNotFound)
	}
	return nil
}

// give gives a kept deed to intake. When intake has it, it takes effect; when
// intake refuses it, it never was.
func (s *Store) give(ctx context.Context, botID int64, by Person, d deedRow) error {
	chatID := TestChatID(by.ID)
	payload, err := s.payload(ctx, botID, by, d)
	if err != nil {
		return err
	}
	result, err := s.append(ctx, delivery.Event{
		BotID: botID, EventID: d.EventID, Type: d.Type, Date: d.DoneAt, ChatID: chatID, MessageID: d.MessageID, Payload: payload,
	})
	if err != nil {
		return err
	}
	if result.Refusal != nil {
		if _, err := s.db.ExecContext(ctx, `DELETE FROM chat_deeds WHERE bot_id = $1 AND chat_id = $2 AND deed_id = $3`, botID, chatID, d.DeedID); err != nil {
			return pg.Mark(fmt.Errorf("take back a %s of bot %d: %w", d.Type, botID, err))
		}
		return result.Refusal
	}
	return pg.InTx(ctx, s.db, func(tx *sqlx.Tx) error {
		for _, e := range effects(d, result.UpdateID) {
			if _, err := tx.ExecContext(ctx, e.sql, slices.Concat([]any{botID, chatID}, e.values)...); err != nil {
				return fmt.Errorf("carry out a %s in the test chat of bot %d: %w", d.Type, botID, err)
			}
		}
		return nil
	})
}

type effect struct {
	sql    string // $1 and $2 are the bot and the chat
	values []any
}

const keptSQL = `UPDATE chat_deeds SET state = 'sent' WHERE bot_id = $1 AND chat_id = $2 AND deed_id = $3`

// effects are what a deed does to the chat once its event has its place in the
// queue. The chat's access isn't among them: the event itself changes that (I-05).
func effects(d deedRow, updateID int64) []effect {
	switch d.Type {
	case messageEdited: // of two edits the one holds that the bot gets last
		return []effect{
			{`UPDATE messages SET text = $4, edited_at = $5, edited_by = $6
 WHERE bot_id = $1 AND chat_id = $2 AND message_id = $3 AND deleted_at IS NULL AND edited_by < $6`, []any{d.MessageID, d.Value, d.DoneAt, updateID}},
			{`DELETE FROM chat_deeds WHERE bot_id = $1 AND chat_id = $2 AND deed_id = $3`, []any{d.DeedID}},
		}
	case messageDeleted: // and with it whatever still was on its way about it
		return []effect{
			{`UPDATE messages SET text = '', file_name = '', deleted_at = $4
 WHERE bot_id = $1 AND chat_id = $2 AND message_id = $3 AND deleted_at IS NULL`, []any{d.MessageID, d.DoneAt}},
			{`DELETE FROM chat_deeds WHERE bot_id = $1 AND chat_id = $2 AND message_id = $3 AND state = 'sending'`, []any{d.MessageID}},
		}
	case fileChecked:
		return []effect{
			{`UPDATE messages SET file_status = $4 WHERE bot_id = $1 AND chat_id = $2 AND message_id = $3 AND file_status = 'checking'`, []any{d.MessageID, d.Value}},
			{keptSQL, []any{d.DeedID}},
		}
	}
	return []effect{{keptSQL, []any{d.DeedID}}}
}

// payload is a deed as the bot gets it.
func (s *Store) payload(ctx context.Context, botID int64, by Person, d deedRow) ([]byte, error) {
	chatID := TestChatID(by.ID)
	if d.Type == accessChanged {
		return encode(struct {
			Chat   Chat   `json:"chat"`
			Access string `json:"access"`
		}{private(chatID), d.Value})
	}
	id := strconv.FormatInt(d.MessageID, 10)
	if d.Type == messageDeleted {
		return encode(struct {
			MessageID string `json:"message_id"`
			Chat      Chat   `json:"chat"`
		}{id, private(chatID)})
	}
	var r messageRow
	err := s.db.GetContext(ctx, &r, selectMessages+` WHERE m.bot_id = $1 AND m.chat_id = $2 AND m.message_id = $3`, botID, chatID, d.MessageID)
	if err != nil {
		return nil, pg.Mark(fmt.Errorf("message %d of bot %d: %w", d.MessageID, botID, err))
	}
	if file := r.file(); d.Type == fileChecked && file != nil {
		file.Status = d.Value
		return encode(struct {
			MessageID string `json:"message_id"`
			Chat      Chat   `json:"chat"`
			File      *File  `json:"file"`
		}{id, private(chatID), file})
	}
	m := message(d.MessageID, chatID, by.sender(), r.SentAt, d.Value, r.ReplyTo, nil)
	m.EditDate = delivery.FormatTime(d.DoneAt)
	return encode(m)
}
