package chat_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"mybots/delivery"
	"mybots/delivery/chat"
)

// must fails the test at an error.
func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// conversation is anna's test chat.
func (r *rig) conversation() chat.Conversation {
	r.t.Helper()
	c, err := r.Conversation(r.t.Context(), r.bot.ID, r.anna.ID, 100)
	r.must(err)
	return c
}

// one takes the bot's updates, which must be one of that type, and returns its payload.
func (r *rig) one(kind string) string {
	r.t.Helper()
	updates := r.receive()
	if len(updates) != 1 || updates[0].Type != kind {
		r.t.Fatalf("got %+v, want one %s", updates, kind)
	}
	return string(updates[0].Payload)
}

// holds counts the rows of the database that have the text anywhere.
func (r *rig) holds(text string) (n int) {
	r.t.Helper()
	r.must(r.db.Get(&n, `
SELECT (SELECT count(*) FROM messages m WHERE strpos(m::text, $1) > 0) + (SELECT count(*) FROM chat_deeds d WHERE strpos(d::text, $1) > 0)
     + (SELECT count(*) FROM updates u WHERE strpos(convert_from(u.payload, 'UTF8'), $1) > 0)
     + (SELECT count(*) FROM failed_updates f WHERE strpos(convert_from(f.payload, 'UTF8'), $1) > 0)`, text))
	return n
}

