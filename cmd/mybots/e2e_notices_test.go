package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	maxToken  = "max-token-hush-hush"
	maxSecret = "max-secret-hush-hush"
)

// maxAPI is MAX on loopback.
type maxAPI struct {
	addr string
	mu   sync.Mutex
	got  []maxMessage
	does http.HandlerFunc // the answer to a message
}

type maxMessage struct {
	to, text, button string
}

func newMAX(t testing.TB) *maxAPI {
	t.Helper()
	m := &maxAPI{does: func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"message":{"body":{"mid":"mid.1"}}}`) // a client that has gone away reads nothing
	}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m.addr = l.Addr().String()
	m.serve(t, l)
	return m
}

func (m *maxAPI) serve(t testing.TB, l net.Listener) {
	server := &http.Server{Handler: http.HandlerFunc(m.message), ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() { // ends with Close
		defer close(done)
		_ = server.Serve(l)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
}

func (m *maxAPI) message(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Text        string `json:"text"`
		Attachments []struct {
			Payload struct {
				Buttons [][]struct {
					URL string `json:"url"`
				} `json:"buttons"`
			} `json:"payload"`
		} `json:"attachments"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.Header.Get("Authorization") != maxToken || r.URL.Path != "/messages" || len(body.Attachments) != 1 {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	m.mu.Lock()
	m.got = append(m.got, maxMessage{r.URL.Query().Get("user_id"), body.Text, body.Attachments[0].Payload.Buttons[0][0].URL})
	does := m.does
	m.mu.Unlock()
	does(w, r)
}

func (m *maxAPI) messages() []maxMessage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]maxMessage(nil), m.got...)
}

func (m *maxAPI) answers(does http.HandlerFunc) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.does = does
}

func (m *maxAPI) settings() []string {
	return []string{"MYBOTS_MAX_URL=http://" + m.addr, "MYBOTS_MAX_TOKEN=" + maxToken, "MYBOTS_MAX_SECRET=" + maxSecret}
}

var linkCode = regexp.MustCompile(`[A-Z2-7]{4}-[A-Z2-7]{4}-[A-Z2-7]{4}`)

