package support_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/crypto/argon2"

	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/web"
)

// person is somebody at their browser.
type person struct {
	rig    *rig
	id     int64
	email  string
	client *http.Client
}

// stranger is a browser that isn't signed in.
func (r *rig) stranger() *person {
	r.t.Helper()
	jar, err := cookiejar.New(nil)
	r.must(err)
	return &person{rig: r, client: &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// cheapHash is the password's hash at a cost that tests can pay a hundred times.
var cheapHash = func() string {
	salt := []byte("salt and pepper!")
	key := argon2.IDKey([]byte(password), salt, 1, 8, 1, 32)
	return fmt.Sprintf("$argon2id$v=%d$m=8,t=1,p=1$%s$%s", argon2.Version,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(key))
}()

// signedIn adds a person of a role with rights, and signs them in.
func (r *rig) signedIn(name, role string, rights ...web.Right) *person {
	r.t.Helper()
	p := r.stranger()
	p.email = name + "@example.org"
	may := map[web.Right]bool{}
	for _, right := range rights {
		may[right] = true
	}
	r.must(r.db.GetContext(r.t.Context(), &p.id, `
INSERT INTO people (space_id, email, email_key, password_hash, role, created_at, may_act, may_unmask) VALUES ($1, $2, $2, $3, $4, $5, $6, $7) RETURNING user_id`,
		r.space, p.email, cheapHash, role, r.clock.Now(), may[web.Act], may[web.Unmask]))
	p.signIn()
	return p
}

func (p *person) signIn() {
	p.rig.t.Helper()
	p.post("/login", url.Values{"email": {p.email}, "password": {password}}).wants(http.StatusSeeOther)
}

// bot makes a bot of the person's and returns its id.
func (p *person) bot(name string) int64 {
	p.rig.t.Helper()
	p.rig.names++
	username := fmt.Sprintf("robot_%d", p.rig.names)
	b, _, err := p.rig.bots.Create(p.rig.t.Context(), bots.NewBot{SpaceID: p.rig.space, OwnerID: p.id, Username: username, Name: name})
	p.rig.must(err)
	return b.ID
}

// hook gives a bot a webhook at the address.
func (p *person) hook(botID int64, address string) delivery.Secret {
	p.rig.t.Helper()
	s, err := p.rig.queue.Status(p.rig.t.Context(), botID)
	p.rig.must(err)
	secret, _, err := p.rig.bots.SaveWebhook(p.rig.t.Context(), bots.Actor{UserID: p.id}, botID, s.SettingsVersion, address, false)
	p.rig.must(err)
	return secret
}

// answer is what a browser got.
type answer struct {
	t      *testing.T
	what   string
	status int
	header http.Header
	body   string
}

func (a answer) wants(status int) answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("%s: got status %d, want %d\n%s", a.what, a.status, status, a.body)
	}
	return a
}

// leads checks a 303 and where it goes.
func (a answer) leads(to string) answer {
	a.t.Helper()
	if got := a.wants(http.StatusSeeOther).header.Get("Location"); got != to {
		a.t.Fatalf("%s: got Location %q, want %q", a.what, got, to)
	}
	return a
}

// shows checks that the page has all of the texts, escaped as HTML is.
func (a answer) shows(texts ...string) answer {
	a.t.Helper()
	for _, text := range texts {
		if !strings.Contains(a.body, html.EscapeString(text)) {
			a.t.Errorf("%s: got no %q in\n%s", a.what, text, a.body)
		}
	}
	return a
}

// lacks checks that the page has none of the texts.
func (a answer) lacks(texts ...string) answer {
	a.t.Helper()
	for _, text := range texts {
		if strings.Contains(a.body, text) {
			a.t.Errorf("%s: got %q, want none of it in\n%s", a.what, text, a.body)
		}
	}
	return a
}

func (p *person) get(path string) answer {
	p.rig.t.Helper()
	return p.ask(http.MethodGet, path, nil)
}

func (p *person) post(path string, form url.Values) answer {
	p.rig.t.Helper()
	return p.ask(http.MethodPost, path, form)
}

func (p *person) ask(method, path string, form url.Values) answer {
	t := p.rig.t
	t.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, p.rig.url+path, strings.NewReader(form.Encode()))
	p.rig.must(err)
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	got, err := p.client.Do(req)
	p.rig.must(err)
	defer func() { _ = got.Body.Close() }()
	body, err := io.ReadAll(got.Body)
	p.rig.must(err)
	return answer{t: t, what: method + " " + path, status: got.StatusCode, header: got.Header, body: string(body)}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// here is support's page of the bot.
func here(botID int64, page string) string { return "/support/bots/" + itoa(botID) + page }
