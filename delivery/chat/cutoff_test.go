package chat_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/delivery/chat"
)

// deeds are all kinds of deeds on message 1, a text, and message 2, a file.
func (r *rig) deeds() map[string]func() error {
	ctx := r.t.Context()
	return map[string]func() error{
		"edit":   func() error { return r.Edit(ctx, r.bot.ID, r.anna, 1, "new words") },
		"delete": func() error { return r.Delete(ctx, r.bot.ID, r.anna, 1) },
		"check":  func() error { return r.Check(ctx, r.bot.ID, r.anna, 2, chat.Clean) },
		"stop":   func() error { return r.SetAccess(ctx, r.bot.ID, r.anna, chat.Stopped) },
	}
}

func TestDeedsRefusedAndCutOff(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"edit", "delete", "check", "stop"} {
		t.Run("UI-09 "+what+" that intake refuses never was", func(t *testing.T) {
			t.Parallel()
			r := newRig(t, false)
			ctx := t.Context()
			r.must(r.Write(ctx, r.bot.ID, r.anna, "hello"))
			r.must(r.Attach(ctx, r.bot.ID, r.anna, "a.pdf"))
			before := fmt.Sprint(r.conversation())
			by := bots.Actor{UserID: r.anna.ID}
			r.must(r.bots.Pause(ctx, by, r.bot.ID, true))
			if err := r.deeds()[what](); code(err) != delivery.BotPaused {
				t.Fatalf("got %v, want BOT_PAUSED", err)
			}
			r.must(r.bots.Pause(ctx, by, r.bot.ID, false))
			if got := fmt.Sprint(r.conversation()); len(r.conversation().Deeds) != 0 || len(got) != len(before) {
				t.Errorf("got %s, want as before %s", got, before)
			}
			if n := len(r.receive()); n != 2 {
				t.Errorf("got %d updates, want the two messages", n)
			}
			r.must(r.deeds()[what]())
		})
		for _, arrived := range []bool{false, true} {
			t.Run(fmt.Sprintf("UI-09 I-03 %s whose way was cut off (arrived: %v) is finished later and comes once", what, arrived), func(t *testing.T) {
				t.Parallel()
				r := newRig(t, false)
				ctx := t.Context()
				r.must(r.Write(ctx, r.bot.ID, r.anna, "hello"))
				r.must(r.Attach(ctx, r.bot.ID, r.anna, "a.pdf"))
				if arrived { // its effect is lost, its event isn't
					r.db.MustExec(`ALTER TABLE chat_deeds ADD CONSTRAINT cut CHECK (state = 'sending')`)
					r.db.MustExec(`CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''cut off''; END'`)
					r.db.MustExec(`CREATE TRIGGER cut BEFORE DELETE ON chat_deeds FOR EACH ROW EXECUTE FUNCTION cut()`)
				} else {
					r.db.MustExec(`ALTER TABLE event_ids RENAME TO elsewhere`)
				}
				if err := r.deeds()[what](); err == nil || code(err) != "" {
					t.Fatalf("got %v, want an error", err)
				}
				if arrived {
					r.db.MustExec(`ALTER TABLE chat_deeds DROP CONSTRAINT cut`)
					r.db.MustExec(`DROP TRIGGER cut ON chat_deeds`)
				} else {
					r.db.MustExec(`ALTER TABLE elsewhere RENAME TO event_ids`)
				}
				c := r.conversation()
				if len(c.Deeds) != 1 || !c.Deeds[0].Sending || strings.Contains(c.Deeds[0].Value, "words") {
					t.Fatalf("got %+v, want one that is under way, without the text", c.Deeds)
				}
				if what == "delete" || what == "check" {
					if err := r.deeds()[what](); !errors.Is(err, delivery.ErrNotFound) {
						t.Errorf("a second one: got %v, want not found", err)
					}
				}
				r.must(r.AgainDeed(ctx, r.bot.ID, r.anna, c.Deeds[0].ID))
				if err := r.AgainDeed(ctx, r.bot.ID, r.anna, c.Deeds[0].ID); !errors.Is(err, delivery.ErrNotFound) {
					t.Errorf("once more: got %v, want not found", err)
				}
				n := 0
				for _, u := range r.receive() {
					if u.Type != "message" {
						n++
					}
				}
				if n != 1 {
					t.Errorf("got %d updates of the deed, want 1", n)
				}
				c = r.conversation()
				done := map[string]bool{
					"edit": c.Entries[0].Text == "new words", "delete": !c.Entries[0].DeletedAt.IsZero(), "check": c.Entries[1].File.Status == chat.Clean, "stop": c.Access == chat.Stopped,
				}
				if !done[what] {
					t.Errorf("got %+v, want the %s done", c, what)
				}
			})
		}
	}
	t.Run("M-09 a deleted bot leaves nothing of its chat", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, false)
		r.must(r.Write(t.Context(), r.bot.ID, r.anna, "hello"))
		r.must(r.SetAccess(t.Context(), r.bot.ID, r.anna, chat.Stopped))
		r.must(r.bots.Delete(t.Context(), bots.Actor{UserID: r.anna.ID}, r.bot.ID, r.bot.Username))
		var n int
		r.must(r.db.Get(&n, `SELECT (SELECT count(*) FROM chat_deeds) + (SELECT count(*) FROM messages) + (SELECT count(*) FROM chats)`))
		if n != 0 {
			t.Errorf("got %d rows, want none", n)
		}
	})
}
