package botkit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mybots/botkit"
	"mybots/botkit/bottest"
)

func TestWebhook(t *testing.T) {
	t.Parallel()
	good := func(s *bottest.Server) []byte { return s.Raw(s.Message("550", "hello")) }
	fixed := func(text string) func(*bottest.Server) []byte {
		return func(*bottest.Server) []byte { return []byte(text) }
	}
	tests := map[string]struct {
		body   func(*bottest.Server) []byte
		secret botkit.Secret
		want   int
		seen   int
	}{
		"K-01 handled":                     {good, bottest.Secret, 200, 1},
		"K-07 signed with the old secret":  {good, "swh1_old", 200, 1},
		"K-07 signed with another":         {good, "swh1_other", 401, 0},
		"K-03 no JSON":                     {fixed("{"), bottest.Secret, 400, 0},
		"K-03 no update id":                {fixed(`{"type":"message"}`), bottest.Secret, 400, 0},
		"K-03 a number as update id":       {fixed(`{"update_id":1,"event_id":"e","type":"message"}`), bottest.Secret, 400, 0},
		"K-03 nothing":                     {fixed(""), bottest.Secret, 400, 0},
		"K-07 no JSON, unsigned":           {fixed("{"), "swh1_other", 401, 0},
		"M-08 the owner's test request":    {fixed(`{"update_id":"0","event_id":"e-9","type":"test","date":"2026-09-26T10:00:00Z","test":{}}`), bottest.Secret, 200, 1},
		"U-01 a type of a later version":   {fixed(`{"update_id":"5","event_id":"e-9","type":"wave","wave":7}`), bottest.Secret, 200, 1},
		"Q-03 as long as it may be":        {fixed(`{"update_id":"5","event_id":"e-9","type":"wave","wave":"` + strings.Repeat("x", botkit.MaxWebhookBody-61) + `"}`), bottest.Secret, 200, 1},
		"K-03 a byte too long":             {fixed(strings.Repeat("x", botkit.MaxWebhookBody+1)), bottest.Secret, 413, 0},
		"K-03 too long, wherever it comes": {fixed(strings.Repeat("x", botkit.MaxWebhookBody+1)), "swh1_other", 413, 0},
	}
	for name, c := range tests {
		bubble(t, name, func(t *testing.T) {
			h := &seen{}
			r := newRig(t, h, botkit.Options{})
			if got := bottest.Send(r.bot.Webhook(bottest.Secret, "swh1_old"), c.secret, c.body(r.server)); got != c.want || len(h.got()) != c.seen {
				t.Errorf("answered %d after handling %d, want %d after %d", got, len(h.got()), c.want, c.seen)
			}
			if got := r.bot.Status().BadSignatures; (got == 1) != (c.want == 401) {
				t.Errorf("%d bad signatures counted", got)
			}
		})
	}
	bubble(t, "K-07 an old signature", func(t *testing.T) {
		h := &seen{}
		r := newRig(t, h, botkit.Options{})
		body := good(r.server)
		for age, want := range map[time.Duration]int{301 * time.Second: 401, -301 * time.Second: 401, 299 * time.Second: 200} {
			req := httptest.NewRequest("POST", "/", bytes.NewReader(body))
			req.Header.Set(botkit.SignatureHeader, bottest.Sign(bottest.Secret, body, time.Now().Add(-age)))
			w := httptest.NewRecorder()
			r.bot.Webhook(bottest.Secret).ServeHTTP(w, req)
			if w.Code != want {
				t.Errorf("%s old: answered %d, want %d", age, w.Code, want)
			}
		}
	})
	bubble(t, "K-07 other methods and no signature", func(t *testing.T) {
		r := newRig(t, &seen{}, botkit.Options{})
		for method, want := range map[string]int{"GET": 405, "PUT": 405, "POST": 401} {
			w := httptest.NewRecorder()
			r.bot.Webhook(bottest.Secret).ServeHTTP(w, httptest.NewRequest(method, "/", strings.NewReader("{}")))
			if w.Code != want {
				t.Errorf("%s: answered %d, want %d", method, w.Code, want)
			}
		}
	})
	bubble(t, "K-02 the sender hangs up in the middle of the body", func(t *testing.T) {
		r := newRig(t, &seen{}, botkit.Options{})
		defer func() {
			if v := recover(); v != http.ErrAbortHandler {
				t.Errorf("got %v, want the connection cut", v)
			}
		}()
		r.bot.Webhook(bottest.Secret).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/", io.MultiReader(strings.NewReader("{"), hangUp{})))
	})
	bubble(t, "K-06 the inbox is away, and comes back", func(t *testing.T) {
		in := &brokenInbox{MemoryInbox: botkit.NewMemoryInbox()}
		r := newRig(t, &seen{}, botkit.Options{Inbox: in})
		hook := r.bot.Webhook(bottest.Secret)
		body := good(r.server)
		if got := bottest.Send(hook, bottest.Secret, body); got != 503 || r.bot.Healthy() {
			t.Errorf("answered %d, healthy %t; want 503, false", got, r.bot.Healthy())
		}
		in.works.Store(true)
		for range 2 {
			if got := bottest.Send(hook, bottest.Secret, body); got != 200 || !r.bot.Healthy() {
				t.Errorf("answered %d, problems %v; want 200, none", got, r.bot.Status().Problems)
			}
		}
		if s := r.bot.Status(); s.InboxWaiting != 1 || s.Duplicates != 1 {
			t.Errorf("status %+v, want one waiting, one duplicate", s)
		}
	})
	bubble(t, "K-03 after Stop the next good update turns the health green", func(t *testing.T) {
		r := newRig(t, &seen{}, botkit.Options{})
		hook := r.bot.Webhook(bottest.Secret)
		r.server.Push(botkit.TypeMessage, rawJSON(notReadable))
		if got := r.server.Deliver(hook); got != 500 || r.bot.Healthy() {
			t.Errorf("answered %d, healthy %t; want 500, false", got, r.bot.Healthy())
		}
		r.server.Skip("failed", "1")
		r.server.Message("550", "hello")
		if got := r.server.Deliver(hook); got != 200 || !r.bot.Healthy() {
			t.Errorf("answered %d, healthy %t; want 200, true", got, r.bot.Healthy())
		}
	})
	t.Run("K-07 no secret", func(t *testing.T) {
		t.Parallel()
		bot, err := botkit.New(nil, &seen{}, botkit.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, secrets := range [][]botkit.Secret{nil, {""}, {"swh1_x", ""}} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("Webhook with %d secrets, one of them empty: no panic", len(secrets))
					}
				}()
				bot.Webhook(secrets...)
			}()
		}
	})
}

