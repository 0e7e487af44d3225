package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mybots/botkit"
	"mybots/botkit/bottest"
)

// start runs the whole program against a server, until stop.
func start(t *testing.T, server *bottest.Server, extra map[string]string, args ...string) (log *lines, stop func() error) {
	t.Helper()
	env := map[string]string{"SMEET_URL": server.URL(), "SMEET_TOKEN": string(bottest.Token), "SMEET_CONSUMER_ID": "test"}
	for name, value := range extra {
		env[name] = value
	}
	ctx, cancel := context.WithCancel(t.Context())
	log = &lines{t: t, came: make(chan string, 1000)}
	ended := make(chan error, 1)
	go func() { // ends with cancel
		ended <- run(ctx, args, func(name string) string { return env[name] }, io.Discard, slog.New(slog.NewTextHandler(log, nil)))
	}()
	return log, func() error {
		cancel()
		return <-ended
	}
}

// lines is a log that a test can wait for.
type lines struct {
	t    *testing.T
	came chan string
}

func (l *lines) Write(p []byte) (int, error) {
	l.came <- string(p)
	return len(p), nil
}

// wait returns the value after name= in the first line with a text.
func (l *lines) wait(text, name string) string {
	l.t.Helper()
	late := time.After(10 * time.Second)
	for {
		select {
		case line := <-l.came:
			if strings.Contains(line, text) {
				_, value, _ := strings.Cut(line, name+"=")
				value, _, _ = strings.Cut(value, " ")
				return strings.TrimSpace(value)
			}
		case <-late:
			l.t.Fatalf("no line with %q in 10 s", text)
		}
	}
}

func sent(server *bottest.Server) (texts []string) {
	for _, m := range server.Sent() {
		texts = append(texts, m.Text)
	}
	return texts
}

func TestConversation(t *testing.T) {
	t.Parallel()
	server := bottest.New(t)
	store := filepath.Join(t.TempDir(), "kitbot.db")
	_, stop := start(t, server, map[string]string{"SMEET_STORE": store})
	server.Message("550", "/start")
	server.Message("550", "/order two teas")
	server.WaitSent(2)
	button := server.Sent()[1].Buttons[0][0]
	server.Callback("550", button.Data)
	server.Callback("550", "cancel")
	server.Push(botkit.TypeMessage, botkit.Message{MessageID: "1", Chat: botkit.Chat{ID: "550"}, From: botkit.Sender{IsBot: true}, Text: "I am a bot too"})
	server.Push("wave_of_a_later_version", map[string]any{"chat": map[string]any{"id": "550"}})
	server.Push(botkit.TypeMessage, map[string]any{"message_id": 1}) // can't be read: into the quarantine
	server.Message("550", "thanks")
	server.WaitSent(4)
	server.WaitConfirmed("9")
	if err := stop(); err != nil {
		t.Errorf("it ended with %v, want nil", err)
	}
	want := []string{"Hello! Write /order and what you would like.", "Your order: two teas. Is that right?", "Ordered: two teas", "thanks"}
	if got := sent(server); !slices.Equal(got, want) {
		t.Errorf("sent %q, want %q", got, want)
	}
	if got := server.Answered(); len(got) != 2 || got[0].Text != "Thank you" || got[1].Text != "Cancelled" {
		t.Errorf("answered %+v", got)
	}
	if files, err := os.ReadDir(store + ".quarantine"); err != nil || len(files) != 1 {
		t.Errorf("%d files in the quarantine, %v; want 1", len(files), err)
	}
}

