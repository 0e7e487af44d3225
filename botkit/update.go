package botkit

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// The types of updates that this version knows. Later ones arrive all the same,
// with no typed payload.
const (
	TypeMessage           = "message"
	TypeMessageEdited     = "message_edited"
	TypeMessageDeleted    = "message_deleted"
	TypeCallbackQuery     = "callback_query"
	TypeChatAccessChanged = "chat_access_changed"
	TypeFileStatusChanged = "file_status_changed"
)

// Update is one event in the bot's queue (U-01).
//
// Raw is the whole update as it came, byte by byte: it holds the fields that
// this version doesn't know, too. Of the typed payloads exactly one is set, the
// one that Type names; none for a type that this version doesn't know.
type Update struct {
	UpdateID ID        // the place in the queue; new on an owner's replay
	EventID  string    // the event; the same on every repeat and replay
	Type     string    // which payload is set
	Date     time.Time // when it happened; zero if it is missing
	ReplayOf ID        // the former UpdateID on an owner's replay, else ""
	Raw      json.RawMessage

	Message        *Message        // TypeMessage
	MessageEdited  *Message        // TypeMessageEdited
	MessageDeleted *MessageDeleted // TypeMessageDeleted
	CallbackQuery  *CallbackQuery  // TypeCallbackQuery
	ChatAccess     *ChatAccess     // TypeChatAccessChanged
	FileStatus     *FileStatus     // TypeFileStatusChanged
}

// ErrNotUpdate says that bytes are no update at all: no JSON object, or one
// without an update_id. No policy is asked about those.
var ErrNotUpdate = errors.New("not an update: it is no JSON object with an update_id")

// DecodeError says that an update doesn't have the shape that this version of
// the kit knows. A DecodePolicy decides what becomes of it.
type DecodeError struct {
	UpdateID ID
	EventID  string          // "" where that is what can't be read
	Type     string          // "" where that is what can't be read
	Path     string          // the field, for example "message.chat.id"
	Problem  string          // what is wrong with it; quotes nothing of the update
	Raw      json.RawMessage // the update as it came; the kit never logs it
}

// Error names the field, and quotes nothing of the update.
func (e *DecodeError) Error() string {
	return fmt.Sprintf("update %s can't be read: %s %s", e.UpdateID, e.Path, e.Problem)
}

// ParseUpdate reads an update. The errors are ErrNotUpdate and *DecodeError.
func ParseUpdate(raw []byte) (*Update, error) {
	// A map, since encoding/json takes a struct's fields in any case.
	var fields map[string]json.RawMessage
	if !utf8.Valid(raw) || json.Unmarshal(raw, &fields) != nil {
		return nil, ErrNotUpdate
	}
	u := &Update{Raw: raw}
	if json.Unmarshal(fields["update_id"], &u.UpdateID) != nil || !u.UpdateID.Valid() {
		return nil, ErrNotUpdate
	}
	fail := func(path, problem string) (*Update, error) {
		return nil, &DecodeError{UpdateID: u.UpdateID, EventID: u.EventID, Type: u.Type, Path: path, Problem: problem, Raw: raw}
	}
	// Both are read before one is found wrong, so that the error names the other.
	badEvent, badType := !word(fields["event_id"], &u.EventID), !word(fields["type"], &u.Type)
	if badEvent {
		return fail("event_id", "is missing or no short text")
	}
	if badType {
		return fail("type", "is missing or no short text")
	}
	if v, ok := fields["date"]; ok && json.Unmarshal(v, &u.Date) != nil {
		return fail("date", "is no time")
	}
	if v, ok := fields["replay_of_update_id"]; ok && (json.Unmarshal(v, &u.ReplayOf) != nil || u.ReplayOf != "" && !u.ReplayOf.Valid()) {
		return fail("replay_of_update_id", "is no id")
	}
	if path, problem := u.readPayload(fields[u.Type]); problem != "" {
		return fail(path, problem)
	}
	return u, nil
}

// word reads a text of 1 to 255 visible ASCII characters, or leaves to empty.
func word(raw json.RawMessage, to *string) bool {
	var s string
	if json.Unmarshal(raw, &s) != nil || len(s) > 255 || !visible(s) {
		return false
	}
	*to = s
	return true
}

// readPayload fills the payload that the type names; problem is "" if it could.
func (u *Update) readPayload(raw json.RawMessage) (path, problem string) {
	var to interface{ missing() string }
	switch u.Type {
	case TypeMessage:
		u.Message = &Message{}
		to = u.Message
	case TypeMessageEdited:
		u.MessageEdited = &Message{}
		to = u.MessageEdited
	case TypeMessageDeleted:
		u.MessageDeleted = &MessageDeleted{}
		to = u.MessageDeleted
	case TypeCallbackQuery:
		u.CallbackQuery = &CallbackQuery{}
		to = u.CallbackQuery
	case TypeChatAccessChanged:
		u.ChatAccess = &ChatAccess{}
		to = u.ChatAccess
	case TypeFileStatusChanged:
		u.FileStatus = &FileStatus{}
		to = u.FileStatus
	default:
		return "", ""
	}
	if !strings.HasPrefix(string(raw), "{") {
		return u.Type, "is missing or no object"
	}
	err := json.Unmarshal(raw, to)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return u.Type + "." + wrong.Field, "is not of the kind " + wrong.Type.Kind().String()
	}
	if err != nil {
		return u.Type, "can't be read"
	}
	if name := to.missing(); name != "" {
		return u.Type + "." + name, "is missing"
	}
	return "", ""
}

// Payload returns the field that Type names, as it came; nil if there is none.
// It is how to read an update of a type that this version doesn't know.
func (u *Update) Payload() json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(u.Raw, &fields) != nil {
		return nil
	}
	return fields[u.Type]
}

// Key returns the Idempotency-Key of an action on this update's event, see
// ActionKey.
func (u *Update) Key(action string) string { return ActionKey(u.EventID, action) }

// ChatID returns the chat that the update is about, "" if it names none.
func (u *Update) ChatID() ID {
	switch {
	case u.Message != nil:
		return u.Message.Chat.ID
	case u.MessageEdited != nil:
		return u.MessageEdited.Chat.ID
	case u.MessageDeleted != nil:
		return u.MessageDeleted.Chat.ID
	case u.CallbackQuery != nil:
		return u.CallbackQuery.Message.Chat.ID
	case u.ChatAccess != nil:
		return u.ChatAccess.Chat.ID
	case u.FileStatus != nil:
		return u.FileStatus.Chat.ID
	}
	var later struct {
		Chat    Chat
		Message struct{ Chat Chat }
	}
	if json.Unmarshal(u.Payload(), &later) != nil {
		return ""
	}
	if later.Chat.ID != "" {
		return later.Chat.ID
	}
	return later.Message.Chat.ID
}

// Command returns the command of a message like "/start@my_bot now": name
// "start", to "my_bot", args "now". ok is false for all other updates.
func (u *Update) Command() (name, to, args string, ok bool) {
	if u.Message == nil || !strings.HasPrefix(u.Message.Text, "/") {
		return "", "", "", false
	}
	word, args := u.Message.Text[1:], ""
	if i := strings.IndexAny(word, " \t\r\n"); i >= 0 {
		word, args = word[:i], strings.TrimSpace(word[i:])
	}
	name, to, _ = strings.Cut(word, "@")
	return name, to, args, name != ""
}
