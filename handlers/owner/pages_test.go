package owner_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"mybots/delivery"
	"mybots/delivery/notice"
	"mybots/web"
)

func TestBots(t *testing.T) {
	t.Parallel()
	t.Run("UI-02 no bots: the way to the first one", func(t *testing.T) {
		t.Parallel()
		newRig(t).owner().get("/bots").wants(http.StatusOK).shows("No bots yet", "/bots/new")
	})
	t.Run("UI-02 a card has name, mode, state in words, waiting, oldest, errors", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		r.fill(id, 37)
		anna.get("/bots").wants(http.StatusOK).shows("Order helper", "@robot", "Long polling", "No receiver", "37 of 10,000",
			"Oldest waiting", "Delivery errors", "1 bot needs your attention.", here(id, "connection")).match(`(<time class="time" datetime=)`)
	})
	t.Run("UI-01 in Russian with the right plural forms", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		for i, name := range []string{"robot", "robot2", "robot3"} {
			r.fill(anna.bot(name, name), []int{1, 2, 5}[i])
		}
		anna.get("/bots", "Accept-Language: ru").shows("Мои боты", "3 бота требуют вашего внимания.", "Нет получателя", "1 из 10\u00a0000")
		anna.post("/settings/language", url.Values{"language": {"ru"}, "next": {"/bots"}}).leads("/bots")
		anna.get("/bots", "Accept-Language: en").shows("Мои боты")
	})
	t.Run("UI-07 only one's own", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna, boris := r.owner(), r.signedIn("boris", web.Owner)
		anna.bot("robot", "Order helper")
		boris.get("/bots").wants(http.StatusOK).shows("No bots yet").lacks("Order helper")
	})
	t.Run("UI-01 the piece comes only when something has changed", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		mark := anna.get("/bots").match(`name="seen" value="([^"]+)"`)
		anna.get("/bots?seen="+mark, piece...).wants(http.StatusNoContent)
		r.fill(id, 1)
		anna.get("/bots?seen="+mark, piece...).wants(http.StatusOK).shows("1 of 10,000").lacks("<html")
	})
}

func TestCreate(t *testing.T) {
	t.Parallel()
	t.Run("UI-02 the token is shown once and never cached; a reload says what to do", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		page := anna.post("/bots/new", url.Values{"username": {"@robot"}, "name": {" Order helper "}}).wants(http.StatusSeeOther).header.Get("Location")
		anna.ask(http.MethodHead, page, nil).wants(http.StatusOK) // uses nothing up
		first := anna.get(page).wants(http.StatusOK)
		token := first.match(`(?s)id="token"[^>]*>([^<]*)<`)
		if !strings.HasPrefix(token, delivery.BotTokenPrefix) {
			t.Errorf("got token %q, want it to begin with %s", token, delivery.BotTokenPrefix)
		}
		if got := first.header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("got Cache-Control %q, want no-store", got)
		}
		if b, err := r.bots.ByToken(t.Context(), delivery.Secret(token)); err != nil || b.Username != "robot" || b.Name != "Order helper" {
			t.Errorf("the bot of the token shown: got %+v, %v, want robot, Order helper", b, err)
		}
		first.shows("curl", r.url+"/bot-api/v1/getMe", "getUpdates", " python3 examples/python/echo_bot.py")
		anna.get(page).wants(http.StatusOK).shows("Emergency reset", "shown again").lacks(token, `id="token"`, delivery.BotTokenPrefix)
	})
	t.Run("UI-02 another session of the same owner sees no token", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		other := r.stranger()
		other.post("/login", url.Values{"email": {anna.email}, "password": {password}}).wants(http.StatusSeeOther)
		page := anna.post("/bots/new", url.Values{"username": {"robot"}, "name": {"Robot"}}).wants(http.StatusSeeOther).header.Get("Location")
		other.get(page).wants(http.StatusOK).lacks(`id="token"`)
		anna.get(page).wants(http.StatusOK).shows(delivery.BotTokenPrefix)
	})
	for name, c := range map[string]struct {
		username, name string
		status         int
		code, words    string
	}{
		"no username":            {"", "Robot", 422, "INVALID", "Use 3 to 32 characters"},
		"username of two":        {"ab", "Robot", 422, "INVALID", "Use 3 to 32 characters"},
		"username with a space":  {"a b c", "Robot", 422, "INVALID", "Use 3 to 32 characters"},
		"no name":                {"robot", " ", 422, "INVALID", "Use 1 to 64 characters"},
		"name of 65":             {"robot", strings.Repeat("я", 65), 422, "INVALID", "Use 1 to 64 characters"},
		"name with a line break": {"robot", "a\nb", 422, "INVALID", "Use 1 to 64 characters"},
		"name that isn't UTF-8":  {"robot", "\xff", 422, "INVALID", "Use 1 to 64 characters"},
		"username taken":         {"Taken", "Robot", 409, "USERNAME_TAKEN", "has this username already"},
	} {
		t.Run("UI-11 refused: "+name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			anna := r.owner()
			anna.bot("taken", "The other")
			got := anna.post("/bots/new", url.Values{"username": {c.username}, "name": {c.name}}).wants(c.status).shows(c.words)
			if code := got.match(`id="error"[^>]*data-code="([^"]*)"`); code != c.code {
				t.Errorf("got data-code %q, want %q", code, c.code)
			}
			anna.get("/bots").lacks("@robot", "@a b c")
		})
	}
}

