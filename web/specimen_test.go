package web

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mybots/browsertest"
	"mybots/views/layout"
	"mybots/views/ui"
	"mybots/views/words"

	"github.com/a-h/templ"
)

// with puts children into a component.
func with(c templ.Component, children ...templ.Component) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		return c.Render(templ.WithChildren(ctx, templ.Join(children...)), w)
	})
}

func text(s string) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		_, err := io.WriteString(w, templ.EscapeString(s))
		return err
	})
}

// specimenPage is a bot's page with every part of package ui on it.
func specimenPage(r *http.Request) templ.Component {
	ru := words.Lang(r.Context()) == words.Russian
	say := func(en, inRussian string) string {
		if ru {
			return inRussian
		}
		return en
	}
	frame := Frame(r, say("Connection", "Подключение"))
	frame.Bot = &layout.BotHead{
		Name: say("Order helper", "Помощник по заказам"), Username: "order_helper_bot", State: ui.Trouble, StateWord: say("Paused", "На паузе"),
		BackURL: "/bots", Current: layout.Connection, Failed: 1234,
		ConnectionURL: "/bots", FailedURL: "/bots?failed", ChatURL: "/bots?chat", SettingsURL: "/bots?settings",
	}
	at := time.Now().Add(-3 * time.Minute)
	table := templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		_, _ = fmt.Fprintf(w, `<table class="to-cards"><caption>%s</caption><thead><tr><th scope="col">%s</th><th scope="col">%s</th><th scope="col" class="right">%s</th></tr></thead><tbody>`,
			say("The last attempts", "Последние попытки"), say("Time", "Время"), say("Result", "Итог"), say("Took", "Длилось"))
		for i := range 3 {
			_, _ = fmt.Fprintf(w, `<tr><td data-label="%s">`, say("Time", "Время"))
			_ = ui.Time(at.Add(-time.Duration(i)*25*time.Hour)).Render(ctx, w)
			_, _ = fmt.Fprintf(w, `</td><td data-label="%s">`, say("Result", "Итог"))
			_ = ui.Pill([]ui.Kind{ui.Trouble, ui.Waiting, ui.Fine}[i], []string{"HTTP 401", say("Trying again", "Повторяется"), say("Delivered", "Доставлено")}[i]).Render(ctx, w)
			_, _ = fmt.Fprintf(w, `</td><td class="right" data-label="%s">%d ms</td></tr>`, say("Took", "Длилось"), 128*(i+1))
		}
		_, err := io.WriteString(w, `</tbody></table>`)
		return err
	})
	return with(layout.Page(frame),
		ui.Note(ui.Trouble, say("Your program refused the request (401)", "Ваша программа отклонила запрос (401)"),
			say("Most often the secret differs. Put the current secret into its configuration, then resume. Nothing is lost; 37 updates wait in order.",
				"Чаще всего не совпадает секрет. Впишите текущий секрет в её настройки и возобновите доставку. Ничего не потеряно: 37 событий ждут по порядку.")),
		ui.Action(ui.Primary, "/bots", say("Resume delivery", "Возобновить доставку"), []ui.Hidden{{Name: "version", Value: "3"}}),
		with(divided("columns"),
			with(ui.Card(say("State", "Состояние")), with(ui.Facts(),
				with(ui.Fact(say("Waiting updates", "Ожидающие события")), ui.Count(10000)),
				with(ui.Fact(say("Oldest waiting", "Самое старое")), ui.Time(at)),
				with(ui.Fact(say("Bot", "Бот")), ui.ID(say("bot id", "номер бота"), "7301550812")),
				with(ui.Fact(say("Never seen", "Ещё не было")), ui.Time(time.Time{})))),
			with(ui.Card(say("All states", "Все состояния")), with(divided("row"),
				ui.Pill(ui.Fine, say("Receiving", "Получает")), ui.Pill(ui.Waiting, say("Retrying", "Повторяет")),
				ui.Pill(ui.Trouble, say("Paused", "На паузе")), ui.Pill(ui.Off, say("Switched off", "Выключена"))),
				ui.Secret("secret", say("Webhook secret", "Секрет webhook"), "whs_"+strings.Repeat("k3v9", 13)))),
		with(ui.Card(say("Delivery mode", "Режим доставки")),
			ui.Errors("ADDRESS_FORBIDDEN", say("This address leads into a private network.", "Этот адрес ведёт во внутреннюю сеть.")),
			with(ui.Group(say("Mode", "Режим")),
				ui.Radio(ui.ChoiceProps{ID: "m1", Name: "mode", Value: "polling", Label: "Long polling", Hint: say("Your program asks for updates.", "Ваша программа сама запрашивает события.")}),
				ui.Radio(ui.ChoiceProps{ID: "m2", Name: "mode", Value: "webhook", Label: "Webhook", Hint: say("We send updates to your address.", "Мы отправляем события на ваш адрес."), Checked: true})),
			ui.Field(ui.FieldProps{ID: "url", Name: "url", Type: "url", Label: say("Address", "Адрес"), Value: "https://10.0.0.1/hook", Mono: true, Required: true,
				Hint: say("With https, on the public internet.", "С https, в открытом интернете."), Error: say("This address is private.", "Этот адрес внутренний.")}),
			ui.TextArea(ui.FieldProps{ID: "note", Name: "note", Label: say("Note", "Заметка"), Value: ""}, 2),
			ui.Select("type", "type", say("Type", "Тип"), []ui.Option{{Value: "", Label: say("All", "Все")}, {Value: "message", Label: "message", Selected: true}}),
			ui.Checkbox(ui.ChoiceProps{ID: "sure", Name: "sure", Value: "1", Label: say("I have saved the secret", "Секрет сохранён")}),
			with(divided("row"), ui.Button(ui.Plain, say("Save", "Сохранить"), nil), ui.ButtonLink(ui.Danger, "/bots", say("Cancel 37 updates…", "Отменить 37 событий…"))),
			ui.Disabled(say("Probe now", "Проверить сейчас"), say("Only while delivery is paused by the breaker.", "Только пока доставку остановил circuit breaker."))),
		with(ui.Card(""), with(ui.Scroll(say("Attempts", "Попытки")), table), ui.Pager(ui.PagerProps{Text: say("1–50 of 312", "1–50 из 312"), PreviousURL: "/bots?a", NextURL: "/bots?b"})),
		ui.Code("curl", "curl -X POST https://bots.example.org/bot-api/v1/getUpdates -H 'Authorization: Bearer sbt1_EXAMPLE' -d '{\"consumer_id\":\"laptop\"}'"),
		with(ui.Fold(say("How the budget works", "Как устроен бюджет ошибок")), text(say("Five attempts in ten minutes.", "Пять попыток за десять минут."))),
		with(ui.Empty(say("No bots yet", "Ботов пока нет"), say("Create one; it takes half a minute.", "Создайте первого, это займёт полминуты.")),
			with(ui.ButtonLink(ui.Plain, "/bots", say("Create a bot", "Создать бота")), ui.Icon("plus"))),
	)
}

