package main_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve(t)
	b := w.bot(t)

	t.Run("A-03 every bad token gets the same 401", func(t *testing.T) {
		t.Parallel()
		anonymous := &bot{w: w}
		stable := func(a answer) string { return strings.ReplaceAll(string(a.body), a.requestID, "") }
		first := s.refused(t, "UNAUTHORIZED", anonymous, "getMe", "{}")
		unknown := "sbt1_" + strings.Repeat("a", 52)
		for _, header := range []string{
			"Bearer", "Bearer ", "Basic " + b.token, b.token, "Bearer " + unknown, "Bearer " + w.key, "Bearer x" + b.token, "Bearer " + b.token + "x",
			"Bearer " + b.token[:len(b.token)-1], "Bearer " + strings.ToUpper(b.token), "Bearer " + b.token + " " + b.token, "Bearer " + b.token + ",",
			"Bearer  " + b.token, "Bearer \"" + b.token + "\"", "Bearer sbt1_", "Bearer sbt1_" + strings.Repeat("é", 26), "Bearer " + strings.Repeat("a", 8000),
			"Token " + b.token, "Bearer=" + b.token,
		} {
			if a := s.refused(t, "UNAUTHORIZED", anonymous, "getMe", "{}", "Authorization: "+header); stable(a) != stable(first) {
				t.Errorf("Authorization %.80q: got %s, want %s", header, a.body, first.body)
			}
		}
		for _, path := range []string{"getMe?token=" + b.token, "getMe?access_token=" + b.token, "bot" + b.token + "/getMe"} {
			if a := s.refused(t, "UNAUTHORIZED", anonymous, path, `{"token":"`+b.token+`"}`); stable(a) != stable(first) {
				t.Errorf("%s: got %s, want %s", path, a.body, first.body)
			}
		}
		s.ok(t, b, "getMe", "{}")
	})
	t.Run("A-03 two Authorization headers are no token", func(t *testing.T) {
		t.Parallel()
		other := w.bot(t)
		for _, second := range []string{b.token, other.token, "x"} {
			req := s.request(http.MethodPost, "/bot-api/v1/getMe", b.token, "{}")
			req.Header.Add("Authorization", "Bearer "+second)
			a, err := s.send(req)
			if err != nil || a.code != "UNAUTHORIZED" {
				t.Errorf("got %q %v, want UNAUTHORIZED", a.code, err)
			}
		}
	})
	t.Run("A-03 the token stands in no log, wherever the caller put it", func(t *testing.T) {
		t.Parallel()
		b := w.bot(t)
		s.ok(t, b, "getMe?token="+b.token, "{}", "Referer: http://x/?t="+b.token, "User-Agent: "+b.token, "X-Request-Id: "+b.token)
		s.refused(t, "METHOD_NOT_FOUND", b, b.token, "{}")
		s.refused(t, "INVALID_REQUEST", b, "getUpdates", `{"consumer_id":"a","offset":"`+b.token+`"}`)
		s.refused(t, "CHAT_NOT_FOUND", b, "sendMessage", `{"chat_id":"1","text":"`+b.token+`"}`, "Idempotency-Key: "+b.token)
		// The world looks for it when the server has ended.
	})
	t.Run("A-03 nor when a program names itself by it", func(t *testing.T) {
		t.Parallel()
		b := w.bot(t)
		for range 2 { // refused or not
			s.call(t, b, "getUpdates", `{"consumer_id":"`+b.token+`","timeout":0}`)
		}
	})
	t.Run("A-03 a stranger's huge body isn't read", func(t *testing.T) {
		t.Parallel()
		for _, path := range []string{"/bot-api/v1/getMe", "/internal/v1/events"} {
			c := s.dial(t)
			if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer sbt1_x\r\nContent-Type: application/json\r\nContent-Length: 1073741824\r\n\r\n{", path)
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Errorf("%s: no answer before the body came: %v", path, err)
				continue
			}
			body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16)) // cut off is fine, the envelope is checked next
			if a, err := readAnswer(resp, body, false); err != nil || a.code != "UNAUTHORIZED" {
				t.Errorf("%s: got %d %s %v, want UNAUTHORIZED", path, resp.StatusCode, body, err)
			}
		}
	})
	t.Run("A-03 an intake key opens no Bot API and a token no intake", func(t *testing.T) {
		t.Parallel()
		s.refused(t, "UNAUTHORIZED", &bot{w: w, token: w.key}, "getMe", "{}")
		for _, token := range []string{"", b.token, "sik1_", w.key + "x"} {
			a, err := s.send(s.request(http.MethodPost, "/internal/v1/events", token, eventsBody(event{bot: b}.filled().json())))
			if err != nil || a.code != "UNAUTHORIZED" {
				t.Errorf("intake with %.8q: got %q %v, want UNAUTHORIZED", token, a.code, err)
			}
		}
	})
}
