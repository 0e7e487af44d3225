package owner_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"mybots/delivery"
	"mybots/delivery/webhook"
	"mybots/handlers/owner"
	"mybots/views/words"
)

const (
	secretShown = `(?s)id="secret"[^>]*>([^<]*)<`
	codeShown   = `id="error"[^>]*data-code="([^"]*)"`
)

func TestSaveWebhook(t *testing.T) {
	t.Parallel()
	t.Run("M-04 UI-02 every save makes a new secret, shown once and never cached", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		page := here(id, "connection/secret")
		seen := map[string]bool{}
		for version := range 2 {
			r.fill(id, 1)
			anna.post(here(id, "connection"), saveForm("webhook", hookURL, "keep", itoa(int64(version+1)))).leads(page)
			anna.ask(http.MethodHead, page, nil).wants(http.StatusOK) // uses nothing up
			first := anna.get(page).wants(http.StatusOK).shows("Copy the secret now", "never decode it", "SMEET_WEBHOOK_SECRET=", "verify_signature", "verifySignature", "VerifySignature")
			secret := first.match(secretShown)
			if !strings.HasPrefix(secret, delivery.WebhookSecretPrefix) || seen[secret] {
				t.Errorf("got secret %q, want a new one", secret)
			}
			seen[secret] = true
			if got := first.header.Get("Cache-Control"); got != "no-store" {
				t.Errorf("got Cache-Control %q, want no-store", got)
			}
			targets, err := r.bots.Targets(t.Context(), []int64{id})
			r.must(err)
			if got := targets[id]; string(got.Secret) != secret || got.URL != hookURL {
				t.Errorf("got address %q and another secret than the one shown, or none; want %q and that secret", got.URL, hookURL)
			}
			anna.get(page).wants(http.StatusOK).shows("The secret isn't shown again").lacks(secret, `id="secret"`, delivery.WebhookSecretPrefix)
		}
		anna.get(here(id, "connection")).wants(http.StatusOK).shows(hookURL, "Webhook").lacks(delivery.WebhookSecretPrefix+"a", "Current lease")
	})
	t.Run("UI-02 neither another session nor a secret that was replaced", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		other := r.stranger()
		other.post("/login", url.Values{"email": {anna.email}, "password": {password}}).wants(http.StatusSeeOther)
		anna.post(here(id, "connection"), saveForm("webhook", hookURL, "keep", "1")).wants(http.StatusSeeOther)
		other.get(here(id, "connection/secret")).lacks(`id="secret"`)
		anna.webhook(id) // saved elsewhere meanwhile
		anna.get(here(id, "connection/secret")).shows("The secret isn't shown again").lacks(`id="secret"`)
	})
	t.Run("W-01 it is saved in its canonical form, and shown whole to its owner alone", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		anna.post(here(id, "connection"), saveForm("webhook", "https://BOT.example.org/smeet?key=k", "keep", "1")).wants(http.StatusSeeOther)
		anna.get(here(id, "connection")).shows("https://bot.example.org/smeet?key=k")
		anna.get("/bots").shows("Webhook", "bot.example.org").lacks("key=k", "/smeet")
		s := r.status(id)
		anna.post(here(id, "connection"), saveForm("polling", "", "keep", itoa(s.SettingsVersion))).leads(here(id, "connection"))
		polling := anna.get(here(id, "connection")).shows("Current lease")
		if got := polling.match(`<input id="url"[^>]* value="([^"]*)"`); got != "https://bot.example.org/smeet?key=k" {
			t.Errorf("the address for the next time: got %q, want the last one", got)
		}
	})
	t.Run("M-04 M-02 a save resumes, closes the breaker and keeps what waits", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		anna.webhook(id)
		r.fill(id, 37)
		r.answered(id, statusAnswer(401), 0)
		anna.post(here(id, "connection"), saveForm("webhook", hookURL, "keep", "2")).leads(here(id, "connection/secret"))
		anna.get(here(id, "connection/secret")).shows("37 waiting updates are kept and go out now, in order.")
		if s := r.status(id); s.Hook.Paused != "" || s.Waiting != 37 {
			t.Errorf("got paused %q, %d waiting, want going on with 37", s.Hook.Paused, s.Waiting)
		}
	})
	t.Run("M-02 DROP names the real number, and the address stands in no URL", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		r.fill(id, 37)
		asked := anna.post(here(id, "connection/drop"), saveForm("webhook", hookURL, "keep", "1")).wants(http.StatusOK).
			shows("Cancel 37 waiting updates?", "Cancel 37 waiting updates and save", "37 waiting updates never reach your program.", "DELIVERY_MODE_CONFLICT")
		form := url.Values{}
		for _, field := range []string{"mode", "url", "pending", "version"} {
			form.Set(field, asked.match(`type="hidden" name="`+field+`" value="([^"]*)"`))
		}
		if got := asked.match(`<form method="(\w+)" action="` + here(id, "connection") + `"`); got != "post" {
			t.Errorf("the form's method: got %s, want post", got)
		}
		if r.status(id).Waiting != 37 {
			t.Error("the question alone changed something")
		}
		r.fill(id, 1) // since the question
		anna.post(here(id, "connection"), form).leads(here(id, "connection/secret"))
		anna.get(here(id, "connection/secret")).shows("38 waiting updates were cancelled").match(secretShown)
		if s := r.status(id); s.Waiting != 0 || s.Mode != delivery.Webhook || s.HookURL != hookURL {
			t.Errorf("got %d waiting, mode %s at %q, want 0, webhook, %s", s.Waiting, s.Mode, s.HookURL, hookURL)
		}
		r.fill(id, 2)
		anna.post(here(id, "connection/drop"), saveForm("webhook", hookURL, "", "2")).shows("Cancel 2 waiting updates?", "The present secret stops.")
		anna.post(here(id, "connection/drop"), saveForm("polling", "", "", "2")).shows("Requests to the webhook stop", "reason cancelled").lacks(hookURL)
	})
}

