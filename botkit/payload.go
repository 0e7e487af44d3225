package botkit

// Chat is the chat that something happened in.
type Chat struct {
	ID   ID     `json:"id"`
	Type string `json:"type,omitempty"` // "private", or one of a later version
}

// Sender is who wrote a message or pressed a button.
type Sender struct {
	ID          ID     `json:"id"`
	DisplayName string `json:"display_name"`
	Username    string `json:"username,omitempty"`
	IsBot       bool   `json:"is_bot"`
}

// Message is a message, in an update and as the answer to SendMessage.
type Message struct {
	MessageID        ID         `json:"message_id"`
	Chat             Chat       `json:"chat"`
	From             Sender     `json:"from"`
	Date             string     `json:"date"`                // RFC 3339, UTC
	EditDate         string     `json:"edit_date,omitempty"` // of the last edit
	Text             string     `json:"text,omitempty"`      // "" beside a file
	File             *File      `json:"file,omitempty"`
	ReplyToMessageID ID         `json:"reply_to_message_id,omitempty"`
	Buttons          [][]Button `json:"buttons,omitempty"`
}

func (m *Message) missing() string {
	return firstMissing(field{"message_id", m.MessageID != ""}, field{"chat.id", m.Chat.ID != ""})
}

// Button is one button under a message.
type Button struct {
	Text string `json:"text"` // what the person reads, 1 to 64 characters
	Data string `json:"data"` // what CallbackQuery.Data will be, 1 to 256 bytes
}

// File is a file as messages and FileStatus name it.
type File struct {
	FileID string `json:"file_id"`
	Kind   string `json:"kind"`   // "photo" or "document"
	Name   string `json:"name"`   // as the person named it
	Status string `json:"status"` // "Checking", "Clean" or "Infected"
}

// MessageDeleted says which message is gone.
type MessageDeleted struct {
	MessageID ID   `json:"message_id"`
	Chat      Chat `json:"chat"`
}

func (m *MessageDeleted) missing() string {
	return firstMissing(field{"message_id", m.MessageID != ""}, field{"chat.id", m.Chat.ID != ""})
}

// CallbackQuery is the press of a button under one of the bot's messages.
type CallbackQuery struct {
	CallbackQueryID string  `json:"callback_query_id"`
	From            Sender  `json:"from"`
	Message         Message `json:"message"` // the one with the button
	Data            string  `json:"data"`
}

func (c *CallbackQuery) missing() string {
	return firstMissing(field{"callback_query_id", c.CallbackQueryID != ""})
}

// ChatAccess says whether the bot may write to a chat from now on.
type ChatAccess struct {
	Chat   Chat   `json:"chat"`
	Access string `json:"access"` // "allowed", "stopped", "blocked" or "left"
}

func (c *ChatAccess) missing() string {
	return firstMissing(field{"chat.id", c.Chat.ID != ""}, field{"access", c.Access != ""})
}

// FileStatus is how the check of a file ended.
type FileStatus struct {
	MessageID ID    `json:"message_id"`
	Chat      Chat  `json:"chat"`
	File      *File `json:"file"`
}

func (f *FileStatus) missing() string {
	return firstMissing(field{"file.file_id", f.File != nil && f.File.FileID != ""})
}

// field is a field that an update of its type always has.
type field struct {
	path  string
	there bool
}

func firstMissing(fields ...field) string {
	for _, f := range fields {
		if !f.there {
			return f.path
		}
	}
	return ""
}
