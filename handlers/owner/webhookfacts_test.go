package owner_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"mybots/delivery"
)

func TestWebhookFacts(t *testing.T) {
	t.Parallel()
	t.Run("UI-03 a real delivery stands on the page: attempts, last error and success, budget, next attempt", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		anna.webhook(id)
		anna.get(here(id, "connection")).shows("Not tried yet", "Send a test request", "None yet. Every request that SMeet makes")
		r.fill(id, 5)
		r.answered(id, statusAnswer(200), 35*time.Millisecond)
		r.answered(id, statusAnswer(422), 36*time.Millisecond)
		r.useUp(id, 2)
		page := anna.get(here(id, "connection")).wants(http.StatusOK).shows("Delivered", "35 ms", "Moved to the failed updates", "Tried again; 2 of 5 attempts used up", "503",
			"Update 3: 2 of 5 attempts used up", "2 requests made for it", "Retrying", "2 of 5 attempts for update 3 are used up", "3 updates wait in order", "HTTP_503")
		if got := strings.Count(page.body, `data-testid="attempt"`); got != 4 {
			t.Errorf("got %d attempts, want 4", got)
		}
		if got, want := page.match(`(?s)data-testid="next"[^>]*>.*?datetime="([^"]+)"`), r.status(id).Hook.Due.UTC().Format("2006-01-02T15:04:05.000Z"); got != want {
			t.Errorf("the next attempt: got %q, want %q", got, want)
		}
		anna.get(here(id, "connection"), "Accept-Language: ru").shows("Повторяет", "израсходовано попыток 2 из 5", "Доставлено", "35 мс").lacks("Delivered", "Retrying")
	})
	t.Run("W-12 the open breaker, its next probe and its way out", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		anna.webhook(id)
		r.fill(id, 4)
		r.useUp(id, 15)
		page := anna.get(here(id, "connection")).shows("Circuit breaker open", "Three updates in a row used up their attempts", "Next probe:", "Open, wait number 1", "Attempts used up: moved to the failed updates")
		page.match(`action="` + here(id, "connection/probe") + `".{0,300}(Probe now)`)
		if got := anna.get("/bots").shows("1 bot needs your attention.").match(`data-testid="bot-card" data-state="([^"]*)"`); got != "circuit_open" {
			t.Errorf("the card: got state %q, want circuit_open", got)
		}
	})
	t.Run("UI-03 the last 50 attempts, the latest first", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		anna.webhook(id)
		r.fill(id, 60)
		for range 55 {
			r.answered(id, statusAnswer(200), time.Second)
			r.clock.advance(time.Millisecond)
		}
		page := anna.get(here(id, "connection")).shows("The last 50 requests", "Less than a minute for 5 waiting updates")
		if got := strings.Count(page.body, `data-testid="attempt"`); got != 50 {
			t.Errorf("got %d attempts, want 50", got)
		}
		if got := page.match(`(?s)data-testid="attempt".*?<code>(\d+)</code>`); got != "55" {
			t.Errorf("the first row: got update %s, want 55", got)
		}
	})
	t.Run("M-06 emergency reset leaves mode, address and secret", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		secret := anna.webhook(id)
		anna.get(here(id, "connection/emergency-reset")).shows("Mode, address, webhook secret, position")
		anna.post(here(id, "connection/emergency-reset"), nil).leads(here(id, "token"))
		if got, err := r.bots.Targets(t.Context(), []int64{id}); err != nil || got[id].Secret != secret || got[id].URL != hookURL {
			t.Errorf("got %q, %v, want the webhook as it was", got[id].URL, err)
		}
	})
}

func TestFailedByWebhook(t *testing.T) {
	t.Parallel()
	t.Run("F-01 UI-04 a webhook's codes and a program's own words are told apart", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		r.fail(id, "HTTP_422", 2) // words of the program that look like a code
		r.fail(id, "webhook:x", 1)
		anna.webhook(id)
		r.fill(id, 2)
		r.answered(id, statusAnswer(422), 0)
		r.answered(id, delivery.Answer{Kind: delivery.Answered, Status: 400}, 0)
		page := anna.get(here(id, "failed")).shows("5 updates weren't delivered", "Your program wrote:", "Your program answered 422", "“HTTP_422” (2)", "Rejected by your program")
		page.match(`<option value="(HTTP_422)">Your program answered 422`)
		for field, want := range map[string][]string{
			"HTTP_422": {"4"}, "program:HTTP_422": {"1", "2"}, "program:webhook:x": {"3"}, "HTTP_400": {"5"}, "webhook:HTTP_418": nil, "no such": nil,
		} {
			path := here(id, "failed") + "?reason=" + url.QueryEscape(field)
			anna.get(path).same(field, anna.get(path).listed(), want)
		}
		asked := anna.get(here(id, "failed/skip")+"?all=1&reason=program:HTTP_422").shows("Skip 2 failed updates for good?", "Reason = “HTTP_422”")
		form := url.Values{"all": {"1"}, "reason": {asked.match(`name="reason" value="([^"]*)"`)}, "seen": {asked.match(`name="seen" value="([^"]*)"`)}}
		done := anna.post(here(id, "failed/skip"), form).wants(http.StatusOK)
		done.same("all that match", done.became(), []string{"1 skipped", "2 skipped"})
		retried := anna.post(here(id, "failed/retry"), url.Values{"all": {"1"}, "reason": {"HTTP_422"}}).wants(http.StatusOK)
		retried.same("all that match", retried.became(), []string{"4 replayed"})
	})
	t.Run("F-01 a used-up budget in plain words", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		anna.webhook(id)
		r.fill(id, 1)
		r.useUp(id, 5)
		anna.get(here(id, "failed")).shows("HTTP_5XX", "See your program's log.")
		r.db.MustExec(`UPDATE failed_updates SET reason = 'DELIVERY_OUTCOME_UNKNOWN'`)
		anna.get(here(id, "failed")).shows("your program may have handled it", "by event_id")
		anna.get(here(id, "failed"), "Accept-Language: ru").shows("программа могла обработать событие", "по event_id")
	})
}