// divided is a div of that class around its children.
func divided(class string) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		children := templ.GetChildren(ctx)
		if _, err := io.WriteString(w, `<div class="`+class+`">`); err != nil {
			return err
		}
		if err := children.Render(templ.ClearChildren(ctx), w); err != nil {
			return err
		}
		_, err := io.WriteString(w, `</div>`)
		return err
	})
}

// picture is where a screenshot goes, if MYBOTS_SCREENSHOTS names a folder.
func picture(name string) string {
	if dir := os.Getenv("MYBOTS_SCREENSHOTS"); dir != "" {
		return filepath.Join(dir, name+".png")
	}
	return ""
}

// enter signs a tab in, without the form, and opens the specimen page.
func (r *rig) enter(tab *browsertest.Tab, email string) {
	r.t.Helper()
	client := r.browser()
	r.signIn(client, email)
	tab.Cookie(r.url, r.front.store.name, r.cookie(client))
	tab.Go(r.url + "/bots")
}

func TestEveryPartOfThePages(t *testing.T) {
	t.Parallel()
	for _, language := range []string{"en", "ru"} {
		t.Run("UI-08 UI-01 axe finds nothing and nothing overflows: "+language, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			tab := browsertest.Open(t, browsertest.Setup{Language: language, Zone: "Europe/Moscow", Statuses: []int{422, 404}})
			look := func(page string) {
				t.Helper()
				tab.Views(func(v browsertest.View) {
					tab.Axe()
					tab.Fits()
					tab.Screenshot(picture(fmt.Sprintf("%s-%s-%s-%d", page, language, map[bool]string{false: "light", true: "dark"}[v.Dark], v.Width)))
				})
				if got := browsertest.Eval[string](tab, "document.documentElement.lang"); got != language {
					t.Errorf("lang of %s: got %s, want %s", page, got, language)
				}
			}
			tab.Go(r.url + "/bots")
			if got, want := tab.Path(), "/login?next=%2Fbots"; got != want {
				t.Errorf("signed out: got %s, want %s", got, want)
			}
			look("signin")
			tab.Type("#email", "anna@example.org")
			tab.Type("#password", "wrong")
			tab.Leave("main button[type=submit]")
			look("refused")
			tab.Go(r.url + "/nowhere")
			look("missing")
			r.enter(tab, "anna@example.org")
			look("specimen")
		})
	}
}
