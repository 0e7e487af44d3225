package chat

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"mybots/delivery"
	"mybots/delivery/pg"
)

// Conversation is the test chat as its page shows it.
type Conversation struct {
	Access  string  // Allowed, Stopped, Blocked or Left
	Entries []Entry // the oldest first
	Deeds   []Deed  // the oldest first
	More    bool    // there are older messages
}

// Entry is one message of the test chat.
type Entry struct {
	MessageID int64
	FromBot   bool
	Text      string // "" beside a file, and once it is deleted
	ReplyTo   int64  // 0: no reply
	Buttons   [][]Button
	File      *File // nil: none
	SentAt    time.Time
	EditedAt  time.Time     // zero: never
	DeletedAt time.Time     // zero: it is there
	State     string        // sent, sending (its way to the queue was cut off), refused
	Refused   delivery.Code // why it was refused
	Answer    string        // what the bot answered to the last press of one of its buttons
}

// Deed is something that the person did beside writing: it stands behind the
// message After. An edit or a deletion is one only until it has taken effect.
type Deed struct {
	ID        int64
	After     int64
	MessageID int64  // the message that it is about; 0: none
	Type      string // of its update
	Value     string // the access, or the file's status
	At        time.Time
	Sending   bool // on its way to the queue, or cut off there
}

type messageRow struct {
	MessageID  int64          `db:"message_id"`
	FromBot    bool           `db:"from_bot"`
	Text       string         `db:"text"`
	ReplyTo    int64          `db:"reply_to"`
	Buttons    string         `db:"buttons"`
	SentAt     time.Time      `db:"sent_at"`
	EditedAt   sql.NullTime   `db:"edited_at"`
	DeletedAt  sql.NullTime   `db:"deleted_at"`
	FileID     string         `db:"file_id"`
	FileName   string         `db:"file_name"`
	FileStatus string         `db:"file_status"`
	EventID    sql.NullString `db:"event_id"`
	State      string         `db:"state"`
	Refused    string         `db:"refused"`
	Answer     string         `db:"answer"`
}

const selectMessages = `
SELECT m.message_id, m.from_bot, m.text, m.reply_to, m.buttons, m.sent_at, m.edited_at, m.deleted_at, m.file_id, m.file_name, m.file_status,
       m.event_id, m.state, m.refused,
       coalesce((SELECT c.answer FROM callbacks c WHERE c.bot_id = m.bot_id AND c.chat_id = m.chat_id AND c.message_id = m.message_id
                  AND c.answered_at IS NOT NULL ORDER BY c.answered_at DESC LIMIT 1), '') AS answer
  FROM messages m`

func (r messageRow) file() *File {
	if r.FileID == "" {
		return nil
	}
	return &File{FileID: r.FileID, Kind: kindOf(r.FileName), Name: r.FileName, Status: r.FileStatus}
}

func (r messageRow) entry() (Entry, error) {
	buttons, err := r.buttons()
	if err != nil {
		return Entry{}, err
	}
	e := Entry{
		MessageID: r.MessageID, FromBot: r.FromBot, Text: r.Text, ReplyTo: r.ReplyTo, Buttons: buttons, File: r.file(),
		SentAt: r.SentAt.UTC(), State: r.State, Refused: delivery.Code(r.Refused), Answer: r.Answer,
	}
	if r.EditedAt.Valid {
		e.EditedAt = r.EditedAt.Time.UTC()
	}
	if r.DeletedAt.Valid {
		e.DeletedAt = r.DeletedAt.Time.UTC()
	}
	return e, nil
}

// Conversation returns the owner's test chat with the bot: its last messages, at
// most limit, and what the person did about and between them.
func (s *Store) Conversation(ctx context.Context, botID, ownerID int64, limit int) (Conversation, error) {
	c, chatID := Conversation{Access: Allowed}, TestChatID(ownerID)
	failed := func(err error) (Conversation, error) {
		return Conversation{}, pg.Mark(fmt.Errorf("read the test chat of bot %d: %w", botID, err))
	}
	err := s.db.GetContext(ctx, &c.Access, `SELECT access FROM chats WHERE bot_id = $1 AND chat_id = $2`, botID, chatID)
	if err != nil && !errors.Is(err, sql.ErrNoRows) { // no row: nobody has written yet
		return failed(err)
	}
	var rows []messageRow
	err = s.db.SelectContext(ctx, &rows, selectMessages+` WHERE m.bot_id = $1 AND m.chat_id = $2 ORDER BY m.message_id DESC LIMIT $3`, botID, chatID, limit+1)
	if err != nil {
		return failed(err)
	}
	first := int64(0)
	if c.More = len(rows) > limit; c.More {
		rows = rows[:limit]
		first = rows[limit-1].MessageID
	}
	slices.Reverse(rows)
	for _, r := range rows {
		e, err := r.entry()
		if err != nil {
			return Conversation{}, err
		}
		c.Entries = append(c.Entries, e)
	}
	var deeds []deedRow
	err = s.db.SelectContext(ctx, &deeds, selectDeeds+` WHERE bot_id = $1 AND chat_id = $2 AND after_id >= $3 ORDER BY deed_id DESC LIMIT $4`, botID, chatID, first, limit)
	if err != nil {
		return failed(err)
	}
	slices.Reverse(deeds)
	for _, d := range deeds {
		if d.Type == messageEdited {
			d.Value = "" // the text isn't for the list
		}
		c.Deeds = append(c.Deeds, Deed{ID: d.DeedID, After: d.AfterID, MessageID: d.MessageID, Type: d.Type, Value: d.Value, At: d.DoneAt.UTC(), Sending: d.State != "sent"})
	}
	return c, nil
}
