package botapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mybots/delivery"
	"mybots/web"
)

// fields are a call's fields: what the method doesn't ask for is ignored.
// The first field that breaks its rule is kept as err; ask for it at the end.
type fields struct {
	raw map[string]jsontext.Value
	err error
}

// readFields reads the body of a call: one JSON object, no key
// twice, nothing behind it. An empty body counts as {}.
func readFields(w http.ResponseWriter, r *http.Request) (*fields, error) {
	body, err := web.ReadJSON(w, r, delivery.MaxRequestBody)
	if err != nil {
		return nil, err
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // the body is here; a poll may wait longer
	f := &fields{raw: map[string]jsontext.Value{}}
	if len(body) == 0 {
		return f, nil
	}
	value := jsontext.Value(body)
	if !value.IsValid() { // syntax, keys that come twice, lone surrogates, a second document
		return nil, delivery.Refuse(delivery.InvalidRequest, "the body must be one valid JSON object in UTF-8, no key in it twice")
	}
	if value.Kind() != '{' {
		return nil, delivery.Refuse(delivery.InvalidRequest, "the body must be a JSON object")
	}
	if err := json.Unmarshal(body, &f.raw); err != nil {
		return nil, delivery.Refuse(delivery.InvalidRequest, "the body must be one valid JSON object in UTF-8, no key in it twice")
	}
	return f, nil
}

// fail keeps the first mistake.
func (f *fields) fail(field, rule string) {
	if f.err == nil {
		f.err = &delivery.Invalid{Field: field, Rule: rule}
	}
}

// get returns a field's value; null counts as absent.
func (f *fields) get(name string) (jsontext.Value, bool) {
	v, ok := f.raw[name]
	if !ok || v.Kind() == 'n' {
		return nil, false
	}
	return v, true
}

// text returns a string field and whether it is there.
func (f *fields) text(name string) (string, bool) {
	v, ok := f.get(name)
	if !ok {
		return "", false
	}
	if v.Kind() != '"' {
		f.fail(name, "must be a string")
		return "", false
	}
	s, err := jsontext.AppendUnquote(nil, v)
	if err != nil {
		f.fail(name, "must be a valid JSON string")
		return "", false
	}
	return string(s), true
}

// id returns an id, offset or epoch and whether it is there.
func (f *fields) id(name string) (int64, bool) {
	v, ok := f.get(name)
	if !ok {
		return 0, false
	}
	const rule = `must be a string of decimal digits like "42", without sign or leading zero, up to 9223372036854775807`
	if v.Kind() != '"' {
		f.fail(name, rule)
		return 0, false
	}
	s, _ := f.text(name)
	n, ok := delivery.ParseID(s)
	if !ok {
		f.fail(name, rule)
	}
	return n, ok
}

// required is id for a field that must be there.
func (f *fields) required(name string) int64 {
	n, ok := f.id(name)
	if !ok {
		f.fail(name, "is required")
	}
	return n
}

// number returns a whole number within its range, or otherwise where it is absent.
func (f *fields) number(name string, low, high, otherwise int) int {
	v, ok := f.get(name)
	if !ok {
		return otherwise
	}
	n, err := strconv.Atoi(string(v))
	if v.Kind() != '0' || err != nil || n < low || n > high || strings.HasPrefix(string(v), "-0") {
		f.fail(name, fmt.Sprintf("must be a whole number from %d to %d", low, high))
		return otherwise
	}
	return n
}

// consumer returns the consumer_id (P-01).
func (f *fields) consumer() string {
	s, ok := f.text("consumer_id")
	if !ok || !delivery.ValidConsumerID(s) {
		f.fail("consumer_id", "is required: 1 to 64 characters of A-Z a-z 0-9 . _ -, and no token")
	}
	return s
}

// key returns the Idempotency-Key of a method that requires one.
func (c call) key() (string, error) {
	values := c.Header.Values("Idempotency-Key")
	if len(values) == 0 {
		return "", delivery.Refuse(delivery.IdempotencyKeyRequired, c.method+" needs the header Idempotency-Key: a text of your own, the same when you repeat this action")
	}
	key := values[0]
	good := len(values) == 1 && len(key) >= 1 && len(key) <= 255
	for i := range len(key) {
		good = good && key[i] > ' ' && key[i] < 0x7f
	}
	if !good {
		return "", delivery.Refuse(delivery.InvalidRequest, "Idempotency-Key must be one header of 1 to 255 visible ASCII characters")
	}
	return key, nil
}
