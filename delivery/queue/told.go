package queue

import (
	"cmp"
	"encoding/json"
	"errors"

	"mybots/delivery"
)

// told is what an event says beside its place in the queue.
type told struct {
	chatID   int64
	access   string // of chat_access_changed (I-05)
	callback string // the id of a callback query (I-06)
}

// read looks into an event's payload for the chat that it names, where the event
// doesn't say, for a changed access and for a callback query's id. What isn't
// there or has another shape is none: the payload passes through all the same.
func read(e *delivery.Event) told {
	t := told{chatID: e.ChatID}
	if t.chatID != 0 && e.Type != "chat_access_changed" && e.Type != "callback_query" {
		return t
	}
	type named struct {
		ID json.RawMessage `json:"id"`
	}
	var p struct {
		Chat    named `json:"chat"`
		Message struct {
			Chat named `json:"chat"`
		} `json:"message"`
		Access          string `json:"access"`
		CallbackQueryID string `json:"callback_query_id"`
		ID              string `json:"id"`
	}
	if err := json.Unmarshal(e.Payload, &p); err != nil {
		var shape *json.UnmarshalTypeError
		if !errors.As(err, &shape) {
			return t
		}
	}
	if t.chatID == 0 {
		t.chatID = max(number(p.Chat.ID), 0)
	}
	if t.chatID == 0 {
		t.chatID = max(number(p.Message.Chat.ID), 0)
	}
	switch e.Type {
	case "chat_access_changed":
		if named := number(p.Chat.ID); named > 0 {
			t.chatID = named
		}
		switch p.Access {
		case "allowed", "stopped", "blocked", "left":
			t.access = p.Access
		}
	case "callback_query":
		t.callback = cmp.Or(p.CallbackQueryID, p.ID)
		if len(t.callback) > delivery.MaxCallbackID || !delivery.Storable(t.callback) {
			t.callback = ""
		}
	}
	return t
}

// number reads an id from JSON's "550"; 0 when it is none.
func number(raw json.RawMessage) int64 {
	if len(raw) < 2 || raw[0] != '"' {
		return 0
	}
	n, ok := delivery.ParseID(string(raw[1 : len(raw)-1]))
	if !ok {
		return 0
	}
	return n
}