func TestDeeds(t *testing.T) {
	t.Parallel()
	t.Run("UI-09 an edit comes as message_edited and stands in the chat", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, false)
		ctx := t.Context()
		r.must(r.Write(ctx, r.bot.ID, r.anna, "first words"))
		r.one("message")
		r.must(r.Edit(ctx, r.bot.ID, r.anna, 1, "second\r\nwords"))
		e := r.conversation().Entries[0]
		if e.Text != "second\nwords" || e.EditedAt.Before(e.SentAt) {
			t.Errorf("got %+v, want the new text and when it was edited", e)
		}
		want := fmt.Sprintf(`{"message_id":"1","chat":{"id":"%d","type":"private"},"from":{"id":"%d","display_name":"Anna","is_bot":false},"date":%q,"edit_date":%q,"text":"second\nwords"}`,
			chat.TestChatID(r.anna.ID), r.anna.ID, delivery.FormatTime(e.SentAt), delivery.FormatTime(e.EditedAt))
		if got := r.one("message_edited"); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if n := r.holds("first words"); n != 0 {
			t.Errorf("got %d rows with the old text, want none", n)
		}
		for _, text := range []string{"", " ", "a\x00b", strings.Repeat("я", 4097)} {
			if err := r.Edit(ctx, r.bot.ID, r.anna, 1, text); !errors.Is(err, delivery.ErrInvalid) {
				t.Errorf("%.10q: got %v, want invalid", text, err)
			}
		}
	})
	t.Run("UI-09 of two edits the one that the bot gets last holds, whichever is carried out last", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, false)
		ctx := t.Context()
		r.must(r.Write(ctx, r.bot.ID, r.anna, "hello"))
		r.must(r.Edit(ctx, r.bot.ID, r.anna, 1, "later"))
		// An earlier one, whose event has its place already, comes back from being cut off.
		r.db.MustExec(`UPDATE messages SET edited_by = 9 WHERE bot_id = $1`, r.bot.ID)
		r.must(r.Edit(ctx, r.bot.ID, r.anna, 1, "earlier"))
		if c := r.conversation(); c.Entries[0].Text != "later" || len(c.Deeds) != 0 {
			t.Errorf("got %+v, want the later text and no deed left", c)
		}
	})
	t.Run("UI-09 a deletion comes as message_deleted; the text is gone from the database", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, false)
		ctx := t.Context()
		r.must(r.Write(ctx, r.bot.ID, r.anna, "a secret"))
		r.must(r.Edit(ctx, r.bot.ID, r.anna, 1, "another secret"))
		r.must(r.Delete(ctx, r.bot.ID, r.anna, 1)) // before the bot got any of it
		if n := r.holds("secret"); n != 0 {
			t.Errorf("got %d rows with the text, want none", n)
		}
		want := fmt.Sprintf(`{"message_id":"1","chat":{"id":"%d","type":"private"}}`, chat.TestChatID(r.anna.ID))
		if got := r.one("message_deleted"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if c := r.conversation(); len(c.Entries) != 1 || c.Entries[0].Text != "" || c.Entries[0].DeletedAt.IsZero() || len(c.Deeds) != 0 {
			t.Errorf("got %+v, want the message as a deleted one", c)
		}
		for what, err := range map[string]error{
			"twice": r.Delete(ctx, r.bot.ID, r.anna, 1), "an edit": r.Edit(ctx, r.bot.ID, r.anna, 1, "x"), "another's": r.Delete(ctx, r.bot.ID, chat.Person{ID: r.anna.ID + 1}, 1),
			"one that isn't there": r.Delete(ctx, r.bot.ID, r.anna, 2), "its file": r.Check(ctx, r.bot.ID, r.anna, 1, chat.Clean),
		} {
			if !errors.Is(err, delivery.ErrNotFound) {
				t.Errorf("%s: got %v, want not found", what, err)
			}
		}
		if n := len(r.receive()); n != 0 {
			t.Errorf("got %d updates from what was refused, want none", n)
		}
	})
	t.Run("UI-09 the bot's own messages can't be edited or deleted", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, false)
		ctx := t.Context()
		r.must(r.Write(ctx, r.bot.ID, r.anna, "hello"))
		_, _, err := r.Send(ctx, r.bot, once(r.bot.ID, "k"), chat.Outgoing{ChatID: chat.TestChatID(r.anna.ID), Text: "mine"})
		r.must(err)
		if err := errors.Join(r.Edit(ctx, r.bot.ID, r.anna, 2, "x")); !errors.Is(err, delivery.ErrNotFound) {
			t.Errorf("edit: got %v, want not found", err)
		}
		if err := r.Delete(ctx, r.bot.ID, r.anna, 2); !errors.Is(err, delivery.ErrNotFound) {
			t.Errorf("delete: got %v, want not found", err)
		}
	})
	for status, other := range map[string]string{chat.Clean: chat.Infected, chat.Infected: chat.Clean} {
		t.Run("UI-09 a file is being checked, then found "+status, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, false)
			ctx := t.Context()
			r.must(r.Attach(ctx, r.bot.ID, r.anna, " Foto \"1\".JPG "))
			e := r.conversation().Entries[0]
			if e.File == nil || e.File.FileID == "" || e.File.Kind != "photo" || e.File.Status != chat.Checking || e.File.Name != `Foto "1".JPG` {
				t.Fatalf("got %+v", e.File)
			}
			want := fmt.Sprintf(`{"message_id":"1","chat":{"id":"%d","type":"private"},"from":{"id":"%d","display_name":"Anna","is_bot":false},"date":%q,"file":{"file_id":%q,"kind":"photo","name":"Foto \"1\".JPG","status":"checking"}}`,
				chat.TestChatID(r.anna.ID), r.anna.ID, delivery.FormatTime(e.SentAt), e.File.FileID)
			if got := r.one("message"); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			r.must(r.Check(ctx, r.bot.ID, r.anna, 1, status))
			want = fmt.Sprintf(`{"message_id":"1","chat":{"id":"%d","type":"private"},"file":{"file_id":%q,"kind":"photo","name":"Foto \"1\".JPG","status":%q}}`,
				chat.TestChatID(r.anna.ID), e.File.FileID, status)
			if got := r.one("file_status_changed"); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			c := r.conversation()
			if c.Entries[0].File.Status != status || len(c.Deeds) != 1 || c.Deeds[0].Type != "file_status_changed" || c.Deeds[0].Value != status || c.Deeds[0].Sending || c.Deeds[0].After != 1 {
				t.Errorf("got %+v %+v", c.Entries[0].File, c.Deeds)
			}
			if err := r.Check(ctx, r.bot.ID, r.anna, 1, other); !errors.Is(err, delivery.ErrNotFound) {
				t.Errorf("a second end: got %v, want not found", err)
			}
			if err := r.Edit(ctx, r.bot.ID, r.anna, 1, "x"); !errors.Is(err, delivery.ErrNotFound) {
				t.Errorf("an edit: got %v, want not found: it has no text", err)
			}
			r.must(r.Delete(ctx, r.bot.ID, r.anna, 1))
			r.receive()
			if n := r.holds("Foto"); n != 0 {
				t.Errorf("got %d rows with the deleted file's name, want none", n)
			}
		})
	}
	t.Run("UI-09 a name that no file can have is refused", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, false)
		for _, name := range []string{"", " ", "a/b", `a\b`, "a\nb", "a\x00b", "\xff", strings.Repeat("я", 129)} {
			if err := r.Attach(t.Context(), r.bot.ID, r.anna, name); !errors.Is(err, delivery.ErrInvalid) {
				t.Errorf("%.10q: got %v, want invalid", name, err)
			}
		}
		r.must(r.Attach(t.Context(), r.bot.ID, r.anna, strings.Repeat("я", 128)))
	})
}

