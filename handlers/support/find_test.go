package support_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"mybots/delivery"
	"mybots/web"
)

var botRow = regexp.MustCompile(`data-testid="bot-row" data-bot="(\d+)"`)

// rows are the bots that a page lists, in order.
func (a answer) rows() string {
	var ids []string
	for _, m := range botRow.FindAllStringSubmatch(a.body, -1) {
		ids = append(ids, m[1])
	}
	return strings.Join(ids, " ")
}

func TestFind(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	anna, boris, sam := r.signedIn("anna", web.Owner), r.signedIn("boris_100%", web.Owner), r.signedIn("sam", web.Support)
	first, second, third := anna.bot("Order helper"), anna.bot("Помощник"), boris.bot("Desk_50%")
	other, err := r.bots.AddSpace(t.Context(), "Blue Mill")
	r.must(err)
	r.db.MustExec(`UPDATE bots SET space_id = $2 WHERE bot_id = $1`, second, other)
	r.db.MustExec(`UPDATE bots SET deleted_at = created_at WHERE bot_id = $1`, third)
	all := fmt.Sprint(first, second, third)
	for question, want := range map[string]string{
		"robot": all, "@ROBOT_1": fmt.Sprint(first), "order HELP": fmt.Sprint(first), "помощ": fmt.Sprint(second), "anna@": fmt.Sprint(first, second),
		"blue": fmt.Sprint(second), "50%": fmt.Sprint(third), "100%": fmt.Sprint(third), "k_5": fmt.Sprint(third), "nothing like it": "", "'; --": "", `\`: "",
	} {
		t.Run("UI-06 "+question, func(t *testing.T) {
			got := sam.get("/support?q=" + url.QueryEscape(question)).wants(http.StatusOK)
			if found := got.rows(); found != want {
				t.Errorf("got %q, want %q", found, want)
			}
			if want == "" {
				got.shows("No bot matches")
			}
		})
	}
	t.Run("UI-06 what can be no text is no question", func(t *testing.T) {
		sam.get("/support?q=%00").wants(http.StatusOK).shows("No maintenance")
		sam.get("/support?q=%ff").wants(http.StatusOK).shows("No maintenance")
	})
	t.Run("UI-06 a space's id finds its bots", func(t *testing.T) {
		if got := sam.get("/support?q=" + itoa(other)).rows(); !strings.Contains(" "+got+" ", " "+itoa(second)+" ") {
			t.Errorf("got %q, want %d among them", got, second)
		}
	})
	t.Run("UI-06 a deleted bot is found, and says so", func(t *testing.T) {
		sam.get("/support?q=desk").shows("Deleted")
		sam.get(here(third, "")).wants(http.StatusOK)
	})
}

func TestFindPages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	anna, sam := r.signedIn("anna", web.Owner), r.signedIn("sam", web.Support)
	r.db.MustExec(`
INSERT INTO bots (space_id, owner_id, username, name, created_at) SELECT $1, $2, 'many_' || n, 'Many', $3 FROM generate_series(1, 10001) n`, r.space, anna.id, r.clock.Now())
	t.Run("UI-06 counting stops, the pages go on", func(t *testing.T) {
		page := sam.get("/support?q=many").wants(http.StatusOK).shows("10,000+ bots")
		if n := len(strings.Fields(page.rows())); n != 50 {
			t.Errorf("got %d rows, want 50", n)
		}
		last := strings.Fields(page.rows())[49]
		next := sam.get("/support?q=many&after=" + last).wants(http.StatusOK).shows("First page")
		if n := strings.Fields(next.rows()); len(n) != 50 || n[0] <= last && len(n[0]) <= len(last) {
			t.Errorf("got %v, want 50 behind %s", n, last)
		}
		if !strings.Contains(page.body, "after="+last) {
			t.Errorf("got no link to what is behind %s", last)
		}
	})
	t.Run("UI-06 with all of them on one page there is no way on", func(t *testing.T) {
		sam.get("/support?q=many_1000").wants(http.StatusOK).lacks("First page", "rel=\"next\"")
	})
}

func TestAttention(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	anna, sam := r.signedIn("anna", web.Owner), r.signedIn("sam", web.Support)
	sam.get("/support").wants(http.StatusOK).shows("No bot needs attention")
	hooked := func(name string, answers ...int) int64 {
		id := anna.bot(name)
		anna.hook(id, "https://bots.example.org/hook")
		for range answers {
			r.append(id, `{}`)
		}
		r.append(id, `{}`)
		for _, status := range answers {
			r.settle(id, delivery.Answer{Kind: delivery.Answered, Status: status})
		}
		return id
	}
	failed := anna.bot("Failed")
	r.fail(failed, `{}`, "no")
	idle := anna.bot("Nobody asks")
	r.append(idle, `{}`)
	full := anna.bot("Full")
	r.db.MustExec(`UPDATE queues SET waiting = 10000 WHERE bot_id = $1`, full)
	off := hooked("Off")
	r.db.MustExec(`UPDATE queues SET hook_allowed = false WHERE bot_id = $1`, off)
	open := hooked("Open")
	r.db.MustExec(`UPDATE queues SET breaker = 1, failed = 0 WHERE bot_id = $1`, open)
	paused := hooked("Paused", 401)
	anna.bot("Well")
	r.clock.advance(61 * time.Minute)
	fresh := anna.bot("Waits for a minute")
	r.append(fresh, `{}`)
	sam.signIn() // the session is as old as the clock says

	t.Run("UI-06 the most serious first", func(t *testing.T) {
		got := sam.get("/support").wants(http.StatusOK).shows("HTTP_401", "6 bots.")
		if want := fmt.Sprint(paused, open, off, full, idle, failed); got.rows() != want {
			t.Errorf("got %s, want %s", got.rows(), want)
		}
	})
	t.Run("UI-06 page by page", func(t *testing.T) {
		for n := range 30 {
			id := anna.bot(fmt.Sprintf("More %d", n))
			r.db.MustExec(`UPDATE queues SET failed = 1 WHERE bot_id = $1`, id)
		}
		seen := map[string]bool{}
		path := "/support"
		for path != "" {
			page := sam.get(path).wants(http.StatusOK).shows("36 bots.")
			for _, id := range strings.Fields(page.rows()) {
				if seen[id] {
					t.Errorf("got bot %s twice", id)
				}
				seen[id] = true
			}
			path = ""
			if m := regexp.MustCompile(`rel="next" href="([^"]+)"`).FindStringSubmatch(page.body); m != nil {
				path = m[1]
			}
		}
		if len(seen) != 36 {
			t.Errorf("got %d bots over all pages, want 36", len(seen))
		}
	})
}

