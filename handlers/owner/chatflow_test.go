package owner_test

import (
	"strings"
	"testing"

	"mybots/browsertest"
)

func TestChatDeedsWithoutJavaScript(t *testing.T) {
	t.Parallel()
	t.Run("UI-01 UI-09 edit, attach, end the check, delete, stop, allow, leave, come back", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		tab := browsertest.Open(t, browsertest.Setup{NoScript: true, Width: 360, Statuses: []int{422}})
		r.signIn(tab, anna)
		tab.Go(r.url + here(id, "chat"))
		tab.Type("#text", "hello")
		tab.Leave("#compose button")
		tab.Leave("[data-testid=edit]")
		tab.Type("#text", "oh, ")
		tab.Leave("[data-testid=editing] button")
		if got := tab.Text("[data-testid=message] .text"); got != "oh, hello" {
			t.Errorf("the edited message: got %q, want oh, hello", got)
		}
		tab.Until(`document.querySelector("[data-testid=edited]") !== null`)
		tab.Leave("#compose form[action$='/file'] button")
		if got := tab.Text("[data-testid=file] .pill"); got != "Being checked" {
			t.Errorf("the file: got %q, want that it is being checked", got)
		}
		tab.Leave("[data-testid=infected]")
		if got := tab.Text("[data-testid=file] .pill"); got != "Infected" {
			t.Errorf("the file: got %q, want Infected", got)
		}
		tab.Leave("#message-2 [data-testid=delete]")
		if got := tab.Text("#message-2 [data-testid=deleted]"); got != "Message deleted" || tab.Has("#message-2 [data-testid=file]") {
			t.Errorf("the deleted one: got %q, want that it is deleted", got)
		}
		for _, way := range []struct{ out, title, back string }{
			{"stop", "You have stopped the bot in this chat.", "Allow the bot again"}, {"leave", "You have left the space.", "Come back to the space"},
		} {
			tab.Leave("[data-testid=" + way.out + "]")
			if got := tab.Text("[data-testid=closed] strong"); got != way.title || tab.Has("#text") || tab.Has("#file-name") || tab.Has("[data-testid=edit]") {
				t.Errorf("%s: got %q, want %q and no way to write", way.out, got, way.title)
			}
			tab.Fits()
			if got := tab.Text("[data-testid=closed] button"); got != way.back {
				t.Errorf("%s: got %q, want %q", way.out, got, way.back)
			}
			tab.Leave("[data-testid=closed] button")
		}
		if got := browsertest.Eval[int](tab, `document.querySelectorAll("[data-testid=event]").length`); got != 5 || !tab.Has("#text") {
			t.Errorf("got %d lines, want the check's and four changes, and the form again", got)
		}
		tab.Fits()
	})
}

func TestChatDeedsWithJavaScript(t *testing.T) {
	t.Parallel()
	t.Run("UI-08 UI-09 all deeds on one page, by keyboard, the focus where one goes on", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		tab := s.open(t, browsertest.Setup{Statuses: []int{409}})
		tab.Go(s.url + here(s.newcomer, "chat"))
		browsertest.Eval[int](tab, `window.same = 1`)
		// press focuses what is named and presses Enter.
		press := func(css string) {
			t.Helper()
			tab.Until(`document.querySelector("` + css + `") !== null`)
			browsertest.Eval[bool](tab, `(document.querySelector("`+css+`").focus(), true)`)
			tab.Press("\r")
		}
		focused := func(want string) {
			t.Helper()
			tab.Until(`document.activeElement === document.querySelector("` + want + `")`)
		}
		tab.Type("#text", "hello")
		press("#compose button")
		tab.Until(`document.querySelector("#message-1 .text")?.innerText === "hello"`)
		press("[data-testid=edit]")
		focused("[data-testid=editing] #text")
		if got := browsertest.Eval[string](tab, `document.querySelector("#text").value`); got != "hello" {
			t.Errorf("what is edited: got %q, want hello", got)
		}
		s.db.MustExec(`UPDATE queues SET paused = true WHERE bot_id = $1`, s.newcomer)
		tab.Press("x")
		press("[data-testid=editing] button")
		tab.Until(`document.querySelector("#text-error")?.innerText.includes("The bot is paused.") && document.querySelector("#text").value.includes("x")`)
		s.db.MustExec(`UPDATE queues SET paused = false WHERE bot_id = $1`, s.newcomer)
		press("[data-testid=editing] button")
		tab.Until(`document.querySelector("#message-1 [data-testid=edited]") !== null && !document.querySelector("[data-testid=editing]")`)
		if got := tab.Text("#message-1 .text"); !strings.Contains(got, "x") {
			t.Errorf("the edited message: got %q, want it with an x", got)
		}
		focused("#text")
		tab.Type("#text", "half a sen")
		press("#compose form[action$='/file'] button")
		tab.Until(`document.querySelector("#message-2 [data-testid=file]")?.dataset.status === "checking"`)
		press("#message-2 [data-testid=clean]")
		tab.Until(`document.querySelector("#message-2 [data-testid=file]").dataset.status === "clean"`)
		focused("#message-2")
		press("#message-2 [data-testid=delete]")
		tab.Until(`document.querySelector("#message-2 [data-testid=deleted]") !== null`)
		focused("#message-2")
		if got := browsertest.Eval[string](tab, `document.querySelector("#text").value`); got != "half a sen" {
			t.Errorf("what was being written: got %q, want half a sen", got)
		}
		press("[data-testid=stop]")
		focused("[data-testid=closed] button")
		tab.Axe()
		press("[data-testid=closed] button")
		focused("#text")
		if got := browsertest.Eval[int](tab, `document.querySelectorAll("[data-testid=event]").length * 10 + window.same`); got != 31 {
			t.Errorf("lines and the page: got %d, want three lines on the same page", got)
		}
	})
	t.Run("UI-05 a message's time is shown as long ago and as the clock's, with the exact UTC on hover", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		tab := s.open(t, browsertest.Setup{Zone: "Europe/Moscow"})
		tab.Go(s.url + here(s.shop, "chat"))
		if got := browsertest.Eval[string](tab, `(e => e.querySelector(".ago").innerText && getComputedStyle(e.querySelector(".at")).display !== "none" && e.querySelector(".at").innerText)(document.querySelector(".message-head time"))`); !strings.HasSuffix(got, "GMT+3") {
			t.Errorf("got %q, want a time in Moscow", got)
		}
		if got := browsertest.Eval[string](tab, `document.querySelector(".message-head time").title`); !strings.HasSuffix(got, "UTC") {
			t.Errorf("on hover: got %q, want UTC", got)
		}
	})
}
