package owner_test

import (
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/crypto/argon2"

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

// add adds a person of a role.
func (r *rig) add(name, role string) *person {
	r.t.Helper()
	p := r.stranger()
	p.email = name + "@example.org"
	r.must(r.db.GetContext(r.t.Context(), &p.id, `
INSERT INTO people (space_id, email, email_key, password_hash, role, created_at) VALUES ($1, $2, $2, $3, $4, $5) RETURNING user_id`,
		r.space, p.email, cheapHash, role, r.clock.Now()))
	return p
}

// cheapHash is the password's hash at a cost that tests can pay a hundred times.
var cheapHash = func() string {
	salt := []byte("salt and pepper!")
	key := argon2.IDKey([]byte(password), salt, 1, 8, 1, 32)
	return fmt.Sprintf("$argon2id$v=%d$m=8,t=1,p=1$%s$%s", argon2.Version,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(key))
}()

// signedIn adds a person and signs them in.
func (r *rig) signedIn(name, role string) *person {
	r.t.Helper()
	p := r.add(name, role)
	p.post("/login", url.Values{"email": {p.email}, "password": {password}}).wants(http.StatusSeeOther)
	return p
}

// owner is a signed-in owner, anna.
func (r *rig) owner() *person { r.t.Helper(); return r.signedIn("anna", web.Owner) }

// bot makes a bot of the person's and returns its id.
func (p *person) bot(username, name string) int64 {
	p.rig.t.Helper()
	b, _, err := p.rig.bots.Create(p.rig.t.Context(), bots.NewBot{SpaceID: p.rig.space, OwnerID: p.id, Username: username, Name: name})
	p.rig.must(err)
	return b.ID
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
	a.wants(http.StatusSeeOther)
	if got := a.header.Get("Location"); got != to {
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

// match returns the first group of the expression in the page.
func (a answer) match(expression string) string {
	a.t.Helper()
	m := regexp.MustCompile(expression).FindStringSubmatch(a.body)
	if m == nil {
		a.t.Fatalf("%s: got no %s in\n%s", a.what, expression, a.body)
	}
	return html.UnescapeString(m[1])
}

func (p *person) get(path string, header ...string) answer {
	p.rig.t.Helper()
	return p.ask(http.MethodGet, path, nil, header...)
}

func (p *person) post(path string, form url.Values, header ...string) answer {
	p.rig.t.Helper()
	return p.ask(http.MethodPost, path, form, header...)
}

// ask sends a request with header lines "Name: value".
func (p *person) ask(method, path string, form url.Values, header ...string) answer {
	t := p.rig.t
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, p.rig.url+path, strings.NewReader(form.Encode()))
	p.rig.must(err)
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	got, err := p.client.Do(req)
	p.rig.must(err)
	defer func() { _ = got.Body.Close() }()
	body, err := io.ReadAll(got.Body)
	p.rig.must(err)
	return answer{t: t, what: method + " " + path, status: got.StatusCode, header: got.Header, body: string(body)}
}

// piece are the headers by which htmx asks for a piece.
var piece = []string{"HX-Request: true", "HX-Request-Type: partial"}
