package notice

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/audit"
)

// dead leaves the rig's bot with one notice by MAX that waits for a person.
func dead(t *testing.T, class Class) (*rig, int64) {
	t.Helper()
	r := newRig(t)
	r.closeChat(r.bot)
	r.linkMAX(r.bot, 77)
	r.pause(r.bot)
	job := r.step(MAX, true).job
	if _, err := r.settle(t.Context(), *job, Result{Class: class, Code: 404, Reason: WhyStatus}); err != nil {
		t.Fatal(err)
	}
	return r, job.ID
}

func TestDecisions(t *testing.T) {
	t.Parallel()
	t.Run("N-08 retry", func(t *testing.T) {
		t.Parallel()
		r, id := dead(t, ClassPermanent)
		r.clock.advance(2 * MaxAge)
		var by deeds
		if err := r.Retry(t.Context(), id, by.within); err != nil {
			t.Fatal(err)
		}
		if got, want := by.last(), fmt.Sprintf("notice_retry notice=%d route=max state=dead -> state=queued", id); got != want {
			t.Errorf("audit: %s, want %s", got, want)
		}
		if c := r.step(MAX, true); c.job == nil || c.job.Tries != 2 {
			t.Errorf("got %+v, want a second try, though the notice is two days old", c)
		}
	})
	t.Run("N-08 only what waits for a person is retried", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.pause(r.bot)
		var by deeds
		if err := r.Retry(t.Context(), r.only().ID, by.within); !errors.Is(err, delivery.ErrStale) || len(by.list) != 0 {
			t.Errorf("queued: got %v and audit %v, want it refused", err, by.list)
		}
		r.step(BotFather, true)
		for name, f := range map[string]func() error{
			"retry": func() error { return r.Retry(t.Context(), r.only().ID, by.within) },
			"close": func() error { return r.Close(t.Context(), r.only().ID, by.within) },
			"readdress": func() error {
				return r.Readdress(t.Context(), r.only().ID, BotFather, "robot@example.com", by.within)
			},
		} {
			if err := f(); !errors.Is(err, delivery.ErrStale) {
				t.Errorf("%s of a sent one: got %v, want it refused", name, err)
			}
		}
		if err := r.Retry(t.Context(), 12345, by.within); !errors.Is(err, delivery.ErrNotFound) {
			t.Errorf("an unknown one: got %v, want not found", err)
		}
	})
	t.Run("N-08 a deed that isn't allowed changes nothing", func(t *testing.T) {
		t.Parallel()
		r, id := dead(t, ClassUnknown)
		refused := errors.New("no such right")
		if err := r.Retry(t.Context(), id, func(context.Context, *sqlx.Tx, audit.Entry) error { return refused }); !errors.Is(err, refused) {
			t.Errorf("got %v, want it refused", err)
		}
		if l := r.only(); l.State != Uncertain {
			t.Errorf("got %s, want it uncertain still", l.State)
		}
	})
	for class, next := range map[Class]int{ClassPermanent: 2, ClassUnknown: 1} {
		t.Run("N-08 close a notice whose answer was "+string(class), func(t *testing.T) {
			t.Parallel()
			r, id := dead(t, class)
			var by deeds
			if err := r.Close(t.Context(), id, by.within); err != nil {
				t.Fatal(err)
			}
			if l := r.only(); l.State != Stale || l.Reason != WhyClosed {
				t.Errorf("got %+v, want it closed", l)
			}
			r.clock.advance(time.Second)
			r.pause(r.bot)
			if n := len(r.lines()); n != next {
				t.Errorf("after the next pause got %d notices, want %d: only what surely wasn't sent holds nothing back (N-03)", n, next)
			}
		})
	}
	t.Run("N-08 a new recipient", func(t *testing.T) {
		t.Parallel()
		r, id := dead(t, ClassPermanent)
		r.open(r.bot, English)
		var by deeds
		if err := r.Readdress(t.Context(), id, BotFather, " Robot@Example.com ", by.within); err != nil {
			t.Fatal(err)
		}
		if c := r.step(BotFather, true); c.closed != Sent {
			t.Fatalf("got %+v, want it sent", c)
		}
		if l := r.only(); len(r.chat(r.bot)) != 1 || l.Route != BotFather || l.Email != "robot@example.com" || strings.Contains(l.Key, " max ") {
			t.Errorf("got %+v", l)
		}
	})
	t.Run("N-08 another account at MAX, which no owner has linked", func(t *testing.T) {
		t.Parallel()
		r, id := dead(t, ClassPermanent)
		var by deeds
		if err := r.Readdress(t.Context(), id, MAX, "88", by.within); err != nil {
			t.Fatal(err)
		}
		if c := r.step(MAX, true); c.job == nil || c.job.Recipient != "88" {
			t.Errorf("got %+v, want it sent to 88", c)
		}
	})
	t.Run("N-03 who has the notice already doesn't get it twice", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.linkMAX(r.bot, 77)
		r.pause(r.bot)
		r.step(BotFather, true)
		job := r.step(MAX, true).job
		if _, err := r.settle(t.Context(), *job, Result{Class: ClassPermanent, Code: 404}); err != nil {
			t.Fatal(err)
		}
		var by deeds
		if err := r.Readdress(t.Context(), job.ID, BotFather, "robot@example.com", by.within); err != nil {
			t.Fatal(err)
		}
		l, err := r.Line(t.Context(), job.ID)
		if err != nil || l.State != Deduplicated || len(r.chat(r.bot)) != 1 {
			t.Errorf("got %+v, %v and %d messages; want it deduplicated", l, err, len(r.chat(r.bot)))
		}
	})
	t.Run("N-08 recipients that can't be", func(t *testing.T) {
		t.Parallel()
		r, id := dead(t, ClassPermanent)
		stranger := r.addBot("stranger")
		r.open(stranger, English)
		var by deeds
		for _, to := range [][2]string{{MAX, ""}, {MAX, "0"}, {MAX, "-1"}, {MAX, "me"}, {MAX, "99999999999999999999"}, {BotFather, ""},
			{BotFather, "robot@example.com"}, {BotFather, "stranger@example.com"}, {BotFather, "1"}, {"pigeon", "1"}, {"", ""}} {
			var invalid *delivery.Invalid
			if err := r.Readdress(t.Context(), id, to[0], to[1], by.within); !errors.As(err, &invalid) {
				t.Errorf("%q by %q: got %v, want it refused", to[1], to[0], err)
			}
		}
		if l := r.only(); l.State != Dead || l.Recipient != "77" {
			t.Errorf("got %+v, want it as it was", l)
		}
	})
}

