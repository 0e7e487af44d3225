package web

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"mybots/delivery"
)

func TestSessions(t *testing.T) {
	t.Parallel()
	// signedIn reports whether the client still gets its page.
	signedIn := func(r *rig, client *http.Client) bool {
		answer, _ := r.ask(client, http.MethodGet, "/bots", nil)
		return answer.StatusCode == http.StatusOK
	}
	for name, c := range map[string]struct {
		after func(r *rig) // what happens once Anna is in
		want  bool         // she still is
	}{
		"nothing happens":              {func(*rig) {}, true},
		"two hours without a request":  {func(r *rig) { r.clock.advance(2 * time.Hour) }, false},
		"a minute less than two hours": {func(r *rig) { r.clock.advance(2*time.Hour - time.Minute) }, true},
		"twelve hours with requests":   {func(r *rig) { busy(r, 12*time.Hour) }, false},
		"eleven hours with requests":   {func(r *rig) { busy(r, 11*time.Hour) }, true},
		"all her sessions are ended":   {func(r *rig) { _ = r.front.EndSessions(r.t.Context(), 1) }, false},
		"the sessions of another are":  {func(r *rig) { _ = r.front.EndSessions(r.t.Context(), 2) }, true},
		"she is gone":                  {func(r *rig) { delete(r.memory.people, "anna@example.org") }, false},
		"she signs out in another browser": {func(r *rig) {
			other := r.browser()
			r.signIn(other, "anna@example.org")
			r.ask(other, "POST", "/logout", nil)
		}, true},
		"she signs out": {func(r *rig) { r.ask(r.client, "POST", "/logout", nil) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.signIn(r.client, "anna@example.org")
			c.after(r)
			if got := signedIn(r, r.client); got != c.want {
				t.Errorf("signed in: got %v, want %v", got, c.want)
			}
		})
	}
}

// busy lets time pass with a request every half hour.
func busy(r *rig, d time.Duration) {
	for ; d > 0; d -= 30 * time.Minute {
		r.clock.advance(30 * time.Minute)
		r.ask(r.client, http.MethodGet, "/bots", nil)
	}
}

func TestACookieAfterSignOutIsWorthNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.signIn(r.client, "anna@example.org")
	saved := r.front.store.name + "=" + r.cookie(r.client)
	if answer, _ := r.ask(r.browser(), http.MethodGet, "/bots", nil, "Cookie: "+saved); answer.StatusCode != http.StatusOK {
		t.Fatalf("before: got %d, want 200", answer.StatusCode)
	}
	answer, _ := r.ask(r.client, http.MethodPost, "/logout", nil)
	if got := answer.Header.Get("Location"); answer.StatusCode != http.StatusSeeOther || got != "/login" {
		t.Errorf("sign out: got %d %s, want 303 /login", answer.StatusCode, got)
	}
	if got := r.cookie(r.client); got != "" {
		t.Errorf("cookie: got %q, want none", got)
	}
	if answer, _ := r.ask(r.browser(), http.MethodGet, "/bots", nil, "Cookie: "+saved); answer.StatusCode != http.StatusSeeOther {
		t.Errorf("after: got %d, want 303", answer.StatusCode)
	}
	if got := len(r.memory.sessions); got != 0 {
		t.Errorf("rows: got %d, want 0", got)
	}
}

func TestSigningInChangesTheID(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.signIn(r.client, "anna@example.org")
	first := r.cookie(r.client)
	r.signIn(r.client, "sam@example.org")
	if second := r.cookie(r.client); second == first || second == "" {
		t.Errorf("cookie: got %q after %q, want another", second, first)
	}
	answer, _ := r.ask(r.browser(), http.MethodGet, "/bots", nil, "Cookie: smeet="+first)
	if answer.StatusCode != http.StatusSeeOther {
		t.Errorf("the first id: got %d, want 303", answer.StatusCode)
	}
	for hash := range r.memory.sessions {
		if strings.Contains(hash, r.cookie(r.client)) {
			t.Error("the row holds the cookie itself, want its hash")
		}
	}
}

