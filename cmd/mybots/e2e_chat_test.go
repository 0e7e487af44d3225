package main_test

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// chatDeed does one thing in the test chat as its form does: fields and values take turns.
func (o *owner) chatDeed(t testing.TB, b *bot, what string, fields ...string) {
	t.Helper()
	if location := o.act(t, b, strings.TrimSuffix("chat/"+what, "/"), fields...); location != "/bots/"+b.id+"/chat" {
		t.Fatalf("%s: leads to %s, want the chat", what, location)
	}
}

// chatPage is the test chat as a browser gets it.
func (o *owner) chatPage(t testing.TB, b *bot) string {
	t.Helper()
	status, body := o.get(t, "/bots/"+b.id+"/chat")
	if status != http.StatusOK {
		t.Fatalf("the test chat: got %d: %.300s", status, body)
	}
	return body
}

// payloads are the shapes of what the test chat sends: C is the chat's id, A the
// owner's, B the bot's, N its username; * stands for a date, an id of a file or
// of a button press.
var payloads = []struct{ kind, payload string }{
	{"message", `{"message_id":"1","chat":{"id":"C","type":"private"},"from":{"id":"A","display_name":"M","is_bot":false},"date":"*","text":"hello"}`},
	{"message_edited", `{"message_id":"1","chat":{"id":"C","type":"private"},"from":{"id":"A","display_name":"M","is_bot":false},"date":"*","edit_date":"*","text":"hello <b>you</b>"}`},
	{"callback_query", `{"callback_query_id":"*","from":{"id":"A","display_name":"M","is_bot":false},"message":{"message_id":"2","chat":{"id":"C","type":"private"},` +
		`"from":{"id":"B","display_name":"Bot N","username":"N","is_bot":true},"date":"*","text":"which?","buttons":[[{"text":"Tea","data":"t"}]]},"data":"t"}`},
	{"message", `{"message_id":"3","chat":{"id":"C","type":"private"},"from":{"id":"A","display_name":"M","is_bot":false},"date":"*","file":{"file_id":"*","kind":"document","name":"invoice.pdf","status":"checking"}}`},
	{"message", `{"message_id":"4","chat":{"id":"C","type":"private"},"from":{"id":"A","display_name":"M","is_bot":false},"date":"*","file":{"file_id":"*","kind":"photo","name":"cat.jpg","status":"checking"}}`},
	{"file_status_changed", `{"message_id":"3","chat":{"id":"C","type":"private"},"file":{"file_id":"*","kind":"document","name":"invoice.pdf","status":"clean"}}`},
	{"file_status_changed", `{"message_id":"4","chat":{"id":"C","type":"private"},"file":{"file_id":"*","kind":"photo","name":"cat.jpg","status":"infected"}}`},
	{"chat_access_changed", `{"chat":{"id":"C","type":"private"},"access":"stopped"}`},
	{"chat_access_changed", `{"chat":{"id":"C","type":"private"},"access":"allowed"}`},
	{"chat_access_changed", `{"chat":{"id":"C","type":"private"},"access":"left"}`},
	{"chat_access_changed", `{"chat":{"id":"C","type":"private"},"access":"allowed"}`},
	{"message_deleted", `{"message_id":"1","chat":{"id":"C","type":"private"}}`},
}

var changing = regexp.MustCompile(`"(date|edit_date|file_id|callback_query_id)":"[^"]+"`)

