package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// messenger is a scripted upstream: it answers request n with the n-th status of
// its script, then always with 200. 0 hangs up without an answer.
type messenger struct {
	*httptest.Server
	mu     sync.Mutex
	script []int
	got    []passed
}

// passed is one request that the messenger got.
type passed struct {
	key, text, bot string
	status         int
}

func newMessenger(t testing.TB, script ...int) *messenger {
	m := &messenger{script: script}
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	return m
}

func (m *messenger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var said struct {
		BotID  string `json:"bot_id"`
		Method string `json:"method"`
		Result struct {
			Text string `json:"text"`
		} `json:"result"`
	}
	if err == nil {
		err = json.Unmarshal(body, &said)
	}
	m.mu.Lock()
	status := http.StatusOK
	if len(m.script) > 0 {
		status, m.script = m.script[0], m.script[1:]
	}
	p := passed{key: r.Header.Get("Idempotency-Key"), text: said.Method + " " + said.Result.Text, bot: said.BotID, status: status}
	if err != nil || r.Method != http.MethodPost || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		p.text = fmt.Sprintf("bad request %s %q: %v", r.Method, body, err)
	}
	m.got = append(m.got, p)
	m.mu.Unlock()
	if status == 0 {
		panic(http.ErrAbortHandler)
	}
	if status >= 300 && status < 400 {
		w.Header().Set("Location", m.URL+"/elsewhere")
	}
	w.WriteHeader(status)
}

func (m *messenger) requests() []passed {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]passed(nil), m.got...)
}

func TestOutbound(t *testing.T) {
	t.Parallel()
	send := func(t *testing.T, s *server, b *bot, text string) {
		t.Helper()
		s.ok(t, b, "sendMessage", `{"chat_id":"550","text":"`+text+`"}`, "Idempotency-Key: "+text)
	}
	// await moves the clock until the messenger has got n requests.
	await := func(t *testing.T, s *server, m *messenger, n int) []passed {
		t.Helper()
		eventually(t, 20*time.Second, fmt.Sprintf("the messenger gets %d requests", n), func() bool {
			if len(m.requests()) >= n {
				return true
			}
			s.advance(t, time.Second)
			return false
		})
		return m.requests()
	}
	t.Run("I-06 failures are repeated with the same key, and a bot's messages keep their order", func(t *testing.T) {
		t.Parallel()
		m := newMessenger(t, 500, 429, 0, 503, 408, 200)
		w := newWorld(t, testClock, "MYBOTS_OUTBOUND_URL="+m.URL+"/in?secret=hush")
		w.secret("hush")
		s, other := w.serve(t), w.serve(t)
		b := s.chatting(t)
		for _, text := range []string{"one", "two", "three"} {
			send(t, s, b, text)
			send(t, other, b, text) // a stored answer is passed on once
		}
		got := await(t, s, m, 8)
		for i, want := range []string{"one", "one", "one", "one", "one", "one", "two", "three"} {
			if got[i].text != "sendMessage "+want || got[i].bot != b.id {
				t.Errorf("request %d: got %+v, want %s", i+1, got[i], want)
			}
		}
		keys := map[string]string{}
		for _, p := range got {
			if before, known := keys[p.text]; p.key == "" || known && before != p.key {
				t.Errorf("%s: got the keys %q and %q", p.text, before, p.key)
			}
			keys[p.text] = p.key
		}
		if len(keys) != 3 || keys["sendMessage one"] == keys["sendMessage two"] || keys["sendMessage two"] == keys["sendMessage three"] {
			t.Errorf("got the keys %v, want one a message", keys)
		}
		s.advance(t, time.Hour)
		if n := len(m.requests()); n != 8 {
			t.Errorf("got %d requests, want 8: nothing is sent twice after a 2xx", n)
		}
	})
	t.Run("I-06 one bot's trouble holds up no other bot, and a final refusal not the next message", func(t *testing.T) {
		t.Parallel()
		m := newMessenger(t)
		w := newWorld(t, testClock, "MYBOTS_OUTBOUND_URL="+m.URL)
		s := w.serve(t)
		stuck, free := s.chatting(t), s.chatting(t)
		m.mu.Lock()
		m.script = []int{500}
		m.mu.Unlock()
		send(t, s, stuck, "stuck")
		await(t, s, m, 1)
		send(t, s, free, "free")
		got := await(t, s, m, 3)
		if got[1].text != "sendMessage free" && got[2].text != "sendMessage free" {
			t.Errorf("got %+v, want the other bot's message", got)
		}
		m.mu.Lock()
		m.script = []int{400, 302}
		m.mu.Unlock()
		for _, text := range []string{"refused", "redirected", "good"} {
			send(t, s, free, text)
		}
		got = await(t, s, m, 6)
		for i, want := range []string{"refused", "redirected", "good"} {
			if got[3+i].text != "sendMessage "+want {
				t.Errorf("request %d: got %+v, want %s", 4+i, got[3+i], want)
			}
		}
	})
	t.Run("I-06 I-02 what was answered is passed on after kill -9 too", func(t *testing.T) {
		t.Parallel()
		m := newMessenger(t)
		w := newWorld(t, testClock, "MYBOTS_OUTBOUND_URL="+m.URL)
		api := w.command(t, []string{"serve", "--roles", "api"})
		b := api.chatting(t)
		for i := range 10 {
			send(t, api, b, fmt.Sprint("m", i))
		}
		api.kill()
		s := w.serve(t)
		for i, p := range await(t, s, m, 10) {
			if p.text != fmt.Sprint("sendMessage m", i) {
				t.Errorf("request %d: got %+v", i+1, p)
			}
		}
	})
	t.Run("I-06 a messenger that is down or silent never slows sendMessage", func(t *testing.T) {
		t.Parallel()
		block := make(chan struct{})
		m := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-block }))
		t.Cleanup(func() { close(block); m.Close() })
		w := newWorld(t, "MYBOTS_OUTBOUND_URL="+m.URL)
		s := w.serve(t)
		b := s.chatting(t)
		began := time.Now()
		for i := range 10 {
			send(t, s, b, fmt.Sprint("m", i))
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("10 messages took %v", took)
		}
		if code, took := s.term(); code != 0 {
			t.Errorf("G-04 got exit code %d after %v, want 0", code, took)
		}
	})
}
