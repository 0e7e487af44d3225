package owner_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"mybots/delivery"
	"mybots/delivery/queue"
	"mybots/delivery/webhook"
)

func TestResumeAndProbe(t *testing.T) {
	t.Parallel()
	connecting := func(r *rig, id int64) {
		r.fill(id, 1)
		r.answered(id, delivery.Answer{Kind: delivery.NotConnected}, 0)
	}
	open := func(r *rig, id int64) {
		r.fill(id, 4)
		r.useUp(id, 15)
	}
	paused := func(r *rig, id int64) {
		r.fill(id, 37)
		r.answered(id, statusAnswer(401), 0)
	}
	tests := map[string]struct {
		before func(*rig, int64)
		deed   string
		says   string
		check  func(queue.Status) bool
	}{
		"W-11 resume a pause": {paused, "resume", "Delivery goes on: 37 waiting updates are sent now, in order.",
			func(s queue.Status) bool { return s.Hook.Paused == "" && s.Hook.Due.IsZero() }},
		"W-11 resume a pause, nothing waits": {func(r *rig, id int64) {
			r.db.MustExec(`UPDATE queues SET hook_paused = 'HTTP_404' WHERE bot_id = $1`, id)
		}, "resume", "Nothing waits just now; the next update goes out at once.", func(s queue.Status) bool { return s.Hook.Paused == "" }},
		"M-07 resume a pause of delivery while the bot is paused": {func(r *rig, id int64) {
			paused(r, id)
			r.db.MustExec(`UPDATE queues SET paused = true WHERE bot_id = $1`, id)
		}, "resume", "resume the bot, too", func(s queue.Status) bool { return s.Hook.Paused == "" && s.Paused }},
		"W-12 resume with an open breaker sends a probe": {func(r *rig, id int64) {
			open(r, id)
			r.db.MustExec(`UPDATE queues SET hook_paused = 'HTTP_404' WHERE bot_id = $1`, id)
		}, "resume", "one probe is sent now", func(s queue.Status) bool { return s.Hook.ProbeAsked && s.Hook.Open() }},
		"W-11 resume what isn't paused": {func(r *rig, id int64) { r.fill(id, 1) }, "resume", "wasn't paused, so nothing was changed", func(s queue.Status) bool { return true }},
		"W-12 probe":                    {open, "probe", "A probe is sent now.", func(s queue.Status) bool { return s.Hook.ProbeAsked && s.Hook.Breaker == 1 }},
		"W-12 probe, nothing waits": {func(r *rig, id int64) {
			r.db.MustExec(`UPDATE queues SET breaker = 1, due_at = now() + interval '1 minute' WHERE bot_id = $1`, id)
		}, "probe", "it is sent with the next update", func(s queue.Status) bool { return s.Hook.ProbeAsked }},
		"W-12 probe while it can't connect": {connecting, "probe", "The next attempt is made now.", func(s queue.Status) bool { return s.Hook.Due.IsZero() && s.Hook.Failures == 1 }},
		"W-12 probe a pause":                {paused, "probe", "Delivery is paused, so nothing was probed.", func(s queue.Status) bool { return s.Hook.Paused == "HTTP_401" }},
		"W-12 probe what doesn't wait":      {func(r *rig, id int64) {}, "probe", "There is nothing to probe", func(s queue.Status) bool { return !s.Hook.ProbeAsked }},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			anna := r.owner()
			id := anna.bot("robot", "Order helper")
			anna.webhook(id)
			c.before(r, id)
			anna.post(here(id, "connection/"+c.deed), nil).leads(here(id, "connection"))
			anna.get(here(id, "connection")).shows(c.says)
			anna.get(here(id, "connection")).lacks(c.says) // said once
			if s := r.status(id); !c.check(s) {
				t.Errorf("got %+v afterwards", s.Hook)
			}
		})
	}
	t.Run("W-11 in polling mode nothing is steered", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		for _, deed := range []string{"resume", "probe"} {
			anna.post(here(id, "connection/"+deed), nil).leads(here(id, "connection"))
			anna.get(here(id, "connection")).shows("The bot receives by long polling, so there is no webhook delivery.")
		}
	})
}

