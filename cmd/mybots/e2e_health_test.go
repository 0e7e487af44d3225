package main_test

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

// page gets a plain address of any server.
func page(t testing.TB, url string) (status int, body string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatalf("GET %s: %v", url, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("GET %s: %v", url, err)
	}
	return resp.StatusCode, string(b)
}

func TestHealth(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve(t, "MYBOTS_ADMIN_ADDR=127.0.0.1:0")
	b := s.chatting(t)
	admin := regexp.MustCompile(`"addr":"(127\.0\.0\.1:\d+)"`)

	t.Run("G-07 /healthz and /readyz", func(t *testing.T) {
		for _, path := range []string{"/healthz", "/readyz"} {
			if status, body := page(t, s.base+path); status != http.StatusOK || !strings.Contains(body, `"ok"`) {
				t.Errorf("%s: got %d %s", path, status, body)
			}
		}
	})
	t.Run("G-07 metrics and profiles are on the admin address alone", func(t *testing.T) {
		for _, path := range []string{"/metrics", "/debug/pprof/", "/debug/pprof/cmdline", "/debug/vars"} {
			if status, body := page(t, s.base+path); status == http.StatusOK && !strings.Contains(body, "<html") || strings.Contains(body, "go_goroutines") || strings.Contains(body, "goroutine profile") {
				t.Errorf("%s on the public address: got %d %.200s", path, status, body)
			}
		}
		address := ""
		for line := range strings.Lines(s.log.String()) {
			if m := admin.FindStringSubmatch(line); m != nil && "http://"+m[1] != s.base {
				address = m[1]
			}
		}
		if address == "" {
			t.Fatalf("the log doesn't tell the admin address:\n%s", s.log)
		}
		s.call(t, b, "getMe", "{}")
		status, body := page(t, "http://"+address+"/metrics")
		if status != http.StatusOK || !strings.Contains(body, "go_goroutines") {
			t.Fatalf("/metrics: got %d %.300s", status, body)
		}
		for _, want := range []string{"mybots_queue_updates_waiting 1\n", "mybots_bots 1\n", `mybots_intake_events_total{result="accepted"} 1`} {
			if !strings.Contains(body, want) {
				t.Errorf("/metrics lacks %q", want)
			}
		}
		w.checkSecrets(t, "/metrics", body)
		if strings.Contains(body, b.name) {
			t.Error("/metrics names a bot")
		}
		if status, body := page(t, "http://"+address+"/debug/pprof/goroutine?debug=1"); status != http.StatusOK || !strings.Contains(body, "goroutine profile") {
			t.Errorf("pprof: got %d %.100s", status, body)
		}
		for _, path := range []string{"/bot-api/v1/getMe", "/bots", "/login", "/internal/v1/events"} {
			if status, _ := page(t, "http://"+address+path); status != http.StatusNotFound {
				t.Errorf("%s on the admin address: got %d, want 404", path, status)
			}
		}
	})
	t.Run("G-07 each line of the log is JSON, and a request_id leads to its line", func(t *testing.T) {
		a := s.refused(t, "INVALID_REQUEST", b, "getUpdates", "{}")
		var line map[string]any
		eventually(t, 5*time.Second, "the request stands in the log", func() bool {
			for text := range strings.Lines(s.log.String()) {
				var fields map[string]any
				if err := json.Unmarshal([]byte(text), &fields); err != nil {
					t.Fatalf("a line that isn't JSON: %q", text)
				}
				for _, name := range []string{"time", "level", "msg"} {
					if fields[name] == nil {
						t.Fatalf("a line without %s: %s", name, text)
					}
				}
				if fields["request_id"] == a.requestID {
					line = fields
				}
			}
			return line != nil
		})
		if line["status"] != 400.0 || line["code"] != "INVALID_REQUEST" || line["api_method"] != "getUpdates" {
			t.Errorf("got %v", line)
		}
	})
	t.Run("N-09 what people write stands in no log", func(t *testing.T) {
		const words = "a-very-private-sentence"
		s.write(t, event{bot: b, payload: `{"text":"` + words + `"}`})
		s.ok(t, b, "sendMessage", `{"chat_id":"550","text":"`+words+`"}`, "Idempotency-Key: "+words)
		s.writeRaw(t, event{bot: b, payload: `{"text":"` + words + `"}`, kind: "date"}.filled().json())
		s.refused(t, "INVALID_REQUEST", b, "sendMessage", `{"chat_id":"550","text":"`+words+strings.Repeat("x", 5000)+`"}`, "Idempotency-Key: k")
		if strings.Contains(s.log.String(), words) {
			t.Error("the log holds what a person wrote")
		}
	})
}
