package support_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"mybots/browsertest"
	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/delivery/notice"
	"mybots/web"
)

// scene is an installation with bots in many states.
type scene struct {
	*rig
	anna, root, sam      *person
	shop, desk, arabic   int64
	longest, switchedOff int64
}

func newScene(t *testing.T) *scene {
	t.Helper()
	r := newRig(t)
	s := &scene{rig: r, anna: r.signedIn("anna", web.Owner), root: r.signedIn("root", web.Admin), sam: r.signedIn("sam", web.Support)}
	s.shop = s.anna.bot("Order helper")
	s.anna.hook(s.shop, "https://bots.example.org/hook?token=x")
	r.must(r.notices.OpenChat(t.Context(), r.space, s.anna.id, notice.English))
	r.db.MustExec(`INSERT INTO max_links (user_id, max_user_id, linked_at) VALUES ($1, 987654321, $2)`, s.anna.id, r.clock.Now())
	for range 40 {
		r.append(s.shop, `{"chat":{"id":"550"},"from":{"name":"Anna","admin":false},"text":"Where is my order 1047, please?","total":12345.67,"entities":[]}`)
	}
	for _, status := range []int{200, 422, 500, 429, 413, 401} {
		if status == 200 {
			got, err := r.queue.Claim(t.Context(), []int64{s.shop}, 1)
			r.must(err)
			_, err = r.queue.Confirm(t.Context(), got.Claims[0], 200, 31*time.Millisecond, false)
			r.must(err)
			continue
		}
		r.settle(s.shop, delivery.Answer{Kind: delivery.Answered, Status: status, RetryAfter: time.Second})
		r.clock.advance(10 * time.Second)
	}
	r.notify(map[string]notice.Sender{notice.MAX: answers{Class: notice.ClassUnknown, Reason: notice.WhyLost}})
	s.desk = s.anna.bot("Support desk")
	r.fail(s.desk, `{"text":"hello"}`, "The bot can't read this update")
	r.append(s.desk, `{}`)
	_, err := r.queue.Receive(t.Context(), s.desk, delivery.Poll{ConsumerID: "worker-7f3a", Limit: 1}, "203.0.113.9")
	r.must(err)
	_, err = r.queue.Receive(t.Context(), s.desk, delivery.Poll{ConsumerID: "laptop-of-anna", Limit: 1}, "203.0.113.10")
	if err == nil {
		t.Fatal("the second program: got no error, want a conflict")
	}
	s.arabic = s.anna.bot("مساعد الطلبات")
	s.longest = s.anna.bot("Announcements of the whole company, its branches and its friends")
	r.db.MustExec(`UPDATE bots SET username = 'announcements_of_the_whole_co_bt' WHERE bot_id = $1`, s.longest)
	r.db.MustExec(`UPDATE queues SET waiting = 10000, waiting_bytes = 18874368 WHERE bot_id = $1`, s.longest)
	s.switchedOff = s.anna.bot("Newcomer")
	s.anna.hook(s.switchedOff, "https://a-rather-long-name-of-a-host.of-some-company.example.org:8443/hook")
	r.must(r.bots.AllowWebhook(t.Context(), bots.Actor{UserID: s.root.id, RequestID: "req"}, s.switchedOff, false, "The address floods a stranger's server, as its owner complained on 1 December."))
	r.db.MustExec(`
WITH made AS (
    INSERT INTO bots (space_id, owner_id, username, name, created_at)
    SELECT $1, $2, 'helper_robot_' || n, 'Helper ' || n, $3 FROM generate_series(1, 60) n RETURNING bot_id
)
INSERT INTO queues (bot_id, failed) SELECT bot_id, bot_id * 37 FROM made`, r.space, s.anna.id, r.clock.Now())
	return s
}

// open opens a tab in which the person is signed in.
func (s *scene) open(t *testing.T, p *person, setup browsertest.Setup) *browsertest.Tab {
	t.Helper()
	tab := browsertest.Open(t, setup)
	u, err := url.Parse(s.url)
	s.must(err)
	for _, c := range p.client.Jar.Cookies(u) {
		tab.Do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, network.SetCookie, network.SetCookieParams{Name: c.Name, Value: c.Value, URL: s.url})
			return err
		}))
	}
	return tab
}

// shot is a page with its name. A variant differs from another one in its words
// only, so that half of the ways to look at it are enough.
type shot struct {
	name, path string
	variant    bool
}

// notice is the page of a notice in that state.
func (s *scene) notice(state notice.State) string {
	s.t.Helper()
	list, err := s.notices.List(s.t.Context(), notice.Filter{State: state}, 0, 1)
	s.must(err)
	if len(list) == 0 {
		s.t.Fatalf("got no notice that is %s, want one", state)
	}
	return noticePage(list[0].ID)
}

func (s *scene) shots() []shot {
	return []shot{
		{"home", "/support", false},
		{"found", "/support?q=order", true},
		{"found-many", "/support?q=robot", false},
		{"found-none", "/support?q=zzz", true},
		{"bot-webhook", here(s.shop, ""), false},
		{"bot-polling", here(s.desk, ""), false},
		{"bot-long", here(s.longest, ""), true},
		{"bot-arabic", here(s.arabic, ""), true},
		{"bot-off", here(s.switchedOff, ""), true},
		{"updates", here(s.shop, "/updates"), true},
		{"updates-failed", here(s.shop, "/updates?list=failed"), false},
		{"updates-none", here(s.arabic, "/updates"), true},
		{"update", here(s.shop, "/updates/9"), false},
		{"update-failed", here(s.desk, "/updates/1"), true},
		{"ask-webhook", here(s.shop, "/webhook"), true},
		{"ask-webhook-on", here(s.switchedOff, "/webhook"), true},
		{"ask-space", "/support/spaces/" + itoa(s.space) + "/running", true},
		{"ask-maintenance", "/support/maintenance", true},
		{"audit", "/support/audit", false},
		{"notices", "/support/notices", false},
		{"notices-none", "/support/notices?state=deduplicated", true},
		{"notice", s.notice(notice.Uncertain), false},
		{"notice-sent", s.notice(notice.Sent), true},
		{"botfather-closed", "/botfather/" + itoa(s.space), true},
	}
}