func TestBotPage(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	anna, sam := r.signedIn("anna", web.Owner), r.signedIn("sam", web.Support)
	hooked := anna.bot("Hooked")
	anna.hook(hooked, "https://bots.example.org:8443/hook")
	r.append(hooked, `{}`)
	r.append(hooked, `{}`)
	r.settle(hooked, delivery.Answer{Kind: delivery.Answered, Status: 422})
	r.settle(hooked, delivery.Answer{Kind: delivery.Answered, Status: 500})
	poller := anna.bot("Poller")
	r.append(poller, `{}`)
	t.Run("UI-06 a webhook's whole state", func(t *testing.T) {
		sam.get(here(hooked, "")).wants(http.StatusOK).shows(
			"https://bots.example.org:8443", "Retrying", "HTTP_500", "HTTP_422", "1 of 5 used up", "anna@example.org", "Green shop", "Saved the connection", "mode=webhook version=2 host=bots.example.org:8443",
			"2 requests", "1 of 10,000", "You may look").lacks("/hook")
	})
	t.Run("UI-06 a poller's whole state", func(t *testing.T) {
		sam.get(here(poller, "")).wants(http.StatusOK).shows("No receiver", "Nobody holds the lease", "None was ever saved")
		_, err := r.queue.Receive(t.Context(), poller, delivery.Poll{ConsumerID: "worker-7f3a", Limit: 1}, "203.0.113.9")
		r.must(err)
		if _, err := r.queue.Receive(t.Context(), poller, delivery.Poll{ConsumerID: "laptop", Limit: 1}, "203.0.113.10"); err == nil {
			t.Fatal("the second program: got no error, want a conflict")
		}
		sam.get(here(poller, "")).wants(http.StatusOK).shows("Receiving", "worker-7f3a", "laptop", "203.0.113.10")
	})
	t.Run("UI-06 without the right there are no switches", func(t *testing.T) {
		sam.get(here(hooked, "")).lacks(`href="` + here(hooked, "/webhook") + `"`)
		sue := r.signedIn("sue", web.Support, web.Act)
		sue.get(here(hooked, "")).wants(http.StatusOK).shows(here(hooked, "/webhook"), "/support/spaces/"+itoa(r.space)+"/running")
	})
	t.Run("UI-06 what waits and what failed, page by page", func(t *testing.T) {
		for range 60 {
			r.append(poller, `{"text":"hello"}`)
		}
		page := sam.get(here(poller, "/updates")).wants(http.StatusOK).shows("after=50").lacks("5512345678")
		if n := strings.Count(page.body, `data-testid="update"`); n != 50 {
			t.Errorf("got %d updates, want 50", n)
		}
		if n := strings.Count(sam.get(here(poller, "/updates?after=50")).body, `data-testid="update"`); n != 11 {
			t.Errorf("got %d updates, want 11", n)
		}
		sam.get(here(hooked, "/updates?list=failed")).wants(http.StatusOK).shows("HTTP_422")
		sam.get(here(poller, "/updates?list=failed")).wants(http.StatusOK).shows("Nothing has failed.")
	})
}
