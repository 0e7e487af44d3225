package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// answer is one answer of the Bot API or of intake.
type answer struct {
	status    int
	header    http.Header
	body      []byte
	result    json.RawMessage // of a success
	code      string          // of a failure, "" for a success
	message   string
	retry     int               // retry_after, 0 for none
	confirmed string            // confirmed_offset of CURSOR_BEHIND
	fields    map[string]string // the failure's fields, as JSON
	requestID string
}

var uuidForm = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// statuses are those of A-08.
var statuses = map[string]int{
	"INVALID_REQUEST": 400, "OFFSET_NOT_ISSUED": 400, "IDEMPOTENCY_KEY_REQUIRED": 400, "UNAUTHORIZED": 401, "BOT_DISABLED": 403,
	"METHOD_NOT_FOUND": 404, "UPDATE_NOT_FOUND": 404, "CHAT_NOT_FOUND": 404, "METHOD_NOT_ALLOWED": 405,
	"CONSUMER_CONFLICT": 409, "CURSOR_BEHIND": 409, "DELIVERY_MODE_CONFLICT": 409, "IDEMPOTENCY_KEY_REUSED": 409, "BOT_PAUSED": 409,
	"REQUEST_TOO_LARGE": 413, "UNSUPPORTED_MEDIA_TYPE": 415, "RATE_LIMITED": 429, "INTERNAL": 500, "MAINTENANCE": 503, "UNAVAILABLE": 503,
}

// send sends a request and reads its answer, which must keep to and
// A-08 whatever it says.
func (s *server) send(req *http.Request) (answer, error) {
	resp, err := s.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, fmt.Errorf("read the answer of %s %s: %w", req.Method, req.URL.Path, err)
	}
	a, err := readAnswer(resp, body, req.Method == http.MethodHead)
	if err == nil {
		err = checkContract(req, resp, body)
	}
	if err != nil {
		return a, fmt.Errorf("%s %s: %w; the answer: %d %.300s", req.Method, req.URL.Path, err, resp.StatusCode, bytes.TrimSpace(body))
	}
	return a, nil
}

func readAnswer(resp *http.Response, body []byte, head bool) (answer, error) {
	a := answer{status: resp.StatusCode, header: resp.Header, body: body}
	if got, want := resp.Header.Get("Content-Type"), "application/json; charset=utf-8"; got != want {
		return a, fmt.Errorf("A-01: got Content-Type %q, want %q", got, want)
	}
	number := resp.Header.Get("X-Request-Id")
	if !uuidForm.MatchString(number) {
		return a, fmt.Errorf("A-01: got X-Request-Id %q, want a UUID", number)
	}
	if head {
		return a, nil
	}
	var whole struct {
		OK        *bool                      `json:"ok"`
		Result    json.RawMessage            `json:"result"`
		Error     map[string]json.RawMessage `json:"error"`
		RequestID *string                    `json:"request_id"`
	}
	if err := json.Unmarshal(body, &whole); err != nil || whole.OK == nil {
		return a, fmt.Errorf("A-01: no envelope: %w", err)
	}
	if *whole.OK {
		a.result = whole.Result
		switch {
		case resp.StatusCode != http.StatusOK:
			return a, fmt.Errorf("A-01: ok with status %d", resp.StatusCode)
		case len(whole.Result) == 0 || whole.Error != nil:
			return a, fmt.Errorf("A-01: ok without result or with an error")
		}
		return a, nil
	}
	if whole.RequestID == nil || *whole.RequestID != number {
		return a, fmt.Errorf("A-01: request_id in the body isn't X-Request-Id %s", number)
	}
	a.requestID = number
	return a, a.readError(whole.Error)
}

func (a *answer) readError(fields map[string]json.RawMessage) error {
	a.fields = map[string]string{}
	for name, v := range fields {
		a.fields[name] = string(v)
	}
	for name, into := range map[string]any{"code": &a.code, "message": &a.message, "retry_after": &a.retry, "confirmed_offset": &a.confirmed} {
		if v, ok := fields[name]; ok {
			if err := json.Unmarshal(v, into); err != nil {
				return fmt.Errorf("A-01: error.%s: %w", name, err)
			}
		}
	}
	want, known := statuses[a.code]
	if !known || a.status != want || a.message == "" {
		return fmt.Errorf("A-08: status %d with code %q and message %q", a.status, a.code, a.message)
	}
	if a.code == "INTERNAL" {
		return fmt.Errorf("the server calls it its own fault")
	}
	header := a.header.Get("Retry-After")
	if needed := a.status == 429 || a.status == 503 || a.code == "CONSUMER_CONFLICT"; needed != (a.retry >= 1) {
		return fmt.Errorf("A-05: %s with retry_after %d", a.code, a.retry)
	}
	if a.retry > 0 && header != strconv.Itoa(a.retry) || a.retry == 0 && header != "" {
		return fmt.Errorf("A-05: retry_after %d with the header Retry-After %q", a.retry, header)
	}
	return nil
}

// request makes a request with a JSON body; headers are "Name: value" and stand
// over what would be there otherwise, "Name:" takes one away.
func (s *server) request(method, path, token, body string, headers ...string) *http.Request {
	req, err := http.NewRequest(method, s.base+path, strings.NewReader(body))
	if err != nil {
		panic(err) // the test's own mistake
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ":")
		if value = strings.TrimPrefix(value, " "); value == "" {
			req.Header.Del(name)
		} else {
			req.Header.Set(name, value)
		}
	}
	return req
}

// try calls a method of the Bot API. Its error is that of the connection, or an
// answer that breaks the contract.
func (s *server) try(b *bot, method, body string, headers ...string) (answer, error) {
	return s.send(s.request(http.MethodPost, "/bot-api/v1/"+method, b.token, body, headers...))
}

// call is try for answers that must come.
func (s *server) call(t testing.TB, b *bot, method, body string, headers ...string) answer {
	t.Helper()
	a, err := s.try(b, method, body, headers...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, body, err)
	}
	return a
}

// ok calls a method that must succeed and returns its result.
func (s *server) ok(t testing.TB, b *bot, method, body string, headers ...string) json.RawMessage {
	t.Helper()
	a := s.call(t, b, method, body, headers...)
	if a.code != "" {
		t.Fatalf("%s %s: got %s (%s), want success", method, body, a.code, a.message)
	}
	return a.result
}

// refused calls a method that must fail with the code.
func (s *server) refused(t testing.TB, code string, b *bot, method, body string, headers ...string) answer {
	t.Helper()
	a := s.call(t, b, method, body, headers...)
	if a.code != code {
		t.Fatalf("%s %.300s: got %q, want %s; the answer: %.500s", method, body, a.code, code, a.body)
	}
	return a
}

// decode reads a result whose every field must be known.
func decode[T any](t testing.TB, raw json.RawMessage) T {
	t.Helper()
	var v T
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("decode %.500s: %v", raw, err)
	}
	return v
}

// errorOf is an answer that the test didn't expect.
func errorOf(a answer) error { return fmt.Errorf("got %d %s (%s)", a.status, a.code, a.message) }
