package owner_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"mybots/browsertest"
	"mybots/delivery/chat"
)

func TestWithoutJavaScript(t *testing.T) {
	t.Parallel()
	t.Run("UI-01 sign in, create, token, write, pause, delete", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.add("anna", "owner")
		tab := browsertest.Open(t, browsertest.Setup{NoScript: true, Width: 360})
		r.signIn(tab, anna)
		tab.Leave(".empty a.primary")
		tab.Type("#name", "Order helper")
		tab.Type("#username", "robot")
		tab.Leave("main form button[type=submit]")
		if token := browsertest.Eval[string](tab, `document.querySelector("#token").value`); !strings.HasPrefix(token, "sbt1_") {
			t.Errorf("got token %q, want one", token)
		}
		tab.Fits()
		tab.Leave("main a.primary")
		tab.Type("#text", "hello")
		tab.Leave("#compose button")
		if got := tab.Text("[data-testid=message] .text"); got != "hello" {
			t.Errorf("got message %q, want hello", got)
		}
		id := botOf(t, tab)
		anna.id = browserOwner(r)
		anna.reply(id, "hello yourself")
		tab.Leave("#compose a") // Refresh
		if got := tab.Text(".from-bot .text"); got != "hello yourself" {
			t.Errorf("got answer %q, want hello yourself", got)
		}
		tab.Leave(".tabs a:last-child")
		tab.Leave(`form[action$="/pause"] button`)
		if got := tab.Text("#flash"); !strings.Contains(got, "is paused") {
			t.Errorf("got flash %q, want that it is paused", got)
		}
		tab.Leave("[data-testid=state] button") // the primary action
		if got := tab.Text("#flash"); !strings.Contains(got, "goes on") {
			t.Errorf("got flash %q, want that it goes on", got)
		}
		tab.Leave("#mode-form button[value=drop]")
		tab.Leave("main form button.danger")
		if got := tab.Text("#flash"); !strings.Contains(got, "1 waiting update was cancelled") {
			t.Errorf("got flash %q, want 1 cancelled", got)
		}
		tab.Leave(".tabs a:last-child")
		tab.Leave("main a.danger")
		tab.Type("#username", "robot")
		tab.Leave("main form button.danger")
		if got := tab.Path(); got != "/bots" {
			t.Errorf("got %s, want /bots", got)
		}
	})
}

func browserOwner(r *rig) (id int64) {
	r.must(r.db.Get(&id, `SELECT user_id FROM people LIMIT 1`))
	return id
}

// botOf reads the bot's id out of the tab's address.
func botOf(t *testing.T, tab *browsertest.Tab) (id int64) {
	t.Helper()
	if _, err := fmt.Sscanf(tab.Path(), "/bots/%d/", &id); err != nil {
		t.Fatalf("the bot of %s: %v", tab.Path(), err)
	}
	return id
}

func TestWithJavaScript(t *testing.T) {
	t.Parallel()
	t.Run("UI-09 a message and its answer come without a new page", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		tab := s.open(t, browsertest.Setup{})
		tab.Go(s.url + here(s.newcomer, "chat"))
		browsertest.Eval[int](tab, `window.same = 1`)
		tab.Type("#text", "hello")
		tab.Click("#compose button")
		tab.Until(`document.querySelector("[data-testid=message] .text")?.innerText === "hello"`)
		tab.Until(`document.activeElement.id === "text" && document.querySelector("#text").value === ""`)
		tab.Type("#text", "half a sen")
		s.anna.reply(s.newcomer, "an answer", []chat.Button{{Text: "Yes", Data: "y"}})
		tab.Until(`document.querySelector(".from-bot .text")?.innerText === "an answer"`)
		if got := browsertest.Eval[string](tab, `document.querySelector("#text").value + " " + document.activeElement.id + " " + window.same`); got != "half a sen text 1" {
			t.Errorf("what was being written, where the focus is, the page: got %q, want half a sen text 1", got)
		}
		if got := tab.Text("#said"); got != "The bot wrote: an answer" {
			t.Errorf("what a screen reader hears: got %q", got)
		}
		tab.Click(".keys button")
		s.db.MustExec(`UPDATE queues SET paused = true WHERE bot_id = $1`, s.newcomer)
		tab.Until(`document.querySelector(".bot-head .pill").innerText === "Paused by you"`)
		tab.Click(".keys button")
		tab.Until(`document.querySelector("#flash").innerText.includes("didn't reach the bot")`)
		if got := browsertest.Eval[int](tab, `window.same`); got != 1 {
			t.Error("got a new page, want the same")
		}
	})
	t.Run("UI-03 the connection's state changes by itself", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		tab := s.open(t, browsertest.Setup{})
		tab.Go(s.url + here(s.newcomer, "connection"))
		browsertest.Eval[bool](tab, `(document.querySelector("#mode-polling").focus(), true)`)
		s.mustPoll(s.newcomer, "worker-1")
		tab.Until(`document.querySelector("[data-testid=state]").dataset.state === "receiving"`)
		tab.Until(`document.querySelector(".bot-head .pill").innerText === "Receiving"`)
		if got := browsertest.Eval[string](tab, `document.activeElement.id`); got != "mode-polling" {
			t.Errorf("the focus: got %q, want mode-polling", got)
		}
	})
	t.Run("UI-05 while the server can't answer, the page says so, and recovers", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		tab := s.open(t, browsertest.Setup{Statuses: []int{http.StatusInternalServerError}})
		tab.Go(s.url + here(s.newcomer, "chat"))
		s.db.MustExec(`ALTER TABLE messages RENAME TO elsewhere`)
		tab.Until(`document.querySelector("#stale #error") !== null`)
		s.db.MustExec(`ALTER TABLE elsewhere RENAME TO messages`)
		tab.Until(`document.querySelector("#stale #error") === null && document.querySelector("#stale input") !== null`)
	})
	t.Run("UI-02 the token is covered until Show, and its copies in the commands with it", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		tab := s.open(t, browsertest.Setup{})
		tab.Go(s.url + "/bots/new")
		tab.Type("#name", "Fresh bot")
		tab.Type("#username", "fresh_bot")
		tab.Leave("main form button[type=submit]")
		const covered = `[...document.querySelectorAll("[data-secret]")].map(e => getComputedStyle(e).webkitTextSecurity).join(" ")`
		if got := browsertest.Eval[string](tab, covered); got != "disc disc disc disc" {
			t.Errorf("covered: got %q, want disc four times", got)
		}
		tab.Click("[data-show=token]")
		if got := browsertest.Eval[string](tab, covered); !strings.HasPrefix(got, "none ") {
			t.Errorf("after Show: got %q, want none first", got)
		}
		token := browsertest.Eval[string](tab, `document.querySelector("#token").value`)
		for i, want := range []string{"/bot-api/v1/getMe", "/bot-api/v1/getUpdates", "python3 examples/python/echo_bot.py"} {
			got := browsertest.Eval[string](tab, fmt.Sprintf(`document.querySelectorAll("figure [data-copy-text]")[%d].textContent`, i))
			if !strings.Contains(got, want) || !strings.Contains(got, token) {
				t.Errorf("what Copy takes: got %q, want %q and the token in it", got, want)
			}
		}
	})
}
