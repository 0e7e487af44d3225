package web

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestSignIn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		email, password, next string
		want                  int
		location              string
	}{
		"UI-11 right":                        {"anna@example.org", password, "", 303, "/bots"},
		"capitals and spaces in the email":   {" Anna@Example.org ", password, "", 303, "/bots"},
		"on to the page that was wanted":     {"anna@example.org", password, "/bots/7/connection", 303, "/bots/7/connection"},
		"never on to another site":           {"anna@example.org", password, "https://evil.example", 303, "/bots"},
		"nor by two slashes":                 {"anna@example.org", password, "//evil.example/x", 303, "/bots"},
		"nor by a backslash":                 {"anna@example.org", password, `/\evil.example`, 303, "/bots"},
		"nor by a tab":                       {"anna@example.org", password, "/\t/evil.example", 303, "/bots"},
		"nor by a script":                    {"anna@example.org", password, "javascript:alert(1)", 303, "/bots"},
		"a wrong password":                   {"anna@example.org", "wrong", "", 422, ""},
		"an unknown email":                   {"nobody@example.org", password, "", 422, ""},
		"nothing":                            {"", "", "", 422, ""},
		"a password longer than any we take": {"anna@example.org", strings.Repeat("x", 257), "", 422, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			answer, body := r.ask(r.client, http.MethodPost, "/login", url.Values{"email": {c.email}, "password": {c.password}, "next": {c.next}})
			if answer.StatusCode != c.want || answer.Header.Get("Location") != c.location {
				t.Errorf("got %d %q, want %d %q", answer.StatusCode, answer.Header.Get("Location"), c.want, c.location)
			}
			if c.want == 422 && (!strings.Contains(body, `id="error"`) || strings.Contains(body, c.password+`"`) && c.password != "") {
				t.Errorf("got %s, want the error and not the password", body)
			}
		})
	}
}

// guess tries a wrong password once.
func guess(r *rig, email string, header ...string) (*http.Response, string) {
	return r.ask(r.browser(), http.MethodPost, "/login", url.Values{"email": {email}, "password": {"wrong"}}, header...)
}

func TestGuessingIsSlowedDown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var first, last string
	for range accountTries {
		answer, body := guess(r, "anna@example.org", "X-Forwarded-For: 203.0.113.9")
		if answer.StatusCode != 422 {
			t.Fatalf("a try: got %d, want 422", answer.StatusCode)
		}
		first = body
	}
	asked := r.memory.asked
	answer, last := guess(r, "anna@example.org", "X-Forwarded-For: 203.0.113.10")
	if answer.StatusCode != 429 || answer.Header.Get("Retry-After") != "30" {
		t.Errorf("one too many: got %d, Retry-After %q, want 429 and 30", answer.StatusCode, answer.Header.Get("Retry-After"))
	}
	if first != last {
		t.Errorf("the words differ: got\n%s\nwant\n%s", last, first)
	}
	if r.memory.asked != asked+1 {
		t.Errorf("cost: got %d checks, want 1 as always", r.memory.asked-asked)
	}
	right := url.Values{"email": {"anna@example.org"}, "password": {password}}
	if answer, _ := r.ask(r.client, "POST", "/login", right); answer.StatusCode != 429 {
		t.Errorf("the right password meanwhile: got %d, want 429", answer.StatusCode)
	}
	r.clock.advance(30 * time.Second)
	if answer, _ := r.ask(r.client, "POST", "/login", right); answer.StatusCode != 303 {
		t.Errorf("the right password later: got %d, want 303", answer.StatusCode)
	}
	if answer, _ := guess(r, "anna@example.org"); answer.StatusCode != 422 {
		t.Errorf("a try after a success: got %d, want 422", answer.StatusCode)
	}
}

func TestGuessingManyAccountsFromOneAddress(t *testing.T) {
	t.Parallel()
	proxy := netip.MustParsePrefix("127.0.0.1/32")
	for name, c := range map[string]struct {
		trusted []netip.Prefix
		header  func(i int) string
		want    int // after more tries than one address has
	}{
		"one address, many accounts":             {nil, func(int) string { return "X-Nothing: 1" }, 429},
		"a forged header changes nothing":        {nil, func(i int) string { return "X-Forwarded-For: 203.0.113." + string(rune('0'+i%10)) }, 429},
		"behind our proxy, one client":           {[]netip.Prefix{proxy}, func(i int) string { return "X-Forwarded-For: 198.51.100." + string(rune('0'+i%10)) + ", 203.0.113.5" }, 429},
		"behind our proxy, many clients":         {[]netip.Prefix{proxy}, func(i int) string { return "X-Forwarded-For: 203.0.113." + string(rune('0'+i%10)) }, 422},
		"one network of 64 bits, many addresses": {[]netip.Prefix{proxy}, func(i int) string { return "X-Forwarded-For: 2001:db8::" + string(rune('1'+i%9)) }, 429},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(o *Options) { o.TrustedProxies = c.trusted })
			var answer *http.Response
			for i := range addressTries + 1 {
				answer, _ = guess(r, string(rune('a'+i))+"@example.org", c.header(i))
			}
			if answer.StatusCode != c.want {
				t.Errorf("got %d, want %d", answer.StatusCode, c.want)
			}
		})
	}
}

