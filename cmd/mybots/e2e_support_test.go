package main_test

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"
)

const (
	supportMail = "sue@example.com"
	supportPass = "staple battery horse"
)

// support adds a support person with rights and signs them in; no rights: those
// that the command gives by itself.
func (s *server) support(t testing.TB, mail string, rights ...string) *owner {
	t.Helper()
	args := []string{"user", "add", "--email", mail, "--space", s.w.space, "--role", "support", "--password-stdin", "--json"}
	if len(rights) > 0 {
		args = append(args, "--rights", strings.Join(rights, ","))
	}
	s.w.operate(t, supportPass+"\n", args...)
	s.w.secret(supportPass)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	o := &owner{s: s, client: &http.Client{Jar: jar, Transport: s.client.Transport, CheckRedirect: s.client.CheckRedirect}}
	if status, location, _ := o.post(t, "/login", url.Values{"email": {mail}, "password": {supportPass}}); status != http.StatusSeeOther || location != "/support" {
		t.Fatalf("sign in: got %d to %q, want 303 to /support", status, location)
	}
	return o
}

// switches posts one of support's forms of UI-11.
func (o *owner) switches(t testing.TB, path, field, value string, more ...string) {
	t.Helper()
	form := url.Values{field: {value}}
	for i := 0; i < len(more); i += 2 {
		form.Set(more[i], more[i+1])
	}
	if status, _, body := o.post(t, path, form); status != http.StatusSeeOther {
		t.Fatalf("POST %s %v: got %d, want 303: %.300s", path, form, status, body)
	}
}

