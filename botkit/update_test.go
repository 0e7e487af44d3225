package botkit_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"mybots/botkit"
)

func TestID(t *testing.T) {
	t.Parallel()
	sorted := []botkit.ID{"", "0", "1", "9", "10", "999", "1000", "9007199254740993", "9007199254740994", "9223372036854775807", "18446744073709551616"}
	mixed := slices.Clone(sorted)
	slices.Reverse(mixed)
	slices.SortFunc(mixed, botkit.ID.Compare)
	if !slices.Equal(mixed, sorted) {
		t.Errorf("A-02: sorted %v, want %v", mixed, sorted)
	}
	if botkit.ID("007").Compare("7") != 0 || botkit.ID("7").Compare("7") != 0 {
		t.Error("A-02: one number in two ways isn't equal")
	}
	for id, want := range map[botkit.ID]bool{"1": true, "9223372036854775807": true, "": false, "-1": false, "+1": false, "1.0": false, "1e3": false, " 1": false, "١": false, "123456789012345678901": false} {
		if id.Valid() != want {
			t.Errorf("%q is valid: %t, want %t", id, id.Valid(), want)
		}
	}
}

const head = `"update_id":"42","event_id":"e-1","date":"2026-09-26T10:00:00Z"`

func TestParseUpdate(t *testing.T) {
	t.Parallel()
	const message = `{"message_id":"7301","chat":{"id":"550","type":"private"},"from":{"id":"812","display_name":"Аня","username":"anna","is_bot":false},"date":"2026-09-26T10:00:00Z","text":"Tea","new":{"x":1}}`
	tests := map[string]struct {
		payload string
		chat    botkit.ID
		check   func(u *botkit.Update) bool
	}{
		"message": {message, "550", func(u *botkit.Update) bool {
			return u.Message.Text == "Tea" && u.Message.From.DisplayName == "Аня" && u.Message.From.Username == "anna" && u.Message.MessageID == "7301"
		}},
		"message_edited": {strings.Replace(message, `"text"`, `"edit_date":"2026-09-26T11:00:00Z","text"`, 1), "550", func(u *botkit.Update) bool {
			return u.MessageEdited.EditDate == "2026-09-26T11:00:00Z" && u.Message == nil
		}},
		"message_deleted": {`{"message_id":"7301","chat":{"id":"550","type":"private"}}`, "550", func(u *botkit.Update) bool { return u.MessageDeleted.MessageID == "7301" }},
		"callback_query": {`{"callback_query_id":"cb","from":{"id":"812","display_name":"A","is_bot":false},"message":` + message + `,"data":"yes"}`, "550", func(u *botkit.Update) bool {
			return u.CallbackQuery.Data == "yes" && u.CallbackQuery.CallbackQueryID == "cb" && u.CallbackQuery.Message.MessageID == "7301"
		}},
		"chat_access_changed": {`{"chat":{"id":"550","type":"private"},"access":"stopped"}`, "550", func(u *botkit.Update) bool { return u.ChatAccess.Access == "stopped" }},
		"file_status_changed": {`{"message_id":"7301","chat":{"id":"550","type":"private"},"file":{"file_id":"f","kind":"photo","name":"a.png","status":"Clean"}}`, "550", func(u *botkit.Update) bool {
			return u.FileStatus.File.Status == "Clean" && u.FileStatus.MessageID == "7301"
		}},
		"reaction_of_a_later_version": {`{"chat":{"id":"551"},"emoji":"👍"}`, "551", func(u *botkit.Update) bool {
			return u.Message == nil && string(u.Payload()) == `{"chat":{"id":"551"},"emoji":"👍"}`
		}},
		"poll":  {`{"message":{"chat":{"id":"552"}}}`, "552", func(*botkit.Update) bool { return true }},
		"other": {`17`, "", func(u *botkit.Update) bool { return string(u.Payload()) == "17" }},
	}
	for kind, c := range tests {
		raw := fmt.Sprintf(`{%s,"replay_of_update_id":"9","type":"%s","%s":%s,"later":[1.0,2e5]}`, head, kind, kind, c.payload)
		u, err := botkit.ParseUpdate([]byte(raw))
		if err != nil {
			t.Errorf("U-01 %s: %v", kind, err)
			continue
		}
		if u.UpdateID != "42" || u.EventID != "e-1" || u.Type != kind || u.ReplayOf != "9" || u.Date.Unix() != 1790416800 || string(u.Raw) != raw || u.ChatID() != c.chat || !c.check(u) {
			t.Errorf("U-01 %s: got %+v", kind, u)
		}
	}
	if text, err := os.ReadFile("../examples/testdata/signature.json"); err != nil || !strings.Contains(string(text), "12345678901234567890") {
		t.Errorf("the vectors: %v", err)
	}
}