func TestList(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.linkMAX(r.bot, 77)
	other := r.addBot("other")
	r.open(other, Russian)
	r.pause(r.bot) // BotFather and MAX
	r.answer(other, status(422))
	r.step(BotFather, true)
	job := r.step(MAX, true).job
	if _, err := r.settle(t.Context(), *job, Result{Class: ClassUnknown}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		filter Filter
		want   string // bots and routes, the latest first
	}{
		"N-08 all":          {Filter{}, "other botfather, robot max, robot botfather"},
		"N-08 for a person": {Filter{ForPerson: true}, "robot max"},
		"N-08 by state":     {Filter{State: Queued}, "other botfather"},
		"N-08 by route":     {Filter{Route: BotFather}, "other botfather, robot botfather"},
		"N-08 by bot":       {Filter{BotID: r.bot.ID}, "robot max, robot botfather"},
		"N-08 all at once":  {Filter{BotID: r.bot.ID, Route: BotFather, State: Sent}, "robot botfather"},
		"N-08 none":         {Filter{BotID: r.bot.ID, State: Dead}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			before := int64(0)
			for { // page by page, one a page
				page, err := r.List(t.Context(), c.filter, before, 1)
				if err != nil {
					t.Fatal(err)
				}
				if len(page) == 0 {
					break
				}
				got, before = append(got, page[0].BotName+" "+page[0].Route), page[0].ID
			}
			if strings.Join(got, ", ") != c.want {
				t.Errorf("got %v, want %s", got, c.want)
			}
			if n, err := r.Count(t.Context(), c.filter, 10_000); err != nil || n != len(got) {
				t.Errorf("counted %d, %v; want %d", n, err, len(got))
			}
		})
	}
	t.Run("N-08 the metrics' sums", func(t *testing.T) {
		r.clock.advance(time.Minute)
		totals, err := r.Totals(t.Context())
		if err != nil || len(totals) != 2 || totals[0].Ordinary != 1 || totals[0].Urgent != 0 || totals[0].ForPerson != 0 || r.clock.Now().Sub(totals[0].Oldest.Time) != time.Minute ||
			totals[1].Ordinary+totals[1].Urgent != 0 || totals[1].ForPerson != 1 || !totals[1].Oldest.IsZero() {
			t.Errorf("got %+v, %v", totals, err)
		}
	})
	t.Run("N-08 closed ones go after 90 days, the others stay", func(t *testing.T) {
		r.clock.advance(KeepTime + time.Minute)
		if n, err := r.DropOld(t.Context()); err != nil || n != 1 {
			t.Errorf("dropped %d, %v; want 1", n, err)
		}
		if n, err := r.Count(t.Context(), Filter{}, 10); err != nil || n != 2 || len(r.chat(r.bot)) != 1 {
			t.Errorf("%d are left, %v, and %d messages; want 2 and 1", n, err, len(r.chat(r.bot)))
		}
	})
}

