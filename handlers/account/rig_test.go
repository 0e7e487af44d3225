package account_test

import (
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"golang.org/x/crypto/argon2"

	"mybots/browsertest"
	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/delivery/chat"
	"mybots/delivery/notice"
	"mybots/delivery/queue"
	"mybots/handlers"
	"mybots/migrations/dbtest"
)

func TestMain(m *testing.M) { browsertest.Main(m) }

const (
	password = "correct horse"
	fresh    = "battery staple"
	cookie   = "smeet"
)

// handClock is moved by hand.
type handClock struct{ *delivery.ShiftedClock }

func (c *handClock) advance(d time.Duration) { c.SetShift(c.Shift() + d) }

// rig is all pages of the product on a real database, served on 127.0.0.1.
type rig struct {
	t       *testing.T
	db      *sqlx.DB
	clock   *handClock
	bots    *bots.Store
	notices *notice.Store
	url     string
	space   int64
}

func newRig(t *testing.T) *rig { t.Helper(); return newRigWith(t, true) }

// newRigWith is newRig; max says whether there is a way to MAX.
func newRigWith(t *testing.T, max bool) *rig {
	t.Helper()
	r := &rig{t: t, db: dbtest.Open(t), clock: &handClock{delivery.NewClock(0)}}
	r.notices = notice.New(notice.Options{DB: r.db, Clock: r.clock, BaseURL: func() *url.URL { return nil }, MAX: max})
	q := queue.New(r.db, r.clock, func(int64) {}, queue.Telling(r.notices.Record))
	t.Cleanup(q.Close)
	sealer, err := bots.NewSealer(make([]byte, 32))
	r.must(err)
	r.bots = bots.New(r.db, r.clock, q, sealer)
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	server := httptest.NewUnstartedServer(nil)
	base := &url.URL{Scheme: "http", Host: server.Listener.Addr().String()}
	r.url = base.String()
	server.Config.Handler = handlers.Routes(handlers.Options{
		Log: log, Clock: r.clock, Bots: r.bots, Queue: q, Chats: chat.New(r.db, r.clock, q, false), BaseURL: base, Pages: true, Notices: r.notices,
	})
	server.Start()
	t.Cleanup(server.Close)
	r.space, err = r.bots.AddSpace(t.Context(), "Green <shop>")
	r.must(err)
	return r
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// count is the number that a query gives.
func (r *rig) count(query string, args ...any) int {
	r.t.Helper()
	var n int
	r.must(r.db.GetContext(r.t.Context(), &n, query, args...))
	return n
}

// text is the text that a query gives.
func (r *rig) text(query string, args ...any) string {
	r.t.Helper()
	var s string
	r.must(r.db.GetContext(r.t.Context(), &s, query, args...))
	return s
}

// log are the lines of the audit log about people, in order.
func (r *rig) log() []string {
	r.t.Helper()
	var lines []string
	r.must(r.db.SelectContext(r.t.Context(), &lines, `
SELECT concat_ws(' ', action, nullif(detail, ''), nullif(before, ''), nullif(after, ''), role, CASE WHEN request_id <> '' AND address <> '' THEN 'known' END)
  FROM audit WHERE bot_id = 0 ORDER BY audit_id`))
	return lines
}

// person is somebody at one of their browsers.
type person struct {
	rig    *rig
	id     int64
	email  string
	client *http.Client
}

// browser is another browser of the same person, not signed in.
func (p *person) browser() *person {
	p.rig.t.Helper()
	jar, err := cookiejar.New(nil)
	p.rig.must(err)
	other := *p
	other.client = &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &other
}

// cheapHash is the password's hash at a cost that tests can pay a hundred times.
var cheapHash = func() string {
	salt := []byte("salt and pepper!")
	key := argon2.IDKey([]byte(password), salt, 1, 8, 1, 32)
	return fmt.Sprintf("$argon2id$v=%d$m=8,t=1,p=1$%s$%s", argon2.Version,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(key))
}()

// add adds a person as the release before did, without a zone.
func (r *rig) add(name, role string) *person {
	r.t.Helper()
	p := (&person{rig: r, email: name + "@example.org"}).browser()
	r.must(r.db.GetContext(r.t.Context(), &p.id, `
INSERT INTO people (space_id, email, email_key, password_hash, role, created_at) VALUES ($1, $2, lower($2), $3, $4, $5) RETURNING user_id`,
		r.space, p.email, cheapHash, role, r.clock.Now()))
	return p
}

// anna is an owner, signed in.
func (r *rig) anna() *person { r.t.Helper(); return r.add("Anna", "owner").signIn(password) }

// signIn signs the browser in.
func (p *person) signIn(with string) *person {
	p.rig.t.Helper()
	p.post("/login", url.Values{"email": {p.email}, "password": {with}}).wants(http.StatusSeeOther)
	return p
}

// session is the value of the browser's cookie.
func (p *person) session() string {
	u, err := url.Parse(p.rig.url)
	p.rig.must(err)
	for _, c := range p.client.Jar.Cookies(u) {
		if c.Name == cookie {
			return c.Value
		}
	}
	return ""
}

// in tells whether the browser is signed in.
func (p *person) in() bool {
	p.rig.t.Helper()
	return p.get("/settings").status == http.StatusOK
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
func (a answer) leads(to string) {
	a.t.Helper()
	a.wants(http.StatusSeeOther)
	if got := a.header.Get("Location"); got != to {
		a.t.Fatalf("%s: got Location %q, want %q", a.what, got, to)
	}
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

// has checks that the page has all of the HTML.
func (a answer) has(html ...string) answer {
	a.t.Helper()
	for _, h := range html {
		if !strings.Contains(a.body, h) {
			a.t.Errorf("%s: got no %s in\n%s", a.what, h, a.body)
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

// passwords is the form for a new password.
func passwords(old, new, again string) url.Values {
	return url.Values{"old": {old}, "new": {new}, "again": {again}}
}
