package reference_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"mybots/browsertest"
	"mybots/delivery/bots"
)

// addresses are all pages of the documentation.
var addresses = []string{"/docs", "/docs/polling", "/docs/webhook", "/docs/updates", "/docs/methods", "/docs/errors", "/docs/signature",
	"/docs/idempotency", "/docs/limits", "/docs/running", "/docs/try", "/docs/search?q=offset", "/docs/search?q=nothing+like+this", "/docs/search"}

func TestScreens(t *testing.T) {
	t.Parallel()
	for _, language := range []string{"en", "ru"} {
		t.Run("UI-08 UI-10 "+language, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			tab := browsertest.Open(t, browsertest.Setup{Language: language})
			for i, path := range addresses {
				tab.Go(r.url + path)
				tab.Views(func(v browsertest.View) {
					tab.Axe()
					tab.Fits()
					tab.Screenshot(picture(i, path, language, v))
				})
			}
		})
	}
}

// Who is signed in reads the same pages, with their own menu.
func TestSignedIn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, err := r.bots.AddPerson(t.Context(), bots.NewPerson{SpaceID: r.space, Email: "root@example.org", Role: "admin", Password: password})
	r.must(err)
	b := r.bot("order_bot")
	for _, language := range []string{"en", "ru"} {
		for _, email := range []string{"anna@example.org", "root@example.org"} {
			t.Run("UI-08 UI-10 "+language+" "+email, func(t *testing.T) {
				t.Parallel()
				tab := browsertest.Open(t, browsertest.Setup{Language: language})
				tab.Go(r.url + "/login")
				tab.Leave("main footer a")
				if tab.Path() != "/docs" {
					t.Errorf("from the sign-in page: got %s, want /docs", tab.Path())
				}
				tab.Go(r.url + "/login?next=/docs/limits")
				tab.Type("#email", email)
				tab.Type("#password", password)
				tab.Leave("main form button[type=submit]")
				if got := tab.Path(); got != "/docs/limits" || !tab.Has(".bar nav a[href='/docs'][aria-current=page]") {
					t.Errorf("signed in: got %s, want the page, and its place in the menu", got)
				}
				if email == "anna@example.org" {
					tab.Go(r.url + "/bots/" + strconv.FormatInt(b.id, 10) + "/connection")
					if !tab.Has("#start a[href='/docs/polling']") {
						t.Error("the Connection screen: got no link to how to receive")
					}
					tab.Go(r.url + "/docs/limits")
				}
				tab.Views(func(v browsertest.View) {
					tab.Axe()
					tab.Fits()
					tab.Screenshot(picture(0, "/signed-in-"+email[:4], language, v))
				}, 1280, 800, 720, 360)
			})
		}
	}
}

// picture is where a page's picture goes, for looking at: to the folder that
// MYBOTS_SCREENS names, else nowhere.
func picture(i int, path, language string, v browsertest.View) string {
	dir := os.Getenv("MYBOTS_SCREENS")
	if dir == "" {
		return ""
	}
	theme := map[bool]string{false: "light", true: "dark"}[v.Dark]
	name := filepath.Base(path)
	if i > 10 {
		name = fmt.Sprint("search", i)
	}
	return filepath.Join(dir, fmt.Sprintf("%s-%s-%s-%d.png", name, language, theme, v.Width))
}
