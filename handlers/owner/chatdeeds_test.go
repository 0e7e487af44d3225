package owner_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"mybots/delivery"
	"mybots/delivery/chat"
	"mybots/delivery/queue"
)

// form is a posted form: names and values take turns.
func form(fields ...string) url.Values {
	v := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		v.Add(fields[i], fields[i+1])
	}
	return v
}

// written is a bot with a message and a file in its test chat, and its owner.
func (r *rig) written() (anna *person, id int64) {
	r.t.Helper()
	anna = r.owner()
	id = anna.bot("robot", "Order helper")
	anna.post(here(id, "chat"), form("text", "hello")).leads(here(id, "chat"))
	anna.post(here(id, "chat/file"), form("name", "invoice.pdf")).leads(here(id, "chat"))
	return anna, id
}

// kinds are the types of the updates that wait, in order; the program that asked is gone again.
func (r *rig) kinds(botID int64) (list []string) {
	r.t.Helper()
	r.clock.advance(time.Second)
	got, err := r.poll(botID, "looker", 0)
	r.must(err)
	for _, u := range got.Batch.Updates {
		list = append(list, u.Type)
	}
	r.must(r.queue.Reset(r.t.Context(), botID, anybody))
	return list
}

// rejectAll lets the bot's program reject everything that waits.
func (r *rig) rejectAll(botID int64) (n int) {
	r.t.Helper()
	r.clock.advance(time.Second)
	got, err := r.poll(botID, "rejecter", 0)
	r.must(err)
	for _, u := range got.Batch.Updates {
		_, _, err := r.queue.Reject(r.t.Context(), queue.Once{BotID: botID, Key: uuid.NewString(), Fingerprint: []byte("x")},
			delivery.Rejection{UpdateID: u.UpdateID, Reason: "no", ConsumerID: "rejecter", Epoch: got.Batch.Lease.Epoch})
		r.must(err)
	}
	r.must(r.queue.Reset(r.t.Context(), botID, anybody))
	return len(got.Batch.Updates)
}