func TestSendTest(t *testing.T) {
	t.Parallel()
	const shown = `id="test-result" data-result="([^"]*)"`
	for want, c := range map[string]struct {
		answer delivery.Answer
		says   []string
	}{
		"confirmed": {statusAnswer(204), []string{"status 204", "counts as delivered"}},
		"failed":    {statusAnswer(422), []string{"status 422", "would move to the failed updates"}},
		"pause":     {delivery.Answer{Kind: delivery.BadCertificate, Detail: delivery.CertificateExpired}, []string{"The certificate has expired", "Renew the certificate"}},
		"budget":    {delivery.Answer{Kind: delivery.TimedOut}, []string{"No answer within 10 seconds", "up to 5 attempts"}},
		"wait":      {delivery.Answer{Kind: delivery.NameNotFound}, []string{"The name can't be resolved", "no attempt would be used up"}},
	} {
		t.Run("M-08 "+want+": said once, and nothing is confirmed, charged or paused", func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			anna := r.owner()
			id := anna.bot("robot", "Order helper")
			secret := anna.webhook(id)
			r.fill(id, 3)
			r.hooks.set(func(h *hooks) { h.answer = c.answer })
			before := r.everything()
			anna.post(here(id, "connection/test"), nil).leads(here(id, "connection"))
			if after := r.everything(); after != before {
				t.Errorf("got\n%s\nwant as before\n%s", after, before)
			}
			page := anna.get(here(id, "connection")).shows(c.says...).shows("This was a test: nothing was confirmed, used up or paused.").lacks("[test ")
			if got := page.match(shown); got != want {
				t.Errorf("got data-result %q, want %q", got, want)
			}
			anna.get(here(id, "connection")).lacks("test-result")
			if len(r.hooks.sent) != 1 {
				t.Fatalf("got %d requests, want 1", len(r.hooks.sent))
			}
			got := r.hooks.sent[0]
			if got.BotID != id || got.URL != hookURL || got.Secret != secret || got.Version != 2 || got.Attempt != 1 || got.Update.UpdateID != 0 || got.Update.Type != "test" {
				t.Errorf("got %+v, want a test request to the bot's webhook", got)
			}
			if body := string(got.Update.AppendJSON(nil)); !regexp.MustCompile(`^\{"update_id":"0","event_id":"[0-9a-f-]{36}","type":"test","date":"[^"]+Z","test":\{"text":"[^"]+"\}\}$`).MatchString(body) {
				t.Errorf("got the body %s", body)
			}
			anna.post(here(id, "connection/test"), nil, "Accept-Language: ru").leads(here(id, "connection"))
			anna.get(here(id, "connection"), "Accept-Language: ru").shows("Тестовый запрос", "Это была проверка").match(shown)
			if a, b := r.hooks.sent[0].Update.EventID, r.hooks.sent[1].Update.EventID; a == b {
				t.Errorf("got the event %s twice, want a fresh one each", a)
			}
			if list, err := r.queue.Attempts(t.Context(), id, 50); err != nil || len(list) != 0 {
				t.Errorf("got %d attempts, %v, want none: a test is outside of the queue", len(list), err)
			}
		})
	}
	t.Run("M-08 the result of one bot isn't shown as another's", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		one, two := anna.bot("robot", "Order helper"), anna.bot("robot2", "Other")
		anna.webhook(one)
		anna.post(here(one, "connection/test"), nil).leads(here(one, "connection"))
		anna.get(here(two, "connection")).shows("Test request: confirmed").lacks(`id="test-result"`)
	})
	for name, c := range map[string]struct{ sql, code, says string }{
		"polling":     {`UPDATE queues SET mode = 'polling'`, "DELIVERY_MODE_CONFLICT", "Save a webhook first."},
		"paused":      {`UPDATE queues SET paused = true`, "BOT_PAUSED", "Resume it first."},
		"disabled":    {`UPDATE queues SET disabled = true`, "BOT_DISABLED", "your space runs no bots"},
		"maintenance": {`UPDATE platform SET maintenance = true`, "MAINTENANCE", "the platform is being serviced"},
	} {
		t.Run("M-08 none is sent: "+name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			anna := r.owner()
			id := anna.bot("robot", "Order helper")
			anna.webhook(id)
			r.db.MustExec(c.sql)
			page := anna.post(here(id, "connection/test"), nil).wants(http.StatusConflict).shows("No test request was sent", c.says)
			if got := page.match(codeShown); got != c.code || len(r.hooks.sent) != 0 {
				t.Errorf("got data-code %q and %d requests, want %q and none", got, len(r.hooks.sent), c.code)
			}
		})
	}
}

