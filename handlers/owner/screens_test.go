package owner_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"mybots/browsertest"
	"mybots/delivery"
)

// screens is where the pictures of the pages are kept.
const screens = "../../docs/screens"

// open opens a tab in which anna is signed in.
func (s *scene) open(t *testing.T, setup browsertest.Setup) *browsertest.Tab {
	t.Helper()
	tab := browsertest.Open(t, setup)
	u, err := url.Parse(s.url)
	s.must(err)
	for _, c := range s.anna.client.Jar.Cookies(u) {
		tab.Do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, network.SetCookie, network.SetCookieParams{Name: c.Name, Value: c.Value, URL: s.url})
			return err
		}))
	}
	return tab
}

func (r *rig) signIn(tab *browsertest.Tab, p *person) {
	tab.Go(r.url + "/login")
	tab.Type("#email", p.email)
	tab.Type("#password", password)
	tab.Leave("main form button[type=submit]")
}

// shot is a page with its name. A variant differs from another one in its
// words only, so that half of the ways to look at it are enough.
type shot struct {
	name, path string
	variant    bool
}

func (s *scene) shots() []shot {
	return []shot{
		{"bots", "/bots", false},
		{"new-bot", "/bots/new", false},
		{"connection", here(s.support, "connection"), false},
		{"connection-receiving", here(s.shop, "connection"), false},
		{"connection-full", here(s.long, "connection"), true},
		{"connection-paused", here(s.arabic, "connection"), true},
		{"webhook-paused", here(s.refused, "connection"), false},
		{"webhook-retrying", here(s.shaky, "connection"), true},
		{"webhook-open", here(s.broken, "connection"), false},
		{"webhook-delivering", here(s.steady, "connection"), true},
		{"webhook-untried", here(s.untried, "connection"), true},
		{"webhook-off", here(s.off, "connection"), true},
		{"webhook-secret-gone", here(s.steady, "connection/secret"), true},
		{"webhook-emergency-reset", here(s.steady, "connection/emergency-reset"), true},
		{"reset", here(s.shop, "connection/reset"), true},
		{"emergency-reset", here(s.support, "connection/emergency-reset"), true},
		{"failed", here(s.support, "failed") + "?type=callback_query&reason=HTTP_422", false},
		{"failed-all", here(s.support, "failed"), false},
		{"failed-last", here(s.support, "failed") + "?after=300", true},
		{"failed-none", here(s.support, "failed") + "?type=poll_answered", false},
		{"failed-empty", here(s.shop, "failed"), false},
		{"failed-paused", here(s.arabic, "failed"), true},
		{"skip", here(s.support, "failed/skip") + "?update_id=3&update_id=4&update_id=9", false},
		{"skip-all", here(s.support, "failed/skip") + "?all=1&type=message&reason=HTTP_422", true},
		{"botfather", "/botfather/" + itoa(s.space), false},
		{"settings", here(s.shop, "settings"), false},
		{"settings-paused", here(s.arabic, "settings"), true},
		{"delete", here(s.support, "delete"), false},
		{"chat", here(s.shop, "chat"), false},
		{"chat-edit", here(s.shop, "chat") + "?edit=7", false},
		{"chat-closed", here(s.long, "chat"), false},
		{"chat-empty", here(s.newcomer, "chat"), false},
		{"chat-paused", here(s.arabic, "chat"), true},
		{"token-gone", here(s.newcomer, "token"), false},
	}
}

func TestScreens(t *testing.T) {
	t.Parallel()
	for _, language := range []string{"en", "ru"} {
		show := func(name string, walk func(t *testing.T, s *scene, tab *browsertest.Tab, look func(screen string, widths ...int))) {
			t.Run("UI-08 "+language+" "+name, func(t *testing.T) {
				t.Parallel()
				s := newScene(t)
				tab := s.open(t, browsertest.Setup{Language: language, Statuses: []int{409, 422}})
				walk(t, s, tab, func(screen string, widths ...int) {
					t.Helper()
					tab.Views(func(v browsertest.View) {
						tab.Axe()
						tab.Fits()
						path := picture(screen, language, v.Width, v.Dark)
						tab.Screenshot(path)
						if *update {
							shrink(t, path)
						}
					}, widths...)
				})
			})
		}
		show("pages", func(_ *testing.T, s *scene, tab *browsertest.Tab, look func(string, ...int)) {
			for _, shot := range s.shots() {
				tab.Go(s.url + shot.path)
				switch {
				case !shot.variant:
					look(shot.name)
				case language == "en":
					look(shot.name, 1280)
				default:
					look(shot.name, 360)
				}
			}
		})
		show("what forms lead to", func(_ *testing.T, s *scene, tab *browsertest.Tab, look func(string, ...int)) {
			s.refusals(tab, func(screen string) { look(screen) })
		})
	}
}

