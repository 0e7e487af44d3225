package owner_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"mybots/browsertest"
	"mybots/delivery"
)

func TestWebhookWithoutJavaScript(t *testing.T) {
	t.Parallel()
	t.Run("UI-01 M-01 M-04 M-08 W-11 refuse, save, read the secret, test, check, resume, cancel, go back to polling", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		r.fill(id, 2)
		tab := browsertest.Open(t, browsertest.Setup{NoScript: true, Width: 360, Statuses: []int{422}})
		r.signIn(tab, anna)
		tab.Go(r.url + here(id, "connection"))
		tab.Click("#mode-webhook")
		tab.Type("#url", "http://bot.example.org/")
		tab.Leave("#mode-form button[value=keep]")
		if got := tab.Text("#error"); !strings.Contains(got, "begin with https://") {
			t.Errorf("refused: got %q, want the rule", got)
		}
		if got := browsertest.Eval[string](tab, `document.querySelector("#url").value + " " + document.querySelector("#mode-webhook").checked`); got != "http://bot.example.org/ true" {
			t.Errorf("the form: got %q, want what was chosen and typed", got)
		}
		browsertest.Eval[bool](tab, `(document.querySelector("#url").value = "", true)`)
		tab.Type("#url", hookURL)
		tab.Leave("#mode-form button[value=keep]")
		if secret := browsertest.Eval[string](tab, `document.querySelector("#secret").value`); !strings.HasPrefix(secret, delivery.WebhookSecretPrefix) {
			t.Errorf("got secret %q, want one", secret)
		}
		tab.Fits()
		tab.Leave("main a.primary")
		tab.Leave("form[action$='/test'] button")
		if got := tab.Text("#test-result[data-result=confirmed]"); !strings.Contains(got, "counts as delivered") {
			t.Errorf("the test: got %q, want confirmed", got)
		}
		tab.Click("#check summary")
		tab.Type("#check-header", "t=1,v1=x")
		tab.Leave("#check form button")
		if got := tab.Text("#check-result[data-mistake=header]"); !strings.Contains(got, "64 digits") {
			t.Errorf("the check: got %q, want what is wrong", got)
		}
		r.answered(id, statusAnswer(404), 0)
		tab.Go(r.url + here(id, "connection"))
		if got := tab.Text("[data-testid=state]"); !strings.Contains(got, "nothing at this path (404)") || !strings.Contains(got, "Nothing is lost: 2 updates wait") {
			t.Errorf("the state: got %q, want cause and what is safe", got)
		}
		tab.Leave("[data-testid=state] button")
		if got := tab.Text("#flash"); !strings.Contains(got, "2 waiting updates are sent now") {
			t.Errorf("got flash %q, want that 2 are sent", got)
		}
		tab.Leave("#mode-form button[value=drop]")
		if got := tab.Path(); got != here(id, "connection/drop") || strings.Contains(browsertest.Eval[string](tab, `location.href`), "of-the-query") {
			t.Errorf("the question: got %s, want an address without the webhook's", got)
		}
		tab.Leave("main form button.danger")
		if got := tab.Text("#flash"); !strings.Contains(got, "2 waiting updates were cancelled") {
			t.Errorf("got flash %q, want 2 cancelled", got)
		}
		tab.Leave("main a.primary")
		tab.Click("#mode-polling")
		tab.Leave("#mode-form button[value=keep]")
		if got := tab.Text("[data-testid=lease]"); !strings.Contains(got, "Nobody holds the lease") {
			t.Errorf("polling again: got %q, want the lease", got)
		}
	})
}

