package botkit_test

import (
	"bytes"
	"context"
	"errors"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"mybots/botkit"
	"mybots/botkit/bottest"
)

func TestOutcomes(t *testing.T) {
	t.Parallel()
	for name, c := range outcomes {
		push := func(s *bottest.Server) {
			switch {
			case c.bad:
				s.Push(botkit.TypeMessage, rawJSON(notReadable))
			case c.press:
				s.Callback("550", "yes")
			default:
				s.Message("550", "/order 7")
			}
		}
		bubble(t, "polling/"+name, func(t *testing.T) {
			var log bytes.Buffer
			o := botkit.Options{Log: bufferLog(&log)}
			r := &rig{t: t, server: bottest.New(t)}
			r.bot = newBot(t, r.server, c.bot(t, r.server, &o), o)
			push(r.server)
			r.poll()
			after(40 * time.Second)
			if got := r.server.Position() == "2"; got != c.confirmed {
				t.Errorf("confirmed: %t, want %t", got, c.confirmed)
			}
			calls := len(r.server.Calls())
			after(10 * time.Minute)
			if more := len(r.server.Calls()) > calls; more == c.stops {
				t.Errorf("goes on: %t, want %t", more, !c.stops)
			}
			if calls > 40 {
				t.Errorf("%d calls in 40 s: it hammers", calls)
			}
			if c.stops && r.bot.Healthy() {
				t.Error("it is healthy, want not: it has stopped")
			}
			err := r.stop()
			if bad, stopped := errors.AsType[*botkit.DecodeError](err); stopped != c.stops || stopped && bad.UpdateID != "1" {
				t.Errorf("Poll returned %v, want a *DecodeError: %t", err, c.stops)
			}
			if c.check != nil {
				c.check(t, r.server)
			}
			if bytes.Contains(log.Bytes(), []byte("secret order")) {
				t.Errorf("the log quotes the update:\n%s", log.String())
			}
		})
		bubble(t, "webhook/"+name, func(t *testing.T) {
			var log bytes.Buffer
			o := botkit.Options{Log: bufferLog(&log)}
			s := bottest.New(t)
			bot := newBot(t, s, c.bot(t, s, &o), o)
			push(s)
			if got := s.Deliver(bot.Webhook(bottest.Secret)); got != c.want {
				t.Errorf("answered %d, want %d", got, c.want)
			}
			if c.check != nil {
				c.check(t, s)
			}
			if c.stops && bot.Healthy() {
				t.Error("it is healthy, want not: the policy said Stop")
			}
			if bytes.Contains(log.Bytes(), []byte("secret order")) {
				t.Errorf("the log quotes the update:\n%s", log.String())
			}
		})
	}
}

// An application that stops doesn't confirm what it was cut off from, and
// confirms what it could finish.
func TestCancellation(t *testing.T) {
	t.Parallel()
	obeys := func(ctx context.Context, _ *botkit.Update) error {
		<-ctx.Done()
		return ctx.Err()
	}
	bubble(t, "polling/K-01 cut off, not confirmed", func(t *testing.T) {
		r := newRig(t, botkit.HandlerFunc(obeys), botkit.Options{HandlerTimeout: time.Hour})
		r.server.Message("550", "hello")
		r.poll()
		after(time.Second)
		if err := r.stop(); err != nil {
			t.Errorf("Poll returned %v, want nil", err)
		}
		if got := r.server.Position(); got != "1" {
			t.Errorf("position %s, want 1: nothing is confirmed", got)
		}
	})
	bubble(t, "polling/K-06 the update at hand is finished and confirmed", func(t *testing.T) {
		handler := &seen{do: func(ctx context.Context, _ *botkit.Update) error {
			after := time.NewTimer(3 * time.Second)
			defer after.Stop()
			select {
			case <-after.C:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}}
		r := newRig(t, handler, botkit.Options{})
		r.server.Message("550", "hello")
		r.server.Message("550", "more")
		r.poll()
		after(time.Second)
		if err := r.stop(); err != nil {
			t.Errorf("Poll returned %v, want nil", err)
		}
		if got := r.server.Position(); got != "2" || len(handler.got()) != 1 {
			t.Errorf("position %s after handling %v, want 2 after update 1 only", got, handler.got())
		}
	})
	bubble(t, "webhook/K-01 cut off, not confirmed", func(t *testing.T) {
		s := bottest.New(t)
		bot := newBot(t, s, botkit.HandlerFunc(obeys), botkit.Options{})
		body := s.Raw(s.Message("550", "hello"))
		ctx, cancel := context.WithCancel(t.Context())
		req := httptest.NewRequestWithContext(ctx, "POST", "/", bytes.NewReader(body))
		req.Header.Set(botkit.SignatureHeader, bottest.Sign(bottest.Secret, body, time.Now()))
		w := httptest.NewRecorder()
		go func() { // ends at once
			synctest.Wait()
			cancel()
		}()
		bot.Webhook(bottest.Secret).ServeHTTP(w, req)
		if w.Code != 500 {
			t.Errorf("answered %d, want 500", w.Code)
		}
	})
}
