package notice

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/pg"
	"mybots/delivery/queue"
)

func TestWhoIsTold(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		with func(*rig)
		want []string // route, recipient's language
	}{
		"N-01 an owner who opened BotFather":      {func(*rig) {}, []string{"botfather en"}},
		"N-01 in the chat's language":             {func(r *rig) { r.open(r.bot, Russian) }, []string{"botfather ru"}},
		"N-01 an owner who never opened it: none": {func(r *rig) { r.closeChat(r.bot) }, nil},
		"N-01 another space's chat doesn't count": {func(r *rig) {
			r.closeChat(r.bot)
			other := r.addBot("other")
			r.db.MustExec(`INSERT INTO botfather_chats (space_id, user_id, language, opened_at) VALUES ($1, $2, 'en', $3)`, other.SpaceID, r.bot.OwnerID, r.clock.Now())
		}, nil},
		"N-07 MAX beside it":              {func(r *rig) { r.linkMAX(r.bot, 77) }, []string{"botfather en", "max en"}},
		"N-07 MAX alone":                  {func(r *rig) { r.closeChat(r.bot); r.linkMAX(r.bot, 77) }, []string{"max en"}},
		"N-07 MAX not set up":             {func(r *rig) { r.linkMAX(r.bot, 77); r.max = false }, []string{"botfather en"}},
		"N-07 MAX in the chat's language": {func(r *rig) { r.linkMAX(r.bot, 77); r.open(r.bot, Russian) }, []string{"botfather ru", "max ru"}},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			c.with(r)
			r.answer(r.bot, status(401))
			var got []string
			for _, l := range r.lines() {
				got = append(got, l.Route+" "+l.Language)
				if l.State != Queued || l.Tries != 0 || l.Code != "HTTP_401" || l.Kind != delivery.TroublePaused || l.Template == "" || l.Text == "" {
					t.Errorf("the notice: %+v", l)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestWhatIsTold(t *testing.T) {
	t.Parallel()
	charged := delivery.Answer{Kind: delivery.TimedOut}
	useUp := func(r *rig, a delivery.Answer) {
		for range delivery.MaxCharged {
			r.answer(r.bot, a)
			r.clock.advance(time.Hour)
		}
	}
	tests := map[string]struct {
		happens func(*rig)
		want    string // kind and code; "" for no notice
	}{
		"N-01 401":                     {func(r *rig) { r.answer(r.bot, status(401)) }, "paused HTTP_401"},
		"N-01 302":                     {func(r *rig) { r.answer(r.bot, status(302)) }, "paused REDIRECT_NOT_FOLLOWED"},
		"N-01 certificate":             {func(r *rig) { r.answer(r.bot, delivery.Answer{Kind: delivery.BadCertificate}) }, "paused TLS_CERTIFICATE_ERROR"},
		"N-01 address":                 {func(r *rig) { r.answer(r.bot, delivery.Answer{Kind: delivery.Forbidden}) }, "paused ADDRESS_FORBIDDEN"},
		"N-01 400":                     {func(r *rig) { r.answer(r.bot, status(400)) }, "failed HTTP_400"},
		"N-01 413":                     {func(r *rig) { r.answer(r.bot, status(413)) }, "failed HTTP_413"},
		"N-01 422":                     {func(r *rig) { r.answer(r.bot, status(422)) }, "failed HTTP_422"},
		"N-01 a budget used up by 5xx": {func(r *rig) { useUp(r, status(503)) }, "failed HTTP_5XX"},
		"N-01 a budget used up":        {func(r *rig) { useUp(r, charged) }, "failed DELIVERY_OUTCOME_UNKNOWN"},
		"N-01 one charged attempt":     {func(r *rig) { r.answer(r.bot, status(503)) }, ""},
		"N-01 429":                     {func(r *rig) { r.answer(r.bot, status(429)) }, ""},
		"N-01 no connection":           {func(r *rig) { r.answer(r.bot, delivery.Answer{Kind: delivery.NotConnected}) }, ""},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			c.happens(r)
			got := ""
			for _, l := range r.lines() {
				got = string(l.Kind) + " " + l.Code
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestSameTransaction(t *testing.T) {
	t.Parallel()
	t.Run("N-02 no notice without its cause, no cause without its notice", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		broken := errors.New("the outbox is broken")
		r.queue = queue.New(r.db, r.clock, func(int64) {}, queue.Telling(func(ctx context.Context, tx *sqlx.Tx, tr delivery.Trouble) error {
			return errors.Join(r.Record(ctx, tx, tr), broken)
		}))
		t.Cleanup(r.queue.Close)
		if err := r.tryAnswer(r.bot, status(401)); !errors.Is(err, broken) {
			t.Fatalf("settle: got %v, want the outbox's error", err)
		}
		var paused string
		if err := r.db.Get(&paused, `SELECT hook_paused FROM queues WHERE bot_id = $1`, r.bot.ID); err != nil {
			t.Fatal(err)
		}
		if n := len(r.lines()); paused != "" || n != 0 {
			t.Errorf("got paused %q with %d notices, want neither", paused, n)
		}
	})
	t.Run("N-02 the text is rendered when it is recorded", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.answer(r.bot, status(401))
		before := r.only()
		r.db.MustExec(`UPDATE bots SET name = 'Renamed' WHERE bot_id = $1`, r.bot.ID)
		r.open(r.bot, Russian)
		r.step(BotFather, true)
		if got := r.chat(r.bot); len(got) != 1 || got[0].Text != before.Text {
			t.Errorf("got %+v, want the text as recorded: %q", got, before.Text)
		}
	})
}

func TestWindows(t *testing.T) {
	t.Parallel()
	t.Run("N-03 60 minutes from the notice, whatever the clock's hour", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.clock.advance(50 * time.Minute) // 12:50: a clock hour ends within the window
		r.pause(r.bot)
		for _, at := range []time.Duration{time.Minute, 10 * time.Minute, 49*time.Minute - time.Microsecond} {
			r.clock.advance(at)
			r.pause(r.bot)
		}
		if got := r.only(); got.Held != 3 {
			t.Errorf("a microsecond before the hour is over: held back %d, want 3", got.Held)
		}
		r.clock.advance(time.Microsecond)
		r.pause(r.bot)
		list := r.lines()
		if len(list) != 2 || list[1].Counted != 3 || !strings.Contains(list[1].Text, "3 more times") || list[0].Key == list[1].Key {
			t.Fatalf("when the hour is over: %+v; want a second notice that counts 3", list)
		}
		r.clock.advance(2 * Window)
		r.pause(r.bot)
		if list = r.lines(); len(list) != 3 || list[2].Counted != 0 || strings.Contains(list[2].Text, "more time") {
			t.Errorf("after a window that held nothing back: %+v; want a third that counts none", list)
		}
	})
	t.Run("N-03 each kind and each bot has its own", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		other := r.addBot("other")
		r.open(other, English)
		r.answer(r.bot, status(422))
		r.pause(r.bot)
		r.pause(other)
		if got := len(r.lines()); got != 3 {
			t.Errorf("got %d notices, want 3", got)
		}
	})
	t.Run("N-03 a thousand failures in an hour are one notice", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		record := func() {
			err := pg.InTx(t.Context(), r.db, func(tx *sqlx.Tx) error {
				return r.Record(t.Context(), tx, delivery.Trouble{Kind: delivery.TroubleFailed, BotID: r.bot.ID, Code: "HTTP_422", UpdateID: 1, At: r.clock.Now()})
			})
			if err != nil {
				t.Error(err)
			}
		}
		for range 1000 {
			record()
			r.clock.advance(time.Second)
		}
		if got := r.only(); got.Held != 999 {
			t.Errorf("held back %d, want 999", got.Held)
		}
		r.clock.advance(Window)
		record()
		if list := r.lines(); len(list) != 2 || !strings.Contains(list[1].Text, "999 more moved") {
			t.Errorf("the next notice: %+v; want it to count 999", list)
		}
	})
	t.Run("N-01 without a recipient no window opens", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.closeChat(r.bot)
		r.pause(r.bot)
		r.open(r.bot, English)
		r.clock.advance(time.Second)
		r.pause(r.bot)
		if got := r.only(); got.Counted != 0 {
			t.Errorf("counted %d, want 0", got.Counted)
		}
	})
	t.Run("N-03 replicas whose clocks differ open one window", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.clock.advance(time.Second)
		r.pause(r.bot)
		r.clock.advance(-2 * time.Second) // another replica, a little behind
		r.pause(r.bot)
		if got := r.only(); got.Held != 1 {
			t.Errorf("held back %d, want 1", got.Held)
		}
	})
}