func TestScreens(t *testing.T) {
	t.Parallel()
	for _, language := range []string{"en", "ru"} {
		for _, width := range []int{1280, 360} {
			for _, dark := range []bool{false, true} {
				name := fmt.Sprintf("%s-%s-%d", language, map[bool]string{false: "light", true: "dark"}[dark], width)
				t.Run("UI-08 "+name, func(t *testing.T) {
					t.Parallel()
					s := newScene(t)
					tab := s.open(t, s.root, browsertest.Setup{Width: width, Dark: dark, Language: language, Statuses: []int{400, 403, 422}})
					look := func(screen string) {
						t.Helper()
						tab.Axe()
						tab.Fits()
						tab.Screenshot(picture(screen, name))
					}
					for _, shot := range s.shots() {
						if shot.variant && (language == "en") != (width == 1280) {
							continue
						}
						tab.Go(s.url + shot.path)
						look(shot.name)
					}
					s.journey(tab, look)
				})
			}
		}
	}
}

// journey are the pages that only a form leads to.
func (s *scene) journey(tab *browsertest.Tab, look func(string)) {
	tab.Go(s.url + here(s.shop, "/updates/9"))
	tab.Type("#reason", "The owner asked for it")
	tab.Leave("#unmask button")
	look("update-shown")
	tab.Go(s.url + "/support/notices")
	tab.Click(`[data-route="max"] summary`)
	tab.Type("#reason-max", "MAX answers nothing")
	tab.Leave(`[data-route="max"] .danger`)
	look("notices-stopped")
	tab.Go(s.url + "/support")
	look("home-stopped")
	tab.Go(s.url + s.notice(notice.Uncertain))
	tab.Type("#recipient", "nobody")
	tab.Type("#readdress-reason", "A new account")
	tab.Leave(`form[action$="/readdress"] button`)
	look("notice-refused")
	tab.Go(s.url + "/support/maintenance")
	tab.Type("#message", "New disks, back at noon.\nNothing is lost.")
	tab.Type("#message_ru", "Новые диски, вернёмся в полдень.")
	tab.Type("#reason", "x"+string(delivery.NewSecret(delivery.BotTokenPrefix)))
	tab.Leave(".confirm .danger")
	look("maintenance-refused")
	browsertest.Eval[bool](tab, `(document.querySelector("#reason").value = "disks", true)`)
	tab.Leave(".confirm .danger")
	look("home-maintenance")
	tab.Go(s.url + "/support/maintenance")
	look("ask-maintenance-on")
	tab.Go(s.url + "/bots")
	look("owner-banner")
}

// picture is where a screen's picture goes: to MYBOTS_SCREENS if that names a
// folder, else nowhere.
func picture(screen, name string) string {
	if dir := os.Getenv("MYBOTS_SCREENS"); dir != "" {
		return filepath.Join(dir, screen+"-"+name+".png")
	}
	return ""
}

// Everything can be done with the keyboard alone, and without JavaScript.
func TestByKeyAndWithoutScript(t *testing.T) {
	t.Parallel()
	for name, setup := range map[string]browsertest.Setup{"UI-08 by keyboard": {Width: 1280}, "UI-01 without JavaScript": {Width: 1280, NoScript: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			tab := s.open(t, s.root, setup)
			tab.Go(s.url + "/support")
			tab.Type("#q", "order")
			tab.LeaveByKey(kb.Enter)
			tab.Leave(`[data-bot="` + itoa(s.shop) + `"] a`)
			tab.Leave(`[data-testid="switches"] a[href$="/webhook"]`)
			tab.Type("#reason", "Too many complaints")
			tab.LeaveByKey(kb.Enter)
			if got, want := tab.Path(), here(s.shop, ""); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if !tab.Has(`[data-testid="state"][data-state="hook_off"]`) {
				t.Errorf("got the state %q, want the webhook switched off", tab.Text(`[data-testid="state"]`))
			}
			tab.Go(s.url + here(s.shop, "/updates/9"))
			tab.Type("#reason", "The owner asked")
			tab.LeaveByKey(kb.Enter)
			if !tab.Has(`[data-testid="content"]`) {
				t.Error("got no content, want the one update's")
			}
			uncertain := s.notice(notice.Uncertain)
			tab.Go(s.url + "/support")
			tab.Leave(`[data-testid="notices-home"] a[href*="state=me"]`)
			tab.Leave(`[data-testid="notice"] a[href="` + uncertain + `"]`)
			tab.Type("#retry-reason", "The owner has read nothing")
			tab.LeaveByKey(kb.Enter)
			if got := tab.Path(); got != uncertain || !tab.Has(`[data-testid="notice"][data-state="queued"]`) {
				t.Errorf("got %s, want %s with the notice queued again", got, uncertain)
			}
		})
	}
}
