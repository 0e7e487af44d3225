package owner_test

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

	"mybots/browsertest"
	"mybots/delivery/chat"
)

// screens is where the pictures of the pages are kept.
const screens = "../../docs/screens"

// scene is a person with bots in many states.
type scene struct {
	*rig
	anna                                  *person
	shop, support, long, arabic, newcomer int64
}

func newScene(t *testing.T) *scene {
	t.Helper()
	r := newRig(t)
	s := &scene{rig: r, anna: r.owner()}
	s.shop = s.anna.bot("order_helper_bot", "Order helper")
	s.support = s.anna.bot("support_desk_bot", "Support desk")
	s.long = s.anna.bot("announcements_of_the_whole_co_bt", "Announcements of the whole company, its branches and its friends")
	s.arabic = s.anna.bot("talabat_bot", "مساعد الطلبات")
	s.newcomer = s.anna.bot("newcomer_bot", "Newcomer")
	r.mustPoll(s.shop, "worker-7f3a")
	if _, err := r.poll(s.shop, "laptop-anna", 0); err == nil {
		t.Fatal("the second program: got no error, want a refusal")
	}
	s.failures()
	r.fill(s.support, 37, 18*time.Minute)
	r.fill(s.long, 1, 3*time.Hour)
	r.must(r.chats.SetAccess(t.Context(), s.long, chat.Person{ID: s.anna.id, DisplayName: "anna"}, chat.Left))
	r.db.MustExec(`UPDATE queues SET waiting = 10000, waiting_bytes = 18874368 WHERE bot_id = $1`, s.long)
	r.fill(s.arabic, 4, time.Minute)
	r.db.MustExec(`UPDATE queues SET paused = true WHERE bot_id = $1`, s.arabic)
	s.talk()
	return s
}

// failures are the failed updates of the support bot: 312 of many kinds.
func (s *scene) failures() {
	s.manyFailed(s.support, 312)
	s.db.MustExec(`
UPDATE failed_updates SET attempts = CASE WHEN update_id % 5 IN (0, 1) THEN 5 ELSE 1 END, date = $2::timestamptz - (400 - update_id) * interval '7 minutes',
       type = CASE update_id % 7 WHEN 0 THEN 'callback_query' WHEN 3 THEN 'message_edited' WHEN 5 THEN 'file_status_changed' ELSE 'message' END,
       failed_at = $2::timestamptz - (340 - update_id) * interval '5 minutes', expires_at = $2::timestamptz - (400 - update_id) * interval '7 minutes' + interval '7 days',
       reason = CASE update_id % 5 WHEN 0 THEN 'HTTP_5XX' WHEN 1 THEN 'DELIVERY_OUTCOME_UNKNOWN' WHEN 2 THEN 'HTTP_422'
                ELSE 'The bot can''t read this update: message.chat.id is not a text' END
 WHERE bot_id = $1`, s.support, s.clock.Now())
	s.db.MustExec(`INSERT INTO chats (bot_id, chat_id, access) VALUES ($1, 551, 'stopped'), ($1, 552, 'left')`, s.support)
	s.db.MustExec(`UPDATE failed_updates SET chat_id = CASE WHEN update_id = 4 THEN 551 WHEN update_id = 9 THEN 552 ELSE 550 END WHERE bot_id = $1`, s.support)
	s.fail(s.arabic, "خطأ: الطلب غير موجود", 2)
}

// talk fills the test chat of the shop's bot.
func (s *scene) talk() {
	ctx, by := s.t.Context(), chat.Person{ID: s.anna.id, DisplayName: "anna"}
	s.must(s.chats.Write(ctx, s.shop, by, "Where is my order 1047?"))
	s.anna.reply(s.shop, "It left the warehouse this morning.\nWhat would you like to do?",
		[]chat.Button{{Text: "Follow the parcel", Data: "follow"}, {Text: "Change the address", Data: "address"}}, []chat.Button{{Text: "Talk to a person", Data: "person"}})
	s.must(s.chats.Press(ctx, chat.Bot{ID: s.shop, Username: "order_helper_bot", Name: "Order helper"}, by, 2, 0, 0))
	s.db.MustExec(`UPDATE callbacks SET answered_at = $2, answer = 'It arrives tomorrow before noon.' WHERE bot_id = $1`, s.shop, s.clock.Now())
	s.must(s.chats.Write(ctx, s.shop, by, "Thanks! And the <b>invoice</b>?\nhttps://example.org/a-very-long-address/that-has/no-spaces-in-it/and-goes-on/and-on/and-on?with=a&query=too"))
	s.must(s.chats.Write(ctx, s.shop, by, "Hello?"))
	s.db.MustExec(`UPDATE messages SET state = 'refused', refused = 'QUEUE_FULL' WHERE bot_id = $1 AND message_id = 4`, s.shop)
	s.must(s.chats.SetAccess(ctx, s.shop, by, chat.Stopped))
	s.must(s.chats.SetAccess(ctx, s.shop, by, chat.Allowed))
	s.must(s.chats.Write(ctx, s.shop, by, "My card is 2200 0000 0000 0000"))
	s.must(s.chats.Delete(ctx, s.shop, by, 5))
	s.must(s.chats.Attach(ctx, s.shop, by, "receipt-of-a-very-long-name-without-a-single-space-in-it-1047.pdf"))
	s.must(s.chats.Check(ctx, s.shop, by, 6, chat.Infected))
	s.must(s.chats.Write(ctx, s.shop, by, "It came, but the parcel is open."))
	s.must(s.chats.Edit(ctx, s.shop, by, 7, "It came, but the parcel was open."))
	s.must(s.chats.Attach(ctx, s.shop, by, "parcel.jpg"))
}

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
		{"cancel-waiting", here(s.support, "connection/drop"), false},
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
		for _, width := range []int{1280, 360} {
			for _, dark := range []bool{false, true} {
				name := fmt.Sprintf("%s-%s-%d", language, map[bool]string{false: "light", true: "dark"}[dark], width)
				t.Run("UI-08 "+name, func(t *testing.T) {
					t.Parallel()
					s := newScene(t)
					tab := s.open(t, browsertest.Setup{Width: width, Dark: dark, Language: language, Statuses: []int{409, 422}})
					look := func(screen string) {
						t.Helper()
						tab.Axe()
						tab.Fits()
						tab.Screenshot(picture(screen, language, width, dark))
						if *update {
							shrink(t, picture(screen, language, width, dark))
						}
					}
					for _, shot := range s.shots() {
						if shot.variant && (language == "en") != (width == 1280) {
							continue
						}
						tab.Go(s.url + shot.path)
						look(shot.name)
					}
					s.refusals(tab, look)
				})
			}
		}
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
	s.db.MustExec(`UPDATE queues SET settings_version = 2 WHERE bot_id = $1`, s.support)
	tab.Leave("#mode-form button[value=keep]")
	look("connection-stale")
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

// kept are the pictures of the documents; all others are for looking at only.
var kept = map[string]bool{
	"bots": true, "bots-empty": true, "new-bot": true, "token": true, "connection": true, "connection-receiving": true,
	"cancel-waiting": true, "failed": true, "retried": true, "skip": true, "emergency-reset": true, "settings": true, "delete": true, "chat": true,
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
