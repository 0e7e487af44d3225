package notice

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"mybots/delivery"
	"mybots/delivery/bots"
)

const maxToken = delivery.Secret("max-token-hush")

// scripted is MAX on loopback: each request is answered by the next of its
// answers, the last one again and again.
type scripted struct {
	*httptest.Server
	mu      sync.Mutex
	answers []http.HandlerFunc
	got     []request
}

type request struct {
	url, token, body string
}

func newScripted(t *testing.T, answers ...http.HandlerFunc) *scripted {
	t.Helper()
	s := &scripted{answers: answers}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		s.got = append(s.got, request{r.URL.String(), r.Header.Get("Authorization"), string(body)})
		answer := s.answers[0]
		if len(s.answers) > 1 {
			s.answers = s.answers[1:]
		}
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *scripted) requests() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]request(nil), s.got...)
}

func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // a client that has gone away reads nothing
	}
}

// lost takes the message and cuts the connection.
func lost(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }

const fine = `{"message":{"body":{"mid":"mid.0042"}}}`

func TestMAX(t *testing.T) {
	t.Parallel()
	type want struct {
		state     State
		code      int
		messageID string
		reason    string
		requests  int
	}
	tests := map[string]struct {
		answers []http.HandlerFunc
		want    want
	}{
		"N-04 success":             {[]http.HandlerFunc{says(200, fine)}, want{Sent, 200, "mid.0042", "", 1}},
		"N-04 success, no id":      {[]http.HandlerFunc{says(200, `{"message":{"body":{"mid":"a\u0000b"}}}`)}, want{Sent, 200, "", "", 1}},
		"N-04 success, no JSON":    {[]http.HandlerFunc{says(200, `<html>`)}, want{Sent, 200, "", "", 1}},
		"N-04 429, then success":   {[]http.HandlerFunc{says(429, ""), says(200, fine)}, want{Sent, 200, "mid.0042", "", 2}},
		"N-04 503 for ever":        {[]http.HandlerFunc{says(503, "secret words of the other side")}, want{Dead, 503, "", "status last_try", 8}},
		"N-04 wrong token":         {[]http.HandlerFunc{says(401, "")}, want{Blocked, 401, "", WhyToken, 1}},
		"N-04 removed recipient":   {[]http.HandlerFunc{says(404, "")}, want{Dead, 404, "", WhyStatus, 1}},
		"N-04 forbidden":           {[]http.HandlerFunc{says(403, "")}, want{Dead, 403, "", WhyStatus, 1}},
		"N-04 bad request":         {[]http.HandlerFunc{says(400, "")}, want{Dead, 400, "", WhyStatus, 1}},
		"N-04 a redirect":          {[]http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }}, want{Dead, 302, "", WhyStatus, 1}},
		"N-04 the answer was lost": {[]http.HandlerFunc{lost}, want{Uncertain, 0, "", WhyLost, 1}},
		"N-04 slow": {[]http.HandlerFunc{func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
			want{Uncertain, 0, "", WhyLost, 1}},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, server := newRig(t), newScripted(t, c.answers...)
			r.closeChat(r.bot)
			r.linkMAX(r.bot, 4711)
			r.pause(r.bot)
			m := NewMessenger(server.URL+"/", maxToken, r.base)
			if name == "N-04 slow" {
				m.client.Timeout = 50 * time.Millisecond
			}
			w := NewWorker(r.Store, map[string]Sender{MAX: m}, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
			for range 2 * MaxTries {
				if job := r.step(MAX, true).job; job != nil {
					w.send(t.Context(), *job)
				}
				if l := r.only(); l.State == Retrying {
					r.clock.advance(l.DueAt.Sub(r.clock.Now()) - time.Microsecond) // a moment before its time
					if c := r.step(MAX, true); c.job != nil {
						t.Errorf("it was tried %s too early", r.clock.Now().Sub(l.DueAt.Time))
					}
					r.clock.advance(time.Microsecond)
				}
			}
			l := r.only()
			got := want{l.State, l.HTTPCode, l.MessageID, l.Reason, len(server.requests())}
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if l.Tries != c.want.requests {
				t.Errorf("N-08 tries %d, want %d", l.Tries, c.want.requests)
			}
			for _, req := range server.requests() {
				if req.url != "/messages?user_id=4711" || req.token != string(maxToken) {
					t.Errorf("N-07 got a request to %s, want it to /messages?user_id=4711 with the token", req.url)
				}
			}
		})
	}
	t.Run("N-07 the message has the text and a button that leads to Connection", func(t *testing.T) {
		t.Parallel()
		r, server := newRig(t), newScripted(t, says(200, fine))
		r.linkMAX(r.bot, 4711)
		r.pause(r.bot)
		job := r.step(MAX, true).job
		NewMessenger(server.URL, maxToken, r.base).Send(t.Context(), *job)
		var got struct {
			Text        string `json:"text"`
			Notify      bool   `json:"notify"`
			Attachments []struct {
				Type    string `json:"type"`
				Payload struct {
					Buttons [][]map[string]string `json:"buttons"`
				} `json:"payload"`
			} `json:"attachments"`
		}
		if err := json.Unmarshal([]byte(server.requests()[0].body), &got); err != nil {
			t.Fatal(err)
		}
		if got.Text != job.Text || !got.Notify || len(got.Attachments) != 1 || got.Attachments[0].Type != "inline_keyboard" {
			t.Fatalf("got %+v", got)
		}
		button := got.Attachments[0].Payload.Buttons[0][0]
		if button["type"] != "link" || button["text"] != "Connection" || button["url"] != "https://bots.example.com"+ConnectionPath(r.bot.ID) {
			t.Errorf("the button: %v", button)
		}
	})
	t.Run("N-04 nobody listens", func(t *testing.T) {
		t.Parallel()
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := "http://" + listener.Addr().String()
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		got := NewMessenger(address, maxToken, func() *url.URL { return base }).Send(t.Context(), Job{Recipient: "1", Text: "x"})
		if got.Class != ClassTemporary || got.Code != 0 {
			t.Errorf("got %+v, want it temporary", got)
		}
	})
	t.Run("N-04 a route that refuses the token stops, and others go on", func(t *testing.T) {
		t.Parallel()
		r, server := newRig(t), newScripted(t, says(401, ""), says(200, fine))
		other := r.addBot("other")
		for i, b := range []bots.Bot{r.bot, other} {
			r.open(b, English)
			r.linkMAX(b, int64(100+i))
			r.pause(b)
		}
		w := NewWorker(r.Store, map[string]Sender{MAX: NewMessenger(server.URL, maxToken, r.base)}, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
		w.send(t.Context(), *r.step(MAX, true).job)
		if c := r.step(MAX, true); c.job != nil {
			t.Errorf("the stopped route gave %+v", c.job)
		}
		for range 2 {
			if c := r.step(BotFather, true); c.closed != Sent {
				t.Errorf("BotFather: %+v, want it sent", c)
			}
		}
		totals, err := r.Totals(t.Context())
		if err != nil || !totals[1].Stopped || totals[1].ForPerson != 1 || totals[1].Urgent != 1 || totals[0].Stopped {
			t.Errorf("N-08 totals: %+v, %v", totals, err)
		}
		var by deeds
		if err := r.ResumeRoute(t.Context(), MAX, 0, by.within); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			w.send(t.Context(), *r.step(MAX, true).job)
		}
		if n := len(server.requests()); n != 3 {
			t.Errorf("got %d requests, want 3: what was blocked goes out after Resume", n)
		}
		for _, l := range r.lines() {
			if l.State != Sent {
				t.Errorf("got %+v, want all sent", l)
			}
		}
	})
}

