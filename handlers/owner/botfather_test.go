package owner_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"mybots/browsertest"
	"mybots/web"
)

func TestBotFather(t *testing.T) {
	t.Parallel()
	t.Run("N-01 the owner opens BotFather, reads a notice and lands on the right Connection", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		bot := anna.bot("billing_bot", "Billing")
		anna.bot("other_bot", "Other")
		anna.webhook(bot)
		r.fill(bot, 1)
		tab := browsertest.Open(t, browsertest.Setup{Width: 1280})
		r.signIn(tab, anna)
		tab.Leave(`[data-testid="start-botfather"] a`)
		tab.Leave(`[data-testid="botfather-closed"] form:nth-of-type(2) button`)
		if text := tab.Text(`[data-testid="botfather"]`); !strings.Contains(text, "Nothing has gone wrong") {
			t.Errorf("got %q, want an empty chat", text)
		}
		r.answered(bot, statusAnswer(401), time.Millisecond)
		r.notify()
		tab.Go(r.url + "/botfather/" + itoa(r.space))
		if text := tab.Text(`[data-testid="notice"] .text`); !strings.Contains(text, "Доставка на webhook бота Billing приостановлена") || !strings.Contains(text, "401") {
			t.Errorf("got %q, want the notice in the chat's language", text)
		}
		r.must(r.notices.OpenChat(t.Context(), r.space, anna.id, "en"))
		tab.Go(r.url + "/botfather/" + itoa(r.space))
		if !tab.Has(`[data-testid="notice"] .text[lang="ru"]`) {
			t.Error("UI-01 after the chat's language changed, the older notice isn't marked as Russian any more")
		}
		tab.Leave(`[data-testid="notice"] .keys a`)
		if got, want := tab.Path(), here(bot, "connection"); got != want {
			t.Errorf("the button leads to %s, want %s", got, want)
		}
		tab.Go(r.url + "/bots")
		if tab.Has(`[data-testid="start-botfather"]`) {
			t.Error("My bots asks to start BotFather, which was started")
		}
	})
	t.Run("N-01 a message comes while the page stands, in the language that was chosen last", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		bot := anna.bot("billing_bot", "Billing <b>")
		anna.webhook(bot)
		r.fill(bot, 1)
		page := "/botfather/" + itoa(r.space)
		anna.get(page).wants(http.StatusOK).shows("Start in English", "Start in Russian").lacks(`name="seen"`)
		anna.post(page+"/start", url.Values{"language": {"en"}}).leads(page)
		anna.get(page).wants(http.StatusOK).shows("BotFather will write to you here.", "Nothing has gone wrong")
		anna.post(page+"/start", url.Values{"language": {"ru"}}).leads(page)
		mark := anna.get(page).wants(http.StatusOK).shows("BotFather writes in this language from now on.").match(`name="seen" value="([^"]+)"`)
		anna.get(page+"?seen="+mark, piece...).wants(http.StatusNoContent)
		r.answered(bot, statusAnswer(401), time.Millisecond)
		r.notify()
		got := anna.get(page+"?seen="+mark, piece...).wants(http.StatusOK).shows("Доставка на webhook бота Billing <b> приостановлена.\nВаша программа отклонила запрос (401).", "Подключение").
			lacks("<html", "<b>", "private", "?token=")
		got.match(`(<p class="text" lang="ru")`)
		got.match(`(<a class="button plain" href="` + here(bot, "connection") + `" lang="ru">)`)
		got.match(`(<time [^>]*title="[0-9-]+ [0-9:]+ UTC")`)
	})
	t.Run("UI-07 nobody reads another's messages in the same space", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna, boris := r.owner(), r.signedIn("boris", web.Owner)
		bot := anna.bot("billing_bot", "Billing")
		anna.webhook(bot)
		r.fill(bot, 1)
		page := "/botfather/" + itoa(r.space)
		for _, p := range []*person{anna, boris} {
			p.post(page+"/start", url.Values{"language": {"en"}}).leads(page)
		}
		r.answered(bot, statusAnswer(401), time.Millisecond)
		r.notify()
		anna.get(page).wants(http.StatusOK).shows("Billing")
		boris.get(page).wants(http.StatusOK).shows("Nothing has gone wrong").lacks("Billing")
		boris.get(page + "?before=9223372036854775807").wants(http.StatusOK).lacks("Billing")
	})
	t.Run("UI-07 UI-11 only one's own space, only the two languages", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		other, err := r.bots.AddSpace(t.Context(), "Another")
		r.must(err)
		for _, space := range []string{itoa(other), "0", "-1", "x", "99999999999999999999"} {
			anna.get("/botfather/" + space).wants(http.StatusNotFound)
			anna.post("/botfather/"+space+"/start", url.Values{"language": {"en"}}).wants(http.StatusNotFound)
		}
		for _, form := range []url.Values{{}, {"language": {"de"}}, {"language": {"en", "ru"}}, {"language": {""}}} {
			anna.post("/botfather/"+itoa(r.space)+"/start", form).wants(http.StatusUnprocessableEntity)
		}
		if page := anna.get("/botfather/" + itoa(r.space)); !strings.Contains(page.body, "botfather-closed") {
			t.Error("a refused form opened the chat")
		}
	})
	t.Run("N-01 a long chat, page by page, and a bot that is gone", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		bot := anna.bot("billing_bot", "Billing")
		r.must(r.notices.OpenChat(t.Context(), r.space, anna.id, "en"))
		r.db.MustExec(`
INSERT INTO botfather_messages (space_id, user_id, notice_id, bot_id, language, text, button, written_at)
SELECT $1, $2, n, CASE WHEN n = 65 THEN $3 ELSE 12345 END, 'en', 'Message <' || n || '>', 'Connection', $4 FROM generate_series(1, 65) n`, r.space, anna.id, bot, r.clock.Now())
		page := anna.get("/botfather/" + itoa(r.space)).wants(http.StatusOK)
		if n := strings.Count(page.body, `data-testid="notice"`); n != 30 || !strings.Contains(page.body, "Message &lt;65&gt;") || strings.Contains(page.body, "Message &lt;35&gt;") {
			t.Errorf("the first page has %d messages, want the latest 30", n)
		}
		if n := strings.Count(page.body, here(bot, "connection")); n != 1 || strings.Count(page.body, "This bot was deleted") != 29 {
			t.Errorf("got %d buttons, want one for the one bot that is there", n)
		}
		page = anna.get("/botfather/" + itoa(r.space) + "?before=6").wants(http.StatusOK)
		if n := strings.Count(page.body, `data-testid="notice"`); n != 5 || strings.Contains(page.body, "Older messages") || !strings.Contains(page.body, "Latest messages") {
			t.Errorf("the last page has %d messages, want 5", n)
		}
	})
}
