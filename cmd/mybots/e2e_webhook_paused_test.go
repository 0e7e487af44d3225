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
	db := w.db(t)
	must := func(t *testing.T, statement string, args ...any) {
		t.Helper()
		if _, err := db.Exec(statement, args...); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
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

	stops := map[string]struct{ on, off func(*testing.T, *hooked) }{
		"M-07 the owner's pause": {pause("on"), pause("off")},
		"P-16 the space's switch": {
			func(t *testing.T, h *hooked) { must(t, `UPDATE queues SET disabled = true WHERE bot_id = $1`, h.id) },
			func(t *testing.T, h *hooked) { must(t, `UPDATE queues SET disabled = false WHERE bot_id = $1`, h.id) },
		},
		"W-14 the platform's switch": {
			func(t *testing.T, h *hooked) {
				must(t, `UPDATE queues SET hook_allowed = false WHERE bot_id = $1`, h.id)
			},
			func(t *testing.T, h *hooked) {
				must(t, `UPDATE queues SET hook_allowed = true WHERE bot_id = $1`, h.id)
			},
		},
		"P-16 maintenance": {
			func(t *testing.T, _ *hooked) { must(t, `UPDATE platform SET maintenance = true`) },
			func(t *testing.T, _ *hooked) { must(t, `UPDATE platform SET maintenance = false`) },
		},
	}
	for name, c := range stops {
		t.Run(name+" lets a request that is under way confirm, and nothing follows until it ends", func(t *testing.T) {
			h := o.hooked(t, e)
			h.does(waits)
			s.sends(t, h.bot, 3)
			v := h.gets(t, "1", 1)
			c.on(t, h)
			v.let <- says(200)
			receive(t, 3*time.Second, "the answer", v.ended)
			eventually(t, 3*time.Second, "the first is confirmed", func() bool { return s.info(t, h.bot).ConfirmedOffset == "2" })
			h.quiet(t, 700*time.Millisecond)
			s.advance(t, time.Hour)
			h.quiet(t, 700*time.Millisecond)
			state := s.hookInfo(t, h.bot).State
			want := map[string]string{"M-07 the owner's pause": "paused", "P-16 the space's switch": "disabled", "W-14 the platform's switch": "disabled", "P-16 maintenance": state}[name]
			if i := s.info(t, h.bot); state != want || i.Pending != 2 || i.Failed != 0 {
				t.Errorf("meanwhile: got %s and %+v, want %s", state, i, want)
			}
			h.does(says(200))
			c.off(t, h)
			h.gets(t, "2", 1)
			h.gets(t, "3", 1)
			s.stands(t, h.bot, "active, 0 waiting, 0 failed, at 4")
			h.check(t)
		})
	}
	t.Run("M-07 W-10 while the bot is paused the budget's clock stands, and intake refuses", func(t *testing.T) {
		h := o.hooked(t, e)
		l := &ladder{s: s, h: h}
		h.does(says(500))
		s.sends(t, h.bot, 1)
		h.gets(t, "1", 1)
		l.failed(t, "HTTP_500", 5*time.Second)
		pause("on")(t, h)
		if got := fmt.Sprint(other.writeRaw(t, event{bot: h.bot}.filled().json())); got != "[BOT_PAUSED]" {
			t.Errorf("intake: got %s", got)
		}
		s.advance(t, 25*time.Minute)
		h.quiet(t, 700*time.Millisecond)
		pause("off")(t, h)
		h.gets(t, "1", 2)
		l.failed(t, "HTTP_500", 20*time.Second)
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
