package web

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"mybots/browsertest"
	"mybots/delivery"
	"mybots/static"
)

func TestMain(m *testing.M) { browsertest.Main(m) }

// handClock is moved by hand.
type handClock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *handClock {
	return &handClock{now: time.Date(2026, 9, 26, 10, 0, 0, 0, time.UTC)}
}

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *handClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// memory is a database of people and sessions.
type memory struct {
	mu       sync.Mutex
	people   map[string]Person // by email; the password is the email backwards
	sessions map[string]Session
	asked    int   // how many passwords were checked
	broken   error // what every call answers, if set
}

func newMemory() *memory {
	return &memory{sessions: map[string]Session{}, people: map[string]Person{
		"anna@example.org": {ID: 1, Email: "anna@example.org", Role: Owner, SpaceID: 7, SpaceName: "Green shop"},
		"sam@example.org":  {ID: 2, Email: "sam@example.org", Role: Support, SpaceID: 8, SpaceName: "SMeet"},
		"root@example.org": {ID: 3, Email: "root@example.org", Role: Admin, SpaceID: 8, SpaceName: "SMeet"},
	}}
}

const password = "correct horse"

func (m *memory) lock() (func(), error) { m.mu.Lock(); return m.mu.Unlock, m.broken }

func (m *memory) SignIn(_ context.Context, email, given string) (int64, error) {
	unlock, err := m.lock()
	defer unlock()
	m.asked++
	if err != nil {
		return 0, err
	}
	p, ok := m.people[email]
	if !ok || given != password {
		return 0, delivery.ErrNotFound
	}
	return p.ID, nil
}

func (m *memory) SetLanguage(_ context.Context, id int64, language string) error {
	unlock, err := m.lock()
	defer unlock()
	for email, p := range m.people {
		if p.ID == id {
			p.Language = language
			m.people[email] = p
		}
	}
	return err
}

func (m *memory) CreateSession(_ context.Context, hash []byte, personID int64, at time.Time) error {
	unlock, err := m.lock()
	defer unlock()
	m.sessions[string(hash)] = Session{Person: Person{ID: personID}, Created: at, Seen: at}
	return err
}

func (m *memory) Session(_ context.Context, hash []byte) (Session, error) {
	unlock, err := m.lock()
	defer unlock()
	if err != nil {
		return Session{}, err
	}
	s, ok := m.sessions[string(hash)]
	if !ok {
		return Session{}, delivery.ErrNotFound
	}
	for _, p := range m.people {
		if p.ID == s.Person.ID {
			s.Person = p
			return s, nil
		}
	}
	return Session{}, delivery.ErrNotFound
}

func (m *memory) change(hash []byte, change func(*Session)) error {
	unlock, err := m.lock()
	defer unlock()
	if s, ok := m.sessions[string(hash)]; ok {
		change(&s)
		m.sessions[string(hash)] = s
	}
	return err
}

func (m *memory) TouchSession(_ context.Context, hash []byte, at time.Time) error {
	return m.change(hash, func(s *Session) { s.Seen = at })
}

func (m *memory) SetFlash(_ context.Context, hash []byte, flash string) error {
	return m.change(hash, func(s *Session) { s.Flash = flash })
}

func (m *memory) DeleteSession(_ context.Context, hash []byte) error {
	unlock, err := m.lock()
	defer unlock()
	delete(m.sessions, string(hash))
	return err
}

func (m *memory) DeleteSessions(_ context.Context, personID int64) error {
	unlock, err := m.lock()
	defer unlock()
	for hash, s := range m.sessions {
		if s.Person.ID == personID {
			delete(m.sessions, hash)
		}
	}
	return err
}

// rig is a small product around the package, served on 127.0.0.1.
type rig struct {
	t      *testing.T
	clock  *handClock
	memory *memory
	front  *Front
	mux    *http.ServeMux
	log    *lockedBuffer
	url    string
	client *http.Client
}

// lockedBuffer takes the log of requests that run beside the test.
type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newRig(t *testing.T, options ...func(*Options)) *rig {
	t.Helper()
	r := &rig{t: t, clock: newClock(), memory: newMemory(), mux: http.NewServeMux(), log: &lockedBuffer{}}
	log := slog.New(slog.NewJSONHandler(r.log, nil))
	o := Options{Log: log, Clock: r.clock, Rows: r.memory, Accounts: r.memory, BaseURL: &url.URL{Scheme: "http", Host: "127.0.0.1"}}
	for _, option := range options {
		option(&o)
	}
	r.front = New(o)
	r.mux.HandleFunc("GET /{$}", r.front.Root)
	r.mux.HandleFunc("GET /login", r.front.SignInPage)
	r.mux.HandleFunc("POST /login", r.front.SignIn)
	r.mux.HandleFunc("POST /logout", r.front.SignOut)
	r.mux.HandleFunc("POST /settings/language", r.front.SetLanguage)
	r.mux.HandleFunc("POST /settings/theme", r.front.SetTheme)
	r.mux.Handle("GET /bots", r.front.RequirePerson(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		Render(w, req, http.StatusOK, specimenPage(req))
	})))
	r.mux.Handle("GET /support", r.front.RequireRole(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		Render(w, req, http.StatusOK, specimenPage(req))
	}), Support, Admin))
	root := http.NewServeMux()
	root.Handle(static.Prefix, static.Handler())
	root.Handle("/", r.front.Browser(Pages(r.mux)))
	server := httptest.NewServer(Observe(log, root))
	t.Cleanup(server.Close)
	r.url = server.URL
	r.client = r.browser()
	return r
}

// browser is a client with cookies of its own that follows no redirects.
func (r *rig) browser() *http.Client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// ask sends a request with header lines "Name: value" and returns the answer and its body.
func (r *rig) ask(client *http.Client, method, path string, form url.Values, header ...string) (*http.Response, string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		r.t.Fatal(err)
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	answer, err := client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var body strings.Builder
	if _, err := io.Copy(&body, answer.Body); err != nil {
		r.t.Fatal(err)
	}
	return answer, body.String()
}

func (r *rig) signIn(client *http.Client, email string) *http.Response {
	r.t.Helper()
	answer, _ := r.ask(client, http.MethodPost, "/login", url.Values{"email": {email}, "password": {password}})
	if answer.StatusCode != http.StatusSeeOther {
		r.t.Fatalf("sign in as %s: got %d, want 303", email, answer.StatusCode)
	}
	return answer
}

// cookie returns the session's cookie of the client.
func (r *rig) cookie(client *http.Client) string {
	u, err := url.Parse(r.url)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, c := range client.Jar.Cookies(u) {
		if c.Name == r.front.store.name {
			return c.Value
		}
	}
	return ""
}
