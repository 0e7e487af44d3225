package account_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"mybots/browsertest"
	"mybots/delivery/bots"
)

// enter gives the tab the browser's session.
func (p *person) enter(tab *browsertest.Tab) {
	tab.Cookie(p.rig.url, cookie, p.session())
	tab.Go(p.rig.url + "/settings")
}

// picture is where a picture of a screen goes: to MYBOTS_SCREENS if that names a
// folder, else nowhere.
func picture(screen, language string, v browsertest.View) string {
	dir := os.Getenv("MYBOTS_SCREENS")
	if dir == "" {
		return ""
	}
	theme, width := "light", "1280"
	if v.Dark {
		theme = "dark"
	}
	if v.Width == 360 {
		width = "360"
	}
	return filepath.Join(dir, strings.Join([]string{screen, language, theme, width}, "-")+".png")
}

func TestScreens(t *testing.T) {
	t.Parallel()
	for _, language := range []string{"en", "ru"} {
		t.Run("UI-08 UI-01 axe finds nothing and nothing overflows: "+language, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			anna := r.anna()
			anna.browser().signIn(password)
			r.db.MustExec(`UPDATE sessions SET created_at = created_at - interval '9 hours', seen_at = seen_at - interval '40 minutes'`)
			tab := browsertest.Open(t, browsertest.Setup{Language: language, Zone: "Europe/Moscow", Statuses: []int{422, 429}})
			look := func(screen string) {
				t.Helper()
				tab.Views(func(v browsertest.View) {
					tab.Axe()
					tab.Fits()
					tab.Screenshot(picture(screen, language, v))
				})
			}
			anna.enter(tab)
			look("account")
			tab.Leave("form[action='/settings/max/code'] button")
			look("account-max-code")
			if _, err := r.notices.Link(t.Context(), 987654321, browsertest.Eval[string](tab, `document.querySelector("#code").value`)); err != nil {
				t.Fatalf("N-07 the code that the page shows: %v", err)
			}
			tab.Go(r.url + "/settings")
			look("account-max-linked")
			refused := func(code string) {
				t.Helper()
				tab.Click("#password-form button")
				tab.Until(`document.activeElement.dataset.code === "` + code + `"`)
			}
			tab.Type("#old", "wrong horse")
			tab.Type("#new", "short")
			tab.Type("#again", "short")
			refused("INVALID")
			look("account-refused")
			for range 11 {
				anna.post("/settings/password", passwords("wrong", fresh, fresh))
			}
			tab.Type("#old", password)
			tab.Type("#new", fresh)
			tab.Type("#again", fresh)
			refused("RATE_LIMITED")
			look("account-throttled")
			tab.Leave("[name=zone][value=utc]")
			look("account-utc")
			tab.Leave("form[action='/settings/sign-out-everywhere'] button")
			look("account-signed-out")
		})
	}
}

// shownTimes are the times of the page: what is seen, a tab, and the hover.
const shownTimes = `[...document.querySelectorAll("time")].map(e => (e.querySelector(".at") ?? e).innerText + "\t" + e.title)`