func TestGarbageCookiesAreAnonymous(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, cookie := range map[string]string{
		"words": "hello", "empty": "", "too short": "AAAA", "not base64": strings.Repeat("!", 43),
		"unknown": strings.Repeat("A", 43), "huge": strings.Repeat("A", 4000),
	} {
		answer, body := r.ask(r.browser(), http.MethodGet, "/login", nil, "Cookie: smeet="+cookie)
		if answer.StatusCode != http.StatusOK || !strings.Contains(body, `name="password"`) {
			t.Errorf("%s: got %d, want 200 and the form", name, answer.StatusCode)
		}
	}
}

func TestCookieFlags(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		base     string
		wantName string
		secure   bool
	}{
		"plain http": {"http://127.0.0.1:8080", "smeet", false},
		"https":      {"https://bots.example.org", "__Host-smeet", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, err := url.Parse(c.base)
			if err != nil {
				t.Fatal(err)
			}
			r := newRig(t, func(o *Options) { o.BaseURL = base })
			answer := r.signIn(r.client, "anna@example.org")
			cookies := answer.Cookies()
			if len(cookies) != 1 {
				t.Fatalf("cookies: got %d, want 1", len(cookies))
			}
			got := cookies[0]
			if got.Name != c.wantName || got.Secure != c.secure || !got.HttpOnly || got.SameSite != http.SameSiteLaxMode || got.Path != "/" || got.Domain != "" || got.MaxAge != 0 || len(got.Value) != 43 {
				t.Errorf("got %v, want %s, secure %v, HttpOnly, Lax, Path=/, no domain, for this browser session, 256 bits", got, c.wantName, c.secure)
			}
			if got := answer.Header.Get("Strict-Transport-Security") != ""; got != c.secure {
				t.Errorf("HSTS: got %v, want %v", got, c.secure)
			}
		})
	}
}

func TestSessionsWithoutADatabase(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.signIn(r.client, "anna@example.org")
	r.memory.broken = errors.Join(delivery.ErrUnavailable, errors.New("dial tcp 10.0.0.5:5432"))
	answer, body := r.ask(r.client, http.MethodGet, "/bots", nil)
	if answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") != "5" {
		t.Errorf("got %d, Retry-After %q, want 503 and 5", answer.StatusCode, answer.Header.Get("Retry-After"))
	}
	if !strings.Contains(body, "no update is lost") || strings.Contains(body, "10.0.0.5") {
		t.Errorf("got %s, want our words without the database's", body)
	}
}

func TestRoles(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, c := range map[string]struct {
		email, path string
		want        int
		location    string
	}{
		"UI-07 an owner reaches bots":            {"anna@example.org", "/bots", 200, ""},
		"UI-07 an owner can't reach support":     {"anna@example.org", "/support", 404, ""},
		"support reaches support":                {"sam@example.org", "/support", 200, ""},
		"an admin reaches support":               {"root@example.org", "/support", 200, ""},
		"nobody is sent to sign in":              {"", "/support", 303, "/login?next=%2Fsupport"},
		"nobody comes back to the path alone":    {"", "/bots?token=x", 303, "/login?next=%2Fbots"},
		"the start of an owner":                  {"anna@example.org", "/", 303, "/bots"},
		"the start of support":                   {"sam@example.org", "/", 303, "/support"},
		"the start of nobody":                    {"", "/", 303, "/login"},
		"who is signed in needs no sign-in page": {"sam@example.org", "/login", 303, "/support"},
	} {
		client := r.browser()
		if c.email != "" {
			r.signIn(client, c.email)
		}
		answer, _ := r.ask(client, http.MethodGet, c.path, nil)
		if answer.StatusCode != c.want || answer.Header.Get("Location") != c.location {
			t.Errorf("%s: got %d %q, want %d %q", name, answer.StatusCode, answer.Header.Get("Location"), c.want, c.location)
		}
	}
	missing, _ := r.ask(r.client, http.MethodGet, "/nowhere", nil)
	if missing.StatusCode != http.StatusNotFound {
		t.Errorf("no such page: got %d, want 404", missing.StatusCode)
	}
	piece, body := r.ask(r.client, http.MethodGet, "/bots", nil, "HX-Request: true", "HX-Request-Type: partial")
	if piece.StatusCode != http.StatusUnauthorized || piece.Header.Get("HX-Redirect") != "/login?next=%2Fbots" || strings.Contains(body, "<html") {
		t.Errorf("a piece for nobody: got %d %q, want 401, HX-Redirect and no page", piece.StatusCode, piece.Header.Get("HX-Redirect"))
	}
}