func TestChatDeeds(t *testing.T) {
	t.Parallel()
	t.Run("UI-09 U-01 edited, checked, deleted, stopped and allowed again: it all comes in order and stands on the page", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna, id := r.written()
		page := anna.get(here(id, "chat")).shows("hello", "invoice.pdf", "Document", "Being checked", "Found clean", "Found infected", "Stop the bot", "Leave the space")
		editURL := page.match(`href="([^"]*edit=1)"`)
		anna.get(editURL).wants(http.StatusOK).shows("Edit the message", "Save the edit", "hello").match(`(name="message_id" value="1")`)
		anna.post(here(id, "chat/edit"), form("message_id", "1", "text", "hello <b>again</b>")).leads(here(id, "chat"))
		page = anna.get(here(id, "chat")).shows("hello <b>again</b>", "Edited").lacks("<b>")
		page.match(`(?s)data-testid="edited".*?<time [^>]*datetime="([^"]+)"`)
		anna.post(here(id, "chat/check"), form("message_id", "2", "result", "infected")).leads(here(id, "chat"))
		anna.get(here(id, "chat")).shows("Infected", "Check finished: invoice.pdf is infected").lacks("Being checked", "Found clean")
		anna.post(here(id, "chat/check"), form("message_id", "2", "result", "clean")).leads(here(id, "chat"))
		anna.get(here(id, "chat")).shows("The check of this file is over already.", "Infected")
		anna.post(here(id, "chat/delete"), form("message_id", "2")).leads(here(id, "chat"))
		anna.get(here(id, "chat")).shows("Message deleted", "Check finished: the deleted file is infected").lacks(`<bdi>invoice.pdf</bdi>`)
		anna.post(here(id, "chat/access"), form("access", "stopped")).leads(here(id, "chat"))
		anna.get(here(id, "chat")).shows("You stopped the bot", "You have stopped the bot in this chat.", "Allow it again to write.", "Allow the bot again").
			lacks(`name="text"`, `name="name"`, "chat/delete", "edit=1")
		anna.post(here(id, "chat/access"), form("access", "allowed")).leads(here(id, "chat"))
		anna.post(here(id, "chat/access"), form("access", "left")).leads(here(id, "chat"))
		anna.get(here(id, "chat"), "Accept-Language: ru").shows("Вы вышли из пространства.", "Вернуться в пространство", "Вы снова разрешили бота")
		anna.post(here(id, "chat/access"), form("access", "allowed")).leads(here(id, "chat"))
		anna.get(here(id, "chat")).shows("Edit").match(`(name="text")`)
		// The deletion took the file's message and its check, which were never issued, with it (F-04).
		want := []string{"message", "message_edited", "message_deleted", "chat_access_changed", "chat_access_changed", "chat_access_changed", "chat_access_changed"}
		if got := r.kinds(id); !slices.Equal(got, want) {
			t.Errorf("got %v\nwant %v", got, want)
		}
	})
	t.Run("UI-09 htmx gets pieces: the edit form, the result, the forms that fit", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna, id := r.written()
		anna.get(here(id, "chat")+"?edit=1", piece...).wants(http.StatusOK).shows("Save the edit").lacks("<html", `data-testid="message"`)
		anna.post(here(id, "chat/edit"), form("message_id", "1", "text", "new"), piece...).wants(http.StatusOK).shows("new", "Edited").lacks("<html", "Save the edit").match(`(hx-target="#compose")`)
		anna.post(here(id, "chat/check"), form("message_id", "2", "result", "clean"), piece...).wants(http.StatusOK).shows("Clean").lacks("<html", `hx-target="#compose" hx-swap="outerHTML">`).
			match(`(?s)id="message-2"[^>]*(data-focus)`)
		anna.post(here(id, "chat/delete"), form("message_id", "1"), piece...).wants(http.StatusOK).shows("Message deleted").match(`(?s)id="message-1"[^>]*(data-focus)`)
		anna.post(here(id, "chat/access"), form("access", "stopped"), piece...).wants(http.StatusOK).shows("Allow the bot again").lacks("<html", `name="text"`)
		// The page of another tab, where one can still write.
		anna.post(here(id, "chat"), form("text", "too late"), piece...).wants(http.StatusOK).shows("Nothing was done. You have stopped the bot in this chat.").lacks(`name="text"`, "too late")
	})
	t.Run("UI-09 what can't be done is said, and nothing is done", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna, id := r.written()
		anna.reply(id, "the bot's")
		for _, what := range []string{"edit", "delete"} {
			for _, message := range []string{"3", "99"} {
				anna.post(here(id, "chat/"+what), form("message_id", message, "text", "x")).leads(here(id, "chat"))
				anna.get(here(id, "chat")).shows("This message can't be changed any more. Nothing was done.", "the bot's")
			}
			for _, message := range []string{"", "x", "-1", "01"} {
				anna.post(here(id, "chat/"+what), form("message_id", message, "text", "x")).wants(http.StatusUnprocessableEntity)
			}
		}
		anna.get(here(id, "chat")+"?edit=3").wants(http.StatusOK).shows("This message can't be changed any more.", "Send").lacks("Save the edit")
		anna.get(here(id, "chat")+"?edit=3", piece...).wants(http.StatusOK).shows("This message can't be changed any more.").lacks("Save the edit", "<html")
		for _, bad := range []url.Values{form("message_id", "2"), form("message_id", "2", "result", "eaten"), form("message_id", "2", "result", "clean", "result", "infected"), form("result", "clean")} {
			anna.post(here(id, "chat/check"), bad).wants(http.StatusUnprocessableEntity)
		}
		for _, bad := range []url.Values{form(), form("access", "blocked"), form("access", "stopped", "access", "left")} {
			anna.post(here(id, "chat/access"), bad).wants(http.StatusUnprocessableEntity)
		}
		for _, text := range []string{"", "  ", strings.Repeat("a", delivery.MaxText+1)} {
			anna.post(here(id, "chat/edit"), form("message_id", "1", "text", text)).wants(http.StatusUnprocessableEntity).shows("Write 1 to 4,096 characters.", "Save the edit")
		}
		for _, name := range []string{"", "a/b", strings.Repeat("a", 129)} {
			anna.post(here(id, "chat/file"), form("name", name)).wants(http.StatusUnprocessableEntity).shows("Use 1 to 128 characters, without slashes.")
		}
		if got := r.kinds(id); !slices.Equal(got, []string{"message", "message"}) {
			t.Errorf("got %v, want the two messages alone", got)
		}
	})
	t.Run("UI-09 M-07 paused: each deed is refused in plain words, and the edit keeps what was written", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna, id := r.written()
		r.db.MustExec(`UPDATE queues SET paused = true WHERE bot_id = $1`, id)
		anna.post(here(id, "chat/edit"), form("message_id", "1", "text", "many new words")).wants(http.StatusConflict).
			shows("The edit didn't reach the bot, and the message is as it was. The bot is paused.", "many new words", "Save the edit")
		for what, words := range map[string]string{"delete": "The deletion didn't reach the bot", "access": "That didn't reach the bot, and the chat is as it was.", "check": "The check's result didn't reach the bot"} {
			anna.post(here(id, "chat/"+what), form("message_id", "2", "result", "clean", "access", "stopped")).leads(here(id, "chat"))
			anna.get(here(id, "chat")).shows(words, "The bot is paused. Resume it, then try again.", "hello", "Being checked", "Stop the bot")
		}
		anna.post(here(id, "chat/file"), form("name", "second.png")).leads(here(id, "chat"))
		anna.get(here(id, "chat")).shows("second.png", "Photo", "Not sent. The bot is paused.", "Send again")
		r.db.MustExec(`UPDATE queues SET paused = false WHERE bot_id = $1`, id)
		anna.post(here(id, "chat/again"), form("message_id", "3")).leads(here(id, "chat"))
		if got := r.kinds(id); !slices.Equal(got, []string{"message", "message", "message"}) {
			t.Errorf("got %v, want three messages", got)
		}
	})
	t.Run("UI-09 a deed whose way was cut off stands there and is finished later", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna, id := r.written()
		r.db.MustExec(`ALTER TABLE event_ids RENAME TO elsewhere`)
		anna.post(here(id, "chat/delete"), form("message_id", "1")).wants(http.StatusInternalServerError)
		r.db.MustExec(`ALTER TABLE elsewhere RENAME TO event_ids`)
		anna.get(here(id, "chat")).shows("Deleting a message", "On its way", "hello").lacks("Send again")
		r.clock.advance(11 * time.Second)
		page := anna.get(here(id, "chat")).shows("Its way to the bot was cut off.", "Send again")
		again := form("deed_id", page.match(`name="deed_id" value="([^"]+)"`))
		anna.post(here(id, "chat/again"), again).leads(here(id, "chat"))
		anna.get(here(id, "chat")).shows("Message deleted").lacks("Send again", "Deleting a message")
		anna.post(here(id, "chat/again"), again).wants(http.StatusNotFound)
	})
	t.Run("UI-09 lines of the conversation keep their place among a hundred messages", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna, id := r.written()
		anna.post(here(id, "chat/access"), form("access", "stopped")).leads(here(id, "chat"))
		anna.post(here(id, "chat/access"), form("access", "allowed")).leads(here(id, "chat"))
		anna.post(here(id, "chat"), form("text", "the next")).leads(here(id, "chat"))
		page := anna.get(here(id, "chat"))
		last := -1
		for _, text := range []string{"hello", "invoice.pdf", "You stopped the bot", "You allowed the bot again", "the next"} {
			at := strings.Index(page.body, text)
			if at < last {
				t.Errorf("got %q above what was before it in\n%s", text, page.body)
			}
			last = at
		}
		r.db.MustExec(`
INSERT INTO messages (bot_id, chat_id, message_id, from_bot, text, sent_at)
SELECT $1, $2, 3 + n, true, 'answer ' || n, $3 FROM generate_series(1, 100) n`, id, chat.TestChatID(anna.id), r.clock.Now())
		anna.get(here(id, "chat")).shows("answer 1", "answer 100").lacks("You stopped the bot", "the next")
	})
}

