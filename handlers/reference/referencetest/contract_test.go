package referencetest

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

const requestID = "6f0f9c1e-5a7f-4e3b-8c9d-6f1a2b3c4d5e"

// given is an answer; headers are "Name: value".
type given struct {
	method  string
	status  int
	body    string
	headers []string
}

func (g given) check(c *Contract) error {
	h := http.Header{"Content-Type": {"application/json; charset=utf-8"}, "X-Request-Id": {requestID}}
	for _, line := range g.headers {
		name, value, _ := strings.Cut(line, ": ")
		if h.Del(name); value != "" {
			h.Set(name, value)
		}
	}
	return c.Check(g.method, g.status, h, []byte(g.body), false)
}

func failure(details string) string {
	return `{"ok":false,"error":{` + details + `},"request_id":"` + requestID + `"}`
}

const (
	me    = `{"ok":true,"result":{"id":"1","username":"a_bot","display_name":"A","is_bot":true}}`
	batch = `{"ok":true,"result":{"updates":[UPDATES],"confirmed_offset":"1","next_offset":"2","skipped":[SKIPPED],"lease":{"consumer_id":"a","epoch":"1","expires_at":"2026-09-26T10:00:00Z"}}}`
	event = `"event_id":"7d3f7a52-4f0e-4b64-9d2a-2c1f8e5b6a10","date":"2026-09-26T10:00:00Z"`
)

func batchOf(updates, skipped string) string {
	return strings.NewReplacer("UPDATES", updates, "SKIPPED", skipped).Replace(batch)
}

func TestCheck(t *testing.T) {
	t.Parallel()
	conflict := failure(`"code":"CONSUMER_CONFLICT","message":"m","retry_after":7`)
	tests := map[string]struct {
		given
		want string // in the error; "" for none
	}{
		"a success":                              {given{"getMe", 200, me, nil}, ""},
		"a refusal":                              {given{"getUpdates", 409, conflict, []string{"Retry-After: 7"}}, ""},
		"no such method":                         {given{"setWebhook", 404, failure(`"code":"METHOD_NOT_FOUND","message":"m"`), nil}, ""},
		"payloads are the messenger's matter":    {given{"getUpdates", 200, batchOf(`{"update_id":"1",`+event+`,"type":"message","message":{"text":5}}`, ""), nil}, ""},
		"types may be unknown":                   {given{"getUpdates", 200, batchOf(`{"update_id":"1",`+event+`,"type":"poll_answer","poll_answer":{"x":1}}`, ""), nil}, ""},
		"a field that isn't in the document":     {given{"getMe", 200, strings.Replace(me, `"is_bot"`, `"extra":1,"is_bot"`, 1), nil}, "getMe.extra|Me.extra"},
		"a field that is missing":                {given{"getMe", 200, strings.Replace(me, `"id":"1",`, "", 1), nil}, "id"},
		"a number in place of an id":             {given{"getMe", 200, strings.Replace(me, `"1"`, "1", 1), nil}, "string"},
		"an id with a leading zero":              {given{"getMe", 200, strings.Replace(me, `"1"`, `"01"`, 1), nil}, "pattern"},
		"a date that is none":                    {given{"getUpdates", 200, strings.Replace(batchOf("", ""), "2026-09-26T10", "2026-09-26", 1), nil}, "date-time"},
		"a reason that isn't in the document":    {given{"getUpdates", 200, batchOf("", `{"from_update_id":"1","to_update_id":"1","reason":"lost"}`), nil}, "lost"},
		"an update without its payload":          {given{"getUpdates", 200, batchOf(`{"update_id":"1",`+event+`,"type":"message"}`, ""), nil}, "message"},
		"a code of another method":               {given{"getMe", 409, conflict, []string{"Retry-After: 7"}}, "no status 409"},
		"a code with another status":             {given{"getUpdates", 400, conflict, []string{"Retry-After: 7"}}, "status 400"},
		"a code that there isn't":                {given{"getMe", 401, failure(`"code":"NO","message":"m"`), nil}, "status 401"},
		"a conflict without a time to wait":      {given{"getUpdates", 409, failure(`"code":"CONSUMER_CONFLICT","message":"m"`), nil}, "retry_after"},
		"a time to wait that needs none":         {given{"getMe", 401, failure(`"code":"UNAUTHORIZED","message":"m","retry_after":1`), []string{"Retry-After: 1"}}, "retry_after"},
		"a header that says something else":      {given{"getUpdates", 409, conflict, []string{"Retry-After: 8"}}, "Retry-After"},
		"no header beside the time to wait":      {given{"getUpdates", 409, conflict, nil}, "Retry-After"},
		"a header that isn't in the document":    {given{"getMe", 200, me, []string{"Idempotent-Replayed: true"}}, "Idempotent-Replayed"},
		"another number of the request":          {given{"getMe", 401, strings.Replace(failure(`"code":"UNAUTHORIZED","message":"m"`), "6f0f", "6f0e", 1), nil}, "request_id"},
		"no number of the request in the header": {given{"getMe", 200, me, []string{"X-Request-Id: "}}, "X-Request-Id"},
		"another content type":                   {given{"getMe", 200, me, []string{"Content-Type: text/html"}}, "Content-Type"},
		"no JSON":                                {given{"getMe", 502, "Bad gateway", nil}, "JSON"},
	}
	for name, tt := range tests {
		t.Run("UI-10 "+name, func(t *testing.T) {
			t.Parallel()
			c, err := New()
			if err != nil {
				t.Fatal(err)
			}
			err = tt.check(c)
			if tt.want == "" && err != nil {
				t.Errorf("got %v, want no error", err)
			}
			if tt.want != "" && (err == nil || !slices.ContainsFunc(strings.Split(tt.want, "|"), func(w string) bool { return strings.Contains(err.Error(), w) })) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

func TestUnseen(t *testing.T) {
	t.Parallel()
	c, err := New()
	if err != nil {
		t.Fatal(err)
	}
	before := c.Unseen()
	if err := (given{"getMe", 200, me, nil}).check(c); err != nil {
		t.Fatal(err)
	}
	if err := (given{"getMe", 401, failure(`"code":"UNAUTHORIZED","message":"m"`), nil}).check(c); err != nil {
		t.Fatal(err)
	}
	after := c.Unseen()
	for _, name := range []string{"method getMe", "field Me.username", "code UNAUTHORIZED", "field UNAUTHORIZED.error.message", "header X-Request-Id"} {
		if !slices.Contains(before, name) || slices.Contains(after, name) {
			t.Errorf("UI-10 %s: got %t before and %t after, want it unseen before and seen after", name, slices.Contains(before, name), slices.Contains(after, name))
		}
	}
	for _, name := range []string{"method getUpdates", "field Lease.epoch", "field Update.replay_of_update_id", "field Message.edit_date", "code INTERNAL", "header Retry-After"} {
		if !slices.Contains(after, name) {
			t.Errorf("UI-10 %s: got it seen, want it unseen", name)
		}
	}
	if !slices.Contains(c.UnseenCodes(), "answer getUpdates CURSOR_BEHIND") || slices.Contains(c.UnseenCodes(), "answer getMe UNAUTHORIZED") {
		t.Errorf("UI-10 got %v", c.UnseenCodes())
	}
}