type hangUp struct{}

func (hangUp) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestNew(t *testing.T) {
	t.Parallel()
	ok := &seen{}
	client := bottest.New(t).Client()
	bad := map[string]struct {
		handler botkit.Handler
		o       botkit.Options
	}{
		"no handler":       {nil, botkit.Options{}},
		"two stores":       {ok, botkit.Options{Store: &botkit.MemoryStore{}, Inbox: botkit.NewMemoryInbox()}},
		"an odd consumer":  {ok, botkit.Options{ConsumerID: "my host"}},
		"a long consumer":  {ok, botkit.Options{ConsumerID: strings.Repeat("x", 65)}},
		"a long poll":      {ok, botkit.Options{PollTimeout: 26 * time.Second}},
		"half a second":    {ok, botkit.Options{PollTimeout: 500 * time.Millisecond}},
		"negative":         {ok, botkit.Options{Workers: -1}},
		"no time at all":   {ok, botkit.Options{HandlerTimeout: -1}},
		"a negative limit": {ok, botkit.Options{InboxLimit: -1}},
	}
	for name, c := range bad {
		if bot, err := botkit.New(client, c.handler, c.o); err == nil {
			t.Errorf("%s: got %v, want an error", name, bot)
		}
	}
	bot, err := botkit.New(nil, ok, botkit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := bot.Poll(t.Context()); err == nil {
		t.Error("Poll without a client: got no error")
	}
	if err := bot.Work(t.Context()); err == nil {
		t.Error("Work without an inbox: got no error")
	}
	if _, err = botkit.New(client, ok, botkit.Options{}); err != nil {
		t.Errorf("defaults: %v", err)
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	get := func(b *botkit.Bot) string {
		w := httptest.NewRecorder()
		b.HealthHandler().ServeHTTP(w, httptest.NewRequest("GET", "/healthz", nil))
		return fmt.Sprint(w.Code, w.Body.String())
	}
	bubble(t, "K-06 red without an answer for the poll's time and 30 s", func(t *testing.T) {
		r := newRig(t, &seen{}, botkit.Options{})
		r.poll()
		after(time.Second)
		if got := get(r.bot); !strings.HasPrefix(got, "200") || !strings.Contains(got, `"healthy":true`) {
			t.Errorf("got %s, want 200", got)
		}
		for range 100 {
			r.server.Fault("getUpdates", bottest.Fault{Code: botkit.Unavailable, RetryAfter: 2})
		}
		after(60 * time.Second) // its poll ends after 25
		if !r.bot.Healthy() {
			t.Errorf("problems %v after 35 s of faults, want none yet", r.bot.Status().Problems)
		}
		after(30 * time.Second)
		if got := get(r.bot); !strings.HasPrefix(got, "503") || !strings.Contains(got, "hasn't answered") {
			t.Errorf("got %s, want 503", got)
		}
		after(5 * time.Minute)
		if got := get(r.bot); !strings.HasPrefix(got, "200") {
			t.Errorf("got %s, want 200 again", got)
		}
		_ = r.stop()
		if got := get(r.bot); !strings.HasPrefix(got, "200") {
			t.Errorf("after the end: got %s, want 200", got)
		}
	})
	bubble(t, "K-06 what it tells", func(t *testing.T) {
		r := newRig(t, &seen{}, botkit.Options{})
		r.server.Message("550", "hello")
		r.server.Message("550", "more")
		r.poll()
		after(time.Second)
		s := r.bot.Status()
		if s.Received != 2 || s.Handled != 2 || s.LastBatch != 2 || s.Position.Epoch != "1" || s.Position.Offset != "3" || s.LastPoll.IsZero() || s.LeaseExpires.IsZero() || s.AnswerDue.IsZero() {
			t.Errorf("got %+v", s)
		}
		if got := get(r.bot); strings.Contains(got, "hello") || strings.Contains(got, string(bottest.Token)) {
			t.Errorf("it tells what it mustn't: %s", got)
		}
		_ = r.stop()
	})
	bubble(t, "K-06 one bot polls once", func(t *testing.T) {
		r := newRig(t, &seen{}, botkit.Options{})
		r.poll()
		after(time.Second)
		if err := r.bot.Poll(t.Context()); err == nil {
			t.Error("a second Poll: got no error")
		}
		_ = r.stop()
	})
	bubble(t, "K-06 the inbox fails while it polls", func(t *testing.T) {
		in := &brokenInbox{MemoryInbox: botkit.NewMemoryInbox()}
		h := &seen{}
		r := newRig(t, h, botkit.Options{Inbox: in})
		r.server.Message("550", "hello")
		r.poll()
		after(2 * time.Minute)
		if r.bot.Healthy() || r.server.Position() != "1" {
			t.Errorf("healthy %t, position %s; want false, 1", r.bot.Healthy(), r.server.Position())
		}
		in.works.Store(true)
		after(2 * time.Minute)
		if s := r.bot.Status(); !s.Healthy || r.server.Position() != "2" || len(h.got()) != 1 {
			t.Errorf("status %+v, position %s, handled %v; want healthy, 2, once", s, r.server.Position(), h.got())
		}
		_ = r.stop()
	})
	bubble(t, "K-01 what is done isn't done again because the inbox is away", func(t *testing.T) {
		in := &brokenInbox{MemoryInbox: botkit.NewMemoryInbox()}
		in.works.Store(true)
		h := &seen{do: func(context.Context, *botkit.Update) error { in.works.Store(false); return nil }}
		r := newRig(t, h, botkit.Options{Inbox: in})
		r.server.Message("550", "hello")
		r.poll()
		after(2 * time.Minute)
		in.works.Store(true)
		after(2 * time.Minute)
		if s := r.bot.Status(); len(h.got()) != 1 || s.InboxWaiting != 0 || !s.Healthy {
			t.Errorf("handled %v, status %+v; want once, healthy", h.got(), s)
		}
		_ = r.stop()
	})
}

var errDisk = errors.New("the disk is full")