func TestChatAndFailed(t *testing.T) {
	t.Parallel()
	for access, code := range map[string]string{"stopped": "CHAT_STOPPED", "left": "CHAT_LEFT"} {
		t.Run("F-02 UI-09 "+access+": Retry is refused with "+code+", and done once it is allowed again", func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			anna, id := r.written()
			if n := r.rejectAll(id); n != 2 {
				t.Fatalf("got %d rejected, want 2", n)
			}
			anna.post(here(id, "chat/access"), form("access", access)).leads(here(id, "chat"))
			page := anna.post(here(id, "failed/retry"), ids("1", "2")).wants(http.StatusOK)
			page.same("rows", page.became(), []string{"1 refused " + code, "2 refused " + code})
			anna.post(here(id, "chat/access"), form("access", "allowed")).leads(here(id, "chat"))
			page = anna.post(here(id, "failed/retry"), ids("1")).wants(http.StatusOK)
			page.same("rows", page.became(), []string{"1 replayed"})
			if s, err := r.queue.Status(t.Context(), id); err != nil || s.Failed != 1 {
				t.Errorf("got %d failed, %v, want 1", s.Failed, err)
			}
		})
	}
	t.Run("F-04 F-05 UI-09 deleting a message cancels the failed updates about it, of any type, and no other", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna, id := r.written()
		anna.post(here(id, "chat/check"), form("message_id", "2", "result", "clean")).leads(here(id, "chat"))
		anna.post(here(id, "chat/edit"), form("message_id", "1", "text", "new")).leads(here(id, "chat"))
		if n := r.rejectAll(id); n != 4 {
			t.Fatalf("got %d rejected, want 4", n)
		}
		anna.get(here(id, "failed")).same("the list", anna.get(here(id, "failed")).listed(), []string{"1", "2", "3", "4"})
		anna.post(here(id, "chat/delete"), form("message_id", "2")).leads(here(id, "chat"))
		anna.get(here(id, "failed")).same("the list", anna.get(here(id, "failed")).listed(), []string{"1", "4"})
		page := anna.post(here(id, "failed/retry"), ids("2", "3")).wants(http.StatusOK)
		page.same("rows", page.became(), []string{"2 refused NOT_FAILED", "3 refused NOT_FAILED"})
		if s, err := r.queue.Status(t.Context(), id); err != nil || s.Failed != 2 || s.Waiting != 1 {
			t.Errorf("got %d failed, %d waiting, %v, want 2, and message_deleted", s.Failed, s.Waiting, err)
		}
	})
}