// codes are all causes that Settle can tell of.
var codes = map[delivery.TroubleKind][]string{
	delivery.TroublePaused: {"HTTP_401", "HTTP_403", "HTTP_404", "HTTP_410", "HTTP_418", delivery.CodeRedirect, delivery.CodeCertificate, delivery.CodeForbidden},
	delivery.TroubleFailed: {"HTTP_400", "HTTP_413", "HTTP_422", delivery.ReasonServerError, delivery.ReasonOutcomeUnknown},
}

func TestWords(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 30, 12, 34, 56, 0, time.FixedZone("", 3*3600))
	for kind, list := range codes {
		for _, code := range list {
			for _, lang := range []string{English, Russian} {
				t.Run("N-01 "+code+" in "+lang, func(t *testing.T) {
					t.Parallel()
					m, err := render(lang, "Tea & <b>Cake</b>", delivery.Trouble{Kind: kind, BotID: 1, Code: code, UpdateID: 9007199254740993, At: at}, 17)
					if err != nil {
						t.Fatal(err)
					}
					for _, want := range []string{"Tea & <b>Cake</b>", "9007199254740993", "2026-11-30 09:34:56 UTC", "17"} {
						if !strings.Contains(m.text, want) {
							t.Errorf("the notice doesn't say %q:\n%s", want, m.text)
						}
					}
					if strings.Contains(m.text, "<no value>") || strings.Contains(m.text, "{{") || len(strings.Split(m.text, "\n")) != 4 {
						t.Errorf("the notice isn't four whole lines:\n%s", m.text)
					}
					if button := map[string]string{English: "Connection", Russian: "Подключение"}[lang]; m.button != button {
						t.Errorf("button %q, want %q", m.button, button)
					}
				})
			}
		}
	}
	t.Run("N-01 an unknown code still gives a notice", func(t *testing.T) {
		t.Parallel()
		m, err := render(Russian, "Робот", delivery.Trouble{Kind: delivery.TroublePaused, Code: "HTTP_418", At: at}, 0)
		if err != nil || !strings.Contains(m.text, "418") {
			t.Errorf("got %q, %v; want the status", m.text, err)
		}
	})
	t.Run("UI-01 plural forms", func(t *testing.T) {
		t.Parallel()
		for n, want := range map[int]string{1: "ещё 1 раз.", 2: "ещё 2 раза.", 5: "ещё 5 раз.", 11: "ещё 11 раз.", 22: "ещё 22 раза."} {
			m, err := render(Russian, "Робот", delivery.Trouble{Kind: delivery.TroublePaused, Code: "HTTP_401", At: at}, n)
			if err != nil || !strings.HasSuffix(m.text, want) {
				t.Errorf("%d: got %q, %v; want it to end with %q", n, m.text, err, want)
			}
		}
	})
}
