package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"mybots/delivery"
)

// payloadBytes is about how long a payload is.
const payloadBytes = 600

// chatsPerBot is how many people write to a bot.
const chatsPerBot = 10

// hookBytes is how long one is where the time to a webhook is measured.
const hookBytes = 330

// payloads[c] is a message from chat c+1; hookPayloads are the shorter ones.
var (
	payloads     = makePayloads(payloadBytes)
	hookPayloads = makePayloads(hookBytes)
)

func makePayloads(size int) [chatsPerBot][]byte {
	var list [chatsPerBot][]byte
	for i := range list {
		head := fmt.Sprintf(`{"message_id":"42","chat":{"id":"%d","type":"private"},"from":{"id":"7001","display_name":"Anna","is_bot":false},"date":"2026-09-26T10:00:00Z","text":"`, i+1)
		words := strings.Repeat("Where is my order? ", size/19)
		list[i] = []byte(head + words[:size-len(head)-2] + `"}`)
	}
	return list
}

// newEvent makes an event for bot with an id of its own.
func newEvent(bot int64) delivery.Event {
	chat := rand.IntN(chatsPerBot)
	return delivery.Event{
		BotID: bot, EventID: uuid.NewString(), Type: "message", Date: time.Now().UTC().Truncate(time.Microsecond),
		ChatID: int64(chat + 1), MessageID: 42, Payload: payloads[chat],
	}
}

// appendBody writes the body of an intake request with n events, each for the
// bot that pick returns.
func appendBody(b []byte, n int, pick func() int64) []byte {
	return appendEvents(b, n, func() delivery.Event { return newEvent(pick()) })
}

// appendEvents writes the body of an intake request with n events of next.
func appendEvents(b []byte, n int, next func() delivery.Event) []byte {
	b = append(b, `{"events":[`...)
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		e := next()
		b = append(b, `{"bot_id":"`...)
		b = strconv.AppendInt(b, e.BotID, 10)
		b = append(b, `","event_id":"`...)
		b = append(b, e.EventID...)
		b = append(b, `","type":"message","date":"`...)
		b = e.Date.AppendFormat(b, time.RFC3339Nano)
		b = append(b, `","chat_id":"`...)
		b = strconv.AppendInt(b, e.ChatID, 10)
		b = append(b, `","message_id":"42","payload":`...)
		b = append(b, e.Payload...)
		b = append(b, '}')
	}
	return append(b, `]}`...)
}