func TestCheckSignature(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	anna := r.owner()
	id := anna.bot("robot", "Order helper")
	old := anna.webhook(id)
	secret := anna.webhook(id)
	body := `{"update_id":"7","type":"message","message":{"text":"Tea & cake"}}`
	now := r.clock.Now().Unix()
	good := webhook.Sign(secret, now, []byte(body))
	const shown = `id="check-result" data-mistake="([^"]*)" data-details="([^"]*)"`
	tests := map[string]struct {
		form     url.Values
		mistake  string
		en, ru   string
		unstored bool
	}{
		"valid":             {form: url.Values{"header": {good}, "body": {body}}, mistake: "none", en: "The signature is right", ru: "Подпись верна"},
		"valid, pasted":     {form: url.Values{"header": {good}, "body": {body}, "secret": {string(secret)}}, mistake: "none", en: "isn't filled in again", ru: "Подпись верна"},
		"another secret":    {form: url.Values{"header": {good}, "body": {body}, "secret": {string(old)}}, mistake: "old_secret", en: "Your program uses another secret than SMeet", ru: "У программы другой секрет"},
		"a strange secret":  {form: url.Values{"header": {webhook.Sign("else", now, []byte(body))}, "body": {body}, "secret": {"else2"}}, mistake: "other", en: "Another secret, or another body", ru: "Другой секрет или другое тело"},
		"old":               {form: url.Values{"header": {webhook.Sign(secret, now-3600, []byte(body))}, "body": {body}}, mistake: "old", en: "right, but old", ru: "устарела"},
		"the body alone":    {form: url.Values{"header": {"t=" + itoa(now) + ",v1=" + strings.Repeat("0", 64)}, "body": {body}}, mistake: "other", en: "None of the usual mistakes", ru: "Ни одна из обычных ошибок"},
		"no header":         {form: url.Values{"body": {body}}, mistake: "header", en: "No header was pasted.", ru: "Заголовок не вставлен."},
		"upper case":        {form: url.Values{"header": {strings.Replace(strings.ToUpper(good), "T=", "t=", 1)}, "body": {body}}, mistake: "header", en: "v1= is missing", ru: "Нет v1="},
		"a newline too few": {form: url.Values{"header": {webhook.Sign(secret, now, []byte(body+"\n"))}, "body": {body}}, mistake: "body", en: "Sign the bytes as they came over the wire", ru: "Подписывайте байты так, как они пришли"},
	}
	for name, c := range tests {
		t.Run("UI-03 W-07 "+name, func(t *testing.T) {
			before := r.everything()
			page := anna.post(here(id, "connection/check"), c.form).wants(http.StatusOK).shows(c.en).lacks(string(secret), string(old))
			if got := page.match(shown); got != c.mistake {
				t.Errorf("got mistake %q, want %q", got, c.mistake)
			}
			if got := page.header.Get("Cache-Control"); got != "no-store" {
				t.Errorf("got Cache-Control %q, want no-store", got)
			}
			anna.post(here(id, "connection/check"), c.form, "Accept-Language: ru").wants(http.StatusOK).shows(c.ru)
			if after := r.everything(); after != before {
				t.Errorf("got\n%s\nwant as before\n%s", after, before)
			}
			anna.get(here(id, "connection")).lacks("check-result", "Tea &amp; cake")
		})
	}
	t.Run("UI-03 long polling has no signatures", func(t *testing.T) {
		polling := anna.bot("robot2", "Other")
		anna.post(here(polling, "connection/check"), tests["valid"].form).wants(http.StatusConflict).shows("Nothing was checked")
	})
}