func TestCrashes(t *testing.T) {
	t.Parallel()
	t.Run("N-04 between recording and sending: another process sends it", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.linkMAX(r.bot, 77)
		r.pause(r.bot)
		other := New(Options{DB: r.db, Clock: r.clock, BaseURL: r.base, MAX: true})
		c, err := other.next(t.Context(), lane{MAX, true})
		if err != nil || c.job == nil {
			t.Fatalf("got %+v, %v; want the notice", c, err)
		}
	})
	t.Run("N-04 between sending and recording: uncertain, never sent again by itself", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.closeChat(r.bot)
		r.linkMAX(r.bot, 77)
		r.pause(r.bot)
		job := r.step(MAX, true).job
		if l := r.only(); l.State != Sending {
			t.Fatalf("got %s, want it marked as sending before the request", l.State)
		}
		// The process is gone. While the claim holds, it may still be at it.
		if ids, err := r.sweep(t.Context()); err != nil || len(ids) != 0 {
			t.Errorf("while the claim holds the sweep found %v, %v", ids, err)
		}
		r.db.MustExec(`UPDATE notices SET claimed_until = clock_timestamp() - interval '1 second'`)
		if ids, err := r.sweep(t.Context()); err != nil || len(ids) != 1 || ids[0] != job.ID {
			t.Errorf("the sweep found %v, %v; want the notice", ids, err)
		}
		r.clock.advance(3 * Window)
		if c := r.step(MAX, true); c.job != nil || r.only().State != Uncertain {
			t.Errorf("got %+v and state %s, want it uncertain and left alone", c, r.only().State)
		}
		t.Run("N-04 its answer counts when it comes after all", func(t *testing.T) {
			if state, err := r.settle(t.Context(), *job, Result{Class: ClassSent, Code: 200, MessageID: "m"}); err != nil || state != Sent {
				t.Errorf("got %s, %v; want it sent", state, err)
			}
		})
	})
	t.Run("N-04 an answer after a person's decision counts for nothing", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.closeChat(r.bot)
		r.linkMAX(r.bot, 77)
		r.pause(r.bot)
		job := r.step(MAX, true).job
		r.db.MustExec(`UPDATE notices SET claimed_until = clock_timestamp() - interval '1 second'`)
		if _, err := r.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		var by deeds
		if err := r.Retry(t.Context(), job.ID, by.within); err != nil {
			t.Fatal(err)
		}
		again := r.step(MAX, true).job
		if again == nil || again.Tries != 2 {
			t.Fatalf("after Retry: %+v, want the second try", again)
		}
		if _, err := r.settle(t.Context(), *job, Result{Class: ClassPermanent, Code: 404}); err == nil {
			t.Error("the first try's answer counted for the second")
		}
		if l := r.only(); l.State != Sending {
			t.Errorf("got %s, want the second try under way", l.State)
		}
	})
}

