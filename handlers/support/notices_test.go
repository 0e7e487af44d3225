package support_test

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/delivery/notice"
	"mybots/views/words"
	"mybots/web"
)

// told is a bot of anna's with one notice for each route: BotFather has written
// his, MAX gave the result. planted is what nobody may read anywhere.
func (r *rig) told(anna *person, result notice.Result) (bot, byMAX int64, planted []string) {
	r.t.Helper()
	bot = anna.bot("Order helper")
	r.db.MustExec(`INSERT INTO botfather_chats (space_id, user_id, language, opened_at) VALUES ($1, $2, 'en', $3)`, r.space, anna.id, r.clock.Now())
	r.db.MustExec(`INSERT INTO max_links (user_id, max_user_id, linked_at) VALUES ($1, 987654321, $2)`, anna.id, r.clock.Now())
	token, err := r.bots.EmergencyReset(r.t.Context(), bots.Actor{UserID: anna.id}, bot)
	r.must(err)
	secret := anna.hook(bot, "https://bots.example.org/hook?token=TOKEN-MARKER")
	r.append(bot, `{"text":"PAYLOAD-MARKER"}`)
	r.settle(bot, delivery.Answer{Kind: delivery.Answered, Status: 401})
	r.notify(map[string]notice.Sender{notice.MAX: answers(result)})
	r.must(r.db.Get(&byMAX, `SELECT notice_id FROM notices WHERE bot_id = $1 AND route = 'max'`, bot))
	return bot, byMAX, []string{"987654321", "?token=", "TOKEN-MARKER", "PAYLOAD-MARKER", string(token), string(secret)}
}

// noCheck is a deed of the owner's that isn't what a test is about.
func noCheck(context.Context, *sqlx.Tx) error { return nil }

func noticePage(id int64) string { return "/support/notices/" + itoa(id) }

