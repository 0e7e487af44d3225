package owner_test

import (
	"errors"
	"net/http"
	"net/url"
	"testing"

	"mybots/delivery"
)

func TestSaveConnection(t *testing.T) {
	t.Parallel()
	t.Run("M-02 KEEP keeps what waits", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		r.fill(id, 21)
		anna.post(here(id, "connection"), url.Values{"mode": {"polling"}, "pending": {"keep"}, "version": {"1"}}).leads(here(id, "connection"))
		anna.get(here(id, "connection")).shows("21 waiting updates are kept", "21 of 10,000")
		anna.get(here(id, "connection")).lacks("are kept.") // said once
	})
	t.Run("M-02 DROP cancels what waits, and the page says how many", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		r.fill(id, 37)
		anna.post(here(id, "connection/drop"), saveForm("polling", "", "keep", "1")).wants(http.StatusOK).
			shows("Cancel 37 waiting updates?", "Cancel 37 waiting updates and save", "What stops", "What stays").
			match(`name="pending" (value="drop")`)
		anna.post(here(id, "connection"), url.Values{"mode": {"polling"}, "pending": {"drop"}, "version": {"1"}}).leads(here(id, "connection"))
		anna.get(here(id, "connection")).shows("37 waiting updates were cancelled", "0 of 10,000").lacks("Cancel what waits")
	})
	t.Run("M-05 settings changed elsewhere: refused, nothing changes, the present ones are shown", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		r.fill(id, 3)
		version := anna.get(here(id, "connection")).match(`name="version" value="([^"]+)"`)
		save := url.Values{"mode": {"polling"}, "pending": {"keep"}, "version": {version}}
		anna.post(here(id, "connection"), save).leads(here(id, "connection"))
		save.Set("pending", "drop")
		page := anna.post(here(id, "connection"), save).wants(http.StatusConflict).shows("changed elsewhere meanwhile", "3 of 10,000")
		if got := page.match(`id="error"[^>]*data-code="([^"]*)"`); got != "STALE" {
			t.Errorf("got data-code %q, want STALE", got)
		}
		if got := page.match(`name="version" value="([^"]+)"`); got != "2" {
			t.Errorf("the version shown: got %s, want 2", got)
		}
	})
	t.Run("M-01 every save takes the lease", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		r.mustPoll(id, "worker-1")
		anna.post(here(id, "connection"), url.Values{"mode": {"polling"}, "pending": {"keep"}, "version": {"1"}}).leads(here(id, "connection"))
		anna.get(here(id, "connection")).shows("Nobody holds the lease").lacks("worker-1")
	})
	for name, c := range map[string]struct {
		form url.Values
		code string
	}{
		"webhook, no url":  {url.Values{"mode": {"webhook"}, "pending": {"keep"}, "version": {"1"}}, "WEBHOOK_URL_FORBIDDEN"},
		"webhook, http":    {saveForm("webhook", "http://bot.example.org/", "keep", "1"), "WEBHOOK_URL_FORBIDDEN"},
		"no mode":          {url.Values{"pending": {"keep"}, "version": {"1"}}, "INVALID"},
		"unknown mode":     {url.Values{"mode": {"pigeon"}, "pending": {"keep"}, "version": {"1"}}, "INVALID"},
		"two modes":        {url.Values{"mode": {"polling", "webhook"}, "pending": {"keep"}, "version": {"1"}}, "INVALID"},
		"no pending":       {url.Values{"mode": {"polling"}, "version": {"1"}}, "INVALID"},
		"unknown pending":  {url.Values{"mode": {"polling"}, "pending": {"DROP"}, "version": {"1"}}, "INVALID"},
		"two of pending":   {url.Values{"mode": {"polling"}, "pending": {"keep", "drop"}, "version": {"1"}}, "INVALID"},
		"no version":       {url.Values{"mode": {"polling"}, "pending": {"drop"}}, "INVALID"},
		"a strange number": {url.Values{"mode": {"polling"}, "pending": {"drop"}, "version": {"01"}}, "INVALID"},
	} {
		t.Run("UI-11 refused: "+name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			anna := r.owner()
			id := anna.bot("robot", "Order helper")
			r.fill(id, 2)
			page := anna.post(here(id, "connection"), c.form).wants(http.StatusUnprocessableEntity)
			if got := page.match(`id="error"[^>]*data-code="([^"]*)"`); got != c.code {
				t.Errorf("got data-code %q, want %q", got, c.code)
			}
			if s, err := r.queue.Status(t.Context(), id); err != nil || s.SettingsVersion != 1 || s.Waiting != 2 {
				t.Errorf("got version %d, %d waiting, %v, want 1, 2 and no error", s.SettingsVersion, s.Waiting, err)
			}
		})
	}
}

