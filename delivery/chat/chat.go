// Package chat keeps the conversations of persons with bots: what a bot writes
// by sendMessage and answerCallbackQuery, the owner's test chat, whose messages
// go to the bot through the real intake, and the way of a bot's messages on to
// the messenger.
package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/queue"
)

// Store keeps chats and their messages.
type Store struct {
	db       *sqlx.DB
	clock    delivery.Clock
	queue    *queue.Queue
	outbound bool // what bots write is passed on to a messenger
}

// New returns the chats in db. Events of the test chat go in through q. outbound: what
// bots write is also queued for the messenger, see Outbound.
func New(db *sqlx.DB, clock delivery.Clock, q *queue.Queue, outbound bool) *Store {
	return &Store{db: db, clock: clock, queue: q, outbound: outbound}
}

// Button is one button under a message.
type Button struct {
	Text string `json:"text"` // what the person reads
	Data string `json:"data"` // what the bot gets when it is pressed
}

// Chat is a chat as messages name it.
type Chat struct {
	ID   string `json:"id"`
	Type string `json:"type"`
}

// Sender is who wrote a message.
type Sender struct {
	ID          string `json:"id"`
	DisplayName string `json:"display_name"`
	Username    string `json:"username,omitempty"`
	IsBot       bool   `json:"is_bot"`
}

// Message is a message as the Bot API gives it and as updates carry it.
type Message struct {
	MessageID        string     `json:"message_id"`
	Chat             Chat       `json:"chat"`
	From             Sender     `json:"from"`
	Date             string     `json:"date"`
	EditDate         string     `json:"edit_date,omitempty"` // of the last edit
	Text             string     `json:"text,omitempty"`      // none beside a file
	File             *File      `json:"file,omitempty"`
	ReplyToMessageID string     `json:"reply_to_message_id,omitempty"`
	Buttons          [][]Button `json:"buttons,omitempty"`
}

// File is a file as messages and file_status_changed name it.
type File struct {
	FileID string `json:"file_id"`
	Kind   string `json:"kind"` // photo or document
	Name   string `json:"name"`
	Status string `json:"status"` // Checking, Clean or Infected
}

// The statuses of a file.
const (
	Checking = "checking"
	Clean    = "clean"
	Infected = "infected"
)

// encode writes v as JSON, texts as they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

func message(messageID, chatID int64, from Sender, at time.Time, text string, replyTo int64, buttons [][]Button) Message {
	m := Message{
		MessageID: strconv.FormatInt(messageID, 10),
		Chat:      private(chatID),
		From:      from, Date: delivery.FormatTime(at), Text: text, Buttons: buttons,
	}
	if replyTo != 0 {
		m.ReplyToMessageID = strconv.FormatInt(replyTo, 10)
	}
	return m
}

func private(chatID int64) Chat { return Chat{ID: strconv.FormatInt(chatID, 10), Type: "private"} }
