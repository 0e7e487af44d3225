package owner_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"mybots/delivery"
	"mybots/delivery/chat"
	"mybots/web"
)

func TestChat(t *testing.T) {
	t.Parallel()
	t.Run("UI-09 a message goes through intake and the bot's answer appears", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		anna.get(here(id, "chat")).shows("Nothing written yet", "examples/python/echo_bot.py")
		anna.post(here(id, "chat"), url.Values{"text": {"two\r\nlines <b>bold</b>"}}).leads(here(id, "chat"))
		got, err := r.poll(id, "worker-1", 0)
		r.must(err)
		if len(got.Batch.Updates) != 1 || got.Batch.Updates[0].Type != "message" {
			t.Fatalf("the bot's updates: got %+v, want one message", got.Batch.Updates)
		}
		payload := string(got.Batch.Updates[0].Payload)
		for _, want := range []string{`"text":"two\nlines <b>bold</b>"`, `"display_name":"anna"`, fmt.Sprintf(`"id":"%d"`, chat.TestChatID(anna.id))} {
			if !strings.Contains(payload, want) {
				t.Errorf("got payload %s, want %s in it", payload, want)
			}
		}
		mark := anna.get(here(id, "chat")).shows("two\nlines <b>bold</b>").lacks("<b>").match(`name="seen" value="([^"]+)"`)
		anna.get(here(id, "chat")+"?seen="+mark, piece...).wants(http.StatusNoContent)
		anna.reply(id, "an <i>answer</i>")
		anna.get(here(id, "chat")+"?seen="+mark, piece...).wants(http.StatusOK).shows("an <i>answer</i>", "The bot wrote:").lacks("<i>", "<html")
	})
	t.Run("UI-09 a button press reaches the bot, and its answer is shown", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		anna.post(here(id, "chat"), url.Values{"text": {"hello"}}).leads(here(id, "chat"))
		anna.reply(id, "which?", []chat.Button{{Text: "Tea", Data: "t"}, {Text: "<Coffee>", Data: "c"}})
		page := anna.get(here(id, "chat")).shows("Tea", "<Coffee>")
		messageID := page.match(`(?s)action="` + here(id, "chat/press") + `".*?name="message_id" value="([^"]+)"`)
		press := url.Values{"message_id": {messageID}, "row": {"0"}, "place": {"1"}}
		anna.post(here(id, "chat/press"), press).leads(here(id, "chat"))
		got, err := r.poll(id, "worker-1", 0)
		r.must(err)
		last := got.Batch.Updates[len(got.Batch.Updates)-1]
		if last.Type != "callback_query" || !strings.Contains(string(last.Payload), `"data":"c"`) {
			t.Errorf("got %s %s, want a callback_query with data c", last.Type, last.Payload)
		}
		press.Set("place", "7")
		anna.post(here(id, "chat/press"), press).leads(here(id, "chat"))
		anna.get(here(id, "chat")).shows("This button isn't there any more.")
		press.Set("row", "x")
		anna.post(here(id, "chat/press"), press).wants(http.StatusUnprocessableEntity)
	})
	t.Run("Q-02 a full queue: the message stands there as not sent, and goes out later", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		r.db.MustExec(`UPDATE queues SET waiting = 10000 WHERE bot_id = $1`, id)
		anna.post(here(id, "chat"), url.Values{"text": {"too much"}}).leads(here(id, "chat"))
		page := anna.get(here(id, "chat")).shows("too much", "Not sent. This bot has too many unanswered messages.", "Send again")
		again := url.Values{"message_id": {page.match(`name="message_id" value="([^"]+)"`)}}
		anna.post(here(id, "chat/again"), again).leads(here(id, "chat"))
		anna.get(here(id, "chat")).shows("Not sent.")
		r.db.MustExec(`UPDATE queues SET waiting = 0 WHERE bot_id = $1`, id)
		anna.post(here(id, "chat/again"), again).leads(here(id, "chat"))
		anna.get(here(id, "chat")).shows("too much").lacks("Not sent.", "Send again")
		anna.post(here(id, "chat/again"), again).wants(http.StatusNotFound)
	})
	t.Run("UI-09 paused, switched off: said in plain words", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		anna.post(here(id, "chat"), url.Values{"text": {"hello"}}).leads(here(id, "chat"))
		anna.reply(id, "which?", []chat.Button{{Text: "Tea", Data: "t"}})
		anna.post(here(id, "pause"), url.Values{"paused": {"on"}}).leads(here(id, "connection"))
		anna.post(here(id, "chat"), url.Values{"text": {"hello"}}).leads(here(id, "chat"))
		anna.get(here(id, "chat")).shows("Not sent. The bot is paused.")
		anna.post(here(id, "chat/press"), url.Values{"message_id": {"2"}, "row": {"0"}, "place": {"0"}}).leads(here(id, "chat"))
		anna.get(here(id, "chat")).shows("The button press didn't reach the bot. The bot is paused.")
		r.db.MustExec(`UPDATE queues SET paused = false, disabled = true WHERE bot_id = $1`, id)
		anna.post(here(id, "chat"), url.Values{"text": {"hello"}}, piece...).wants(http.StatusOK).shows("Not sent. Your space runs no bots at present.").match(`(hx-target="#compose")`)
	})
	for name, text := range map[string]string{"nothing": "", "spaces": " \r\n ", "too long": strings.Repeat("a", delivery.MaxText+1), "a NUL": "a\x00b", "no UTF-8": "\xff"} {
		t.Run("UI-09 refused: "+name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			anna := r.owner()
			id := anna.bot("robot", "Order helper")
			anna.post(here(id, "chat"), url.Values{"text": {text}}).wants(http.StatusUnprocessableEntity).shows("Write 1 to 4,096 characters.")
			anna.post(here(id, "chat"), url.Values{"text": {text}}, piece...).wants(http.StatusUnprocessableEntity).shows("Write 1 to 4,096 characters.").lacks("<html")
			anna.get(here(id, "chat")).shows("Nothing written yet")
		})
	}
	t.Run("UI-09 a message whose way was cut off can be sent again and arrives once", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		anna.post(here(id, "chat"), url.Values{"text": {"hello"}}).leads(here(id, "chat"))
		r.db.MustExec(`UPDATE messages SET state = 'sending' WHERE bot_id = $1`, id)
		anna.get(here(id, "chat")).shows("On its way").lacks("Send again")
		r.clock.advance(11 * time.Second)
		anna.get(here(id, "chat")).shows("Its way to the bot was cut off.", "Send again")
		anna.post(here(id, "chat/again"), url.Values{"message_id": {"1"}}).leads(here(id, "chat"))
		anna.get(here(id, "chat")).lacks("Send again")
		if s, err := r.queue.Status(t.Context(), id); err != nil || s.Waiting != 1 {
			t.Errorf("got %d waiting, %v, want 1", s.Waiting, err)
		}
	})
	t.Run("UI-09 the last hundred messages are shown", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		anna.post(here(id, "chat"), url.Values{"text": {"the first"}}).leads(here(id, "chat"))
		r.db.MustExec(`
INSERT INTO messages (bot_id, chat_id, message_id, from_bot, text, sent_at)
SELECT $1, $2, 1 + n, true, 'answer ' || n, $3 FROM generate_series(1, 100) n`, id, chat.TestChatID(anna.id), r.clock.Now())
		page := anna.get(here(id, "chat")).shows("answer 100", "The last 100 messages are shown.").lacks("the first")
		if got := strings.Count(page.body, `data-testid="message"`); got != 100 {
			t.Errorf("got %d messages, want 100", got)
		}
	})
	t.Run("UI-07 nobody reads another owner's chat with the same bot id", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna, boris := r.owner(), r.signedIn("boris", web.Owner)
		id := anna.bot("robot", "Order helper")
		anna.post(here(id, "chat"), url.Values{"text": {"secret"}}).leads(here(id, "chat"))
		boris.get(here(id, "chat")).wants(http.StatusNotFound).lacks("secret")
	})
}