func TestRefusedSaves(t *testing.T) {
	t.Parallel()
	for _, rule := range webhook.Rules() {
		t.Run("W-01 refused with words for the rule, and nothing changes: "+string(rule), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			anna := r.owner()
			id := anna.bot("robot", "Order helper")
			secret := anna.webhook(id)
			r.fill(id, 3)
			r.answered(id, statusAnswer(401), 0)
			before := r.everything()
			r.hooks.set(func(h *hooks) { h.broken = rule })
			typed := "https://other.example.org/typed?and=kept"
			for _, lang := range []string{words.English, words.Russian} {
				want := words.T(words.With(t.Context(), lang), "hook.rule_"+string(rule))
				for _, pending := range []string{"keep", "drop"} {
					page := anna.post(here(id, "connection"), saveForm("webhook", typed, pending, "2"), "Accept-Language: "+lang).wants(http.StatusUnprocessableEntity).shows(want)
					if got := page.match(codeShown); got != "WEBHOOK_URL_FORBIDDEN" {
						t.Errorf("got data-code %q, want WEBHOOK_URL_FORBIDDEN", got)
					}
					if got := page.match(`<input id="url"[^>]* value="([^"]*)"`); got != typed {
						t.Errorf("the field: got %q, want what was typed", got)
					}
					if got := page.match(`data-testid="state" data-state="([^"]*)"`); got != "paused" {
						t.Errorf("got state %q, want paused as before", got)
					}
				}
				anna.post(here(id, "connection/drop"), saveForm("webhook", typed, "", "2"), "Accept-Language: "+lang).wants(http.StatusUnprocessableEntity).shows(want)
			}
			if after := r.everything(); after != before {
				t.Errorf("got\n%s\nwant as before\n%s", after, before)
			}
			if got, err := r.bots.Targets(t.Context(), []int64{id}); err != nil || got[id].Secret != secret {
				t.Errorf("the secret: got another one, %v, want the one from before", err)
			}
		})
	}
	off := func(o *owner.Options) { o.WebhooksOff = true }
	for name, c := range map[string]struct {
		change []func(*owner.Options)
		sql    string
		en, ru string
	}{
		"by the installation": {[]func(*owner.Options){off}, `SELECT 1`, "switched off on this installation", "В этой установке webhook выключен"},
		"without a guard":     {[]func(*owner.Options){func(o *owner.Options) { o.Guard = nil }}, `SELECT 1`, "switched off on this installation", "В этой установке webhook выключен"},
		"by the platform":     {nil, `UPDATE queues SET hook_allowed = false`, "The platform has switched webhooks off for this bot", "Платформа выключила webhook этого бота"},
	} {
		t.Run("W-03 switched off "+name+": polling is open, a webhook isn't", func(t *testing.T) {
			t.Parallel()
			r := newRig(t, c.change...)
			anna := r.owner()
			id := anna.bot("robot", "Order helper")
			anna.webhook(id)
			r.fill(id, 2)
			r.db.MustExec(c.sql)
			anna.get(here(id, "connection")).shows(c.en, "Switch to long polling").match(`id="mode-webhook"[^>]*(disabled)`)
			anna.get(here(id, "connection"), "Accept-Language: ru").shows(c.ru)
			before := r.everything()
			page := anna.post(here(id, "connection"), saveForm("webhook", "https://new.example.org/", "drop", "2")).wants(http.StatusUnprocessableEntity).shows("Nothing was changed", "https://new.example.org/")
			if got := page.match(codeShown); got != "WEBHOOKS_UNAVAILABLE" {
				t.Errorf("got data-code %q, want WEBHOOKS_UNAVAILABLE", got)
			}
			anna.post(here(id, "connection/test"), nil).wants(http.StatusConflict).shows("webhooks are switched off")
			if after := r.everything(); after != before || r.hooks.asked > 0 || len(r.hooks.sent) > 0 {
				t.Errorf("got %d look-ups, %d requests and\n%s\nwant none and as before\n%s", r.hooks.asked, len(r.hooks.sent), after, before)
			}
			for _, deed := range []string{"resume", "probe"} {
				anna.post(here(id, "connection/"+deed), nil).leads(here(id, "connection"))
				anna.get(here(id, "connection")).shows("Webhooks are switched off for this bot, so nothing is sent.")
			}
			anna.post(here(id, "connection"), saveForm("polling", "", "keep", "2")).leads(here(id, "connection"))
			anna.get(here(id, "connection")).shows("2 waiting updates are kept; the program gets them by getUpdates", "No receiver")
			if got := anna.get("/bots").match(`data-testid="bot-card" data-state="([^"]*)"`); got != "no_receiver" {
				t.Errorf("the card: got state %q, want no_receiver", got)
			}
		})
	}
	t.Run("M-05 a save that comes too late is refused before the look-up, and shows the present settings", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		anna.webhook(id)
		before := r.everything()
		for _, path := range []string{"connection", "connection/drop"} {
			page := anna.post(here(id, path), saveForm("webhook", "https://late.example.org/", "drop", "1")).wants(http.StatusConflict).
				shows("changed elsewhere meanwhile", "You wanted:", "https://late.example.org/")
			if got := page.match(codeShown); got != "STALE" {
				t.Errorf("got data-code %q, want STALE", got)
			}
			if got := page.match(`<input id="url"[^>]* value="([^"]*)"`); got != hookURL {
				t.Errorf("the field: got %q, want the present address", got)
			}
			if got := page.match(`name="version" value="([^"]+)"`); got != "2" {
				t.Errorf("the version: got %s, want the present one, 2", got)
			}
		}
		if after := r.everything(); after != before || r.hooks.asked != 0 {
			t.Errorf("got %d look-ups and\n%s\nwant none and as before\n%s", r.hooks.asked, after, before)
		}
	})
	t.Run("W-01 a look-up that fails on our side is no verdict", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		before := r.everything()
		r.hooks.set(func(h *hooks) { h.err = errors.Join(delivery.ErrUnavailable, errors.New("10.0.0.7 said no")) })
		anna.post(here(id, "connection"), saveForm("webhook", hookURL, "keep", "1")).wants(http.StatusServiceUnavailable).lacks("10.0.0.7")
		if after := r.everything(); after != before {
			t.Errorf("got\n%s\nwant as before\n%s", after, before)
		}
	})
}

