package intake

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"mybots/delivery"
	"mybots/web"
)

// batch is a request's events: those that may go on, and the place of each
// among the results; the others have theirs already.
type batch struct {
	events  []delivery.Event
	places  []int
	results []result
}

// readBatch reads the body. Its error concerns the whole request; what is wrong
// with one event stands in that event's result (I-01).
func readBatch(w http.ResponseWriter, r *http.Request) (batch, error) {
	body, err := web.ReadJSON(w, r, delivery.MaxIntakeBody)
	if err != nil {
		return batch{}, err
	}
	if !valid(body) {
		return batch{}, delivery.Refuse(delivery.InvalidRequest, "the body must be JSON")
	}
	fields, err := object(body, "events")
	if err != nil {
		return batch{}, delivery.Refuse(delivery.InvalidRequest, "the body must be a JSON object: "+err.Error())
	}
	list, err := elements(fields["events"])
	if err != nil || len(list) < 1 || len(list) > delivery.MaxEvents {
		return batch{}, delivery.Refuse(delivery.InvalidRequest, fmt.Sprintf("events must be an array of 1 to %d events", delivery.MaxEvents))
	}
	b := batch{results: make([]result, len(list))}
	for i, raw := range list {
		e, eventID, refusal := eventOf(raw)
		if refusal != nil {
			b.results[i] = result{EventID: eventID, Error: &eventFail{refusal.Code, refusal.Message}}
			continue
		}
		b.events = append(b.events, e)
		b.places = append(b.places, i)
	}
	return b, nil
}

// eventOf reads and checks one event. With a refusal it returns the event's id
// as far as one can be read.
func eventOf(raw []byte) (e delivery.Event, eventID *string, refusal *delivery.Refusal) {
	bad := func(field, rule string) *delivery.Refusal {
		return delivery.Refuse(delivery.InvalidEvent, field+" "+rule)
	}
	fields, err := object(raw, "payload")
	if err != nil {
		return e, nil, bad("an event", "must be a JSON object: "+err.Error())
	}
	written, ok := text(fields["event_id"])
	if !ok {
		return e, nil, bad("event_id", "must be a UUID")
	}
	if len(written) <= 64 {
		eventID = &written
	}
	id, err := uuid.Parse(written)
	if err != nil || len(written) != 36 {
		return e, eventID, bad("event_id", "must be a UUID like 7d3f7a52-4f0e-4b64-9d2a-2c1f8e5b6a10")
	}
	e.EventID = id.String() // in lower case
	eventID = &e.EventID

	const idRule = `must be a string of decimal digits like "42"`
	bot, _ := text(fields["bot_id"])
	if e.BotID, ok = delivery.ParseID(bot); !ok {
		return e, eventID, bad("bot_id", idRule)
	}
	if e.ChatID, ok = optionalID(fields["chat_id"]); !ok {
		return e, eventID, bad("chat_id", idRule)
	}
	if e.MessageID, ok = optionalID(fields["message_id"]); !ok {
		return e, eventID, bad("message_id", idRule)
	}
	e.Type, ok = text(fields["type"])
	if l := utf8.RuneCountInString(e.Type); !ok || l < 1 || l > 64 || !delivery.Storable(e.Type) || delivery.HasControl(e.Type) || delivery.ReservedType(e.Type) {
		return e, eventID, bad("type", "must be 1 to 64 characters and no name of a field of the update itself")
	}
	if e.Date, ok = date(fields["date"]); !ok {
		return e, eventID, bad("date", "must be a time in RFC 3339 like 2026-09-26T10:00:00Z")
	}
	return payload(e, eventID, fields["payload"])
}

// payload takes the insignificant white space out of the payload and nothing
// else (U-03, Q-03).
func payload(e delivery.Event, eventID *string, raw jsontext.Value) (delivery.Event, *string, *delivery.Refusal) {
	if raw.Kind() != '{' {
		return e, eventID, delivery.Refuse(delivery.InvalidEvent, "payload must be a JSON object")
	}
	var b bytes.Buffer
	b.Grow(len(raw))
	if err := json.Compact(&b, raw); err != nil {
		return e, eventID, delivery.Refuse(delivery.InvalidEvent, "payload must be a JSON object, nested at most 10,000 deep")
	}
	if b.Len() > delivery.MaxPayload {
		return e, eventID, delivery.Refuse(delivery.PayloadTooLarge, fmt.Sprintf("payload may hold at most %d KiB, insignificant white space not counted", delivery.MaxPayload>>10))
	}
	e.Payload = b.Bytes()
	return e, eventID, nil
}

// text reads a JSON string; false for anything else, a surrogate without its
// twin included.
func text(v jsontext.Value) (string, bool) {
	if v.Kind() != '"' {
		return "", false
	}
	s, err := jsontext.AppendUnquote(nil, v)
	return string(s), err == nil
}

// optionalID reads an id that may be absent or null: then it is 0.
func optionalID(v jsontext.Value) (int64, bool) {
	if len(v) == 0 || v.Kind() == 'n' {
		return 0, true
	}
	s, ok := text(v)
	if !ok {
		return 0, false
	}
	return delivery.ParseID(s)
}

// date reads a time in RFC 3339, cut to microseconds. It must still be one in
// UTC: PostgreSQL and RFC 3339 know no year past 9999.
func date(v jsontext.Value) (time.Time, bool) {
	s, ok := text(v)
	if !ok || strings.Contains(s, ",") {
		return time.Time{}, false
	}
	var t time.Time
	if err := t.UnmarshalText([]byte(s)); err != nil {
		return time.Time{}, false
	}
	t = t.UTC().Truncate(time.Microsecond)
	return t, t.Year() >= 1 && t.Year() <= 9999
}
