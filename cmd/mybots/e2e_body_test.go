package main_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

const bodyLimit = 64 << 10 // of A-04

func TestBodies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve(t)
	b := w.bot(t)
	padded := func(n int) string { return `{"x":"` + strings.Repeat("a", n-8) + `"}` }

	t.Run("A-04 64 KiB pass and a byte more is 413", func(t *testing.T) {
		t.Parallel()
		s.ok(t, b, "getMe", padded(bodyLimit))
		s.refused(t, "REQUEST_TOO_LARGE", b, "getMe", padded(bodyLimit+1))
		s.refused(t, "REQUEST_TOO_LARGE", b, "getMe", padded(4<<20))
		s.ok(t, b, "getMe", strings.Repeat(" ", bodyLimit-2)+"{}")
		s.refused(t, "REQUEST_TOO_LARGE", b, "getMe", "{}"+strings.Repeat(" ", bodyLimit-1))
	})
	t.Run("A-04 also when the length isn't told before", func(t *testing.T) {
		t.Parallel()
		for n, want := range map[int]string{8: "", bodyLimit: "", bodyLimit + 1: "REQUEST_TOO_LARGE", 1 << 20: "REQUEST_TOO_LARGE"} {
			req := s.request(http.MethodPost, "/bot-api/v1/getMe", b.token, "")
			req.Body, req.ContentLength = io.NopCloser(strings.NewReader(padded(n))), -1
			a, err := s.send(req)
			if err != nil || a.code != want {
				t.Errorf("%d bytes in chunks: got %q %v, want %q", n, a.code, err, want)
			}
		}
	})
	t.Run("A-04 a declared type other than JSON is 415", func(t *testing.T) {
		t.Parallel()
		for _, kind := range []string{"application/json", "application/json; charset=utf-8", "application/json;charset=UTF-8", "Application/JSON"} {
			s.ok(t, b, "getMe", "{}", "Content-Type: "+kind)
		}
		s.ok(t, b, "getMe", "{}", "Content-Type:")
		for _, kind := range []string{"text/plain", "text/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonx",
			"application/octet-stream", "json", "application", ";", "application/xml"} {
			s.refused(t, "UNSUPPORTED_MEDIA_TYPE", b, "getMe", "{}", "Content-Type: "+kind)
			s.refused(t, "UNSUPPORTED_MEDIA_TYPE", b, "getMe", "", "Content-Type: "+kind)
		}
	})
	t.Run("A-04 what isn't one JSON object is 400", func(t *testing.T) {
		t.Parallel()
		for _, body := range []string{"x", "[]", "null", "true", "5", `"x"`, "{", "}", "{}{}", "{} x", "{},", "{}\x00", "\x00", "\xef\xbb\xbf{}", "{'a':1}", `{"a":1,}`, `{"a"}`, `{"a":}`,
			`{a:1}`, `{"a":NaN}`, `{"a":01}`, `{"a":+1}`, `{"a":.5}`, `{"a":1.}`, `{"a":"` + "\n" + `"}`, `{"a":"\x"}`, `{"a":"\u12"}`, "{\"a\":1}//", "/**/{}", `{"a":tru}`, `{"a":1]`,
			`{"a":"` + "\xff" + `"}`, `{"a":"` + "\xc3" + `"}`, `{"a":"` + "\xed\xa0\x80" + `"}`, `{"` + "\xff" + `":1}`, "{\"a\":\"\xc0\xaf\"}"} {
			s.refused(t, "INVALID_REQUEST", b, "getMe", body)
		}
	})
	t.Run("A-04 a key that comes twice is 400", func(t *testing.T) {
		t.Parallel()
		for _, body := range []string{`{"a":1,"a":1}`, `{"a":1,"b":2,"a":null}`, `{"a":1,"\u0061":2}`, `{"x":{"a":1,"a":2}}`, `{"x":[{"a":1,"a":2}]}`,
			`{"consumer_id":"a","consumer_id":"b"}`, `{"":1,"":2}`} {
			s.refused(t, "INVALID_REQUEST", b, "getMe", body)
		}
		s.ok(t, b, "getMe", `{"a":{"a":1},"b":[{"a":1},{"a":1}],"A":1}`)
	})
	t.Run("A-04 deep nesting is no trouble of the server's", func(t *testing.T) {
		t.Parallel()
		for _, depth := range []int{100, 5000, 30000} {
			a := s.call(t, b, "getMe", `{"x":`+strings.Repeat("[", depth)+strings.Repeat("]", depth)+`}`)
			if depth <= 100 && a.code != "" || a.code != "" && a.code != "INVALID_REQUEST" {
				t.Errorf("depth %d: got %q", depth, a.code)
			}
		}
	})
	t.Run("A-04 a lone surrogate in a field is 400", func(t *testing.T) {
		t.Parallel()
		s.refused(t, "INVALID_REQUEST", b, "getUpdates", `{"consumer_id":"\ud800"}`)
		s.refused(t, "INVALID_REQUEST", b, "sendMessage", `{"chat_id":"1","text":"\udc00x"}`, "Idempotency-Key: s")
	})
}