func TestWebhookAndBack(t *testing.T) {
	t.Parallel()
	server := bottest.New(t)
	env := map[string]string{"SMEET_STORE": filepath.Join(t.TempDir(), "kitbot.db"), "SMEET_WEBHOOK_SECRET": string(bottest.Secret) + " swh1_old", "SMEET_WEBHOOK_PORT": "0", "SMEET_HEALTH_ADDR": "127.0.0.1:0"}
	log, stop := start(t, server, env, "--webhook", "--behind-proxy")
	address := "http://" + log.wait("receiving", "address") + "/smeet"
	server.Webhook(true)
	server.Message("550", "by webhook")
	forward := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, err := http.NewRequestWithContext(r.Context(), r.Method, address, r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		req.Header = r.Header
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = res.Body.Close() }()
		w.WriteHeader(res.StatusCode)
	})
	raw := server.Raw("1")
	for range 2 { // the second as if the first answer had been lost
		if got := bottest.Send(forward, "swh1_old", raw); got != 200 {
			t.Errorf("K-07 answered %d, want 200", got)
		}
	}
	if got := bottest.Send(forward, "swh1_other", raw); got != 401 {
		t.Errorf("K-07 answered %d, want 401", got)
	}
	server.WaitSent(1)
	if err := stop(); err != nil {
		t.Errorf("it ended with %v, want nil", err)
	}
	server.Webhook(false) // KEEP: the update comes again, by polling
	server.Message("550", "by polling")
	_, stop = start(t, server, env)
	server.WaitSent(2)
	server.WaitConfirmed("3")
	if err := stop(); err != nil {
		t.Errorf("it ended with %v, want nil", err)
	}
	if got := sent(server); !slices.Equal(got, []string{"by webhook", "by polling"}) {
		t.Errorf("K-01 sent %q, want each once", got)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args []string
		env  map[string]string
		want []string // in the error; none: no error
	}{
		"nothing set":            {nil, nil, []string{"SMEET_TOKEN"}},
		"polling":                {nil, map[string]string{"SMEET_TOKEN": "t"}, nil},
		"parked needs no token":  {[]string{"--parked"}, nil, nil},
		"all mistakes together":  {[]string{"--webhook", "--fast"}, map[string]string{"SMEET_WEBHOOK_PATH": "smeet"}, []string{"--fast", "SMEET_TOKEN", "SMEET_WEBHOOK_SECRET", "SMEET_WEBHOOK_CERT", "SMEET_WEBHOOK_PATH"}},
		"webhook behind a proxy": {[]string{"--webhook", "--behind-proxy"}, map[string]string{"SMEET_TOKEN": "t", "SMEET_WEBHOOK_SECRET": "s"}, nil},
	}
	for name, c := range tests {
		s, err := readSettings(c.args, func(name string) string { return c.env[name] })
		if (err == nil) != (len(c.want) == 0) || len(s.consumerID) == 0 || len(s.consumerID) > 64 {
			t.Errorf("%s: got %v, consumer %q", name, err, s.consumerID)
		}
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %s in it", name, err, want)
			}
		}
	}
}

func TestParked(t *testing.T) {
	t.Parallel()
	server := bottest.New(t)
	store := filepath.Join(t.TempDir(), "kitbot.db")
	env := func(name string) string { return map[string]string{"SMEET_STORE": store}[name] }
	for _, c := range []struct{ arg, want string }{{"--parked", ""}, {"--retry", "0 updates are tried again\n"}} {
		var out bytes.Buffer
		if err := run(t.Context(), []string{c.arg}, env, &out, slog.New(slog.DiscardHandler)); err != nil || out.String() != c.want {
			t.Errorf("%s: got %q, %v; want %q", c.arg, out.String(), err, c.want)
		}
	}
	server.Revoke()
	revoked := map[string]string{"SMEET_URL": server.URL(), "SMEET_TOKEN": string(bottest.Token), "SMEET_STORE": store}
	err := run(t.Context(), nil, func(name string) string { return revoked[name] }, io.Discard, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(fmt.Sprint(err), "token isn't valid") {
		t.Errorf("with a revoked token it ended with %v, want words about it", err)
	}
}

func TestShort(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"tea": "tea", "чай": "чай", "чайник": "чай"} {
		if got := short(text, 7); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
