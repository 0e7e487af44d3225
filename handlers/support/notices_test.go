package support_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/notice"
	"mybots/views/words"
	"mybots/web"
)

// told is a bot of anna's with one notice for each route: BotFather has written
// his, MAX gave the result.
func (r *rig) told(anna *person, result notice.Result) (bot, byMAX int64) {
	r.t.Helper()
	bot = anna.bot("Order helper")
	r.db.MustExec(`INSERT INTO botfather_chats (space_id, user_id, language, opened_at) VALUES ($1, $2, 'en', $3)`, r.space, anna.id, r.clock.Now())
	r.db.MustExec(`INSERT INTO max_links (user_id, max_user_id, linked_at) VALUES ($1, 987654321, $2)`, anna.id, r.clock.Now())
	anna.hook(bot, "https://bots.example.org/hook?token=TOKEN-MARKER")
	r.append(bot, `{"text":"PAYLOAD-MARKER"}`)
	r.settle(bot, delivery.Answer{Kind: delivery.Answered, Status: 401})
	r.notify(map[string]notice.Sender{notice.MAX: answers(result)})
	r.must(r.db.Get(&byMAX, `SELECT notice_id FROM notices WHERE bot_id = $1 AND route = 'max'`, bot))
	return bot, byMAX
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
		bot, id := r.told(anna, notice.Result{Class: notice.ClassUnknown, Reason: notice.WhyLost})
		r.clock.advance(1) // the pauses after it are held back
		for range 17 {
			r.must(r.queue.ResumeWebhook(t.Context(), bot, noCheck))
			r.settle(bot, delivery.Answer{Kind: delivery.Answered, Status: 401})
		}
		sam.get("/support/notices").wants(http.StatusOK).shows("Uncertain", "Sent", "No answer came", "17 more held back", "@robot_1", "anna@example.org", "…321", "Delivery paused · HTTP_401").
			lacks("987654321", "TOKEN-MARKER", "PAYLOAD-MARKER", "Let it send")
		for query, want := range map[string]string{"state=me": "Uncertain", "state=sent": "data-state=\"sent\"", "route=botfather": "data-state=\"sent\"", "route=max": "Uncertain", "bot=" + itoa(bot): "Uncertain"} {
			sam.get("/support/notices?" + query).wants(http.StatusOK).shows("data-notice")
			if body := sam.get("/support/notices?" + query).body; !strings.Contains(body, want) {
				t.Errorf("%s: got no %s", query, want)
			}
		}
		if body := sam.get("/support/notices?state=me").body; strings.Contains(body, `data-state="sent"`) {
			t.Error("what waits for a person lists one that was sent")
		}
		sam.get("/support/notices?state=dead").wants(http.StatusOK).shows("No notice is like that")
		for _, garbage := range []string{"state=%00", "route=pigeon", "bot=abc", "bot=99999999999999999999", "before=-1", "before=x"} {
			sam.get("/support/notices?" + garbage).wants(http.StatusOK)
		}
		sam.get(noticePage(id)).wants(http.StatusOK).shows("it may have arrived", "Webhook delivery of Order helper is paused.", "paused "+itoa(bot)+" max …321", "0 before it, 17 since").
			lacks("987654321", "TOKEN-MARKER", "PAYLOAD-MARKER", "Send it again")
		sam.get(noticePage(12345)).wants(http.StatusNotFound)
		sam.get(here(bot, "")).wants(http.StatusOK).shows("Uncertain", "All notices about this bot")
		sam.get("/support").wants(http.StatusOK).shows("Waiting for a person: 1")
	})
	t.Run("N-08 deeds", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna, sue := r.signedIn("anna", web.Owner), r.signedIn("sue", web.Support, web.Act)
		_, id := r.told(anna, notice.Result{Class: notice.ClassPermanent, Code: 404, Reason: notice.WhyStatus})
		state := func() string {
			l, err := r.notices.Line(t.Context(), id)
			r.must(err)
			return string(l.State) + " " + l.Route + " " + l.Recipient
		}
		sue.get(noticePage(id)).wants(http.StatusOK).shows("Send it again", "Close it", "404")
		for _, bad := range []string{"", "  ", strings.Repeat("x", 501), "swh1_abcdefghijklmnop234567"} {
			sue.post(noticePage(id)+"/close", form("reason", bad)).wants(http.StatusUnprocessableEntity).shows("Say why", "Nothing has changed")
		}
		for _, to := range [][2]string{{"max", "me"}, {"max", "-5"}, {"botfather", "nobody@example.org"}, {"pigeon", "1"}, {"", ""}} {
			sue.post(noticePage(id)+"/readdress", form("route", to[0], "recipient", to[1])).wants(http.StatusUnprocessableEntity).shows("There is no such recipient", "Nothing has changed")
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
		bot, id := r.told(anna, notice.Result{Class: notice.ClassUnknown})
		pages := root.get("/support").body + root.get("/support/notices").body + root.get(noticePage(id)).body + root.get(here(bot, "")).body +
			root.get("/support/audit").body + anna.get("/botfather/"+itoa(r.space)).body + anna.get("/settings").body
		code := anna.post("/settings/max/code", nil).wants(http.StatusOK)
		if c := code.header.Get("Cache-Control"); c != "no-store" {
			t.Errorf("the page with the code has Cache-Control %q, want no-store", c)
		}
		for what, text := range map[string]string{"pages": pages, "log": r.log.String()} {
			for _, marker := range []string{"987654321", "TOKEN-MARKER", "PAYLOAD-MARKER", "max-secret-marker"} {
				if strings.Contains(text, marker) {
					t.Errorf("N-09 %s have %q", what, marker)
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

func TestMAXWebhook(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	anna := r.signedIn("anna", web.Owner)
	linked := func() int {
		return r.count(`SELECT count(*) FROM max_links WHERE user_id = $1 AND max_user_id = 9007199254740993`, anna.id)
	}
	code := func() string {
		c, err := r.notices.NewCode(t.Context(), anna.id)
		r.must(err)
		return string(c)
	}
	call := func(t *testing.T, method, secret, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, r.url+"/max/webhook", strings.NewReader(body))
		r.must(err)
		req.Header.Set("Content-Type", "application/json")
		if secret != "" {
			req.Header.Set("X-Max-Bot-Api-Secret", secret)
		}
		got, err := http.DefaultClient.Do(req)
		r.must(err)
		defer func() { _ = got.Body.Close() }()
		text, err := io.ReadAll(got.Body)
		r.must(err)
		return got.StatusCode, string(text)
	}
	const secret = "max-secret-marker"
	message := func(text string) string {
		return `{"update_type":"message_created","timestamp":1,"message":{"sender":{"user_id":9007199254740993,"name":"Anna"},"body":{"mid":"m","text":"` + text + `"}}}`
	}
	t.Run("N-07 the secret is checked before anything is read", func(t *testing.T) {
		for _, s := range []string{"", "wrong", secret + "x", strings.ToUpper(secret)} {
			// Neither JSON nor of a size that is taken: who has no secret doesn't learn it.
			for _, body := range []string{message(code()), "{", strings.Repeat("x", 100_000)} {
				if status, text := call(t, http.MethodPost, s, body); status != http.StatusUnauthorized || strings.Contains(text, "JSON") {
					t.Errorf("secret %q: got %d %s, want 401", s, status, text)
				}
			}
		}
		if linked() != 0 {
			t.Error("a call with a wrong secret linked the account")
		}
	})
	t.Run("N-07 what isn't a code is answered with 200", func(t *testing.T) {
		for _, body := range []string{message("hello"), message(""), `{}`, `[]`, `null`, `{"update_type":"message_callback"}`, `{"update_type":"message_created","message":null}`,
			`{"update_type":"bot_started","user":{"user_id":"x"}}`, message(strings.Repeat("a", 5000))} {
			if status, _ := call(t, http.MethodPost, secret, body); status != http.StatusOK && body != `[]` && body != `null` {
				t.Errorf("%.80s: got %d, want 200", body, status)
			}
		}
	})
	t.Run("N-07 what can't be read", func(t *testing.T) {
		if status, _ := call(t, http.MethodPost, secret, "{"); status != http.StatusBadRequest {
			t.Errorf("no JSON: got %d, want 400", status)
		}
		if status, _ := call(t, http.MethodPost, secret, message(strings.Repeat("a", 70_000))); status != http.StatusRequestEntityTooLarge {
			t.Errorf("too large: got %d, want 413", status)
		}
		if status, _ := call(t, http.MethodGet, secret, ""); status != http.StatusMethodNotAllowed {
			t.Errorf("GET: got %d, want 405", status)
		}
	})
	t.Run("N-07 a code links the account, once", func(t *testing.T) {
		c := code()
		for range 2 { // MAX may send it again
			if status, body := call(t, http.MethodPost, secret, message(c)); status != http.StatusOK || body != `{"success":true}`+"\n" {
				t.Errorf("got %d %s, want 200", status, body)
			}
		}
		if linked() != 1 {
			t.Error("the account isn't linked")
		}
		anna.get("/settings").wants(http.StatusOK).shows("Your account at MAX is linked since")
		anna.post("/settings/max/unlink", nil).leads("/settings")
		anna.get("/settings").wants(http.StatusOK).shows("MAX is unlinked")
		if linked() != 0 {
			t.Error("the account is linked still")
		}
	})
	t.Run("N-07 a link to the bot that carries the code", func(t *testing.T) {
		call(t, http.MethodPost, secret, `{"update_type":"bot_started","chat_id":5,"user":{"user_id":9007199254740993},"payload":"`+code()+`"}`)
		if linked() != 1 {
			t.Error("the account isn't linked")
		}
	})
	t.Run("N-07 while the database can't be reached MAX is asked to come again", func(t *testing.T) {
		r.db.MustExec(`ALTER TABLE max_codes RENAME TO gone`)
		defer r.db.MustExec(`ALTER TABLE gone RENAME TO max_codes`)
		if status, _ := call(t, http.MethodPost, secret, message("ABCD-EFGH-IJKL")); status < 500 {
			t.Errorf("got %d, want an error that is repeated", status)
		}
	})
	if strings.Contains(r.log.String(), secret) || strings.Contains(r.log.String(), "9007199254740993") {
		t.Error("N-09 the log has the secret or the account")
	}
}