// refusals are the pages that only a form leads to: errors in forms, a token, the first steps.
func (s *scene) refusals(tab *browsertest.Tab, look func(string)) {
	tab.Go(s.url + "/bots/new")
	tab.Type("#username", "order_helper_bot")
	tab.Type("#name", "Another one")
	tab.Leave("main form button[type=submit]")
	look("new-bot-refused")
	tab.Go(s.url + here(s.support, "delete"))
	tab.Type("#username", "another")
	tab.Leave("main form button[type=submit]")
	look("delete-refused")
	tab.Go(s.url + here(s.support, "connection"))
	tab.Leave("#mode-form button[value=drop]")
	look("cancel-waiting")
	tab.Go(s.url + here(s.support, "connection"))
	s.db.MustExec(`UPDATE queues SET settings_version = 2 WHERE bot_id = $1`, s.support)
	tab.Leave("#mode-form button[value=keep]")
	look("connection-stale")
	s.hookPages(tab, look)
	tab.Go(s.url + here(s.support, "failed"))
	tab.Leave(".chosen-bar .primary")
	look("failed-nothing-selected")
	for _, id := range []string{"3", "4", "5", "8", "9"} {
		tab.Click("[data-row][value='" + id + "']")
	}
	look("failed-ticked")
	tab.Leave(".chosen-bar .primary")
	look("retried")
	tab.Go(s.url + here(s.support, "failed/skip") + "?update_id=10&update_id=11&update_id=999")
	tab.Leave(".confirm .danger")
	look("skipped")
	tab.Go(s.url + here(s.shop, "chat"))
	tab.Type("#file-name", " / ")
	tab.Click("#compose form[action$='/file'] button")
	tab.Until(`document.querySelector("#file-name-error") !== null`)
	look("chat-file-refused")
	tab.Go(s.url + "/bots/new")
	tab.Type("#username", "fresh_bot")
	tab.Type("#name", "Fresh bot")
	tab.Leave("main form button[type=submit]")
	look("token")
	s.db.MustExec(`UPDATE bots SET deleted_at = $1`, s.clock.Now())
	tab.Go(s.url + "/bots")
	look("bots-empty")
}

// hookPages are those that a webhook's forms lead to.
func (s *scene) hookPages(tab *browsertest.Tab, look func(string)) {
	tab.Go(s.url + here(s.newcomer, "connection"))
	tab.Click("#mode-webhook")
	tab.Type("#url", "http://localhost/smeet")
	tab.Leave("#mode-form button[value=keep]")
	look("webhook-address-refused")
	browsertest.Eval[bool](tab, `(document.querySelector("#url").value = "`+hookURL+`", true)`)
	tab.Leave("#mode-form button[value=keep]")
	look("webhook-secret")
	s.hooks.set(func(h *hooks) {
		h.answer = delivery.Answer{Kind: delivery.BadCertificate, Detail: delivery.CertificateName}
	})
	tab.Go(s.url + here(s.newcomer, "connection"))
	tab.Leave("form[action$='/test'] button")
	look("webhook-tested")
	tab.Click("#check summary")
	tab.Type("#check-header", "t=1790000000,v1="+strings.Repeat("0", 64))
	tab.Type("#check-body", `{"update_id":"7"}`)
	tab.Type("#check-secret", "swh1_of-the-program")
	tab.Leave("#check form button")
	tab.Click("#check details details summary")
	look("webhook-checked")
	tab.Go(s.url + here(s.steady, "connection"))
	tab.Leave("#mode-form button[value=drop]")
	look("webhook-cancel-waiting")
}

// kept are the pictures of the documents; all others are for looking at only.
var kept = map[string]bool{
	"bots": true, "bots-empty": true, "new-bot": true, "token": true, "connection": true, "connection-receiving": true,
	"cancel-waiting": true, "failed": true, "retried": true, "skip": true, "emergency-reset": true, "settings": true, "delete": true, "chat": true,
	"webhook-paused": true,
}

// picture is where a screen's picture goes: to the documents with -update, to
// MYBOTS_SCREENS if that names a folder, else nowhere.
func picture(screen, language string, width int, dark bool) string {
	theme := map[bool]string{false: "light", true: "dark"}[dark]
	if dir := os.Getenv("MYBOTS_SCREENS"); dir != "" {
		return filepath.Join(dir, fmt.Sprintf("%s-%s-%s-%d.png", screen, language, theme, width))
	}
	switch {
	case !*update || !kept[screen]:
		return ""
	case language == "en" && width == 1280:
		return filepath.Join(screens, screen+"-"+theme+".png")
	case language == "ru" && width == 360 && !dark && screen == "connection":
		return filepath.Join(screens, screen+"-ru-360.png")
	}
	return ""
}