func TestTimes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		zone     string
		noScript bool
		ends     string
	}{
		"UI-05 in the browser's zone":       {"", false, " GMT+3"},
		"UI-05 in UTC":                      {bots.ZoneUTC, false, " UTC"},
		"UI-05 without JavaScript, browser": {"", true, " UTC"},
		"UI-05 without JavaScript, UTC":     {bots.ZoneUTC, true, " UTC"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			anna := r.anna()
			bot, _, err := r.bots.Create(t.Context(), bots.NewBot{SpaceID: r.space, OwnerID: anna.id, Username: "order_bot", Name: "Order helper"})
			r.must(err)
			r.must(r.bots.SetZone(t.Context(), bots.Actor{UserID: anna.id}, c.zone))
			r.db.MustExec(`UPDATE bots SET created_at = '2026-01-02 22:30:04Z'`) // the next day in Moscow
			tab := browsertest.Open(t, browsertest.Setup{Zone: "Europe/Moscow", NoScript: c.noScript})
			anna.enter(tab)
			for path, least := range map[string]int{"/settings": 3, "/bots/" + strconv.FormatInt(bot.ID, 10) + "/settings": 1} {
				tab.Go(r.url + path)
				times := browsertest.Eval[[]string](tab, shownTimes)
				if len(times) < least {
					t.Errorf("%s: got %d times, want %d at least", path, len(times), least)
				}
				for _, shown := range times {
					text, hover, _ := strings.Cut(shown, "\t")
					if !strings.HasSuffix(text, c.ends) {
						t.Errorf("%s: got %q, want the zone%s", path, text, c.ends)
					}
					if _, err := time.Parse("2006-01-02 15:04:05 UTC", hover); err != nil {
						t.Errorf("%s: hover: got %q, want the exact UTC", path, hover)
					}
				}
			}
			want := map[string]string{" GMT+3": "Jan 3, 2026, 01:30 GMT+3", " UTC": "Jan 2, 2026, 22:30 UTC"}[c.ends]
			if c.noScript {
				want = "2026-01-02 22:30:04 UTC"
			}
			tab.Go(r.url + "/bots/" + strconv.FormatInt(bot.ID, 10) + "/settings")
			if got := tab.Text("main time"); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestByKeyboard(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	anna := r.anna()
	second := anna.browser().signIn(password)
	tab := browsertest.Open(t, browsertest.Setup{Statuses: []int{422}})
	anna.enter(tab)
	tab.Go(r.url + "/bots")
	// reach presses Tab until the focus is on what the expression says of e.
	reach := func(expression string) {
		t.Helper()
		for range 40 {
			if browsertest.Eval[bool](tab, `(e => `+expression+`)(document.activeElement)`) {
				return
			}
			tab.Press(kb.Tab)
		}
		t.Fatalf("the keyboard doesn't reach %s", expression)
	}
	t.Run("UI-08 from any page to the settings, a wrong password, a right one, UTC and out, by keys alone", func(t *testing.T) {
		reach(`e.getAttribute("href") === "/settings"`)
		tab.LeaveByKey(kb.Enter)
		reach(`e.id === "old"`)
		tab.Press("wrong horse")
		tab.Press(kb.Tab)
		tab.Press(fresh)
		tab.Press(kb.Tab)
		tab.Press(fresh)
		tab.Press(kb.Enter)
		tab.Until(`document.activeElement.dataset.code === "WRONG_PASSWORD" && document.querySelector("#old").getAttribute("aria-describedby") === "old-error"`)
		if got := browsertest.Eval[string](tab, `["old", "new", "again"].map(id => document.getElementById(id).value).join("")`); got != "" {
			t.Errorf("after a refusal: got %q in the fields, want nothing", got)
		}
		reach(`e.id === "old"`)
		tab.Press(password)
		tab.Press(kb.Tab)
		tab.Press(fresh)
		tab.Press(kb.Tab)
		tab.Press(fresh)
		tab.LeaveByKey(kb.Enter)
		if got, want := tab.Text("#flash"), "The password is changed. All your other sessions have ended."; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if second.in() {
			t.Error("the other session: got it alive, want it ended")
		}
		reach(`e.name === "zone" && e.value === "utc"`)
		tab.LeaveByKey(" ")
		if !tab.Has("html[data-zone=utc] [name=zone][value=utc][aria-pressed=true]") {
			t.Error("UTC isn't chosen")
		}
		reach(`e.form?.getAttribute("action") === "/settings/sign-out-everywhere"`)
		tab.LeaveByKey(kb.Enter)
		if got, want := tab.Path(), "/login?signed-out=everywhere"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestWithoutJavaScript(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	anna := r.anna()
	tab := browsertest.Open(t, browsertest.Setup{NoScript: true, Width: 360, Statuses: []int{422}})
	anna.enter(tab)
	if got := tab.Text("noscript"); !strings.Contains(got, "Without JavaScript times are in UTC") {
		t.Errorf("got %q, want what is so without JavaScript", got)
	}
	tab.Type("#old", "wrong horse")
	tab.Type("#new", fresh)
	tab.Type("#again", fresh)
	tab.Leave("#password-form button")
	if !tab.Has("#error[data-code=WRONG_PASSWORD]") || !tab.Has("#old-error") {
		t.Error("got no error, want one beside the old password")
	}
	tab.Fits()
	tab.Type("#old", password)
	tab.Type("#new", fresh)
	tab.Type("#again", fresh)
	tab.Leave("#password-form button")
	if got := tab.Text("#flash"); !strings.HasPrefix(got, "The password is changed.") {
		t.Errorf("got %q, want that it is changed", got)
	}
	tab.Leave("[name=zone][value=utc]")
	tab.Leave("[name=language][value=ru]")
	if !tab.Has("html[lang=ru][data-zone=utc]") {
		t.Error("got no Russian page in UTC")
	}
	tab.Leave("form[action='/settings/sign-out-everywhere'] button")
	if got := tab.Text("[data-testid=ended]"); !strings.HasPrefix(got, "Вы вышли везде") {
		t.Errorf("got %q, want that all sessions have ended", got)
	}
}