func TestThrottleStaysSmall(t *testing.T) {
	t.Parallel()
	clock := newClock()
	b := newBuckets(3, time.Minute)
	for i := range throttleRoom + 100 {
		b.of(string(rune(i)), clock.Now())
	}
	if got := len(b.byKey); got != throttleRoom || b.used.Len() != throttleRoom {
		t.Errorf("got %d keys and %d buckets, want %d", got, b.used.Len(), throttleRoom)
	}
	k := b.of("a", clock.Now())
	k.left = 0
	clock.advance(90 * time.Second)
	if k = b.of("a", clock.Now()); k.left != 1 {
		t.Errorf("after 90 s: got %d tries, want 1", k.left)
	}
	k.left = 0
	if got := b.wait(k, clock.Now()); got != 30*time.Second {
		t.Errorf("wait: got %v, want 30s", got)
	}
	clock.advance(time.Hour)
	if k = b.of("a", clock.Now()); k.left != 3 {
		t.Errorf("after an hour: got %d tries, want 3", k.left)
	}
}

func TestClientAddress(t *testing.T) {
	t.Parallel()
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for name, c := range map[string]struct {
		peer, forwarded, want string
	}{
		"no proxy":                   {"203.0.113.1:5", "", "203.0.113.1"},
		"a stranger's header":        {"203.0.113.1:5", "198.51.100.1", "203.0.113.1"},
		"our proxy":                  {"10.1.1.1:5", "198.51.100.1", "198.51.100.1"},
		"the right-most stranger":    {"10.1.1.1:5", "1.1.1.1, 198.51.100.1, 10.2.2.2", "198.51.100.1"},
		"our proxy says nothing":     {"10.1.1.1:5", "", "10.1.1.1"},
		"our proxy says garbage":     {"10.1.1.1:5", "1.1.1.1, unknown", "10.1.1.1"},
		"an address of IPv4 in IPv6": {"[::ffff:10.1.1.1]:5", "198.51.100.1", "198.51.100.1"},
		"IPv6":                       {"[fd00::1]:5", "2001:db8::7", "2001:db8::7"},
		"no peer":                    {"", "198.51.100.1", "invalid IP"},
	} {
		r := &http.Request{RemoteAddr: c.peer, Header: http.Header{}}
		if c.forwarded != "" {
			r.Header.Set("X-Forwarded-For", c.forwarded)
		}
		if got := ClientAddress(r, trusted).String(); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func TestLanguageAndTheme(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	says := func(client *http.Client, want ...string) {
		t.Helper()
		answer, body := r.ask(client, http.MethodGet, "/login", nil, "Accept-Language: en")
		if answer.StatusCode == http.StatusSeeOther {
			answer, body = r.ask(client, http.MethodGet, "/bots", nil, "Accept-Language: en")
		}
		for _, w := range append(want, ` lang="`+answer.Header.Get("Content-Language")+`"`) {
			if !strings.Contains(body, w) {
				t.Errorf("got %s\nwant %s in it", body, w)
			}
		}
	}
	says(r.client, "Sign in", `lang="en"`)
	answer, _ := r.ask(r.client, "POST", "/settings/language", url.Values{"language": {"ru"}, "next": {"/login?next=%2Fbots"}})
	if got := answer.Header.Get("Location"); answer.StatusCode != 303 || got != "/login?next=%2Fbots" {
		t.Errorf("language: got %d %q, want 303 back to the page", answer.StatusCode, got)
	}
	says(r.client, "Войти", `<html lang="ru"`) // UI-01: the cookie of who isn't signed in
	r.signIn(r.client, "anna@example.org")
	r.ask(r.client, "POST", "/settings/language", url.Values{"language": {"ru"}, "next": {"/bots"}})
	other := r.browser()
	r.signIn(other, "anna@example.org")
	says(other, "Выйти", `<html lang="ru"`) // UI-01: the person's choice, in another browser
	r.ask(other, "POST", "/settings/theme", url.Values{"theme": {"dark"}, "next": {"//evil.example"}})
	says(other, `data-theme="dark"`)
	r.ask(other, "POST", "/settings/theme", url.Values{"theme": {"system"}})
	if _, body := r.ask(other, "GET", "/bots", nil); strings.Contains(body, "data-theme") {
		t.Error("the device's colours: got data-theme, want none")
	}
	for path, form := range map[string]url.Values{
		"/settings/language": {"language": {"xx"}}, "/settings/theme": {"theme": {`"><script>`}},
	} {
		if answer, _ := r.ask(r.client, "POST", path, form); answer.StatusCode != 422 {
			t.Errorf("%s with garbage: got %d, want 422", path, answer.StatusCode)
		}
	}
}