func TestChatDeeds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, other := w.serve(t), w.serve(t)
	o, o2 := s.signIn(t), other.signIn(t)

	t.Run("UI-09 U-01 I-05 a program gets all six types from the test chat, in order and in their shapes", func(t *testing.T) {
		t.Parallel()
		b := w.bot(t)
		o.chatDeed(t, b, "", "text", "hello")
		first := s.poll(t, b, at("a", "", "", now)) // issued: what is deleted later isn't taken back
		chatID := regexp.MustCompile(`"chat":\{"id":"(\d+)"`).FindStringSubmatch(first.Updates[0].payload)[1]
		ownerID := regexp.MustCompile(`"from":\{"id":"(\d+)"`).FindStringSubmatch(first.Updates[0].payload)[1]
		s.ok(t, b, "sendMessage", `{"chat_id":"`+chatID+`","text":"which?","buttons":[[{"text":"Tea","data":"t"}]]}`, "Idempotency-Key: k1")
		o.chatDeed(t, b, "edit", "message_id", "1", "text", "hello <b>you</b>")
		s.poll(t, b, at("a", first.Lease.Epoch, "", now))
		o2.chatDeed(t, b, "press", "message_id", "2", "row", "0", "place", "0")
		o.chatDeed(t, b, "file", "name", "invoice.pdf")
		o2.chatDeed(t, b, "file", "name", "cat.jpg")
		o.chatDeed(t, b, "check", "message_id", "3", "result", "clean")
		o.chatDeed(t, b, "check", "message_id", "4", "result", "infected")
		o.chatDeed(t, b, "access", "access", "stopped")
		if page := o2.chatPage(t, b); !strings.Contains(page, `data-testid="closed"`) || strings.Contains(page, `name="text"`) {
			t.Errorf("while stopped: writing is offered, or the way back isn't:\n%s", page)
		}
		o.chatDeed(t, b, "", "text", "this reaches nobody")
		o.chatDeed(t, b, "access", "access", "allowed")
		o.chatDeed(t, b, "access", "access", "left")
		o.chatDeed(t, b, "access", "access", "allowed")
		o.chatDeed(t, b, "delete", "message_id", "1")

		got := s.poll(t, b, at("a", first.Lease.Epoch, "", now))
		if len(got.Updates) != len(payloads) {
			t.Fatalf("got %d updates %s, want %d", len(got.Updates), got.outline(), len(payloads))
		}
		events := map[string]bool{}
		fill := strings.NewReplacer(`"C"`, `"`+chatID+`"`, `"A"`, `"`+ownerID+`"`, `"B"`, `"`+b.id+`"`, `"N"`, `"`+b.name+`"`, `"Bot N"`, `"Bot `+b.name+`"`,
			`"M"`, `"`+ownerMail[:strings.Index(ownerMail, "@")]+`"`)
		for i, want := range payloads {
			u := got.Updates[i]
			if plain := changing.ReplaceAllString(u.payload, `"$1":"*"`); u.Type != want.kind || plain != fill.Replace(want.payload) {
				t.Errorf("update %d:\ngot  %s %s\nwant %s %s", i+1, u.Type, plain, want.kind, fill.Replace(want.payload))
			}
			if events[u.EventID] || !uuidForm.MatchString(u.EventID) {
				t.Errorf("update %d: got event_id %s, want a fresh one", i+1, u.EventID)
			}
			events[u.EventID] = true
		}
		file := regexp.MustCompile(`"file_id":"([^"]+)"`)
		if a, b := file.FindString(got.Updates[3].payload), file.FindString(got.Updates[5].payload); a != b {
			t.Errorf("the file of the message and of its check: got %s and %s, want the same", a, b)
		}
		page := o2.chatPage(t, b)
		for _, want := range []string{"Message deleted", "Check finished: cat.jpg is infected", "You left the space", `data-status="clean"`, `name="text"`} {
			if !strings.Contains(page, want) {
				t.Errorf("the other replica's page: got no %q", want)
			}
		}
		for _, no := range []string{"this reaches nobody", "hello"} {
			if strings.Contains(page, no) {
				t.Errorf("the page still has %q", no)
			}
		}
	})
	t.Run("F-02 F-04 UI-09 stopped: Retry says CHAT_STOPPED; a deleted message takes its failed updates along", func(t *testing.T) {
		t.Parallel()
		b := w.bot(t)
		o.chatDeed(t, b, "", "text", "one")
		o.chatDeed(t, b, "", "text", "two")
		epoch := s.poll(t, b, at("a", "", "", now)).Lease.Epoch
		s.reject(t, b, "1", "a", epoch)
		s.reject(t, b, "2", "a", epoch)
		o.chatDeed(t, b, "access", "access", "stopped")
		if got, want := o.deed(t, b, "retry"), []string{"1 refused CHAT_STOPPED", "2 refused CHAT_STOPPED"}; !slices.Equal(got, want) {
			t.Errorf("while stopped: got %q, want %q", got, want)
		}
		o.chatDeed(t, b, "access", "access", "allowed")
		o.chatDeed(t, b, "delete", "message_id", "1")
		if i := s.info(t, b); i.Failed != 1 {
			t.Errorf("got %d failed, want the one about the other message", i.Failed)
		}
		if got, want := o2.deed(t, b, "retry", "1", "2"), []string{"1 refused NOT_FAILED", "2 replayed"}; !slices.Equal(got, want) {
			t.Errorf("after the deletion: got %q, want %q", got, want)
		}
	})
	t.Run("UI-11 forms that say nothing are refused", func(t *testing.T) {
		t.Parallel()
		b := w.bot(t)
		for what, form := range map[string]url.Values{
			"edit": {"text": {"x"}}, "delete": {}, "access": {"access": {"blocked"}}, "file": {"name": {"a/b"}}, "check": {"message_id": {"1"}},
		} {
			if status, _, _ := o.post(t, "/bots/"+b.id+"/chat/"+what, form); status != http.StatusUnprocessableEntity {
				t.Errorf("%s: got %d, want 422", what, status)
			}
		}
		if i := s.info(t, b); i.Pending != 0 {
			t.Errorf("got %d updates, want none", i.Pending)
		}
	})
}