func TestRealGuard(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *owner.Options) { o.Guard = webhook.NewGuard(webhook.GuardOptions{Resolver: "127.0.0.1:9"}) })
	anna := r.owner()
	id := anna.bot("robot", "Order helper")
	before := r.everything()
	for address, rule := range map[string]webhook.Rule{
		"": webhook.RuleScheme, "http://bot.example.org/": webhook.RuleScheme, "https://user:pass@bot.example.org/": webhook.RuleUser,
		"https://bot.example.org:444/": webhook.RulePort, "https://bot.example.org/#x": webhook.RuleFragment, " https://bot.example.org/": webhook.RuleCharacters,
		"https://localhost/": webhook.RuleLocalName, "https://127.0.0.1/": webhook.RuleLiteral, "https://[::1]/": webhook.RuleLiteral, "https://bot/": webhook.RuleOneLabel,
		"https://bot.example.org/" + strings.Repeat("a", 2048): webhook.RuleTooLong, "https://bot.example.org/\xff\x00": webhook.RuleCharacters,
		`https://"><script>alert(1)</script>`: webhook.RuleName, "https://bot.example.org/": webhook.RuleUnresolved,
	} {
		t.Run(fmt.Sprintf("W-01 %.60q", address), func(t *testing.T) {
			want := words.T(words.With(t.Context(), words.English), "hook.rule_"+string(rule))
			page := anna.post(here(id, "connection"), saveForm("webhook", address, "keep", "1")).wants(http.StatusUnprocessableEntity).shows(want).lacks("<script>alert")
			if got := page.match(codeShown); got != "WEBHOOK_URL_FORBIDDEN" {
				t.Errorf("got data-code %q, want WEBHOOK_URL_FORBIDDEN", got)
			}
		})
	}
	if after := r.everything(); after != before {
		t.Errorf("got\n%s\nwant as before\n%s", after, before)
	}
}
