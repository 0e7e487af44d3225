package main_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestOperators(t *testing.T) {
	t.Parallel()
	w := newWorld(t)

	t.Run("G-01 --json prints one object with the named fields", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		for fields, c := range map[string]struct {
			stdin string
			args  []string
		}{
			"space_id":     {"", []string{"space", "add", "--name", "Пространство <1>", "--json"}},
			"user_id":      {"pass word with spaces\n", []string{"user", "add", "--email", "second@example.com", "--space", w.space, "--role", "support", "--password-stdin", "--json"}},
			"key":          {"", []string{"key", "add", "--json", "--name", "k"}},
			"bot_id,token": {"", []string{"bot", "add", "--json", "--space", w.space, "--owner", strings.ToLower(ownerMail), "--username", "json_bot", "--name", "J"}},
		} {
			o := w.run(t, c.stdin, c.args...)
			var got map[string]string
			if err := json.Unmarshal([]byte(o.stdout), &got); err != nil || o.code != 0 || strings.Count(strings.TrimSpace(o.stdout), "\n") != 0 {
				t.Errorf("%v: got exit code %d, %q, %q", c.args, o.code, o.stdout, o.stderr)
				continue
			}
			for name, value := range got {
				if !strings.Contains(","+fields+",", ","+name+",") || value == "" {
					t.Errorf("%v: got the field %s %q, want %s", c.args, name, value, fields)
				}
				if strings.HasSuffix(name, "_id") {
					if _, err := number(value); err != nil {
						t.Errorf("%v: %v", c.args, err)
					}
				}
			}
			if len(got) != strings.Count(fields, ",")+1 {
				t.Errorf("%v: got %v, want %s", c.args, got, fields)
			}
		}
	})
	t.Run("G-01 without --json a person can read it", func(t *testing.T) {
		t.Parallel()
		o := w.run(t, "", "bot", "add", "--space", w.space, "--owner", ownerMail, "--username", "readable_bot", "--name", "R")
		if o.code != 0 || !regexp.MustCompile(`token: sbt1_[a-z2-7]+`).MatchString(o.stdout) {
			t.Errorf("got exit code %d and %q", o.code, o.stdout)
		}
	})
	t.Run("G-01 what can't be done is said, with exit code 1, and nothing is made", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		b := w.bot(t)
		for want, c := range map[string]struct {
			stdin string
			args  []string
		}{
			"username":       {"", []string{"bot", "add", "--space", w.space, "--owner", ownerMail, "--username", "x", "--name", "N"}},
			"name":           {"", []string{"bot", "add", "--space", w.space, "--owner", ownerMail, "--username", "good_bot", "--name", ""}},
			b.name:           {"", []string{"bot", "add", "--space", w.space, "--owner", ownerMail, "--username", strings.ToUpper(b.name), "--name", "N"}},
			"owner":          {"", []string{"bot", "add", "--space", w.space, "--owner", "nobody@example.com", "--username", "good_bot", "--name", "N"}},
			"space":          {"", []string{"bot", "add", "--space", "99", "--owner", ownerMail, "--username", "good_bot", "--name", "N"}},
			"--space":        {"", []string{"bot", "add", "--space", "one", "--owner", ownerMail, "--username", "good_bot", "--name", "N"}},
			"password":       {"x\n", []string{"user", "add", "--email", "a@example.com", "--space", w.space, "--role", "owner", "--password-stdin"}},
			"email":          {"long enough password\n", []string{"user", "add", "--email", "not an address", "--space", w.space, "--role", "owner", "--password-stdin"}},
			"role":           {"long enough password\n", []string{"user", "add", "--email", "a@example.com", "--space", w.space, "--role", "king", "--password-stdin"}},
			"example.com":    {"long enough password\n", []string{"user", "add", "--email", strings.ToUpper(ownerMail), "--space", w.space, "--role", "owner", "--password-stdin"}},
			"password-stdin": {"long enough password\n", []string{"user", "add", "--email", "a@example.com", "--space", w.space, "--role", "owner"}},
			"key":            {"", []string{"key", "add", "--json"}},
			"-name":          {"", []string{"space", "add", "--json"}},
		} {
			o := w.run(t, c.stdin, append(c.args, "--json")...)
			if o.code != 1 || o.stdout != "" || !strings.Contains(strings.ToLower(o.stderr), strings.ToLower(want)) {
				t.Errorf("%v: got exit code %d, %q, %q, want 1 and words with %q", c.args, o.code, o.stdout, o.stderr, want)
			}
			if strings.Contains(o.stderr, "long enough password") || strings.Contains(o.stderr, "pq:") || strings.Contains(o.stderr, "panic") {
				t.Errorf("%v: it said %q", c.args, o.stderr)
			}
		}
	})
	t.Run("G-08 many commands at once, beside two servers", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		s, other := w.serve(t), w.serve(t)
		var wg sync.WaitGroup
		bots := make([]*bot, 8)
		for i := range bots {
			wg.Go(func() {
				o := w.run(t, "", "bot", "add", "--space", w.space, "--owner", ownerMail, "--username", fmt.Sprintf("many_%d_bot", i), "--name", "N", "--json")
				var made struct {
					ID    string `json:"bot_id"`
					Token string `json:"token"`
				}
				if err := json.Unmarshal([]byte(o.stdout), &made); err != nil {
					t.Errorf("got %+v", o)
				}
				bots[i] = &bot{w: w, id: made.ID, token: made.Token}
			})
		}
		wg.Wait()
		for _, b := range bots {
			w.secret(b.token)
			s.write(t, event{bot: b})
			if got := other.poll(t, b, at("a", "", "", now)); got.outline() != "1 | | 1..2" {
				t.Errorf("got %s", got.outline())
			}
		}
	})
	t.Run("G-08 a new key opens intake at once, in every replica", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		s, other := w.serve(t), w.serve(t)
		b := w.bot(t)
		second := w.operate(t, "", "key", "add", "--name", "second", "--json")["key"]
		w.secret(second)
		for _, r := range []*server{s, other} {
			a, err := r.send(r.request("POST", "/internal/v1/events", second, eventsBody(event{bot: b}.filled().json())))
			if err != nil || a.code != "" {
				t.Errorf("got %q %v, want the event taken", a.code, err)
			}
		}
		s.write(t, event{bot: b}) // the first key still works
	})
}

