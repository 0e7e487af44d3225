package main_test

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// denied saves a webhook that must be refused with that code, and nothing changes.
func (o *owner) denied(t testing.TB, b *bot, address, code string) {
	t.Helper()
	before := o.version(t, b)
	status, _, body := o.post(t, "/bots/"+b.id+"/connection", url.Values{"mode": {"webhook"}, "url": {address}, "pending": {"drop"}, "version": {before}})
	_, rest, ok := strings.Cut(body, `id="error"`)
	tag, _, _ := strings.Cut(rest, ">")
	if status < 400 || status > 499 || !ok || !strings.Contains(tag, `data-code="`+code+`"`) {
		t.Errorf("save %.100q: got %d and the error %.100q, want %s", address, status, tag, code)
	}
	if after := o.version(t, b); after != before {
		t.Errorf("save %.100q: the settings have version %s, want %s still", address, after, before)
	}
}

func TestWebhooksOff(t *testing.T) {
	t.Parallel()
	w, e := newHookWorld(t)
	s := w.serve(t)
	o := s.signIn(t)
	stays, leaves := o.hooked(t, e), o.hooked(t, e)
	poller := o.newBot(t)
	if code, _ := s.term(); code != 0 {
		t.Errorf("got exit code %d", code)
	}
	s = w.serve(t, "MYBOTS_WEBHOOKS=off")
	o = s.signIn(t)

	t.Run("G-06 W-03 W-14 with webhooks off nothing is sent, the state is disabled, and long polling works on", func(t *testing.T) {
		s.sends(t, stays.bot, 2)
		s.sends(t, leaves.bot, 2)
		s.sends(t, poller, 1)
		s.stands(t, stays.bot, "disabled, 2 waiting, 0 failed, at 1")
		stays.quiet(t, 1200*time.Millisecond)
		s.advance(t, time.Hour)
		stays.quiet(t, 700*time.Millisecond)
		s.pollFails(t, "DELIVERY_MODE_CONFLICT", stays.bot, at("a", "", "", now))
		if got := s.poll(t, poller, at("a", "", "", now)); got.outline() != "1 | | 1..2" {
			t.Errorf("got %s", got.outline())
		}
		o.denied(t, poller, e.sink().url, "WEBHOOKS_UNAVAILABLE")
		o.denied(t, stays.bot, stays.sink.url, "WEBHOOKS_UNAVAILABLE")
		o.save(t, leaves.bot, "keep")
		if got := s.poll(t, leaves.bot, at("a", "", "", now)); got.outline() != "1 2 | | 1..3" {
			t.Errorf("got %s", got.outline())
		}
		leaves.quiet(t, 0)
	})
	t.Run("G-06 with webhooks on again what waited goes out", func(t *testing.T) {
		on := w.serve(t)
		stays.gets(t, "1", 1).signed(t, stays.secret)
		stays.gets(t, "2", 1)
		on.stands(t, stays.bot, "active, 0 waiting, 0 failed, at 3")
		stays.check(t)
	})
}

func TestWebhookSettings(t *testing.T) {
	t.Parallel()
	clean := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "MYBOTS_ADDR=127.0.0.1:0"}
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, []byte("no certificate\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Run("G-01 G-06 a bad setting of webhooks stops the start with words that name it", func(t *testing.T) {
		for _, setting := range []string{
			"MYBOTS_WEBHOOKS=no", "MYBOTS_WEBHOOKS=OFF", "MYBOTS_WEBHOOK_ALLOW_CIDRS=10.0.0.0/99", "MYBOTS_WEBHOOK_ALLOW_CIDRS=10.0.0.0/8;127.0.0.0/8", "MYBOTS_WEBHOOK_ALLOW_CIDRS=10.0.0.0/8,",
			"MYBOTS_WEBHOOK_ALLOW_PORTS=0", "MYBOTS_WEBHOOK_ALLOW_PORTS=65536", "MYBOTS_WEBHOOK_ALLOW_PORTS=https", "MYBOTS_WEBHOOK_ALLOW_PORTS=9443,,9444", "MYBOTS_WEBHOOK_ALLOW_PORTS=-1",
			"MYBOTS_WEBHOOK_CA_FILE=" + empty + ".not", "MYBOTS_WEBHOOK_CA_FILE=" + empty, "MYBOTS_WEBHOOK_RESOLVER=127.0.0.1", "MYBOTS_WEBHOOK_RESOLVER=127.0.0.1:dns", "MYBOTS_WEBHOOK=off", "MYBOTS_WEBHOOK_ALLOW_CIDR=10.0.0.0/8",
		} {
			name, _, _ := strings.Cut(setting, "=")
			r := runBinary(t, append(append([]string{}, clean...), "MYBOTS_DATA_DIR="+dataDir(t), setting), "", "serve")
			if r.code == 0 || !strings.Contains(r.stderr, name+" ") || strings.Contains(r.stderr, "goroutine ") {
				t.Errorf("%s: got exit code %d and %q, want it named", setting, r.code, r.stderr)
			}
		}
	})
	t.Run("G-06 lists are separated by commas and add to what is allowed", func(t *testing.T) {
		e := newSite(t)
		settings := e.settings(t)
		for i, s := range settings {
			name, value, _ := strings.Cut(s, "=")
			switch name {
			case "MYBOTS_WEBHOOK_ALLOW_CIDRS":
				settings[i] = name + "=10.99.0.0/16, " + value + ",fd00::/8"
			case "MYBOTS_WEBHOOK_ALLOW_PORTS":
				settings[i] = name + "=9443, " + value
			}
		}
		w := newWorld(t, settings...)
		s := w.serve(t)
		h := s.signIn(t).hooked(t, e)
		s.sends(t, h.bot, 1)
		h.gets(t, "1", 1)
	})
	t.Run("G-05 without the test clock webhooks go out, and there is no clock to move", func(t *testing.T) {
		e := newSite(t)
		w := newWorld(t, e.settings(t)...)
		s := w.serve(t)
		h := s.signIn(t).hooked(t, e)
		s.sends(t, h.bot, 1)
		h.gets(t, "1", 1)
		if a, err := s.send(s.request(http.MethodPost, "/internal/v1/clock/advance", w.key, `{"seconds":1}`)); err != nil || a.status != 404 {
			t.Errorf("got %d %v, want 404", a.status, err)
		}
	})
}