func TestWebhookInTabs(t *testing.T) {
	t.Parallel()
	t.Run("M-05 two tabs: the second save is refused and shows the present settings", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		first, second := s.open(t, browsertest.Setup{}), s.open(t, browsertest.Setup{Statuses: []int{409}})
		first.Go(s.url + here(s.support, "connection"))
		second.Go(s.url + here(s.support, "connection"))
		first.Click("#mode-webhook")
		first.Type("#url", hookURL)
		first.Leave("#mode-form button[value=keep]")
		before := s.everything()
		second.Click("#mode-webhook")
		second.Type("#url", "https://late.example.org/")
		second.Leave("#mode-form button[value=keep]")
		if got := second.Text("#error[data-code=STALE]"); !strings.Contains(got, "changed elsewhere") || !strings.Contains(got, "https://late.example.org/") {
			t.Errorf("got %q, want that it came too late, and what it wanted", got)
		}
		if got := browsertest.Eval[string](second, `document.querySelector("#url").value + " " + document.querySelector("#mode-webhook").checked`); got != hookURL+" true" {
			t.Errorf("the form: got %q, want the present settings", got)
		}
		if after := s.everything(); after != before {
			t.Errorf("got\n%s\nwant as before\n%s", after, before)
		}
		second.Leave("#mode-form button[value=keep]") // decided again
		if got := second.Path(); got != here(s.support, "connection/secret") {
			t.Errorf("decided again: got %s, want the secret", got)
		}
	})
	t.Run("UI-02 the secret leaves the page with its reader; a reload and a step back show none", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		tab := s.open(t, browsertest.Setup{})
		tab.Go(s.url + here(s.newcomer, "connection"))
		tab.Click("#mode-webhook")
		tab.Type("#url", hookURL)
		tab.Leave("#mode-form button[value=keep]")
		const covered = `[...document.querySelectorAll("[data-secret]")].map(e => getComputedStyle(e).webkitTextSecurity).join(" ")`
		if got := browsertest.Eval[string](tab, covered); got != "disc disc disc" {
			t.Errorf("covered: got %q, want disc three times", got)
		}
		secret := browsertest.Eval[string](tab, `document.querySelector("#secret").value`)
		if got := browsertest.Eval[string](tab, `document.querySelector("figure [data-copy-text]").textContent`); got != "SMEET_WEBHOOK_SECRET="+secret {
			t.Errorf("what Copy takes: got %q", got)
		}
		tab.Go(s.url + here(s.newcomer, "connection/secret"))
		if tab.Has("#secret") || !tab.Has("[data-testid=secret-gone]") {
			t.Error("a reload shows the secret again, want none")
		}
	})
	t.Run("UI-03 UI-05 the state, the attempts and the countdown change by themselves; the typed address and the focus stay", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		anna.webhook(id)
		s := &scene{rig: r, anna: anna}
		tab := s.open(t, browsertest.Setup{})
		tab.Go(r.url + here(id, "connection"))
		tab.Click("#url")
		tab.Type("#url", "-typed")
		r.fill(id, 2)
		r.answered(id, statusAnswer(200), 48*time.Millisecond)
		r.answered(id, statusAnswer(503), 48*time.Millisecond)
		r.db.MustExec(`UPDATE queues SET due_at = $2::timestamptz + interval '50 seconds' WHERE bot_id = $1`, id, r.clock.Now())
		tab.Until(`document.querySelector("[data-testid=state]").dataset.state === "retrying"`)
		tab.Until(`document.querySelectorAll("[data-testid=attempt]").length === 2`)
		tab.Until(`document.querySelector(".bot-head .pill").innerText === "Retrying"`)
		const left = `parseInt(document.querySelector("[data-testid=next] .ago").innerText.replace(/\D+/g, ""))`
		from := browsertest.Eval[int](tab, left)
		tab.Until(fmt.Sprintf(`%s < %d`, left, from)) // within seconds, not with the next piece alone
		if got := browsertest.Eval[string](tab, `document.querySelector("#url").value + " " + document.activeElement.id`); got != hookURL+"-typed url" {
			t.Errorf("what was being typed: got %q, want it to stay", got)
		}
	})
	t.Run("UI-08 by keyboard alone: choose, type, save", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		tab := s.open(t, browsertest.Setup{})
		tab.Go(s.url + here(s.newcomer, "connection"))
		browsertest.Eval[bool](tab, `(document.querySelector("#mode-polling").focus(), true)`)
		tab.Press(kb.ArrowDown) // the other choice
		tab.Press(kb.Tab)
		if got := browsertest.Eval[string](tab, `document.activeElement.id + " " + document.querySelector("#mode-webhook").checked`); got != "url true" {
			t.Fatalf("after the arrow and Tab: got %q, want the address", got)
		}
		tab.Press(hookURL)
		tab.LeaveByKey(kb.Enter)
		if got := tab.Path(); got != here(s.newcomer, "connection/secret") {
			t.Errorf("Enter: got %s, want the secret: the first button keeps what waits", got)
		}
	})
}

func TestWebhookRoutesOfOthers(t *testing.T) {
	t.Parallel()
	t.Run("UI-07 another owner's webhook: 404, and nothing is done or told", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna, boris := r.owner(), r.signedIn("boris", "owner")
		id := anna.bot("robot", "Order helper")
		anna.webhook(id)
		r.fill(id, 1)
		r.answered(id, statusAnswer(401), 0)
		before := r.everything()
		for _, deed := range []string{"connection", "connection/drop", "connection/resume", "connection/probe", "connection/test", "connection/check"} {
			boris.post(here(id, deed), saveForm("webhook", "https://boris.example.org/", "drop", "2")).wants(http.StatusNotFound).lacks("bot.example.org")
		}
		boris.get(here(id, "connection/secret")).wants(http.StatusNotFound)
		if after := r.everything(); after != before || len(r.hooks.sent) > 0 || r.hooks.asked > 0 {
			t.Errorf("got %d requests, %d look-ups and\n%s\nwant none and as before\n%s", len(r.hooks.sent), r.hooks.asked, after, before)
		}
	})
}
