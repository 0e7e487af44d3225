package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// event is one event as the messenger writes it. What is left empty gets a
// plain value; chat and message are left out.
type event struct {
	bot           *bot
	id, kind      string
	date, payload string
	chat, message string
}

// filled returns the event with its plain values.
func (e event) filled() event {
	if e.id == "" {
		e.id = uuid.NewString()
	}
	if e.kind == "" {
		e.kind = "message"
	}
	if e.date == "" {
		e.date = "2026-09-26T10:00:00Z"
	}
	if e.payload == "" {
		e.payload = `{"text":"hello"}`
	}
	return e
}

// json writes the event, its payload byte for byte.
func (e event) json() string {
	quote := func(s string) string {
		b, err := json.Marshal(s)
		if err != nil {
			panic(err) // strings always encode
		}
		return string(b)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `{"bot_id":%s,"event_id":%s,"type":%s,"date":%s`, quote(e.bot.id), quote(e.id), quote(e.kind), quote(e.date))
	if e.chat != "" {
		fmt.Fprintf(&b, `,"chat_id":%s`, quote(e.chat))
	}
	if e.message != "" {
		fmt.Fprintf(&b, `,"message_id":%s`, quote(e.message))
	}
	b.WriteString(`,"payload":` + e.payload + `}`)
	return b.String()
}

// written is intake's result for one event.
type written struct {
	EventID   *string `json:"event_id"`
	UpdateID  string  `json:"update_id"`
	Duplicate *bool   `json:"duplicate"`
	Error     *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// String is "7", "7 again" or the error's code.
func (w written) String() string {
	switch {
	case w.Error != nil:
		return w.Error.Code
	case w.Duplicate != nil && *w.Duplicate:
		return w.UpdateID + " again"
	}
	return w.UpdateID
}

// eventsBody puts events, as JSON, into intake's body.
func eventsBody(events ...string) string { return `{"events":[` + strings.Join(events, ",") + `]}` }

// tryEvents sends a body to intake.
func (s *server) tryEvents(body string, headers ...string) (answer, error) {
	return s.send(s.request(http.MethodPost, "/internal/v1/events", s.w.key, body, headers...))
}

// results reads intake's answer: one result an event, each of one of the two forms.
func (a answer) results(n int) ([]written, error) {
	if a.code != "" {
		return nil, fmt.Errorf("intake: %s (%s)", a.code, a.message)
	}
	var r struct {
		Results []written `json:"results"`
	}
	if err := json.Unmarshal(a.result, &r); err != nil {
		return nil, err
	}
	if len(r.Results) != n {
		return nil, fmt.Errorf("I-01: got %d results for %d events", len(r.Results), n)
	}
	for i, w := range r.Results {
		good := w.Error != nil && w.UpdateID == "" && w.Duplicate == nil && w.Error.Message != "" ||
			w.Error == nil && w.UpdateID != "" && w.Duplicate != nil && w.EventID != nil
		if !good {
			return nil, fmt.Errorf("I-01: result %d has neither of the two forms: %.500s", i, a.result)
		}
	}
	return r.Results, nil
}

// writeRaw sends events as JSON and returns their results.
func (s *server) writeRaw(t testing.TB, events ...string) []written {
	t.Helper()
	a, err := s.tryEvents(eventsBody(events...))
	if err != nil {
		t.Fatalf("intake: %v", err)
	}
	results, err := a.results(len(events))
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// write sends events, all of which must be taken for the first time, and returns
// them with their values filled in.
func (s *server) write(t testing.TB, events ...event) []event {
	t.Helper()
	raw := make([]string, len(events))
	for i := range events {
		events[i] = events[i].filled()
		raw[i] = events[i].json()
	}
	for i, w := range s.writeRaw(t, raw...) {
		if w.Error != nil || *w.Duplicate || *w.EventID != events[i].id {
			t.Fatalf("intake: event %d: got %v, want it taken", i, w)
		}
	}
	return events
}

// some returns n plain events for a bot.
func some(b *bot, n int) []event {
	list := make([]event, n)
	for i := range list {
		list[i] = event{bot: b, payload: fmt.Sprintf(`{"text":"event %d"}`, i+1)}
	}
	return list
}

// advance moves the test clock.
func (s *server) advance(t testing.TB, d time.Duration) {
	t.Helper()
	a, err := s.send(s.request(http.MethodPost, "/internal/v1/clock/advance", s.w.key, fmt.Sprintf(`{"seconds":%g}`, d.Seconds())))
	if err != nil || a.code != "" {
		t.Fatalf("move the clock by %v: %s %v", d, a.code, err)
	}
	s.w.ahead.Add(int64(d))
}

const week = 7 * 24 * time.Hour

// now is the product's time: the real one and all that the tests moved it ahead.
func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }

// follows waits until this replica's clock is that of the others (G-05).
func (s *server) follows(t testing.TB) {
	t.Helper()
	b, epoch := s.w.bot(t), ""
	eventually(t, 5*time.Second, "the replica's clock follows", func() bool {
		lease := s.poll(t, b, at("clock", epoch, "", now)).Lease // it ends 60 s from the replica's now
		epoch = lease.Epoch
		return about(lease.ExpiresAt.Add(-time.Minute), s.w.now())
	})
}
