package bottest

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"mybots/botkit"
)

// Push writes an update of any type with any payload, and returns its id. The
// payload is anything that encodes as JSON.
func (s *Server) Push(kind string, payload any) botkit.ID {
	text, err := json.Marshal(payload)
	if err != nil {
		s.t.Fatal(err)
	}
	var written botkit.ID
	s.change(func() {
		b := make([]byte, 16)
		_, _ = rand.Read(b) // never fails
		eventID := fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
		written = s.append(eventID, kind, text, "")
	})
	return written
}

// append writes an update; the caller holds the lock.
func (s *Server) append(eventID, kind string, payload []byte, replayOf botkit.ID) botkit.ID {
	e := &entry{id: s.nextID, eventID: eventID}
	s.nextID++
	replay := ""
	if replayOf != "" {
		replay = `"replay_of_update_id":"` + string(replayOf) + `",`
	}
	e.raw = fmt.Appendf(nil, `{"update_id":"%d","event_id":"%s",%s"type":"%s","date":"%s","%s":%s}`,
		e.id, eventID, replay, kind, time.Now().UTC().Format(time.RFC3339), kind, payload)
	s.queue = append(s.queue, e)
	return id(e.id)
}

// Message writes a message of a person to the bot.
func (s *Server) Message(chat botkit.ID, text string) botkit.ID {
	return s.Push(botkit.TypeMessage, botkit.Message{
		MessageID: "7301", Chat: botkit.Chat{ID: chat, Type: "private"}, Date: "2026-09-26T10:00:00Z", Text: text,
		From: botkit.Sender{ID: "812", DisplayName: "Anna", Username: "anna"},
	})
}

// Callback writes the press of a button with that data.
func (s *Server) Callback(chat botkit.ID, data string) botkit.ID {
	return s.Push(botkit.TypeCallbackQuery, botkit.CallbackQuery{
		CallbackQueryID: "cb-" + data, Data: data, From: botkit.Sender{ID: "812", DisplayName: "Anna"},
		Message: botkit.Message{MessageID: "7300", Chat: botkit.Chat{ID: chat, Type: "private"}, Date: "2026-09-26T10:00:00Z", Text: "Choose"},
	})
}

// Replay writes a FAILED update again at the end, as its owner may.
func (s *Server) Replay(failed botkit.ID) botkit.ID {
	var written botkit.ID
	s.change(func() {
		e := s.find(failed)
		u, err := botkit.ParseUpdate(e.raw)
		kind, payload := "", json.RawMessage(nil)
		if err == nil {
			kind, payload = u.Type, u.Payload()
		} else {
			var fields map[string]json.RawMessage
			_ = json.Unmarshal(e.raw, &fields) // our own text
			_ = json.Unmarshal(fields["type"], &kind)
			payload = fields[kind]
		}
		e.failed = false
		written = s.append(e.eventID, kind, payload, failed)
	})
	return written
}

func (s *Server) find(update botkit.ID) *entry {
	for _, e := range s.queue {
		if id(e.id) == update {
			return e
		}
	}
	s.t.Helper()
	s.t.Fatalf("bottest: there is no update %s", update)
	return nil
}

// Skip makes updates leave the queue, for a reason like cancelled or expired.
func (s *Server) Skip(reason string, updates ...botkit.ID) {
	s.change(func() {
		for _, u := range updates {
			s.find(u).skipped = reason
		}
	})
}

// StartAt makes the next update's id n, to try a bot with long ids. Call it
// before anything is written.
func (s *Server) StartAt(n int64) { s.change(func() { s.nextID, s.position, s.issued = n, n, n-1 }) }

// MoveTo sets the server's position, as if somebody had confirmed up to there.
func (s *Server) MoveTo(offset botkit.ID) {
	n, _ := strconv.ParseInt(string(offset), 10, 64)
	s.change(func() { s.position, s.issued = n, max(s.issued, n-1) })
}

// Steal gives the lease to another consumer for 60 s.
func (s *Server) Steal(consumer string) {
	s.change(func() {
		s.epochs++
		s.epoch = s.epochs
		s.lease = lease{consumer: consumer, until: time.Now().Add(leaseTime)}
	})
}

// Reset takes the lease away, as the owner's "Reset the connection" does (P-08).
func (s *Server) Reset() {
	s.end(refuse(botkit.ConsumerConflict, "the connection was reset", time.Second))
}

// end takes the lease away and ends a poll that waits.
func (s *Server) end(why *refusal) {
	s.change(func() {
		s.epoch, s.lease = 0, lease{number: s.lease.number, ended: why}
	})
}

// Webhook switches the mode: to the webhook, or back to polling, with KEEP.
func (s *Server) Webhook(on bool) {
	s.change(func() { s.webhook = on })
	s.end(refuse(botkit.DeliveryModeConflict, "the bot receives by webhook", 0))
}

// Halt makes the bot refuse with a code like BotPaused, Maintenance or
// BotDisabled; "" ends that.
func (s *Server) Halt(code botkit.Code) {
	s.change(func() {
		s.halted = nil
		if code != "" {
			s.halted = refuse(code, "the test halted the bot", 0)
			if s.halted.status >= 500 {
				s.halted.after = 2 * time.Second
			}
			s.lease.ended = s.halted
		}
	})
}

// Revoke makes the token invalid.
func (s *Server) Revoke() {
	s.change(func() { s.revoked = true })
	s.end(refuse(botkit.Unauthorized, "the token is revoked", 0))
}