func TestParseUpdateRefuses(t *testing.T) {
	t.Parallel()
	notUpdates := map[string]string{
		"nothing": "", "no JSON": "{", "an array": `[]`, "a text": `"x"`, "null": `null`, "no id": `{"type":"message"}`, "a number as id": `{"update_id":42,"event_id":"e","type":"message","message":{}}`,
		"an id with a sign": `{"update_id":"-42"}`, "an empty id": `{"update_id":""}`, "two objects": `{"update_id":"1"}{}`, "not UTF-8": "{\"update_id\":\"1\",\"x\":\"\xff\"}", "another case": `{"UPDATE_ID":"1"}`,
	}
	for name, raw := range notUpdates {
		if u, err := botkit.ParseUpdate([]byte(raw)); !errors.Is(err, botkit.ErrNotUpdate) {
			t.Errorf("K-03 %s: got %v, %v; want ErrNotUpdate", name, u, err)
		}
	}
	const chat = `"chat":{"id":"550"}`
	bad := map[string]struct{ raw, path string }{
		"no event id":            {`{"update_id":"42","type":"x"}`, "event_id"},
		"an odd event id":        {`{"update_id":"42","event_id":"a b","type":"x"}`, "event_id"},
		"no type":                {`{"update_id":"42","event_id":"e"}`, "type"},
		"a date that is none":    {`{"update_id":"42","event_id":"e","type":"x","date":"yesterday"}`, "date"},
		"an odd replay":          {`{"update_id":"42","event_id":"e","type":"x","replay_of_update_id":9}`, "replay_of_update_id"},
		"no payload":             {`{` + head + `,"type":"message"}`, "message"},
		"a null payload":         {`{` + head + `,"type":"message","message":null}`, "message"},
		"a text as payload":      {`{` + head + `,"type":"message","message":"hello"}`, "message"},
		"no chat":                {`{` + head + `,"type":"message","message":{"message_id":"1"}}`, "message.chat.id"},
		"no message id":          {`{` + head + `,"type":"message_edited","message_edited":{` + chat + `}}`, "message_edited.message_id"},
		"a number as id":         {`{` + head + `,"type":"message_deleted","message_deleted":{"message_id":1,` + chat + `}}`, "message_deleted.message_id"},
		"an object as text":      {`{` + head + `,"type":"message","message":{"message_id":"1",` + chat + `,"text":{"secret":1}}}`, "message.text"},
		"no callback id":         {`{` + head + `,"type":"callback_query","callback_query":{"data":"x"}}`, "callback_query.callback_query_id"},
		"no access":              {`{` + head + `,"type":"chat_access_changed","chat_access_changed":{` + chat + `}}`, "chat_access_changed.access"},
		"no file":                {`{` + head + `,"type":"file_status_changed","file_status_changed":{` + chat + `}}`, "file_status_changed.file.file_id"},
		"a number deep in there": {`{` + head + `,"type":"callback_query","callback_query":{"callback_query_id":"c","message":{"chat":{"id":5550123}}}}`, "callback_query.message.chat.id"},
	}
	for name, c := range bad {
		_, err := botkit.ParseUpdate([]byte(c.raw))
		e, ok := errors.AsType[*botkit.DecodeError](err)
		if !ok || e.UpdateID != "42" || e.Path != c.path || e.Problem == "" || string(e.Raw) != c.raw {
			t.Errorf("K-03 %s: got %+v, want a *DecodeError at %s", name, err, c.path)
			continue
		}
		if text := e.Error() + e.Problem; strings.Contains(text, "secret") || strings.Contains(text, "5550123") || strings.Contains(text, "hello") {
			t.Errorf("K-03 %s: the error quotes the update: %s", name, text)
		}
	}
}

func TestCommand(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"/start": "start||", "/start now please": "start||now please", "/start@my_bot": "start|my_bot|", "/start@my_bot\nnow": "start|my_bot|now",
		"start": "no", "/": "no", "/@my_bot": "no", " /start": "no", "": "no", "/заказ 7": "заказ||7",
	}
	for text, want := range tests {
		name, to, args, ok := (&botkit.Update{Message: &botkit.Message{Text: text}}).Command()
		got := name + "|" + to + "|" + args
		if !ok {
			got = "no"
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	if _, _, _, ok := (&botkit.Update{MessageEdited: &botkit.Message{Text: "/start"}}).Command(); ok {
		t.Error("an edited message is a command")
	}
}