// gate is a route whose ordinary notices hang until it opens.
type gate struct {
	open   chan struct{}
	urgent chan int64
}

func (g *gate) Send(_ context.Context, j Job) Result {
	if j.Urgent {
		g.urgent <- j.ID
	} else {
		<-g.open
	}
	return Result{Class: ClassSent, Code: 200}
}

func TestLanes(t *testing.T) {
	t.Parallel()
	t.Run("N-06 a thousand ordinary notices on a hanging route don't delay an urgent one", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.linkMAX(r.bot, 77)
		r.answer(r.bot, status(422))
		// A thousand like it.
		r.db.MustExec(`
INSERT INTO notices (key, kind, urgent, bot_id, space_id, user_id, route, recipient, language, template, text, button, code, window_at, counted, event_at, queued_at, since, due_at, tries_left)
SELECT n.key || g, kind, urgent, bot_id, space_id, user_id, route, recipient, language, template, text, button, code, window_at, counted, event_at, queued_at, since, due_at, tries_left
  FROM notices n, generate_series(1, 1000) g`)
		r.Store.clock = delivery.NewClock(time.Until(r.clock.Now())) // the worker's timers are real
		g := &gate{open: make(chan struct{}), urgent: make(chan int64)}
		w := NewWorker(r.Store, map[string]Sender{MAX: g}, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var running sync.WaitGroup
		running.Go(func() { w.Run(ctx) })
		r.pause(r.bot)
		urgent := <-g.urgent // the test's own limit ends it if it never comes
		l, err := r.Line(t.Context(), urgent)
		if err != nil || l.Kind != delivery.TroublePaused {
			t.Errorf("got %+v, %v; want the pause", l, err)
		}
		total, err := r.Totals(t.Context())
		if err != nil || total[1].Ordinary < 900 {
			t.Errorf("the ordinary lane of MAX: %+v, %v; want it to wait still", total, err)
		}
		stop()
		close(g.open)
		running.Wait()
	})
}

func TestNothingLeaks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	server := newScripted(t, says(500, "answer-of-max"), says(200, fine))
	r.linkMAX(r.bot, 987654321)
	r.pause(r.bot)
	var log strings.Builder
	w := NewWorker(r.Store, map[string]Sender{MAX: NewMessenger(server.URL, maxToken, r.base)}, slog.New(slog.NewJSONHandler(&log, nil)), prometheus.NewRegistry())
	for range 2 {
		w.send(t.Context(), *r.step(MAX, true).job)
		r.clock.advance(time.Minute)
	}
	r.step(BotFather, true)
	var rows []string
	if err := r.db.Select(&rows, `SELECT text || button || reason || code FROM notices`); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), `"state":"sent"`) {
		t.Errorf("the log tells of no success:\n%s", log.String())
	}
	all := log.String() + strings.Join(rows, "\n") + r.chat(r.bot)[0].Text
	for _, marker := range []string{"hush-hush", string(maxToken), "private-words", "987654321", "robot@example.com", "answer-of-max", "hooks.example.com", server.URL} {
		if strings.Contains(all, marker) {
			t.Errorf("N-09 %q stands in a log or a notice:\n%s", marker, all)
		}
	}
}