// Names that try to be more than a name.
func TestNames(t *testing.T) {
	t.Parallel()
	for what, name := range map[string]string{
		"markup":        `"><img src=x onerror=alert(1)>`,
		"right to left": "مساعد الطلبات \u202e txt.exe",
		"64 characters": strings.Repeat("Щ", 64),
		"64 emoji":      strings.Repeat("🤖", 64),
		"template":      `{{.Username}} %s`,
	} {
		t.Run("UI-02 shown as it is: "+what, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			anna := r.owner()
			id := anna.bot("robot", name)
			r.fill(id, 1)
			anna.post(here(id, "chat"), url.Values{"text": {name}}).leads(here(id, "chat"))
			anna.reply(id, name)
			r.must(r.notices.OpenChat(t.Context(), r.space, anna.id, notice.English))
			anna.webhook(id)
			r.answered(id, statusAnswer(401), time.Millisecond)
			r.notify()
			for _, route := range r.list {
				if route.method != http.MethodGet || route.path == "/bots/new" {
					continue
				}
				page := anna.get(strings.NewReplacer("{id}", itoa(id), "{space}", itoa(r.space)).Replace(route.path) + "?" + route.form.Encode()).wants(http.StatusOK).shows(name)
				page.lacks("<img")
			}
		})
	}
}

func TestState(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		before func(r *rig, id int64)
		state  string
		words  []string
	}{
		"nobody yet":          {func(*rig, int64) {}, "idle", []string{"Not connected", "Show how to start it"}},
		"updates, no program": {func(r *rig, id int64) { r.fill(id, 2) }, "no_receiver", []string{"No receiver", "2 updates wait in order", "Save and keep 2 waiting updates"}},
		"a call waits": {func(r *rig, id int64) { r.mustPoll(id, "worker-1") }, "receiving",
			[]string{"Receiving", "worker-1", "Yes, its call waits for updates", "Write to the bot"}},
		"between two calls": {func(r *rig, id int64) { r.fill(id, 1); r.mustPoll(id, "worker-1") }, "receiving",
			[]string{"works on what it got last", "No, it works on its last batch"}},
		"the lease ran out": {func(r *rig, id int64) { r.fill(id, 1); r.mustPoll(id, "worker-1"); r.clock.advance(delivery.LeaseTime) },
			"no_receiver", []string{"Nobody holds the lease", "Last receiver", "worker-1"}},
		"a second program": {func(r *rig, id int64) {
			r.mustPoll(id, "worker-1")
			if _, err := r.poll(id, "worker-2", 0); err == nil {
				r.t.Error("the second program: got no error, want a refusal")
			}
		}, "receiving", []string{"worker-2", "203.0.113.9", "Two programs want this bot"}},
		"paused": {func(r *rig, id int64) {
			r.fill(id, 1)
			r.db.MustExec(`UPDATE queues SET paused = true WHERE bot_id = $1`, id)
		}, "paused", []string{"Paused by you", "1 update keeps waiting", "Resume the bot"}},
		"its space runs no bots": {func(r *rig, id int64) { r.db.MustExec(`UPDATE queues SET disabled = true WHERE bot_id = $1`, id) },
			"disabled", []string{"Switched off", "Ask the administrator"}},
		"maintenance": {func(r *rig, _ int64) { r.db.MustExec(`UPDATE platform SET maintenance = true`) },
			"maintenance", []string{"Maintenance", "Nothing is lost"}},
		"full": {func(r *rig, id int64) { r.db.MustExec(`UPDATE queues SET waiting = 10000 WHERE bot_id = $1`, id) },
			"queue_full", []string{"Queue full", "10,000 of 10,000", "Start your program"}},
	}
	for name, c := range tests {
		t.Run("UI-03 "+name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			anna := r.owner()
			id := anna.bot("robot", "Order helper")
			c.before(r, id)
			page := anna.get(here(id, "connection")).wants(http.StatusOK).shows(c.words...)
			if got := page.match(`data-testid="state" data-state="([^"]*)"`); got != c.state {
				t.Errorf("got state %q, want %q", got, c.state)
			}
			if got := anna.get("/bots").match(`data-testid="bot-card" data-state="([^"]*)"`); got != c.state {
				t.Errorf("the card: got state %q, want %q", got, c.state)
			}
			anna.get(here(id, "connection"), "Accept-Language: ru").wants(http.StatusOK).lacks("Not connected", "Receiving", "No receiver")
		})
	}
}

func (r *rig) mustPoll(botID int64, consumer string) {
	r.t.Helper()
	_, err := r.poll(botID, consumer, 25*time.Second)
	r.must(err)
}