func TestOrderOfChecks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve(t)

	t.Run("A-04 405, 401, 404, 415, 413, 400 come in this order", func(t *testing.T) {
		t.Parallel()
		b := w.bot(t)
		large := "[" + strings.Repeat(" ", bodyLimit)
		for _, c := range []struct{ want, verb, method, token, body, kind string }{
			{"METHOD_NOT_ALLOWED", "PUT", "nothing", "", large, "text/plain"},
			{"UNAUTHORIZED", "POST", "nothing", "", large, "text/plain"},
			{"METHOD_NOT_FOUND", "POST", "nothing", b.token, large, "text/plain"},
			{"UNSUPPORTED_MEDIA_TYPE", "POST", "getUpdates", b.token, large, "text/plain"},
			{"REQUEST_TOO_LARGE", "POST", "getUpdates", b.token, large, "application/json"},
			{"INVALID_REQUEST", "POST", "getUpdates", b.token, "[", "application/json"},
			{"INVALID_REQUEST", "POST", "getUpdates", b.token, "{}", "application/json"},
		} {
			a, err := s.send(s.request(c.verb, "/bot-api/v1/"+c.method, c.token, c.body, "Content-Type: "+c.kind))
			if err != nil || a.code != c.want {
				t.Errorf("%+.60v: got %q %v, want %s", c, a.code, err, c.want)
			}
		}
	})
	t.Run("A-04 400 comes before 429, 429 before the lease, the lease before the offset", func(t *testing.T) {
		t.Parallel()
		b := w.bot(t)
		s.poll(t, b, `{"consumer_id":"holder","timeout":0}`)
		stranger := `{"consumer_id":"stranger","epoch":"99","offset":"99"}`
		if a := s.pollFails(t, "CONSUMER_CONFLICT", b, stranger); a.retry < 50 || a.retry > 60 {
			t.Errorf("got retry_after %d, want what is left of 60 s", a.retry)
		}
		eventually(t, patience, "the bucket is empty", func() bool {
			return s.call(t, b, "getUpdates", stranger).code == "RATE_LIMITED"
		})
		a := s.call(t, b, "getUpdates", stranger)
		bad := s.call(t, b, "getUpdates", `{"consumer_id":"stranger","offset":"-1"}`)
		if a.code == "RATE_LIMITED" && bad.code != "INVALID_REQUEST" { // a call that got a token says nothing
			t.Errorf("with an empty bucket: got %q for a bad field, want INVALID_REQUEST", bad.code)
		}
		if holder := s.info(t, b).Lease; holder == nil || holder.ConsumerID != "holder" {
			t.Errorf("got the lease %+v, want it with its holder", holder)
		}
	})
}