func TestSupport(t *testing.T) {
	t.Parallel()
	w, e := newHookWorld(t)
	s, other := w.serve(t), w.serve(t)
	o, sue := s.signIn(t), s.support(t, supportMail)
	space := "/support/spaces/" + w.space + "/running"

	t.Run("UI-06 UI-11 support finds a bot by a part of its name and sees its state", func(t *testing.T) {
		h := o.hooked(t, e)
		status, body := sue.get(t, "/support?q="+h.name[2:])
		if status != http.StatusOK || !strings.Contains(body, `href="/support/bots/`+h.id+`"`) {
			t.Errorf("got %d and no link to bot %s: %.500s", status, h.id, body)
		}
		status, body = sue.get(t, "/support/bots/"+h.id)
		w.checkSecrets(t, "support's page", body)
		if status != http.StatusOK || !strings.Contains(body, h.host) || strings.Contains(body, h.query) {
			t.Errorf("got %d, want the host of the webhook and no more of its address: %.500s", status, body)
		}
	})
	t.Run("W-03 W-14 UI-11 a webhook switched off is disabled, can't be saved, and polling works", func(t *testing.T) {
		h := o.hooked(t, e)
		h.does(waits)
		s.sends(t, h.bot, 2)
		under := h.gets(t, "1", 1)
		sue.switches(t, "/support/bots/"+h.id+"/webhook", "allowed", "off")
		for _, r := range []*server{s, other} {
			if state := r.hookInfo(t, h.bot).State; state != "disabled" {
				t.Errorf("got the state %s, want disabled", state)
			}
		}
		select {
		case <-under.ended: // W-13: it was cut off, and counts for nothing
		case <-time.After(dueTime):
			t.Error("the request under way is still open")
		}
		h.does(says(200))
		h.quiet(t, 1200*time.Millisecond)
		o.denied(t, h.bot, h.sink.url, "WEBHOOKS_UNAVAILABLE")
		o.save(t, h.bot, "keep")
		got := s.poll(t, h.bot, at("a", "", "", now))
		if got.outline() != "1 2 | | 1..3" {
			t.Errorf("got %s, want all that waits", got.outline())
		}
		sue.switches(t, "/support/bots/"+h.id+"/webhook", "allowed", "on")
		o.rehook(t, h, "keep")
		h.gets(t, "1", 1).signed(t, h.secret) // a switch of the mode forgets what was made before
		h.gets(t, "2", 1)
		s.stands(t, h.bot, "active, 0 waiting, 0 failed, at 3")
	})
	t.Run("P-16 F-04 I-01 UI-11 a space switched off runs no bots; on again, what waits is delivered", func(t *testing.T) {
		b, h := w.bot(t), o.hooked(t, e)
		s.sends(t, b, 2)
		epoch := s.poll(t, b, at("a", "", "", now)).Lease.Epoch
		s.reject(t, b, "1", "a", epoch)
		h.queue(says(422))
		s.sends(t, h.bot, 1)
		h.gets(t, "1", 1)
		s.stands(t, h.bot, "active HTTP_422, 0 waiting, 1 failed, at 2")
		s.poll(t, b, at("a", epoch, "3", now))
		done := other.waiting(t, b, at("a", epoch, "3", `,"timeout":25`))

		sue.switches(t, space, "running", "off", "reason", "The space asked for it")
		if ended := receive(t, dueTime, "the poll ends", done); ended.err != nil || ended.code != "BOT_DISABLED" || ended.status != http.StatusForbidden {
			t.Errorf("got %d %q %v, want 403 BOT_DISABLED", ended.status, ended.code, ended.err)
		}
		s.pollFails(t, "BOT_DISABLED", b, at("a", "", "", now))
		for _, bot := range []*bot{b, h.bot} {
			if i := s.info(t, bot); i.Failed != 0 {
				t.Errorf("got %d FAILED updates, want them cancelled", i.Failed)
			}
			if r := s.writeRaw(t, event{bot: bot}.filled().json()); r[0].Error == nil || r[0].Error.Code != "BOT_DISABLED" {
				t.Errorf("got %+v from intake, want BOT_DISABLED", r[0])
			}
		}
		if state := s.hookInfo(t, h.bot).State; state != "disabled" {
			t.Errorf("got the state %s, want disabled", state)
		}
		if _, page := o.get(t, "/bots/"+b.id+"/connection"); !strings.Contains(page, "The space asked for it") {
			t.Errorf("the owner doesn't read why: %.800s", page)
		}
		late := o.newBot(t)
		s.pollFails(t, "BOT_DISABLED", late, at("a", "", "", now))

		sue.switches(t, space, "running", "on")
		s.sends(t, b, 1)
		if got := s.poll(t, b, at("a", epoch, "3", now)); got.outline() != "3 | | 3..4" {
			t.Errorf("got %s", got.outline())
		}
		s.sends(t, h.bot, 1)
		h.gets(t, "2", 1)
		s.stands(t, h.bot, "active HTTP_422, 0 waiting, 0 failed, at 3")
		s.sends(t, late, 1)
	})
	t.Run("P-16 A-05 F-02 UI-11 maintenance stops everything but intake, and goes as it came", func(t *testing.T) {
		b, h := w.bot(t), o.hooked(t, e)
		s.sends(t, b, 2)
		epoch := s.poll(t, b, at("a", "", "", now)).Lease.Epoch
		s.reject(t, b, "1", "a", epoch)
		s.poll(t, b, at("a", epoch, "3", now))
		done := other.waiting(t, b, at("a", epoch, "3", `,"timeout":25`))

		sue.switches(t, "/support/maintenance", "maintenance", "on", "message", "New disks until noon")
		if ended := receive(t, dueTime, "the poll ends", done); ended.err != nil || ended.code != "MAINTENANCE" || ended.status != http.StatusServiceUnavailable || ended.retry < 1 {
			t.Errorf("got %d %q, retry_after %d, %v, want 503 MAINTENANCE with retry_after", ended.status, ended.code, ended.retry, ended.err)
		}
		for _, r := range []*server{s, other} {
			r.pollFails(t, "MAINTENANCE", b, at("a", "", "", now))
		}
		if got := o.deed(t, b, "retry", "1"); len(got) != 1 || got[0] != "1 refused MAINTENANCE" {
			t.Errorf("got %q, want the replay refused", got)
		}
		for _, page := range []string{"/bots", "/bots/" + b.id + "/connection", "/login"} {
			if _, body := o.get(t, page); page != "/login" && !strings.Contains(body, "New disks until noon") {
				t.Errorf("%s has no banner", page)
			}
		}
		s.sends(t, b, 1)
		s.sends(t, h.bot, 2)
		h.quiet(t, 1200*time.Millisecond)

		sue.switches(t, "/support/maintenance", "maintenance", "off")
		if got := s.poll(t, b, at("a", epoch, "3", now)); got.outline() != "3 | | 3..4" {
			t.Errorf("got %s", got.outline())
		}
		h.gets(t, "1", 1)
		h.gets(t, "2", 1)
		s.stands(t, h.bot, "active, 0 waiting, 0 failed, at 3")
		if got := o.deed(t, b, "retry", "1"); len(got) != 1 || got[0] != "1 replayed" {
			t.Errorf("got %q, want it replayed", got)
		}
		if _, body := o.get(t, "/bots"); strings.Contains(body, "New disks until noon") {
			t.Error("the banner is there still")
		}
	})
	t.Run("UI-06 G-01 rights are those that the operator gave", func(t *testing.T) {
		b := o.newBot(t)
		s.sends(t, b, 1)
		sam, udo := s.support(t, "sam@example.com", "look"), s.support(t, "udo@example.com", "look", "unmask")
		for name, c := range map[string]struct {
			who  *owner
			path string
			form url.Values
			want int
		}{
			"look may look":        {sam, "", nil, http.StatusOK},
			"look can't act":       {sam, "/webhook", url.Values{"allowed": {"off"}}, http.StatusForbidden},
			"look can't unmask":    {sam, "/updates/1/unmask", url.Values{"reason": {"x"}}, http.StatusForbidden},
			"act can't unmask":     {sue, "/updates/1/unmask", url.Values{"reason": {"x"}}, http.StatusForbidden},
			"unmask can't act":     {udo, "/webhook", url.Values{"allowed": {"off"}}, http.StatusForbidden},
			"unmask may unmask":    {udo, "/updates/1/unmask", url.Values{"reason": {"x"}}, http.StatusOK},
			"unmask needs reasons": {udo, "/updates/1/unmask", url.Values{}, http.StatusBadRequest},
			"owners see nothing":   {o, "", nil, http.StatusNotFound},
			"owners do nothing":    {o, "/webhook", url.Values{"allowed": {"off"}}, http.StatusNotFound},
		} {
			var status int
			if c.form == nil {
				status, _ = c.who.get(t, "/support/bots/"+b.id+c.path)
			} else {
				status, _, _ = c.who.post(t, "/support/bots/"+b.id+c.path, c.form)
			}
			if status != c.want {
				t.Errorf("%s: got %d, want %d", name, status, c.want)
			}
		}
		for _, bad := range [][]string{{"--role", "support", "--rights", "fly"}, {"--role", "owner", "--rights", "act"}} {
			r := w.run(t, supportPass+"\n", append([]string{"user", "add", "--email", "x@example.com", "--space", w.space, "--password-stdin"}, bad...)...)
			if r.code == 0 || !strings.Contains(r.stderr, "--rights") {
				t.Errorf("%v: got exit code %d and %q, want --rights named", bad, r.code, r.stderr)
			}
		}
	})
}

