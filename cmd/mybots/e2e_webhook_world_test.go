package main_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// dueTime is how long a request that is due may take to come (G-05: a second
// after a jump of the clock), and a busy machine's part.
const dueTime = 3 * time.Second

// newHookWorld is an installation whose processes reach the endpoints of a site.
func newHookWorld(t testing.TB, settings ...string) (*world, *site) {
	t.Helper()
	e := newSite(t)
	return newWorld(t, append(append(e.settings(t), testClock), settings...)...), e
}

// hooked is a bot with its endpoint.
type hooked struct {
	*bot
	*sink
}

var secretShown = regexp.MustCompile(`swh1_[a-z2-7]{20,}`)

// hook saves a webhook on the Connection screen and returns the secret that the
// next page shows.
func (o *owner) hook(t testing.TB, b *bot, address, pending string) (secret string) {
	t.Helper()
	location := o.act(t, b, "connection", "mode", "webhook", "url", address, "pending", pending, "version", o.version(t, b))
	status, page := o.get(t, location)
	secret = secretShown.FindString(page)
	if status != http.StatusOK || secret == "" || !strings.Contains(page, `id="secret"`) {
		t.Fatalf("M-04 %s: got %d and no secret: %.300s", location, status, page)
	}
	b.w.secret(secret)
	return secret
}

// rehook saves the bot's webhook again; it has a new secret then.
func (o *owner) rehook(t testing.TB, h *hooked, pending string) {
	t.Helper()
	h.secret = o.hook(t, h.bot, h.url, pending)
}

var madeBot = regexp.MustCompile(`^/bots/(\d+)/token$`)

// newBot makes a bot on the owner's pages.
func (o *owner) newBot(t testing.TB) *bot {
	t.Helper()
	b := &bot{w: o.s.w, name: fmt.Sprintf("test_%d_bot", botNumber.Add(1))}
	status, location, body := o.post(t, "/bots/new", url.Values{"username": {b.name}, "name": {"Bot " + b.name}})
	m := madeBot.FindStringSubmatch(location)
	if status != http.StatusSeeOther || m == nil {
		t.Fatalf("make a bot: got %d to %q: %.300s", status, location, body)
	}
	_, page := o.get(t, location)
	b.id, b.token = m[1], tokenShown.FindString(page)
	if b.token == "" {
		t.Fatalf("the page shows no token: %.300s", page)
	}
	o.s.w.secret(b.token)
	return b
}

// hooked makes a bot that receives at an endpoint of its own.
func (o *owner) hooked(t testing.TB, e *site) *hooked {
	t.Helper()
	h := &hooked{bot: o.newBot(t), sink: e.sink()}
	o.s.w.secret(h.query)
	h.secret = o.hook(t, h.bot, h.url, "keep")
	return h
}

// hookInfo is what getWebhookInfo tells.
type hookInfo struct {
	URL       string `json:"url"`
	State     string `json:"state"`
	Pending   int    `json:"pending_update_count"`
	LastError *struct {
		Code    string    `json:"code"`
		Message string    `json:"message"`
		Date    time.Time `json:"date"`
	} `json:"last_error"`
	LastSuccess *time.Time `json:"last_success_date"`
	NextAttempt *time.Time `json:"next_attempt_date"`
}

func (s *server) hookInfo(t testing.TB, b *bot) hookInfo {
	t.Helper()
	return decode[hookInfo](t, s.ok(t, b, "getWebhookInfo", "{}"))
}

// standing writes how a bot stands: "paused HTTP_401, 2 waiting, 0 failed, at 3".
func (s *server) standing(t testing.TB, b *bot) (string, hookInfo) {
	t.Helper()
	h, i := s.hookInfo(t, b), s.info(t, b)
	code := ""
	if h.LastError != nil {
		code = " " + h.LastError.Code
	}
	return fmt.Sprintf("%s%s, %d waiting, %d failed, at %s", h.State, code, i.Pending, i.Failed, i.ConfirmedOffset), h
}

// stands waits until the bot stands so, and returns what getWebhookInfo says then.
func (s *server) stands(t testing.TB, b *bot, want string) hookInfo {
	t.Helper()
	deadline := time.NewTimer(5 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		got, h := s.standing(t, b)
		if got == want {
			return h
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("bot %s stands so: %q, want %q", b.id, got, want)
		}
	}
}

// reach moves the clock to a moment, less what is to be left.
func (s *server) reach(t testing.TB, at time.Time, left time.Duration) {
	t.Helper()
	if d := at.Sub(s.w.now()) - left; d > 0 {
		s.advance(t, d)
	}
}

// sends writes plain events for a bot and returns them.
func (s *server) sends(t testing.TB, b *bot, n int) []event {
	t.Helper()
	return s.write(t, some(b, n)...)
}

// reasons are the reasons of a bot's FAILED updates, as its page shows them:
// "7 HTTP_422 2" for update 7 after two attempts.
func (o *owner) reasons(t testing.TB, b *bot) []string {
	t.Helper()
	_, page := o.get(t, "/bots/"+b.id+"/failed")
	var list []string
	for _, row := range strings.Split(page, "data-failed-id=")[1:] {
		row, _, _ = strings.Cut(row, "</tr>")
		id := regexp.MustCompile(`^"(\d+)"`).FindStringSubmatch(row)
		reason := regexp.MustCompile(`HTTP_[0-9X]+|DELIVERY_OUTCOME_UNKNOWN`).FindString(row)
		attempts := regexp.MustCompile(`class="right"[^>]*>\s*(?:<[^>]*>\s*)*(\d+)`).FindStringSubmatch(row)
		if id == nil || attempts == nil {
			t.Fatalf("F-01 a row without id or attempts: %.800s", row)
		}
		list = append(list, id[1]+" "+reason+" "+attempts[1])
	}
	return list
}

// twins are n events with ids, each for all of the bots.
func twins(n int, payload func(int) string, bots ...*bot) []event {
	var list []event
	for i := range n {
		id := uuid.NewString()
		for _, b := range bots {
			list = append(list, event{bot: b, id: id, payload: payload(i)})
		}
	}
	return list
}
