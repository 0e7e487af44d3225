package account_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	anna := r.anna()
	second := anna.browser().signIn(password)
	r.add("boris", "owner").signIn(password)
	t.Run("UI-01 the page says who is signed in, where, and what is chosen", func(t *testing.T) {
		a := anna.get("/settings", "Accept-Language: en").wants(http.StatusOK)
		a.shows("Anna@example.org", "Owner of bots", "Green <shop>", "You have 2 open sessions.", "This browser", "Another browser", "Sign out everywhere: 2 sessions")
		a.lacks("boris", password)
		if got := a.header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("Cache-Control: got %q, want no-store", got)
		}
		a.has(`name="language" value="en" aria-pressed="true"`, `name="zone" value="browser" aria-pressed="true"`, `name="theme" value="system" aria-pressed="true"`)
		if got := strings.Count(a.body, "data-this"); got != 1 {
			t.Errorf("sessions of this browser: got %d, want 1", got)
		}
		second.get("/settings", "Accept-Language: ru").shows("Ваши настройки", "Владелец ботов", "У вас 2 открытых сеанса.")
	})
	t.Run("UI-07 every page leads to it, for every role, and it is nobody's who isn't signed in", func(t *testing.T) {
		for _, role := range []string{"owner", "support", "admin"} {
			p := r.add(role, role).signIn(password)
			for _, path := range []string{"/bots", "/settings"} {
				p.get(path).wants(http.StatusOK).has(`href="/settings"`)
			}
		}
		anna.browser().get("/settings").leads("/login?next=%2Fsettings")
		for _, path := range []string{"/settings/zone", "/settings/password", "/settings/sign-out-everywhere"} {
			anna.browser().post(path, url.Values{"zone": {"utc"}}).leads("/login")
			anna.get(path).wants(http.StatusMethodNotAllowed)
		}
	})
	t.Run("language and theme lead back to it", func(t *testing.T) {
		p := r.add("vera", "owner").signIn(password)
		p.post("/settings/language", url.Values{"language": {"ru"}, "next": {"/settings"}}).leads("/settings")
		p.post("/settings/theme", url.Values{"theme": {"dark"}, "next": {"/settings"}}).leads("/settings")
		p.get("/settings").shows("Ваши настройки").has(`data-theme="dark"`, `value="dark" aria-pressed="true"`, `value="ru" aria-pressed="true"`)
	})
	t.Run("sessions that have ended aren't counted, and many are counted but not listed", func(t *testing.T) {
		r := newRig(t)
		anna := r.anna()
		r.clock.advance(119 * time.Minute)
		second := anna.browser().signIn(password)
		second.get("/settings").shows("You have 2 open sessions.")
		r.clock.advance(2 * time.Minute)
		second.get("/settings").shows("You have 1 open session.")
		r.db.MustExec(`INSERT INTO sessions (session_hash, user_id, created_at, seen_at) SELECT sha256(n::text::bytea), $1, $2, $2 FROM generate_series(1, 30) n`, anna.id, r.clock.Now())
		a := second.get("/settings").shows("You have 31 open sessions.", "11 more, seen earlier than these, aren't listed.")
		if got := strings.Count(a.body, `data-testid="session"`); got != 20 {
			t.Errorf("listed: got %d sessions, want 20", got)
		}
	})
}

func TestZone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	anna := r.anna()
	const marked = `data-zone="utc"`
	if body := anna.get("/bots").body; strings.Contains(body, "data-zone") {
		t.Errorf("before: got data-zone, want the browser's zone")
	}
	anna.post("/settings/zone", url.Values{"zone": {"utc"}}).leads("/settings")
	anna.post("/settings/zone", url.Values{"zone": {"utc"}}).leads("/settings")
	other := anna.browser().signIn(password)
	for _, p := range []*person{anna, other} {
		for _, path := range []string{"/settings", "/bots", "/bots/new", "/nowhere"} {
			if body := p.get(path).body; !strings.Contains(body, marked) {
				t.Errorf("UI-05 %s: got no %s in\n%s", path, marked, body)
			}
		}
	}
	if got := r.text(`SELECT time_zone FROM people WHERE user_id = $1`, anna.id); got != "utc" {
		t.Errorf("kept: got %q, want utc", got)
	}
	for _, bad := range []url.Values{{}, {"zone": {"Europe/Moscow"}}, {"zone": {`"><script>`}}, {"zone": {""}}} {
		anna.post("/settings/zone", bad).wants(http.StatusUnprocessableEntity).
			shows("Choose one of the two", "Your settings").lacks("<script>")
		if got := r.text(`SELECT time_zone FROM people WHERE user_id = $1`, anna.id); got != "utc" {
			t.Errorf("after %v: got %q, want utc still", bad, got)
		}
	}
	anna.post("/settings/zone", url.Values{"zone": {"browser"}}).leads("/settings")
	anna.get("/settings").shows("Times are shown in the zone of your device.").lacks(marked)
	want := []string{"set_zone zone=browser zone=utc owner known", "set_zone zone=utc zone=browser owner known"}
	if got := r.log(); !slices.Equal(got, want) {
		t.Errorf("audit log: got %q, want %q", got, want)
	}
}

func TestSignOutEverywhere(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	anna := r.anna()
	second, boris := anna.browser().signIn(password), r.add("boris", "owner").signIn(password)
	old := anna.session()
	anna.post("/settings/sign-out-everywhere", nil).leads("/login?signed-out=everywhere")
	anna.get("/login?signed-out=everywhere", "Accept-Language: en").shows("You are signed out everywhere: all your sessions have ended, this one too.")
	anna.get("/login?signed-out=everywhere", "Accept-Language: ru").shows("Вы вышли везде")
	anna.get("/login?signed-out=%3Cb%3Eelsewhere", "Accept-Language: en").lacks("signed out", "<b>")
	if got := anna.session(); got != "" {
		t.Errorf("the cookie: got %q, want none", got)
	}
	if anna.get("/settings", "Cookie: "+cookie+"="+old).status == http.StatusOK || second.in() || !boris.in() {
		t.Error("got a session of hers left, or one of his gone; want the other way round")
	}
	if got := r.count(`SELECT count(*) FROM sessions WHERE user_id = $1`, anna.id); got != 0 {
		t.Errorf("sessions: got %d, want 0", got)
	}
	if got, want := r.log(), []string{"sign_out_everywhere sessions_ended=2 owner known"}; !slices.Equal(got, want) {
		t.Errorf("audit log: got %q, want %q", got, want)
	}
	anna.signIn(password)
}

func TestOtherSitesCanDoNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	anna := r.anna()
	hash := r.text(`SELECT password_hash FROM people`)
	for path, form := range map[string]url.Values{
		"/settings/zone": {"zone": {"utc"}}, "/settings/password": passwords(password, fresh, fresh), "/settings/sign-out-everywhere": nil,
	} {
		for _, header := range []string{"Sec-Fetch-Site: cross-site", "Origin: https://elsewhere.example"} {
			anna.post(path, form, header).wants(http.StatusForbidden).shows("FORBIDDEN")
		}
	}
	if !anna.in() || r.text(`SELECT password_hash FROM people`) != hash || r.text(`SELECT time_zone FROM people`) != "" || len(r.log()) != 0 {
		t.Error("something changed; want nothing")
	}
}