func TestUserRights(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve(t)
	s.signIn(t)
	sam := s.support(t, supportMail, "look")
	maintain := func() int {
		status, _, _ := sam.post(t, "/support/maintenance", url.Values{"maintenance": {"off"}})
		return status
	}
	set := func(mail, rights string) outcome {
		return w.run(t, "", "user", "rights", "--email", mail, "--rights", rights)
	}
	t.Run("UI-06 rights are given and taken back while somebody is signed in", func(t *testing.T) {
		if got := maintain(); got != http.StatusForbidden {
			t.Errorf("with look: got %d, want 403", got)
		}
		if o := set(strings.ToUpper(supportMail), "act"); o.code != 0 {
			t.Fatalf("give act: %s", o.stderr)
		}
		if got := maintain(); got != http.StatusSeeOther {
			t.Errorf("with act: got %d, want 303", got)
		}
		if o := set(supportMail, "look"); o.code != 0 {
			t.Fatalf("take act back: %s", o.stderr)
		}
		if got := maintain(); got != http.StatusForbidden {
			t.Errorf("without act again: got %d, want 403", got)
		}
		if _, page := sam.get(t, "/support/audit"); strings.Count(page, "Changed rights") != 2 || !strings.Contains(page, "act=on unmask=off") {
			t.Error("the audit log hasn't both changes")
		}
	})
	t.Run("G-01 what can't be", func(t *testing.T) {
		for _, c := range []struct{ mail, rights, want string }{
			{supportMail, "", "--rights"}, {supportMail, "fly", "--rights"}, {ownerMail, "act", "--email"}, {"nobody@example.com", "act", "not found"}, {"", "act", "not found"},
		} {
			if o := set(c.mail, c.rights); o.code == 0 || !strings.Contains(o.stderr, c.want) {
				t.Errorf("%s %q: got code %d and %q, want %q in it", c.mail, c.rights, o.code, o.stderr, c.want)
			}
		}
	})
}
