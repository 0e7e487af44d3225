package main_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestConfig(t *testing.T) {
	t.Parallel()
	clean := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	// fails runs a command that must not start, and returns what it said.
	fails := func(t *testing.T, settings []string, args ...string) string {
		t.Helper()
		dir := "MYBOTS_DATA_DIR=" + dataDir(t)
		o := runBinary(t, append(append(append([]string{}, clean...), dir, "MYBOTS_ADDR=127.0.0.1:0"), settings...), "", args...)
		if o.code == 0 {
			t.Errorf("mybots %v with %v: exit code 0, want a refusal", args, settings)
		}
		if strings.Contains(o.stderr, "panic") || strings.Contains(o.stderr, "goroutine ") {
			t.Errorf("mybots %v with %v: %s", args, settings, o.stderr)
		}
		return o.stderr
	}
	serve := []string{"serve"}

	t.Run("G-01 a bad setting stops the start with words that name it", func(t *testing.T) {
		t.Parallel()
		for _, setting := range []string{
			"MYBOTS_ADDR=nonsense", "MYBOTS_ADDR=127.0.0.1:99999", "MYBOTS_ADDR=:http-ish", "MYBOTS_ADMIN_ADDR=5", "MYBOTS_ADMIN_ADDR=256.0.0.1:80",
			"MYBOTS_SECRET_KEY=short", "MYBOTS_SECRET_KEY=" + strings.Repeat("zz", 32), "MYBOTS_SECRET_KEY=" + strings.Repeat("ab", 33),
			"MYBOTS_DB_CONNS=0", "MYBOTS_DB_CONNS=many", "MYBOTS_DB_CONNS=-1", "MYBOTS_TEST_CLOCK=yes", "MYBOTS_TEST_CLOCK=2",
			"MYBOTS_LOG_LEVEL=loud", "MYBOTS_OUTBOUND_URL=ftp://x", "MYBOTS_OUTBOUND_URL=x", "MYBOTS_OUTBOUND_URL=http://", "MYBOTS_BASE_URL=x", "MYBOTS_TRUSTED_PROXIES=10.0.0.0/99",
			"MYBOTS_UNKNOWN=1", "MYBOTS_ADRR=127.0.0.1:8080", "MYBOTS_=1", "MYBOTS_addr=127.0.0.1:0", "MYBOTS_DATABASE_URL=http://x", "MYBOTS_DATABASE_URL=%%%",
		} {
			name, _, _ := strings.Cut(setting, "=")
			if said := fails(t, []string{setting}, serve...); !strings.Contains(said, name) {
				t.Errorf("%s: got %q, want it named", setting, said)
			}
		}
	})
	t.Run("G-01 all mistakes are told together", func(t *testing.T) {
		t.Parallel()
		said := fails(t, []string{"MYBOTS_UNKNOWN=1", "MYBOTS_DB_CONNS=x", "MYBOTS_LOG_LEVEL=loud"}, serve...)
		for _, name := range []string{"MYBOTS_UNKNOWN", "MYBOTS_DB_CONNS", "MYBOTS_LOG_LEVEL"} {
			if !strings.Contains(said, name) {
				t.Errorf("got %q, want %s named", said, name)
			}
		}
	})
	t.Run("G-01 operators' commands read the same settings", func(t *testing.T) {
		t.Parallel()
		for _, args := range [][]string{{"migrate"}, {"demo"}, {"space", "add", "--name", "x"}, {"key", "add", "--name", "x", "--json"}} {
			if said := fails(t, []string{"MYBOTS_UNKNOWN=1"}, args...); !strings.Contains(said, "MYBOTS_UNKNOWN") {
				t.Errorf("%v: got %q, want MYBOTS_UNKNOWN named", args, said)
			}
		}
	})
	t.Run("G-01 N-09 no secret stands in the words", func(t *testing.T) {
		t.Parallel()
		for _, setting := range []string{"MYBOTS_SECRET_KEY=hush-hush", "MYBOTS_DATABASE_URL=postgres://me:hush-hush@%zz/x", "MYBOTS_DATABASE_URL=postgres://me:hush-hush@x:port/x",
			"MYBOTS_DATABASE_URL=host=x password=hush-hush port=x", "MYBOTS_MAX_TOKENS=hush-hush"} {
			if said := fails(t, []string{setting}, serve...); strings.Contains(said, "hush-hush") {
				t.Errorf("%s: it said %q", setting, said)
			}
		}
	})
	t.Run("G-01 another's database needs the key that all replicas share", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		if said := fails(t, []string{"MYBOTS_DATABASE_URL=" + w.dsn}, serve...); !strings.Contains(said, "MYBOTS_SECRET_KEY") {
			t.Errorf("got %q, want MYBOTS_SECRET_KEY named", said)
		}
	})
	t.Run("G-01 an address that is taken is named", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		s := w.serve(t)
		for _, setting := range []string{"MYBOTS_ADDR=" + s.address(), "MYBOTS_ADMIN_ADDR=" + s.address()} {
			o := runBinary(t, w.environ("MYBOTS_ADDR=127.0.0.1:0", setting), "", "serve")
			name, _, _ := strings.Cut(setting, "=")
			if o.code == 0 || !strings.Contains(o.stderr, name) {
				t.Errorf("%s: got exit code %d and %q, want it named", setting, o.code, o.stderr)
			}
		}
	})
	t.Run("G-01 a command that there isn't, or flags that there aren't, are named", func(t *testing.T) {
		t.Parallel()
		for want, args := range map[string][]string{
			"sevre": {"sevre"}, "nonsense": {"serve", "nonsense"}, "extra": {"version", "extra"}, "bogus": {"serve", "--bogus"}, "pilot": {"serve", "--roles", "web,pilot"},
			"command": {}, "--password-stdin": {"user", "add", "--email", "a@example.com", "--space", "1", "--role", "owner"}, "spcae": {"spcae", "add"},
		} {
			if said := fails(t, nil, args...); !strings.Contains(strings.ToLower(said), strings.TrimLeft(want, "-")) {
				t.Errorf("%v: got %q, want %s in it", args, said, want)
			}
		}
	})
	t.Run("G-01 version, config and help need no settings", func(t *testing.T) {
		t.Parallel()
		version := runBinary(t, clean, "", "version")
		if version.code != 0 || !regexp.MustCompile(`^mybots \d+\.\d+\.\d+`).MatchString(version.stdout) {
			t.Errorf("version: got %+v", version)
		}
		config := runBinary(t, clean, "", "config")
		for _, name := range []string{"MYBOTS_ADDR", "MYBOTS_DATABASE_URL", "MYBOTS_DATA_DIR", "MYBOTS_SECRET_KEY", "MYBOTS_TEST_CLOCK", "MYBOTS_ADMIN_ADDR", "MYBOTS_OUTBOUND_URL"} {
			if !strings.Contains(config.stdout, name) {
				t.Errorf("config doesn't tell of %s", name)
			}
		}
		help := runBinary(t, clean, "", "help")
		for _, command := range []string{"serve", "migrate", "demo", "version", "space add", "user add", "bot add", "key add"} {
			if !strings.Contains(help.stdout, command) {
				t.Errorf("help doesn't tell of %s", command)
			}
		}
	})
	t.Run("G-01 --roles picks what a process does", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		b := w.bot(t)
		api, web := w.command(t, []string{"serve", "--roles", "api"}), w.command(t, []string{"serve", "--roles", "web"})
		api.ok(t, b, "getMe", "{}")
		if status, _ := page(t, api.base+"/login"); status != 404 {
			t.Errorf("/login of the API's process: got %d, want 404", status)
		}
		if status, _ := page(t, web.base+"/login"); status != 200 {
			t.Errorf("/login of the pages' process: got %d, want 200", status)
		}
		if a, err := web.try(b, "getMe", "{}"); err == nil && a.code == "" {
			t.Error("the pages' process serves the Bot API")
		}
	})
}