func TestAccessChanges(t *testing.T) {
	t.Parallel()
	for _, access := range []string{chat.Stopped, chat.Left} {
		t.Run("UI-09 I-05 "+access+": the bot learns it, nothing else goes out, until it is allowed again", func(t *testing.T) {
			t.Parallel()
			r := newRig(t, false)
			ctx := t.Context()
			r.must(r.Write(ctx, r.bot.ID, r.anna, "hello"))
			r.must(r.Attach(ctx, r.bot.ID, r.anna, "a.pdf"))
			_, _, err := r.Send(ctx, r.bot, once(r.bot.ID, "k"), chat.Outgoing{ChatID: chat.TestChatID(r.anna.ID), Text: "?", Buttons: [][]chat.Button{{{Text: "a", Data: "a"}}}})
			r.must(err)
			r.receive()
			r.must(r.SetAccess(ctx, r.bot.ID, r.anna, access))
			want := fmt.Sprintf(`{"chat":{"id":"%d","type":"private"},"access":%q}`, chat.TestChatID(r.anna.ID), access)
			if got := r.one("chat_access_changed"); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			for what, err := range map[string]error{
				"write": r.Write(ctx, r.bot.ID, r.anna, "x"), "attach": r.Attach(ctx, r.bot.ID, r.anna, "x"), "edit": r.Edit(ctx, r.bot.ID, r.anna, 1, "x"),
				"delete": r.Delete(ctx, r.bot.ID, r.anna, 1), "check": r.Check(ctx, r.bot.ID, r.anna, 2, chat.Clean), "press": r.Press(ctx, r.bot, r.anna, 3, 0, 0),
			} {
				if closed := (*chat.Closed)(nil); !errors.As(err, &closed) || closed.Access != access || !errors.Is(err, delivery.ErrConflict) {
					t.Errorf("%s: got %v, want that the chat is %s", what, err, access)
				}
			}
			r.must(r.SetAccess(ctx, r.bot.ID, r.anna, access)) // it is so already
			if n := len(r.receive()); n != 0 {
				t.Errorf("got %d updates, want none", n)
			}
			if c := r.conversation(); c.Access != access || len(c.Entries) != 3 || len(c.Deeds) != 1 || c.Deeds[0].After != 3 {
				t.Errorf("got %+v", c)
			}
			r.must(r.SetAccess(ctx, r.bot.ID, r.anna, chat.Allowed))
			r.must(r.Write(ctx, r.bot.ID, r.anna, "I'm back"))
			updates := r.receive()
			if len(updates) != 2 || updates[0].Type != "chat_access_changed" || !strings.Contains(string(updates[0].Payload), `"access":"allowed"`) || updates[1].Type != "message" {
				t.Errorf("got %+v", updates)
			}
			c := r.conversation()
			if c.Access != chat.Allowed || len(c.Deeds) != 2 || c.Deeds[1].Value != chat.Allowed || c.Entries[3].MessageID != 4 {
				t.Errorf("got %+v, want two changes and message 4", c)
			}
		})
	}
	t.Run("I-05 stopped before anything was written; messages still begin with 1", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, false)
		ctx := t.Context()
		r.must(r.SetAccess(ctx, r.bot.ID, r.anna, chat.Stopped))
		if c := r.conversation(); c.Access != chat.Stopped || len(c.Deeds) != 1 || c.Deeds[0].After != 0 {
			t.Errorf("got %+v", c)
		}
		r.must(r.SetAccess(ctx, r.bot.ID, r.anna, chat.Allowed))
		r.must(r.Write(ctx, r.bot.ID, r.anna, "hello"))
		if c := r.conversation(); len(c.Entries) != 1 || c.Entries[0].MessageID != 1 {
			t.Errorf("got %+v, want message 1", c.Entries)
		}
		for _, access := range []string{"", "blocked", "nonsense"} {
			if err := r.SetAccess(ctx, r.bot.ID, r.anna, access); !errors.Is(err, delivery.ErrInvalid) {
				t.Errorf("%q: got %v, want invalid", access, err)
			}
		}
	})
}
