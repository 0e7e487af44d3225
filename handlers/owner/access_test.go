package owner_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"mybots/web"
)

// Nothing but these differs between two answers to the same question: the
// path that the language and theme buttons lead back to.
var backTo = regexp.MustCompile(`name="next" value="[^"]*"`)

func (a answer) plain() string { return backTo.ReplaceAllString(a.body, "") }

func TestAccess(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	anna, boris, gone := r.owner(), r.signedIn("boris", web.Owner), r.stranger()
	bot := anna.bot("robot", "Order helper")
	r.fail(bot, "no", 1)
	theirs := itoa(bot)
	deleted := boris.bot("old_robot", "Old")
	boris.post(here(deleted, "delete"), url.Values{"username": {"old_robot"}}).leads("/bots")
	boris.get("/bots").shows("@old_robot was deleted") // said once, not on the pages below
	support := r.signedIn("sam", web.Support)

	for _, route := range r.list {
		path := func(id string) string {
			return strings.NewReplacer("{id}", id, "{space}", itoa(r.space)).Replace(route.path)
		}
		if strings.Contains(route.path, "{id}") {
			missing := boris.ask(route.method, path("999"), route.form).wants(http.StatusNotFound)
			for what, id := range map[string]string{
				"another owner's": theirs, "deleted": itoa(deleted), "not a number": "abc", "signed": "-1", "zero in front": "0" + theirs,
				"beyond 2^63": "9223372036854775808", "encoded": "%31%00",
			} {
				t.Run("UI-07 "+route.pattern()+" "+what, func(t *testing.T) {
					got := boris.ask(route.method, path(id), route.form).wants(http.StatusNotFound)
					if got.plain() != missing.plain() {
						t.Errorf("got another page than for a missing bot:\n%s\nwant\n%s", got.body, missing.body)
					}
					if a, b := got.header.Get("Cache-Control"), missing.header.Get("Cache-Control"); a != b {
						t.Errorf("got Cache-Control %q, want %q", a, b)
					}
				})
			}
		}
		t.Run("UI-07 "+route.pattern()+" signed out", func(t *testing.T) {
			got := gone.ask(route.method, path(theirs), route.form).wants(http.StatusSeeOther)
			if to := got.header.Get("Location"); to != "/login" && !strings.HasPrefix(to, "/login?next=") {
				t.Errorf("got Location %q, want /login", to)
			}
		})
		t.Run("UI-07 "+route.pattern()+" by support", func(t *testing.T) {
			support.ask(route.method, path(theirs), route.form).wants(http.StatusNotFound)
		})
		if route.method == http.MethodPost {
			t.Run("UI-07 "+route.pattern()+" from another site", func(t *testing.T) {
				anna.ask(route.method, path(theirs), route.form, "Origin: https://elsewhere.example", "Sec-Fetch-Site: cross-site").wants(http.StatusForbidden)
			})
		}
	}
	t.Run("UI-07 nothing of all that did anything", func(t *testing.T) {
		anna.get("/bots").shows("Order helper", "Not connected").lacks("Another")
		if s, err := r.queue.Status(t.Context(), bot); err != nil || s.Failed != 1 || s.Waiting != 0 {
			t.Errorf("got %d failed, %d waiting, %v, want 1, 0", s.Failed, s.Waiting, err)
		}
	})
}

// No page changes anything when it is looked at: what only takes a post isn't a page.
func TestGetChangesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	anna := r.owner()
	bot := anna.bot("robot", "Order helper")
	r.fail(bot, "no", 2)
	id := itoa(bot)
	pages := map[string]bool{}
	for _, route := range r.list {
		if route.method == http.MethodGet {
			pages[route.path] = true
		}
	}
	look := func() (states [3]string) {
		r.must(r.db.Get(&states[0], `SELECT string_agg(q::text, '') FROM queues q`))
		r.must(r.db.Get(&states[1], `SELECT string_agg(b::text, '') FROM bots b`))
		r.must(r.db.Get(&states[2], `SELECT string_agg(f::text, '') FROM failed_updates f`))
		return states
	}
	before := look()
	for _, route := range r.list {
		path := strings.NewReplacer("{id}", id, "{space}", itoa(r.space)).Replace(route.path)
		t.Run("UI-11 GET "+route.path, func(t *testing.T) {
			want := http.StatusOK
			if !pages[route.path] {
				want = http.StatusMethodNotAllowed
			}
			anna.get(path + "?" + route.form.Encode()).wants(want)
		})
	}
	if after := look(); after != before {
		t.Errorf("got %v, want %v as before", after, before)
	}
}
