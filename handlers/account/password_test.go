package account_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestChangePassword(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	anna := r.anna()
	second, boris := anna.browser().signIn(password), r.add("boris", "owner").signIn(password)
	old := anna.session()
	anna.post("/settings/password", passwords(password, fresh, fresh)).leads("/settings")

	if got := anna.session(); got == old || got == "" {
		t.Errorf("the session's id: got %q, want a new one", got)
	}
	anna.get("/settings").wants(http.StatusOK).shows("The password is changed. All your other sessions have ended.", "You have 1 open session.").lacks(fresh, password)
	anna.get("/settings").lacks("The password is changed.")
	thief := anna.browser()
	thief.get("/settings", "Cookie: "+cookie+"="+old).leads("/login?next=%2Fsettings")
	if second.in() || !boris.in() {
		t.Error("got a session of hers left, or one of his gone; want the other way round")
	}
	if hash := r.text(`SELECT password_hash FROM people WHERE user_id = $1`, anna.id); !strings.HasPrefix(hash, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Errorf("the hash: got %s, want argon2id at full cost", hash)
	}
	second.post("/login", url.Values{"email": {anna.email}, "password": {password}}).wants(http.StatusUnprocessableEntity)
	second.signIn(fresh)
	if got, want := r.log(), []string{"change_password sessions_ended=2 owner known"}; !slices.Equal(got, want) {
		t.Errorf("audit log: got %q, want %q", got, want)
	}
}

func TestChangePasswordRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	anna := r.anna()
	second := anna.browser().signIn(password)
	session := anna.session()
	for name, c := range map[string]struct {
		form        url.Values
		field, code string
		says        string
	}{
		"the old one is wrong":            {passwords("wrong horse", fresh, fresh), "old", "WRONG_PASSWORD", "This isn't your present password."},
		"the old one is far too long":     {passwords(strings.Repeat("x", 300), fresh, fresh), "old", "WRONG_PASSWORD", "This isn't your present password."},
		"the old one is missing":          {passwords("", fresh, fresh), "old", "INVALID", "Type your present password, too."},
		"9 bytes":                         {passwords(password, "123456789", "123456789"), "new", "INVALID", "This is too short"},
		"nothing new":                     {passwords(password, "", ""), "new", "INVALID", "This is too short"},
		"257 bytes":                       {passwords(password, strings.Repeat("ж", 128)+"!", strings.Repeat("ж", 128)+"!"), "new", "INVALID", "This is too long"},
		"the same again":                  {passwords(password, password, password), "new", "INVALID", "This is the present password."},
		"the two new ones differ":         {passwords(password, fresh, fresh+"s"), "again", "INVALID", "The two new passwords differ."},
		"fields of the query don't count": {nil, "old", "INVALID", "Type your present password, too."},
	} {
		path := "/settings/password"
		if c.form == nil {
			path += "?" + passwords(password, fresh, fresh).Encode()
		}
		page := anna.post(path, c.form).wants(http.StatusUnprocessableEntity).shows("The password wasn't changed.", c.says, "Your settings")
		part := anna.post(path, c.form, piece...).wants(http.StatusUnprocessableEntity).shows("The password wasn't changed.", c.says).lacks("<html")
		for _, a := range []answer{page, part} {
			for _, want := range []string{`id="error"`, `data-code="` + c.code + `"`, `id="` + c.field + `-error"`} {
				if !strings.Contains(a.body, want) {
					t.Errorf("%s: got no %s in\n%s", name, want, a.body)
				}
			}
			a.lacks(password, fresh, "wrong horse", "123456789")
		}
	}
	if r.text(`SELECT password_hash FROM people`) != cheapHash || anna.session() != session || !second.in() || len(r.log()) != 0 {
		t.Error("something changed; want nothing")
	}
	t.Run("at the limits", func(t *testing.T) {
		long := strings.Repeat("ж", 128) // 256 bytes
		anna.post("/settings/password", passwords(password, "жжжжж", "жжжжж")).leads("/settings")
		anna.post("/settings/password", passwords("жжжжж", long, long)).leads("/settings")
		second.signIn(long)
	})
	t.Run("htmx is sent on", func(t *testing.T) {
		p := r.add("vera", "owner").signIn(password)
		if got := p.post("/settings/password", passwords(password, fresh, fresh), piece...).wants(http.StatusOK).header.Get("HX-Redirect"); got != "/settings" {
			t.Errorf("HX-Redirect: got %q, want /settings", got)
		}
		p.get("/settings").shows("The password is changed.")
	})
}

func TestGuessingThePasswordIsSlowedDown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	anna := r.anna()
	wrong := passwords("wrong horse", fresh, fresh)
	for i := range 10 {
		if a := anna.post("/settings/password", wrong); a.status != http.StatusUnprocessableEntity {
			t.Fatalf("guess %d: got %d, want 422", i, a.status)
		}
	}
	right := passwords(password, fresh, fresh)
	a := anna.post("/settings/password", right).wants(http.StatusTooManyRequests).shows("There were too many attempts. Nothing was checked")
	if got := a.header.Get("Retry-After"); got == "" || got == "0" || !strings.Contains(a.body, `data-code="RATE_LIMITED"`) {
		t.Errorf("got Retry-After %q and\n%s\nwant how long, and the code", got, a.body)
	}
	anna.post("/settings/password", right, piece...).wants(http.StatusTooManyRequests).lacks("<html")
	anna.browser().post("/login", url.Values{"email": {anna.email}, "password": {password}}).wants(http.StatusTooManyRequests)
	if r.text(`SELECT password_hash FROM people`) != cheapHash {
		t.Error("the password changed; want it not even checked")
	}
	r.clock.advance(30 * time.Second)
	anna.post("/settings/password", right).leads("/settings")
	anna.browser().signIn(fresh)
}
