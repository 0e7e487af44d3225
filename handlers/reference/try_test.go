package reference_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/uuid"

	"mybots/browsertest"
	"mybots/delivery"
)

// answered waits for the answer and returns its status line, headers and body.
func answered(tab *browsertest.Tab) (status, headers, body string) {
	tab.Until(`!document.querySelector("#try-send").disabled && !document.querySelector("#try-answer").hidden`)
	const code = `document.querySelectorAll("#try-answer [data-copy-text]")`
	return tab.Text("#try-status"), browsertest.Eval[string](tab, code+"[0].textContent"), browsertest.Eval[string](tab, code+"[1].textContent")
}

func TestTry(t *testing.T) {
	t.Parallel()
	t.Run("UI-10 the form calls the methods with the reader's token, by keyboard alone", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		b := r.bot("tried_bot")
		tab := browsertest.Open(t, browsertest.Setup{})
		tab.Go(r.url + "/docs/try")
		browsertest.Eval[bool](tab, `(document.querySelector("#try-method").focus(), true)`)
		tab.Press(kb.Tab)
		tab.Press(b.token)
		tab.Press(kb.Enter)
		status, headers, body := answered(tab)
		if !strings.HasPrefix(status, "200") || !strings.Contains(body, `"username": "tried_bot"`) || !strings.Contains(headers, "x-request-id: ") {
			t.Errorf("getMe: got %q, %q, %q", status, headers, body)
		}
		if got := browsertest.Eval[string](tab, "document.activeElement.id"); got != "try-answer" {
			t.Errorf("got the focus on %q, want it on the answer", got)
		}
		tab.Views(func(v browsertest.View) {
			tab.Axe()
			tab.Fits()
			tab.Screenshot(picture(0, "/try-answer", "en", v))
		})
	})
	t.Run("UI-10 a refusal is shown as it came, and each action has its own key", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		b := r.bot("tried_bot")
		_, err := r.queue.Append(t.Context(), []delivery.Event{{BotID: b.id, EventID: uuid.NewString(), Type: "message", ChatID: 550, Date: r.clock.Now(), Payload: []byte(`{"text":"hi"}`)}})
		r.must(err)
		tab := browsertest.Open(t, browsertest.Setup{Statuses: []int{401, 404}})
		tab.Go(r.url + "/docs/try")
		token := func(text string) {
			browsertest.Eval[bool](tab, `(document.querySelector("#try-token").value = "", true)`)
			tab.Type("#try-token", text)
		}
		token("not a token")
		tab.Click("#try-send")
		if status, _, _ := answered(tab); !strings.Contains(status, "sbt1_") {
			t.Errorf("a text with spaces: got %q, want to be told how a token looks", status)
		}
		token("sbt1_unknown")
		tab.Click("#try-send")
		tab.Until(`document.querySelector("#try-status").textContent.startsWith("401")`)
		choose := func(method string) {
			browsertest.Eval[bool](tab, `(() => { const m = document.querySelector("#try-method"); m.value = "`+method+`"; m.dispatchEvent(new Event("change")); return true })()`)
		}
		token(b.token)
		choose("sendMessage")
		keyOne := browsertest.Eval[string](tab, `document.querySelector("#try-key").value`)
		tab.Click("#try-send")
		tab.Until(`document.querySelector("#try-status").textContent.startsWith("200")`)
		tab.Click("#try-send")
		tab.Until(`document.querySelectorAll("#try-answer [data-copy-text]")[0].textContent.includes("idempotent-replayed: true")`)
		choose("answerCallbackQuery")
		if keyTwo := browsertest.Eval[string](tab, `document.querySelector("#try-key").value`); keyTwo == keyOne || keyOne == "" {
			t.Errorf("got the keys %q and %q, want one for each action", keyOne, keyTwo)
		}
		tab.Click("#try-send")
		tab.Until(`document.querySelector("#try-status").textContent.startsWith("404")`)
		choose("getUpdates")
		if tab.Text("#try-note") == "" {
			t.Error("getUpdates: got no word about the lease that it takes")
		}
		tab.Click("#try-send")
		tab.Until(`document.querySelector("#try-status").textContent.startsWith("200")`)
		if _, _, body := answered(tab); !strings.Contains(body, `"text": "hi"`) {
			t.Errorf("getUpdates: got %s, want the update", body)
		}
	})
	t.Run("UI-10 A-03 the token stays in its field", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		const marker = "sbt1_MARKERmarkerMARKERmarkerMARKER"
		tab := browsertest.Open(t, browsertest.Setup{Statuses: []int{401}})
		tab.Go(r.url + "/docs/try")
		tab.Type("#try-token", marker)
		tab.Click("#try-send")
		if status, headers, body := answered(tab); !strings.HasPrefix(status, "401") || strings.Contains(headers+body, "MARKER") {
			t.Errorf("got %q, %q, %q, want 401 without the token", status, headers, body)
		}
		for what, expression := range map[string]string{
			"the page":    "document.documentElement.outerHTML",
			"the address": "location.href",
			"the cookies": "document.cookie",
			"the storage": "JSON.stringify([Object.entries(localStorage), Object.entries(sessionStorage)])",
			"the history": "JSON.stringify(history.state)",
			"the entries": "JSON.stringify(performance.getEntries())",
		} {
			if got := browsertest.Eval[string](tab, `String(`+expression+`)`); strings.Contains(got, "MARKER") {
				t.Errorf("%s holds the token: %.200s", what, got)
			}
		}
		if browsertest.Eval[bool](tab, `(() => { const f = document.querySelector("#try"); return [...new FormData(f)].length > 0 || f.hasAttribute("action") })()`) {
			t.Error("got a form that the browser would send, want none")
		}
		tab.Go(r.url + "/docs/limits")
		tab.Do(chromedp.NavigateBack())
		if got := browsertest.Eval[string](tab, `document.querySelector("#try-token").value`); got != "" {
			t.Errorf("going back: got %q in the field, want nothing", got)
		}
		if log := r.log.String(); strings.Contains(log, "MARKER") || !strings.Contains(log, `"route":"/bot-api/"`) {
			t.Errorf("the log holds the token, or not the call:\n%s", log)
		}
	})
	t.Run("UI-01 UI-10 without JavaScript the command stands in its place", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		tab := browsertest.Open(t, browsertest.Setup{NoScript: true})
		tab.Go(r.url + "/docs/try")
		if browsertest.Eval[bool](tab, `getComputedStyle(document.querySelector("#try")).display !== "none"`) {
			t.Error("got the form shown, want it hidden")
		}
		if got := tab.Text("main"); !strings.Contains(got, "curl -sS -X POST "+r.url+"/bot-api/v1/getMe") {
			t.Errorf("got no command in %q", got)
		}
		tab.Go(r.url + "/docs/search")
		tab.Type("#docs-q", "CURSOR_BEHIND")
		tab.Leave(".docs-search button")
		if tab.Path() != "/docs/search?q=CURSOR_BEHIND" || !tab.Has("[data-testid=found]") {
			t.Errorf("got %s, want what was found", tab.Path())
		}
	})
}