func TestNotices(t *testing.T) {
	t.Parallel()
	t.Run("N-08 the list, its filters and the one notice", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna, sam := r.signedIn("anna", web.Owner), r.signedIn("sam", web.Support)
		bot, id, planted := r.told(anna, notice.Result{Class: notice.ClassUnknown, Reason: notice.WhyLost})
		r.clock.advance(1) // the pauses after it are held back
		for range 17 {
			r.must(r.queue.ResumeWebhook(t.Context(), bot, noCheck))
			r.settle(bot, delivery.Answer{Kind: delivery.Answered, Status: 401})
		}
		sam.get("/support/notices").wants(http.StatusOK).shows("Uncertain", "Sent", "No answer came", "17 more held back", "@robot_1", "anna@example.org", "…321", "Delivery paused · HTTP_401", "paused "+itoa(bot)+" max …321 ").
			lacks(append(planted, "Let it send", "Stop it")...)
		for query, want := range map[string]string{"state=me": "Uncertain", "state=sent": "data-state=\"sent\"", "route=botfather": "data-state=\"sent\"", "route=max": "Uncertain", "bot=" + itoa(bot): "Uncertain"} {
			sam.get("/support/notices?" + query).wants(http.StatusOK).shows("data-notice")
			if body := sam.get("/support/notices?" + query).body; !strings.Contains(body, want) {
				t.Errorf("%s: got no %s", query, want)
			}
		}
		if body := sam.get("/support/notices?state=me").body; strings.Contains(body, `data-state="sent"`) {
			t.Error("what waits for a person lists one that was sent")
		}
		sam.get("/support/notices?state=dead").wants(http.StatusOK).shows("No notice is like that", "All notices")
		for _, garbage := range []string{"state=%00", "route=pigeon", "bot=abc", "bot=99999999999999999999", "before=-1", "before=x"} {
			sam.get("/support/notices?" + garbage).wants(http.StatusOK)
		}
		sam.get(noticePage(id)).wants(http.StatusOK).shows("it may have arrived", "Webhook delivery of Order helper is paused.", "paused "+itoa(bot)+" max …321", "0 before it, 17 since").
			lacks(append(planted, "Send it again", "Close it", "<form method=\"post\" action=\"/support/notices")...)
		sam.get(noticePage(12345)).wants(http.StatusNotFound)
		sam.get(here(bot, "")).wants(http.StatusOK).shows("Uncertain", "All notices about this bot")
		sam.get("/support").wants(http.StatusOK).shows("Waiting for a person: 1")
	})
	t.Run("N-08 deeds", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna, sue := r.signedIn("anna", web.Owner), r.signedIn("sue", web.Support, web.Act)
		_, id, _ := r.told(anna, notice.Result{Class: notice.ClassPermanent, Code: 404, Reason: notice.WhyStatus})
		state := func() string {
			l, err := r.notices.Line(t.Context(), id)
			r.must(err)
			return string(l.State) + " " + l.Route + " " + l.Recipient
		}
		sue.get(noticePage(id)).wants(http.StatusOK).shows("Send it again", "Close it", "404")
		for _, bad := range []string{"", "  ", strings.Repeat("x", 501), "swh1_abcdefghijklmnop234567"} {
			sue.post(noticePage(id)+"/close", form("reason", bad)).wants(http.StatusUnprocessableEntity).shows("Say why", "Nothing has changed")
			if strings.TrimSpace(bad) == "" {
				continue // the others don't need one
			}
			for _, deed := range []string{"retry", "readdress"} {
				page := sue.post(noticePage(id)+"/"+deed, form("reason", bad, "route", "max", "recipient", "4711")).wants(http.StatusUnprocessableEntity).shows("Say why")
				if typed := regexp.MustCompile(`id="` + deed + `-reason"[^>]*value="` + bad + `"[^>]*aria-invalid="true"`); !typed.MatchString(page.body) || strings.Count(page.body, `value="`+bad+`"`) != 1 {
					t.Errorf("%s with a bad reason: want it back in its own field alone, marked", deed)
				}
			}
		}
		for _, to := range [][2]string{{"max", "me"}, {"max", "-5"}, {"botfather", "nobody@example.org"}, {"pigeon", "1"}, {"", ""}} {
			sue.post(noticePage(id)+"/readdress", form("route", to[0], "recipient", to[1])).wants(http.StatusUnprocessableEntity).shows("There is no such recipient", "Nothing has changed")
		}
		page := sue.post(noticePage(id)+"/readdress", form("route", "botfather", "recipient", "nobody@example.org")).body
		if !strings.Contains(page, `<option value="botfather" selected>`) || !strings.Contains(page, `value="nobody@example.org"`) {
			t.Error("a refused recipient: want the form as it was filled in")
		}
		if got := state(); got != "dead max 987654321" {
			t.Fatalf("after refused forms: %s, want it as it was", got)
		}
		sue.post(noticePage(id)+"/readdress", form("route", "max", "recipient", "4711", "reason", "a new account")).leads(noticePage(id))
		if got := state(); got != "queued max 4711" {
			t.Errorf("readdressed: got %s", got)
		}
		sue.post(noticePage(id)+"/retry", form("reason", "once more")).wants(http.StatusConflict).shows("Somebody decided meanwhile", "Queued")
		sue.post(noticePage(id)+"/close", form("reason", "the owner knows")).leads(noticePage(id))
		if got := state(); got != "stale max 4711" {
			t.Errorf("closed: got %s", got)
		}
		for _, action := range []string{"notice_readdress", "notice_close"} {
			lines := r.lines(action)
			if len(lines) != 1 {
				t.Errorf("%s: got %d lines in the audit log, want 1", action, len(lines))
			}
		}
		sue.get(noticePage(id)).wants(http.StatusOK).shows("…711").lacks("4711", "987654321", "Close it", "Send it")
		sue.get("/support/audit").wants(http.StatusOK).shows("Gave a notice a new recipient", "Closed a notice", "the owner knows").lacks("4711", "987654321")
	})
	t.Run("N-04 N-08 a route that stopped: support is told, and lets it go on in portions", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna, sue, sam := r.signedIn("anna", web.Owner), r.signedIn("sue", web.Support, web.Act), r.signedIn("sam", web.Support)
		r.told(anna, notice.Result{Class: notice.ClassAuthorisation, Code: 401, Reason: notice.WhyToken})
		sam.get("/support").wants(http.StatusOK).shows("Notices by MAX are stopped", "check MYBOTS_MAX_TOKEN")
		sam.get("/support/notices").wants(http.StatusOK).shows("Stopped", "Blocked").lacks("Let it send")
		sue.get("/support/notices").wants(http.StatusOK).shows("Let it send")
		for _, bad := range []map[string]string{{"sending": "maybe"}, {"sending": "on"}, {"sending": "on", "portion": "7"}} {
			f := form()
			for k, v := range bad {
				f.Set(k, v)
			}
			sue.post("/support/routes/max", f).wants(http.StatusUnprocessableEntity)
		}
		sue.post("/support/routes/pigeon", form("sending", "off")).wants(http.StatusNotFound)
		sue.post("/support/routes/max", form("sending", "on", "portion", "10", "reason", "a new token")).leads("/support/notices")
		sue.get("/support/notices").wants(http.StatusOK).shows("MAX sends again", "It sends 10 more", "Queued")
		r.notify(map[string]notice.Sender{notice.MAX: answers{Class: notice.ClassSent, Code: 200, MessageID: "mid.1"}})
		if n := r.count(`SELECT count(*) FROM notices WHERE route = 'max' AND state = 'sent' AND message_id = 'mid.1'`); n != 1 {
			t.Errorf("got %d sent, want 1", n)
		}
	})
	t.Run("N-01 support sees who can't be told", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna, sam := r.signedIn("anna", web.Owner), r.signedIn("sam", web.Support)
		bot := anna.bot("Order helper")
		sam.get(here(bot, "")).wants(http.StatusOK).shows("they never opened BotFather in this space")
		anna.post("/botfather/"+itoa(r.space)+"/start", form("language", "ru")).leads("/botfather/" + itoa(r.space))
		sam.get(here(bot, "")).wants(http.StatusOK).lacks("they never opened BotFather")
	})
	t.Run("N-09 nothing leaks into logs, audit and pages", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna, root := r.signedIn("anna", web.Owner), r.signedIn("root", web.Admin)
		bot, id, planted := r.told(anna, notice.Result{Class: notice.ClassUnknown, Reason: notice.WhyLost})
		code := regexp.MustCompile(`[A-Z2-7]{4}-[A-Z2-7]{4}-[A-Z2-7]{4}`).FindString(anna.post("/settings/max/code", nil).wants(http.StatusOK).body)
		if code == "" {
			t.Fatal("N-07 the page shows no code")
		}
		planted = append(planted, "max-secret-marker", code, strings.ReplaceAll(code, "-", ""))
		root.post(noticePage(id)+"/retry", form("reason", "once more")).leads(noticePage(id))
		root.post(noticePage(id)+"/close", form("reason", "")).wants(http.StatusUnprocessableEntity).lacks(planted...)
		for _, path := range []string{"/support", "/support/notices", "/support/notices?bot=" + itoa(bot), noticePage(id), here(bot, ""), "/support/audit"} {
			root.get(path).wants(http.StatusOK).lacks(planted...)
		}
		for _, path := range []string{"/bots", "/botfather/" + itoa(r.space), "/settings"} {
			anna.get(path).wants(http.StatusOK).lacks(planted...)
		}
		anna.post("/settings/max/unlink", nil).leads("/settings")
		var audit string
		r.must(r.db.Get(&audit, `SELECT string_agg(a::text, ' ') FROM audit a`))
		for what, text := range map[string]string{"audit": audit, "log": r.log.String()} {
			for _, marker := range planted {
				if strings.Contains(text, marker) {
					t.Errorf("the %s has %q", what, marker)
				}
			}
		}
	})
}

func TestEveryReasonHasWords(t *testing.T) {
	t.Parallel()
	for _, lang := range []string{words.English, words.Russian} {
		ctx := words.With(t.Context(), lang)
		var keys []string
		for _, why := range notice.Whys {
			keys = append(keys, "notices.why_"+why)
		}
		for _, state := range notice.States {
			keys = append(keys, "notices.state_"+string(state))
		}
		for _, route := range notice.Routes {
			keys = append(keys, "notices.route_"+route)
		}
		for _, key := range keys {
			if words.T(ctx, key) == key {
				t.Errorf("N-08 UI-01 %s has no words in %s", key, lang)
			}
		}
	}
}