// linkMAX links the owner's account as a person does: a code from the settings,
// sent to our bot, which MAX passes on.
func (o *owner) linkMAX(t testing.TB, account string) {
	t.Helper()
	_, _, page := o.post(t, "/settings/max/code", nil)
	code := linkCode.FindString(page)
	if code == "" {
		t.Fatalf("N-07 the page shows no code: %.300s", page)
	}
	o.s.w.secret(code)
	body := `{"update_type":"message_created","message":{"sender":{"user_id":` + account + `},"body":{"text":"` + code + `"}}}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, o.s.base+"/max/webhook", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Max-Bot-Api-Secret", maxSecret)
	got, err := o.s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = got.Body.Close()
	if got.StatusCode != http.StatusOK {
		t.Fatalf("N-07 /max/webhook: got %d, want 200", got.StatusCode)
	}
}

// startBotFather opens the owner's BotFather chat.
func (o *owner) startBotFather(t testing.TB, language string) {
	t.Helper()
	o.switches(t, "/botfather/"+o.s.w.space+"/start", "language", language)
}

// told waits until BotFather's chat has n messages and returns the page.
func (o *owner) told(t testing.TB, n int) (page string) {
	t.Helper()
	eventually(t, 10*time.Second, fmt.Sprintf("BotFather's chat has %d messages", n), func() bool {
		_, page = o.get(t, "/botfather/"+o.s.w.space)
		return strings.Count(page, `data-testid="notice"`) >= n
	})
	if got := strings.Count(page, `data-testid="notice"`); got != n {
		t.Errorf("N-03 BotFather's chat has %d messages, want %d", got, n)
	}
	return page
}

// noticeStates are the notices' states by MAX, the latest first, as support sees them.
func (o *owner) noticeStates(t testing.TB) string {
	t.Helper()
	_, page := o.get(t, "/support/notices?route=max")
	var list []string
	for _, m := range regexp.MustCompile(`data-notice="\d+" data-state="(\w+)"`).FindAllStringSubmatch(page, -1) {
		list = append(list, m[1])
	}
	return strings.Join(list, " ")
}

// newNoticeWorld is an installation with MAX.
func newNoticeWorld(t testing.TB) (*world, *site, *maxAPI) {
	t.Helper()
	m := newMAX(t)
	w, e := newHookWorld(t, m.settings()...)
	w.secret(maxToken, maxSecret)
	return w, e, m
}

func TestNotices(t *testing.T) {
	t.Parallel()
	t.Run("N-01 N-03 N-07 once, by both routes, over replicas and restarts", func(t *testing.T) {
		t.Parallel()
		w, e, m := newNoticeWorld(t)
		s, other := w.serve(t), w.serve(t)
		o, sam := s.signIn(t), s.support(t, supportMail)
		h := o.hooked(t, e)
		o.startBotFather(t, "ru")
		o.linkMAX(t, "987654321")
		h.does(says(401))
		s.sends(t, h.bot, 1)
		page := o.told(t, 1)
		if !strings.Contains(page, "приостановлена") || !strings.Contains(page, `href="/bots/`+h.id+`/connection"`) {
			t.Errorf("N-01 the chat: %s", page)
		}
		eventually(t, 10*time.Second, "MAX gets the notice", func() bool { return len(m.messages()) == 1 })
		if got := m.messages()[0]; got.to != "987654321" || !strings.Contains(got.text, "приостановлена") || !strings.HasSuffix(got.button, "/bots/"+h.id+"/connection") {
			t.Errorf("N-07 MAX got %+v", got)
		}
		eventually(t, 10*time.Second, "the notice is sent", func() bool { return sam.noticeStates(t) == "sent" })
		// Three more pauses within the hour, a crash of each replica between them.
		replicas := []*server{s, other}
		for i := range 3 {
			if i > 0 {
				replicas[0].kill()
				replicas = []*server{replicas[1], w.serve(t)}
				o.s, sam.s, s = replicas[0], replicas[0], replicas[0]
			}
			o.act(t, h.bot, "connection/resume")
			eventually(t, 10*time.Second, "the pause is held back", func() bool {
				_, page := sam.get(t, "/support/notices?route=max")
				return strings.Contains(page, fmt.Sprintf("%d more held back", i+1))
			})
			s.advance(t, 5*time.Minute)
		}
		o.told(t, 1)
		if n := len(m.messages()); n != 1 {
			t.Errorf("N-03 MAX got %d notices within the hour, want 1", n)
		}
		s.advance(t, time.Hour)
		for _, r := range replicas {
			r.advance(t, 0) // now each of them knows the time
		}
		o = s.signIn(t) // the session has idled out
		o.act(t, h.bot, "connection/resume")
		o.told(t, 2)
		eventually(t, 10*time.Second, "MAX gets the next notice", func() bool { return len(m.messages()) == 2 })
		if text := m.messages()[1].text; !strings.Contains(text, "ещё 3 раза") {
			t.Errorf("N-03 the next notice doesn't count the three that were held back: %s", text)
		}
	})
	t.Run("N-04 kill -9 between recording and sending: another process sends it, once", func(t *testing.T) {
		t.Parallel()
		w, e, m := newNoticeWorld(t)
		s := w.serve(t)
		o, sam := s.signIn(t), s.support(t, supportMail)
		h := o.hooked(t, e)
		o.linkMAX(t, "5")
		sam2 := s.support(t, "act@example.com", "look", "act")
		sam2.switches(t, "/support/routes/max", "sending", "off")
		h.does(says(401))
		s.sends(t, h.bot, 1)
		eventually(t, 10*time.Second, "the notice is recorded", func() bool { return sam.noticeStates(t) == "queued" })
		s.kill()
		s = w.serve(t)
		sam.s, sam2.s = s, s
		sam2.switches(t, "/support/routes/max", "sending", "on", "portion", "10")
		eventually(t, 10*time.Second, "the notice is sent", func() bool { return sam.noticeStates(t) == "sent" })
		if n := len(m.messages()); n != 1 {
			t.Errorf("MAX got %d notices, want 1", n)
		}
	})
	t.Run("N-04 kill -9 between sending and recording: uncertain, and never sent again by itself", func(t *testing.T) {
		t.Parallel()
		w, e, m := newNoticeWorld(t)
		s := w.serve(t)
		o, sue := s.signIn(t), s.support(t, supportMail, "look", "act")
		h := o.hooked(t, e)
		o.linkMAX(t, "5")
		arrived := make(chan struct{}, 1)
		m.answers(func(_ http.ResponseWriter, r *http.Request) {
			arrived <- struct{}{}
			<-r.Context().Done() // it is read, and never answered
		})
		h.does(says(401))
		s.sends(t, h.bot, 1)
		<-arrived
		s.kill()
		m.answers(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
		s = w.serve(t)
		sue.s = s
		if got := sue.noticeStates(t); got != "sending" {
			t.Errorf("after the crash: %s, want it marked as sending", got)
		}
		eventually(t, 45*time.Second, "the claim runs out", func() bool { return sue.noticeStates(t) == "uncertain" })
		s.advance(t, 10*time.Minute)
		if _, page := sue.get(t, "/support"); !strings.Contains(page, "Waiting for a person: 1") {
			t.Error("N-08 support isn't told that a notice waits for a decision")
		}
		if n := len(m.messages()); n != 1 || sue.noticeStates(t) != "uncertain" {
			t.Errorf("MAX got %d requests, the notice is %s; want one, and uncertain", n, sue.noticeStates(t))
		}
	})
	t.Run("N-04 while MAX can't be reached it is tried again; a wrong token stops the route and no other", func(t *testing.T) {
		t.Parallel()
		w, e, m := newNoticeWorld(t)
		s := w.serve(t)
		o, sue := s.signIn(t), s.support(t, supportMail, "look", "act")
		h := o.hooked(t, e)
		o.startBotFather(t, "en")
		o.linkMAX(t, "5")
		s.trouble = true // the operator reads of it in the log, too
		m.answers(says503)
		h.does(says(401))
		s.sends(t, h.bot, 1)
		eventually(t, 10*time.Second, "the first try fails", func() bool { return sue.noticeStates(t) == "retrying" })
		m.answers(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
		s.advance(t, 5*time.Second)
		eventually(t, 10*time.Second, "the route stops", func() bool { return sue.noticeStates(t) == "blocked" })
		if _, page := sue.get(t, "/support"); !strings.Contains(page, "MYBOTS_MAX_TOKEN") {
			t.Error("N-04 support isn't told that the route stopped")
		}
		if !strings.Contains(s.log.String(), "the route of notices has stopped") {
			t.Error("N-04 the log doesn't tell that the route stopped")
		}
		o.told(t, 1)
		m.answers(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
		sue.switches(t, "/support/routes/max", "sending", "on", "portion", "0")
		eventually(t, 10*time.Second, "the notice is sent", func() bool { return sue.noticeStates(t) == "sent" })
	})
	t.Run("G-01 N-07 settings of MAX", func(t *testing.T) {
		t.Parallel()
		for _, wrong := range []string{"MYBOTS_MAX_TOKEN=" + maxToken, "MYBOTS_MAX_SECRET=" + maxSecret, "MYBOTS_MAX_URL=http://max.example.com", "MYBOTS_MAX_URL=https://u:p@max.example.com", "MYBOTS_MAX_URL=x"} {
			o := runBinary(t, []string{wrong}, "", "serve")
			if o.code == 0 || !strings.Contains(o.stderr, "MYBOTS_MAX_") || strings.Contains(o.stderr, "hush") {
				t.Errorf("%s: got code %d and %q, want words that name the setting and not its value", wrong, o.code, o.stderr)
			}
		}
	})
}

func says503(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
