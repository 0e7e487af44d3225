package main_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestIntake(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve(t)
	plain := func(b *bot) string { return event{bot: b}.filled().json() }

	t.Run("I-01 1 to 500 events", func(t *testing.T) {
		t.Parallel()
		b := w.bot(t)
		for _, n := range []int{0, 501, 1000} {
			events := make([]string, n)
			for i := range events {
				events[i] = plain(b)
			}
			a, err := s.tryEvents(eventsBody(events...))
			if err != nil || a.code != "INVALID_REQUEST" || !strings.Contains(a.message, "events") {
				t.Errorf("%d events: got %q %q %v, want INVALID_REQUEST that names events", n, a.code, a.message, err)
			}
		}
		s.write(t, some(b, 1)...)
		s.write(t, some(b, 500)...)
		if i := s.info(t, b); i.Pending != 501 {
			t.Errorf("got %d pending, want 501", i.Pending)
		}
	})
	t.Run("I-01 8 MiB and not a byte more", func(t *testing.T) {
		t.Parallel()
		b := w.bot(t)
		one := eventsBody(plain(b))
		for extra, want := range map[int]string{0: "", 1: "REQUEST_TOO_LARGE"} {
			a, err := s.tryEvents(one + strings.Repeat(" ", 8<<20-len(one)+extra))
			if err != nil || a.code != want {
				t.Errorf("8 MiB + %d: got %q %v, want %q", extra, a.code, err, want)
			}
		}
		if i := s.info(t, b); i.Pending != 1 {
			t.Errorf("got %d pending, want 1", i.Pending)
		}
	})
	t.Run("I-01 a body that isn't what it should be is refused as a whole", func(t *testing.T) {
		t.Parallel()
		b := w.bot(t)
		for _, body := range []string{"", "{}", "[]", "null", `{"events":null}`, `{"events":{}}`, `{"events":"x"}`, `{"events":[` + plain(b) + `]`, `{"events":[` + plain(b) + `]}x`,
			`{"events":[],"events":[` + plain(b) + `]}`, `{"Events":[` + plain(b) + `]}`, eventsBody(plain(b)) + eventsBody(plain(b)), `{"events":[` + plain(b) + `,]}`,
			eventsBody(strings.Replace(plain(b), "hello", "\xff", 1)), eventsBody(strings.Replace(plain(b), "hello", "\n", 1)), eventsBody(strings.Replace(plain(b), "hello", "\x00", 1))} {
			a, err := s.tryEvents(body)
			if err != nil || a.code != "INVALID_REQUEST" {
				t.Errorf("%.80q: got %q %v, want INVALID_REQUEST", body, a.code, err)
			}
		}
		a, err := s.tryEvents(eventsBody(plain(b)), "Content-Type: text/plain")
		if err != nil || a.code != "UNSUPPORTED_MEDIA_TYPE" {
			t.Errorf("text/plain: got %q %v", a.code, err)
		}
		if i := s.info(t, b); i.Pending != 0 {
			t.Errorf("got %d pending, want none", i.Pending)
		}
	})
	t.Run("I-01 each wrong field is INVALID_EVENT and harms no other event", func(t *testing.T) {
		t.Parallel()
		b := w.bot(t)
		id := uuid.NewString()
		whole := func(field, value string) string {
			fields := []string{"bot_id", `"` + b.id + `"`, "event_id", `"` + id + `"`, "type", `"message"`, "date", `"2026-09-26T10:00:00Z"`, "chat_id", `"5"`, "message_id", `"6"`, "payload", `{"x":1}`}
			var parts []string
			for i := 0; i < len(fields); i += 2 {
				if fields[i] == field {
					fields[i+1] = value
				}
				if fields[i+1] != "" {
					parts = append(parts, `"`+fields[i]+`":`+fields[i+1])
				}
			}
			return "{" + strings.Join(parts, ",") + "}"
		}
		wrong := map[string][]string{
			"bot_id":     {``, `null`, `5`, `""`, `"x"`, `"01"`, `"-1"`, `"9223372036854775808"`, `{}`},
			"event_id":   {``, `null`, `5`, `""`, `"x"`, `"7d3f7a524f0e4b649d2a2c1f8e5b6a10"`, `"{7d3f7a52-4f0e-4b64-9d2a-2c1f8e5b6a10}"`, `"urn:uuid:7d3f7a52-4f0e-4b64-9d2a-2c1f8e5b6a10"`, `"7d3f7a52-4f0e-4b64-9d2a-2c1f8e5b6a1g"`, `"7d3f7a52-4f0e-4b64-9d2a-2c1f8e5b6a10 "`, `"7d3f7a5-24f0e-4b64-9d2a-2c1f8e5b6a10"`, `"\ud800"`, `"` + strings.Repeat("a", 5000) + `"`},
			"type":       {``, `null`, `5`, `""`, `"update_id"`, `"event_id"`, `"type"`, `"date"`, `"replay_of_update_id"`, `"\u0064ate"`, `"a\u0000"`, `"\n"`, `"\ud800"`, `"` + strings.Repeat("a", 65) + `"`},
			"date":       {``, `null`, `5`, `""`, `"now"`, `"2026-09-26"`, `"2026-09-26T10:00:00"`, `"2026-09-26 10:00:00Z"`, `"2026-02-30T10:00:00Z"`, `"2026-09-26T24:00:00Z"`, `"2026-09-26T10:00:00,5Z"`, `"9999-12-31T23:59:59-01:00"`, `"0000-01-01T00:00:00Z"`, `"0001-01-01T00:00:00+01:00"`, `"+10000-01-01T00:00:00Z"`, `"2026-09-26T10:00:00+25:00"`, `"infinity"`, `1790416800`},
			"chat_id":    {`5`, `""`, `"x"`, `"-5"`, `"05"`, `"9223372036854775808"`, `[]`},
			"message_id": {`6`, `""`, `"x"`, `"-6"`, `"06"`, `"9223372036854775808"`, `{}`},
			"payload":    {``, `null`, `5`, `"x"`, `[]`, `true`},
		}
		for field, values := range wrong {
			for _, value := range values {
				results := s.writeRaw(t, plain(b), whole(field, value), plain(b))
				if e := results[1].Error; e == nil || e.Code != "INVALID_EVENT" || !strings.Contains(e.Message, field) {
					t.Errorf("%s %.60s: got %v, want INVALID_EVENT that names it", field, value, results[1])
				}
				if results[0].Error != nil || results[2].Error != nil {
					t.Fatalf("%s %.60s: the events beside it: %v and %v", field, value, results[0], results[2])
				}
				if field != "event_id" && (results[1].EventID == nil || *results[1].EventID != id) {
					t.Errorf("%s %.60s: the result doesn't name its event", field, value)
				}
			}
		}
		for _, odd := range []string{`5`, `null`, `"x"`, `[]`, `{}`, `{"bot_id":"` + b.id + `","bot_id":"` + b.id + `"}`} {
			if results := s.writeRaw(t, odd, plain(b)); results[0].String() != "INVALID_EVENT" || results[1].Error != nil {
				t.Errorf("%s: got %v", odd, results)
			}
		}
		for _, ok := range []string{whole("chat_id", `null`), strings.Replace(whole("message_id", ``), id, uuid.NewString(), 1), strings.Replace(whole("x", ""), id, uuid.NewString(), 1)[:1] + `"new":{"a":1},` + strings.Replace(whole("x", ""), id, uuid.NewString(), 1)[1:]} {
			if results := s.writeRaw(t, ok); results[0].Error != nil {
				t.Errorf("%s: got %v, want it taken", ok, results[0])
			}
		}
	})
	t.Run("I-01 BOT_NOT_FOUND and PAYLOAD_TOO_LARGE, each for its event alone", func(t *testing.T) {
		t.Parallel()
		b := w.bot(t)
		ghost := &bot{id: "4611686018427387904"}
		large := event{bot: b, payload: `{"a":"` + strings.Repeat("x", 256<<10-7) + `"}`}.filled().json()
		got := fmt.Sprint(s.writeRaw(t, plain(b), plain(ghost), large, plain(&bot{id: "0"}), plain(b)))
		if want := "[1 BOT_NOT_FOUND PAYLOAD_TOO_LARGE BOT_NOT_FOUND 2]"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("Q-03 256 KiB of payload, insignificant white space not counted", func(t *testing.T) {
		t.Parallel()
		b := w.bot(t)
		full := `{"a":"` + strings.Repeat("é", 128<<10-4) + `"}`
		spread := strings.Replace(full, ":", strings.Repeat(" ", 100<<10)+":\n\n\t", 1)
		got := fmt.Sprint(s.writeRaw(t, event{bot: b, payload: full}.filled().json(), event{bot: b, payload: spread}.filled().json(),
			event{bot: b, payload: strings.Replace(full, "é", "éx", 1)}.filled().json()))
		if want := "[1 2 PAYLOAD_TOO_LARGE]"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if i := s.info(t, b); i.PendingBytes != 2*256<<10 {
			t.Errorf("got %d bytes pending, want %d", i.PendingBytes, 2*256<<10)
		}
	})
	t.Run("I-01 a date comes back in UTC, with fractions to the microsecond", func(t *testing.T) {
		t.Parallel()
		b := w.bot(t)
		dates := []string{"2026-09-26T10:00:00Z", "2026-09-26T12:30:00+02:30", "2026-09-25T23:59:59.5-10:00", "2026-09-26T10:00:00.123456789Z", "2026-09-26T10:00:00.999999999+00:00",
			"2026-09-26T10:00:00.000001Z", "2026-09-26T10:00:00-00:00", "1900-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999Z", "2024-02-29T23:00:00-05:00"}
		var events []event
		for _, d := range dates {
			events = append(events, event{bot: b, date: d})
		}
		s.write(t, events...)
		form := regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$`)
		for i, u := range s.poll(t, b, at("a", "", "", now)).Updates {
			want, err := time.Parse(time.RFC3339, dates[i])
			if err != nil {
				t.Fatal(err)
			}
			got, err := time.Parse(time.RFC3339, u.Date)
			if err != nil || !form.MatchString(u.Date) || !got.Equal(want.Truncate(time.Microsecond)) {
				t.Errorf("%s came back as %s", dates[i], u.Date)
			}
		}
	})
	t.Run("I-01 an event_id comes back in lower case", func(t *testing.T) {
		t.Parallel()
		b := w.bot(t)
		id := uuid.NewString()
		results := s.writeRaw(t, event{bot: b, id: strings.ToUpper(id)}.filled().json())
		got := s.poll(t, b, at("a", "", "", now))
		if *results[0].EventID != id || got.Updates[0].EventID != id {
			t.Errorf("got %s and %s, want %s", *results[0].EventID, got.Updates[0].EventID, id)
		}
	})
	t.Run("G-05 without the variable there is no clock to move", func(t *testing.T) {
		t.Parallel()
		a, err := s.send(s.request(http.MethodPost, "/internal/v1/clock/advance", w.key, `{"seconds":60}`))
		if err != nil || a.status != http.StatusNotFound {
			t.Errorf("got %d %v, want 404", a.status, err)
		}
	})
}