func TestLinking(t *testing.T) {
	t.Parallel()
	linked := func(r *rig) bool {
		at, err := r.LinkedSince(r.t.Context(), r.bot.OwnerID)
		if err != nil {
			r.t.Fatal(err)
		}
		return !at.IsZero()
	}
	tests := map[string]struct {
		text func(r *rig, code string) string
		want bool
	}{
		"N-07 the code":                           {func(_ *rig, c string) string { return c }, true},
		"N-07 as people type it":                  {func(_ *rig, c string) string { return " " + strings.ToLower(strings.ReplaceAll(c, "-", " ")) + "\n" }, true},
		"N-07 a microsecond before its time ends": {func(r *rig, c string) string { r.clock.advance(CodeTime - time.Microsecond); return c }, true},
		"N-07 when its time is over":              {func(r *rig, c string) string { r.clock.advance(CodeTime); return c }, false},
		"N-07 another code":                       {func(_ *rig, c string) string { return "AAAA" + c[4:] }, false},
		"N-07 nothing":                            {func(*rig, string) string { return "" }, false},
		"N-07 a long text":                        {func(_ *rig, c string) string { return c + strings.Repeat(" ", 100) }, false},
		"N-07 replaced by a newer one": {func(r *rig, c string) string {
			if _, err := r.NewCode(r.t.Context(), r.bot.OwnerID); err != nil {
				r.t.Fatal(err)
			}
			return c
		}, false},
		"N-07 used already": {func(r *rig, c string) string {
			if _, err := r.Link(r.t.Context(), 5, c); err != nil {
				r.t.Fatal(err)
			}
			if err := r.Unlink(r.t.Context(), Actor{UserID: r.bot.OwnerID}); err != nil {
				r.t.Fatal(err)
			}
			return c
		}, false},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			code, err := r.NewCode(t.Context(), r.bot.OwnerID)
			if err != nil {
				t.Fatal(err)
			}
			text := c.text(r, string(code))
			user, err := r.Link(t.Context(), 42, text)
			if c.want && (err != nil || user != r.bot.OwnerID) || !c.want && !errors.Is(err, delivery.ErrNotFound) {
				t.Errorf("got %d, %v", user, err)
			}
			if got := linked(r); got != c.want {
				t.Errorf("linked: %v, want %v", got, c.want)
			}
		})
	}
	t.Run("N-07 the code stands nowhere in clear", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		code, err := r.NewCode(t.Context(), r.bot.OwnerID)
		if err != nil {
			t.Fatal(err)
		}
		var n int
		plain := strings.ReplaceAll(string(code), "-", "")
		if err := r.db.Get(&n, `SELECT count(*) FROM max_codes WHERE position(convert_to($1, 'UTF8') IN code_hash) > 0`, plain); err != nil || n != 0 || fmt.Sprint(code) == string(code) {
			t.Errorf("found %d, %v", n, err)
		}
	})
	t.Run("N-07 not set up", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.max = false
		if _, err := r.NewCode(t.Context(), r.bot.OwnerID); !errors.Is(err, ErrOff) {
			t.Errorf("got %v, want ErrOff", err)
		}
	})
}