func TestReset(t *testing.T) {
	t.Parallel()
	t.Run("M-06 Reset the connection ends a stuck lease", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		r.mustPoll(id, "stuck")
		anna.get(here(id, "connection/reset")).wants(http.StatusOK).shows("What stops", "CONSUMER_CONFLICT", "What stays")
		anna.post(here(id, "connection/reset"), nil).leads(here(id, "connection"))
		anna.get(here(id, "connection")).shows("The connection was reset", "Nobody holds the lease")
		r.mustPoll(id, "next")
	})
	t.Run("M-06 Emergency reset revokes the token and shows a new one once; the queue stays", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		page := anna.post("/bots/new", url.Values{"username": {"robot"}, "name": {"Order helper"}}).wants(http.StatusSeeOther).header.Get("Location")
		old := anna.get(page).match(`(?s)id="token"[^>]*>([^<]*)<`)
		b, err := r.bots.ByToken(t.Context(), delivery.Secret(old))
		r.must(err)
		r.fill(b.ID, 5)
		anna.get(here(b.ID, "connection/emergency-reset")).wants(http.StatusOK).shows("401 UNAUTHORIZED", "the queue with 5 waiting updates")
		anna.post(here(b.ID, "connection/emergency-reset"), nil).leads(here(b.ID, "token"))
		fresh := anna.get(here(b.ID, "token")).match(`(?s)id="token"[^>]*>([^<]*)<`)
		if fresh == old {
			t.Error("got the old token again, want a new one")
		}
		if _, err := r.bots.ByToken(t.Context(), delivery.Secret(old)); !errors.Is(err, delivery.ErrNotFound) {
			t.Errorf("the old token: got %v, want not found", err)
		}
		if got, err := r.bots.ByToken(t.Context(), delivery.Secret(fresh)); err != nil || got.ID != b.ID {
			t.Errorf("the new token: got bot %d, %v, want %d", got.ID, err, b.ID)
		}
		anna.get(here(b.ID, "token")).lacks(fresh)
		anna.get(here(b.ID, "connection")).shows("5 of 10,000")
	})
}

func TestPause(t *testing.T) {
	t.Parallel()
	t.Run("M-07 pause and resume, each twice", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		for range 2 {
			anna.post(here(id, "pause"), url.Values{"paused": {"on"}}).leads(here(id, "connection"))
			anna.get(here(id, "connection")).shows("The bot is paused.", "Paused by you")
			anna.get(here(id, "settings")).shows("Resume the bot")
		}
		for range 2 {
			anna.post(here(id, "pause"), url.Values{"paused": {"off"}}).leads(here(id, "connection"))
			anna.get(here(id, "connection")).shows("The bot goes on.", "Not connected")
			anna.get(here(id, "settings")).shows("Pause the bot")
		}
	})
	for name, form := range map[string]url.Values{"nothing": {}, "yes": {"paused": {"yes"}}, "both": {"paused": {"on", "off"}}} {
		t.Run("M-07 refused: "+name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			anna := r.owner()
			id := anna.bot("robot", "Order helper")
			anna.post(here(id, "pause"), form).wants(http.StatusUnprocessableEntity).shows("must be on or off")
			anna.get(here(id, "connection")).shows("Not connected")
		})
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	t.Run("M-09 the username typed again deletes the bot", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		page := anna.post("/bots/new", url.Values{"username": {"robot"}, "name": {"Order helper"}}).wants(http.StatusSeeOther).header.Get("Location")
		token := anna.get(page).match(`(?s)id="token"[^>]*>([^<]*)<`)
		id := page[len("/bots/") : len(page)-len("/token")]
		anna.get("/bots/"+id+"/delete").wants(http.StatusOK).shows("Delete @robot?", "The token stops working at once")
		anna.post("/bots/"+id+"/delete", url.Values{"username": {"robot"}}).leads("/bots")
		anna.get("/bots").shows("@robot was deleted", "No bots yet")
		anna.get("/bots/" + id + "/connection").wants(http.StatusNotFound)
		if _, err := r.bots.ByToken(t.Context(), delivery.Secret(token)); !errors.Is(err, delivery.ErrNotFound) {
			t.Errorf("its token: got %v, want not found", err)
		}
	})
	for name, typed := range map[string]string{"another": "robot2", "nothing": "", "the name": "Order helper"} {
		t.Run("M-09 refused: "+name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			anna := r.owner()
			id := anna.bot("robot", "Order helper")
			got := anna.post(here(id, "delete"), url.Values{"username": {typed}}).wants(http.StatusUnprocessableEntity)
			got.shows("That isn't this bot's username. It is robot.").match(`(aria-invalid="true")`)
			anna.get(here(id, "connection")).wants(http.StatusOK)
		})
	}
}
