package owner

import (
	"time"

	"mybots/views/ui"
)

// Chat is the page on which an owner writes to the bot (UI-09).
type Chat struct {
	URL           string // of this page, where its form is posted too; those of all other deeds lie below it
	ConnectionURL string
	State         State
	Failed        int  // how many failed updates; shown in the head
	Calm          bool // the state needs no words here
	Items         []Item
	More          string // says that older messages aren't shown; "" when all are
	Said          string // the bot's last words, for screen readers
	Echo          Example
	Closed        *Closed // nil while one can write
	Seen          string
	Focus         string // the id of the message that takes the focus; "" for none
	Compose       Compose
}

// Compose are the forms below the messages, as they were filled in.
type Compose struct {
	EditID    string // the message that is edited; "" where a new one is written
	Text      string
	Error     string
	Focus     bool   // take the focus: the last message has just gone
	FileName  string // "" for the one that is proposed
	FileError string
}

// Closed stands where one could write: why one can't, and the way back.
type Closed struct{ Title, Text, Verb string }

// Item is one line of the conversation: a message or an event.
type Item struct {
	Message *Message
	Event   *Event
}

// Message is one message of the chat.
type Message struct {
	ID        string
	FromBot   bool
	Author    string
	ReplyTo   string // the beginning of what it answers; "" for no reply
	Text      string
	File      *File // nil for none
	SentAt    time.Time
	EditedAt  time.Time // zero: never
	DeletedAt time.Time // zero: it is there
	Rows      [][]Button
	Answer    string // what the bot said to the last button press
	Trouble   string // why it wasn't sent; "" when it was
	Note      string // on its way
	Again     bool   // it can be sent again
	EditURL   string // of the form that edits it; "" when it can't be edited
	Delete    bool   // it can be deleted
	Check     bool   // the check of its file can be ended
	Shut      bool   // the chat is closed: nothing of it can be pressed
}

// Button is a button under a message.
type Button struct{ Text, Row, Place string }

// File is what came with a message.
type File struct {
	Kind, Name string
	Status     string // for programs and tests, in data-status
	State      ui.Kind
	Word       string
}

// Event is something that the reader did between the messages.
type Event struct {
	DeedID  string
	Type    string // of its update, in data-type
	Text    string
	At      time.Time
	Trouble string // its way was cut off; "" when it wasn't
	Note    string // on its way
}

// fileName is what stands in the field: an example, until somebody wrote there.
func (c Compose) fileName() string {
	if c.FileName == "" && c.FileError == "" {
		return "invoice.pdf"
	}
	return c.FileName
}
