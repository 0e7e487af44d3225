package main_test

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestWebhookPaused(t *testing.T) {
	t.Parallel()
	w, e := newHookWorld(t)
	s, other := w.serve(t), w.serve(t)
	o := s.signIn(t)
	var sue *owner // of support
	pause := func(word string) func(*testing.T, *hooked) {
		return func(t *testing.T, h *hooked) { o.act(t, h.bot, "pause", "paused", word) }
	}

	t.Run("W-11 W-10 while delivery is paused the budget's clock stands; Resume sends what waits at once", func(t *testing.T) {
		h := o.hooked(t, e)
		l := &ladder{s: s, h: h}
		h.queue(says(500), says(401), says(500), says(403), says(500))
		s.sends(t, h.bot, 2)
		h.gets(t, "1", 1)
		l.failed(t, "HTTP_500", 5*time.Second)
		for _, c := range []struct {
			code string
			wait time.Duration // of the charged attempt after Resume
		}{{"HTTP_401", 20 * time.Second}, {"HTTP_403", time.Minute}} {
			s.reach(t, *s.hookInfo(t, h.bot).NextAttempt, 0)
			v := h.visited(t, dueTime)
			if i := s.stands(t, h.bot, "paused "+c.code+", 2 waiting, 0 failed, at 1"); i.NextAttempt != nil {
				t.Errorf("got next_attempt_date %v", i.NextAttempt)
			}
			s.advance(t, time.Hour)
			h.quiet(t, 700*time.Millisecond)
			o.act(t, h.bot, "connection/resume")
			h.gets(t, "1", v.attempt+1)
			l.failed(t, "HTTP_500", c.wait) // not FAILED: of the 10 minutes a few seconds are gone
		}
		o.rehook(t, h, "keep")
		h.gets(t, "1", 6).signed(t, h.secret)
		h.gets(t, "2", 1).signed(t, h.secret)
		s.stands(t, h.bot, "active HTTP_500, 0 waiting, 0 failed, at 3")
	})
	t.Run("M-04 W-11 W-07 a save resumes at once, with a new secret that is shown once", func(t *testing.T) {
		h := o.hooked(t, e)
		h.queue(says(410))
		s.sends(t, h.bot, 2)
		h.gets(t, "1", 1).signed(t, h.secret)
		s.stands(t, h.bot, "paused HTTP_410, 2 waiting, 0 failed, at 1")
		old := h.secret
		o.rehook(t, h, "keep")
		if h.secret == old {
			t.Error("the secret is the old one")
		}
		h.gets(t, "1", 2).signed(t, h.secret)
		h.gets(t, "2", 1).signed(t, h.secret)
		if _, body := o.get(t, "/bots/"+h.id+"/connection/secret"); secretShown.MatchString(body) {
			t.Error("the page shows a secret twice")
		}
	})

	space := "/support/spaces/" + w.space + "/running"
	for n, c := range []struct {
		name, state string // state: of getWebhookInfo meanwhile
		on, off     func(*testing.T, *hooked)
		each, cuts  bool // it is the bot's own; a request that is under way counts for nothing
	}{
		{"M-07 the owner's pause", "paused", pause("on"), pause("off"), true, false},
		{"P-16 a space that runs no bots", "disabled",
			func(t *testing.T, _ *hooked) { sue.switches(t, space, "running", "off") },
			func(t *testing.T, _ *hooked) { sue.switches(t, space, "running", "on") }, false, false},
		{"W-14 a webhook that the platform switched off", "disabled",
			func(t *testing.T, h *hooked) { sue.switches(t, "/support/bots/"+h.id+"/webhook", "allowed", "off") },
			func(t *testing.T, h *hooked) { sue.switches(t, "/support/bots/"+h.id+"/webhook", "allowed", "on") }, true, true},
		{"P-16 maintenance", "active",
			func(t *testing.T, _ *hooked) {
				sue.switches(t, "/support/maintenance", "maintenance", "on", "message", "x")
			},
			func(t *testing.T, _ *hooked) { sue.switches(t, "/support/maintenance", "maintenance", "off") }, false, false},
	} {
		t.Run(c.name+": nothing is sent until it ends, and the budget's clock stands", func(t *testing.T) {
			sue = s.support(t, fmt.Sprintf("sue%d@example.com", n)) // a session doesn't last over all these hours
			h, ill := o.hooked(t, e), o.hooked(t, e)
			ill.does(says(500))
			h.does(waits)
			s.write(t, event{bot: h.bot}, event{bot: h.bot}, event{bot: h.bot}, event{bot: ill.bot})
			l := &ladder{s: s, h: ill}
			ill.gets(t, "1", 1)
			l.failed(t, "HTTP_500", 5*time.Second)
			v := h.gets(t, "1", 1)
			c.on(t, h)
			if c.each {
				c.on(t, ill)
			}
			left := 2
			if c.cuts {
				receive(t, 3*time.Second, "the request is cut off", v.ended)
				left = 3
			} else {
				v.let <- says(200)
				receive(t, 3*time.Second, "the answer", v.ended)
				eventually(t, 3*time.Second, "the first is confirmed", func() bool { return s.info(t, h.bot).ConfirmedOffset == "2" })
			}
			s.advance(t, time.Hour)
			h.quiet(t, 700*time.Millisecond)
			ill.quiet(t, 0)
			if i := s.info(t, h.bot); s.hookInfo(t, h.bot).State != c.state || i.Pending != left || i.Failed != 0 {
				t.Errorf("meanwhile: got %s and %+v, want %s", s.hookInfo(t, h.bot).State, i, c.state)
			}
			h.does(says(200))
			c.off(t, h)
			if c.each {
				c.off(t, ill)
			}
			if c.cuts {
				h.gets(t, "1", 2)
			}
			h.gets(t, "2", 1)
			h.gets(t, "3", 1)
			s.stands(t, h.bot, "active, 0 waiting, 0 failed, at 4")
			ill.gets(t, "1", 2)
			l.failed(t, "HTTP_500", 20*time.Second) // not FAILED: of the 10 minutes a few seconds are gone
			h.check(t)
			ill.check(t)
		})
	}
	t.Run("M-07 while the bot is paused intake refuses, in every replica", func(t *testing.T) {
		h := o.hooked(t, e)
		pause("on")(t, h)
		for _, r := range []*server{s, other} {
			if got := fmt.Sprint(r.writeRaw(t, event{bot: h.bot}.filled().json())); got != "[BOT_PAUSED]" {
				t.Errorf("intake: got %s", got)
			}
		}
		pause("off")(t, h)
		s.sends(t, h.bot, 1)
		h.gets(t, "1", 1)
	})
	t.Run("Q-01 W-11 what waits in a paused delivery expires after 7 days; FAILED expires too", func(t *testing.T) {
		h := o.hooked(t, e)
		h.queue(says(422), says(401))
		s.sends(t, h.bot, 3)
		h.gets(t, "1", 1)
		h.gets(t, "2", 1)
		s.stands(t, h.bot, "paused HTTP_401, 2 waiting, 1 failed, at 2")
		s.advance(t, week-time.Minute)
		late := s.sends(t, h.bot, 1)
		s.advance(t, 2*time.Minute)
		eventually(t, 5*time.Second, "the old updates are gone", func() bool { i := s.info(t, h.bot); return i.Pending == 1 && i.Failed == 0 })
		h.quiet(t, 300*time.Millisecond)
		o = s.signIn(t) // a session doesn't last that long
		o.act(t, h.bot, "connection/resume")
		if v := h.gets(t, "4", 1); v.update.EventID != late[0].id {
			t.Errorf("got %s", v.body)
		}
		s.stands(t, h.bot, "active HTTP_401, 0 waiting, 0 failed, at 5")
	})
	t.Run("Q-01 a replay that goes out by webhook keeps its first expiry date", func(t *testing.T) {
		h := o.hooked(t, e)
		h.does(says(422))
		s.sends(t, h.bot, 1)
		h.gets(t, "1", 1)
		s.stands(t, h.bot, "active HTTP_422, 0 waiting, 1 failed, at 2")
		h.does(says(401))
		s.advance(t, week-time.Hour)
		o = s.signIn(t)
		if got := o.deed(t, h.bot, "retry", "1"); !slices.Equal(got, []string{"1 replayed"}) {
			t.Errorf("F-02 got %q", got)
		}
		h.gets(t, "2", 1)
		s.stands(t, h.bot, "paused HTTP_401, 1 waiting, 0 failed, at 2")
		s.advance(t, 2*time.Hour)
		eventually(t, 5*time.Second, "the replay is gone", func() bool { return s.info(t, h.bot).Pending == 0 })
	})
}