func TestDemo(t *testing.T) {
	t.Parallel()
	w := &world{settings: []string{"MYBOTS_DATA_DIR=" + dataDir(t)}}
	token := regexp.MustCompile(`sbt1_[a-z0-9]{20,}`)
	key := regexp.MustCompile(`sik1_[a-z0-9]{20,}`)
	shown := func(t *testing.T, text string) (string, string) {
		t.Helper()
		tokens, keys := token.FindString(text), key.FindString(text)
		if tokens == "" || keys == "" || !strings.Contains(text, "Password") {
			t.Fatalf("the demo printed %q, want the sign-in, a token and a key", text)
		}
		w.secret(tokens, keys)
		return tokens, keys
	}
	var first string
	start := func() *server {
		s := w.command(t, []string{"demo"})
		eventually(t, 30*time.Second, "the demo prints its secrets", func() bool { return strings.Contains(s.log.printed(), "Ctrl-C") })
		return s
	}
	s := start()
	t.Run("G-01 demo prints a sign-in, a token and a key that work", func(t *testing.T) {
		text := s.log.printed()
		b := &bot{w: w}
		b.token, w.key = shown(t, text)
		first = b.token
		me := decode[struct {
			ID          string `json:"id"`
			Username    string `json:"username"`
			DisplayName string `json:"display_name"`
			IsBot       bool   `json:"is_bot"`
		}](t, s.ok(t, b, "getMe", "{}"))
		b.id = me.ID
		if !strings.Contains(text, s.base) {
			t.Errorf("the demo printed %q, want the address %s in it", text, s.base)
		}
		s.write(t, event{bot: b})
		if got := s.poll(t, b, at("a", "", "", now)); len(got.Updates) == 0 {
			t.Errorf("got %s", got.outline())
		}
	})
	t.Run("G-08 demo against a server that runs fills that one", func(t *testing.T) {
		o := w.run(t, "", "demo")
		if o.code != 0 {
			t.Fatalf("got exit code %d: %s", o.code, o.stderr)
		}
		if again, _ := shown(t, o.stdout); again != first {
			t.Error("it printed another token")
		}
		s.ok(t, &bot{w: w, token: first}, "getMe", "{}")
	})
	t.Run("G-01 a demo that is started again shows what still works", func(t *testing.T) {
		if code, _ := s.term(); code != 0 {
			t.Errorf("got exit code %d, want 0", code)
		}
		s = start()
		if again, _ := shown(t, s.log.printed()); again != first {
			t.Error("it printed another token")
		}
		s.ok(t, &bot{w: w, token: first}, "getMe", "{}")
	})
}
