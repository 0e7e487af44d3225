package owner_test

import (
	"strings"
	"testing"

	"mybots/browsertest"
	"mybots/delivery"
)

func TestFailedWithoutJavaScript(t *testing.T) {
	t.Parallel()
	t.Run("F-02 F-03 UI-01 rejected, listed, retried, received again; skipped after a question", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		r.fail(id, "no such order", 3)
		tab := browsertest.Open(t, browsertest.Setup{NoScript: true, Width: 360, Statuses: []int{422}})
		r.signIn(tab, anna)
		tab.Leave("a.errors") // from the card
		if got := tab.Path(); got != here(id, "failed") {
			t.Fatalf("the card's number leads to %s, want %s", got, here(id, "failed"))
		}
		tab.Leave(".chosen-bar .primary")
		if got := tab.Text("#error"); !strings.Contains(got, "no update was selected") {
			t.Errorf("nothing ticked: got %q, want that nothing was selected", got)
		}
		tab.Click("[value='2']")
		tab.Leave(".chosen-bar .primary")
		if got := tab.Text("[data-testid=became]"); !strings.Contains(got, "1 update was put at the end of the queue as #4.") {
			t.Errorf("got %q, want 1 at the end as #4", got)
		}
		if got := tab.Text("tr[data-update-id='2'][data-result=replayed]"); !strings.Contains(got, "Retried") {
			t.Errorf("the row: got %q, want Retried", got)
		}
		r.clock.advance(delivery.LeaseTime)
		got, err := r.poll(id, "worker", 0)
		r.must(err)
		if u := got.Batch.Updates; len(u) != 1 || u[0].UpdateID != 4 || u[0].ReplayOf != 2 || !strings.Contains(string(u[0].AppendJSON(nil)), `"replay_of_update_id":"2"`) {
			t.Errorf("what the program gets: got %+v, want update 4, a replay of 2", u)
		}
		tab.Leave("main a.primary") // back to the list
		tab.Click("[value='3']")
		tab.Leave(".chosen-bar .danger")
		if got := tab.Text(".confirm"); !strings.Contains(got, "Skip 1 failed update for good?") || !strings.Contains(got, "#3") {
			t.Errorf("the question: got %q, want number and update", got)
		}
		tab.Leave(".confirm .danger")
		if got := tab.Text("[data-testid=became]"); !strings.Contains(got, "1 update was skipped") {
			t.Errorf("got %q, want 1 skipped", got)
		}
		tab.Leave("main a.primary")
		tab.Leave(".chosen-all .danger") // all that are left
		tab.Leave(".confirm .danger")
		tab.Leave("main a.primary")
		if got := tab.Text(".empty h2"); got != "No failed updates" {
			t.Errorf("in the end: got %q, want none", got)
		}
	})
}

func TestFailedWithJavaScript(t *testing.T) {
	t.Parallel()
	t.Run("UI-04 UI-08 one box ticks the page, Shift a range, the bar counts; by keyboard alone", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		tab := s.open(t, browsertest.Setup{})
		tab.Go(s.url + here(s.support, "failed"))
		const ticked = `document.querySelectorAll("[data-row]:checked").length`
		tab.Click("#all-rows")
		if got := browsertest.Eval[int](tab, ticked); got != 50 {
			t.Errorf("after the box for all: got %d ticked, want 50", got)
		}
		if got := browsertest.Eval[string](tab, `getComputedStyle(document.querySelector(".chosen-bar")).position`); got != "sticky" {
			t.Errorf("the bar while something is ticked: got position %s, want sticky", got)
		}
		tab.Click("#all-rows")
		tab.Click("[data-row][value='13']")
		browsertest.Eval[bool](tab, `(document.querySelector("[data-row][value='19']").dispatchEvent(new MouseEvent("click", {shiftKey: true, bubbles: true})), true)`)
		if got := browsertest.Eval[int](tab, ticked); got != 7 {
			t.Errorf("after 13 and Shift 19: got %d ticked, want 7", got)
		}
		browsertest.Eval[bool](tab, `(document.querySelector(".chosen-bar .primary").focus(), true)`)
		tab.LeaveByKey("\r")
		if got := browsertest.Eval[int](tab, `document.querySelectorAll("tr[data-result=replayed]").length`); got != 7 {
			t.Errorf("got %d retried, want 7", got)
		}
		if got := browsertest.Eval[string](tab, `document.activeElement.dataset.testid`); got != "became" {
			t.Errorf("the focus: got %q, want what became of them", got)
		}
	})
	t.Run("F-05 the tab's number changes with the connection's by itself", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		tab := s.open(t, browsertest.Setup{})
		tab.Go(s.url + here(s.newcomer, "connection"))
		if tab.Has(".badge") {
			t.Error("nothing failed: got a number at the tab, want none")
		}
		s.fail(s.newcomer, "no", 2)
		tab.Until(`document.querySelector(".tabs .badge")?.innerText === "2" && document.querySelector("a.errors .num")?.innerText === "2"`)
	})
}
