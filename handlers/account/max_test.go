package account_test

import (
	"net/http"
	"regexp"
	"testing"
)

var shownCode = regexp.MustCompile(`>([A-Z2-7]{4}-[A-Z2-7]{4}-[A-Z2-7]{4})</textarea>`)

// maxCode asks for a linking code and reads it off the page.
func (p *person) maxCode() string {
	p.rig.t.Helper()
	got := p.post("/settings/max/code", nil).wants(http.StatusOK).shows("Send this code to our bot in MAX", "10 minutes")
	if c := got.header.Get("Cache-Control"); c != "no-store" {
		p.rig.t.Errorf("the page with the code has Cache-Control %q, want no-store", c)
	}
	found := shownCode.FindStringSubmatch(got.body)
	if found == nil {
		p.rig.t.Fatalf("got no code in\n%s", got.body)
	}
	return found[1]
}

// link sends a code to the bot at MAX.
func (r *rig) link(code string) {
	r.t.Helper()
	_, err := r.notices.Link(r.t.Context(), 987654321, code)
	r.must(err)
}

func TestMAX(t *testing.T) {
	t.Parallel()
	t.Run("N-07 from the card to a linked account, and back", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.anna()
		anna.get("/settings").wants(http.StatusOK).shows("Notices by MAX", "Get a code").lacks("Unlink MAX")
		r.link(anna.maxCode())
		anna.get("/settings").wants(http.StatusOK).shows("Your account at MAX is linked", "Unlink MAX").lacks("Get a code", "987654321")
		anna.post("/settings/max/unlink", nil).leads("/settings")
		anna.get("/settings").wants(http.StatusOK).shows("MAX is unlinked. Nothing more goes there.", "Get a code").lacks("Unlink MAX")
		if n := r.count(`SELECT count(*) FROM max_links`); n != 0 {
			t.Errorf("got %d links, want none", n)
		}
		anna.post("/settings/max/unlink", nil).leads("/settings") // twice is harmless
	})
	t.Run("N-07 the code is in one answer alone, and the next one takes its place", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.anna()
		first := anna.maxCode()
		anna.get("/settings").wants(http.StatusOK).lacks(first)
		anna.get("/settings/max/code").wants(http.StatusMethodNotAllowed).lacks(first)
		second := anna.maxCode()
		if first == second {
			t.Fatal("got the same code twice")
		}
		if _, err := r.notices.Link(t.Context(), 987654321, first); err == nil {
			t.Error("a code that was replaced links an account")
		}
		r.link(second)
	})
	t.Run("N-07 one's own account alone is unlinked", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna, boris := r.anna(), r.add("Boris", "owner").signIn(password)
		r.link(anna.maxCode())
		boris.get("/settings").wants(http.StatusOK).shows("Get a code").lacks("MAX is linked")
		boris.post("/settings/max/unlink", nil).leads("/settings")
		anna.get("/settings").wants(http.StatusOK).shows("MAX is linked")
	})
	t.Run("N-07 where there is no way to MAX there is no card", func(t *testing.T) {
		t.Parallel()
		r := newRigWith(t, false)
		anna := r.anna()
		anna.get("/settings").wants(http.StatusOK).lacks("MAX", "/settings/max/")
		anna.post("/settings/max/code", nil).wants(http.StatusNotFound)
	})
	t.Run("N-07 a stranger and another site get no code", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.anna()
		anna.browser().post("/settings/max/code", nil).wants(http.StatusSeeOther)
		anna.post("/settings/max/code", nil, "Sec-Fetch-Site: cross-site").wants(http.StatusForbidden)
		if n := r.count(`SELECT count(*) FROM max_codes`); n != 0 {
			t.Errorf("got %d codes, want none", n)
		}
	})
	t.Run("N-07 UI-01 a database that can't answer is told in words", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.anna()
		r.db.MustExec(`ALTER TABLE max_codes RENAME TO gone`)
		anna.post("/settings/max/code", nil).wants(http.StatusInternalServerError).has(`id="error"`)
		anna.post("/settings/max/unlink", nil).wants(http.StatusInternalServerError).has(`id="error"`)
	})
}
