package words

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/nicksnyder/go-i18n/v2/i18n"
)

// catalog reads all messages of a language, by key.
func catalog(t *testing.T, lang string) map[string]*i18n.Message {
	t.Helper()
	names, err := fs.Glob(catalogs, "*."+lang+".toml")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*i18n.Message{}
	for _, name := range names {
		content, err := fs.ReadFile(catalogs, name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := i18n.ParseMessageFileBytes(content, name, map[string]i18n.UnmarshalFunc{"toml": toml.Unmarshal})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range file.Messages {
			if all[m.ID] != nil {
				t.Errorf("%s: key %s is in two catalogs of %s", name, m.ID, lang)
			}
			all[m.ID] = m
		}
	}
	return all
}

func forms(m *i18n.Message) map[string]string {
	all := map[string]string{"one": m.One, "few": m.Few, "many": m.Many, "other": m.Other}
	for form, text := range all {
		if text == "" {
			delete(all, form)
		}
	}
	return all
}

func keys[V any](m map[string]V) []string {
	var k []string
	for key := range m {
		k = append(k, key)
	}
	slices.Sort(k)
	return k
}

var placeholder = regexp.MustCompile(`\{\{[^}]*\}\}`)

// placeholders of all forms together: a form for one may spell the number out.
func placeholders(m *i18n.Message) []string {
	set := map[string]bool{}
	for _, text := range forms(m) {
		for _, p := range placeholder.FindAllString(text, -1) {
			set[p] = true
		}
	}
	return keys(set)
}

func TestCatalogsAgree(t *testing.T) {
	t.Parallel()
	en, ru := catalog(t, English), catalog(t, Russian)
	t.Run("UI-01 both languages have the same keys", func(t *testing.T) {
		t.Parallel()
		for _, key := range keys(en) {
			if ru[key] == nil {
				t.Errorf("%s: got no Russian, want some", key)
			}
		}
		for _, key := range keys(ru) {
			if en[key] == nil {
				t.Errorf("%s: got no English, want some", key)
			}
		}
	})
	t.Run("UI-01 both languages have the same placeholders", func(t *testing.T) {
		t.Parallel()
		for _, key := range keys(en) {
			if ru[key] == nil {
				continue
			}
			if got, want := placeholders(ru[key]), placeholders(en[key]); !slices.Equal(got, want) {
				t.Errorf("%s: got %v in Russian, want %v", key, got, want)
			}
		}
	})
	t.Run("UI-01 plurals have every form of their language", func(t *testing.T) {
		t.Parallel()
		for _, key := range keys(en) {
			e := forms(en[key])
			if ru[key] == nil {
				continue
			}
			r := forms(ru[key])
			wantE, wantR := []string{"other"}, []string{"other"}
			if len(e) > 1 || len(r) > 1 {
				wantE, wantR = []string{"one", "other"}, []string{"few", "many", "one", "other"}
			}
			if got := keys(e); !slices.Equal(got, wantE) {
				t.Errorf("%s: got %v in English, want %v", key, got, wantE)
			}
			if got := keys(r); !slices.Equal(got, wantR) {
				t.Errorf("%s: got %v in Russian, want %v", key, got, wantR)
			}
		}
	})
}

var (
	usedKey = regexp.MustCompile(`words\.(T|N)\(\s*[\w.()]+,\s*"([^"]+)"([,)\s])`)
	root    = filepath.Join("..", "..")
)

// sources calls visit with every Go file and template of the product that
// may speak.
func sources(t *testing.T, visit func(path, content string)) {
	t.Helper()
	for _, room := range []string{"views", "web", "handlers", "cmd"} {
		err := filepath.WalkDir(filepath.Join(root, room), func(path string, d fs.DirEntry, err error) error {
			if os.IsNotExist(err) {
				return nil // a room that isn't built yet
			}
			if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "_templ.go") ||
				(!strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, ".templ")) {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			visit(path, string(content))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestEveryKeyInTheSourcesHasWords(t *testing.T) {
	t.Parallel()
	en, found := catalog(t, English), 0
	sources(t, func(path, content string) {
		for _, m := range usedKey.FindAllStringSubmatch(content, -1) {
			found++
			switch message := en[m[2]]; {
			case message == nil:
				t.Errorf("%s: got no words for %q, want some in both languages", path, m[2])
			case m[1] == "N" && message.One == "":
				t.Errorf("%s: got no plural forms of %q, want them for words.N", path, m[2])
			}
		}
	})
	if found < 20 {
		t.Errorf("got %d keys in the sources, want the scan to find those that are there", found)
	}
}

// What the content security policy blocks, or what htmx would run as a script,
// has no place in a template.
func TestTemplatesStayInsideThePolicy(t *testing.T) {
	t.Parallel()
	bad := regexp.MustCompile(`hx-on|js:|hx-vars|hx-trigger="[^"]*\[|<style|\sstyle=|\son[a-z]+=|<script>|templ\.Raw|templ\.JSExpression|^script |^css `)
	sources(t, func(path, content string) {
		if !strings.HasSuffix(path, ".templ") {
			return
		}
		for i, line := range strings.Split(content, "\n") {
			if m := bad.FindString(line); m != "" {
				t.Errorf("%s:%d: got %q, want none", path, i+1, m)
			}
		}
	})
}

func TestMatch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ choice, cookie, accept, want string }{
		"UI-01 the person's choice comes first":  {"ru", "en", "en", "ru"},
		"UI-01 then the cookie":                  {"", "ru", "en", "ru"},
		"UI-01 then the browser":                 {"", "", "ru-RU,ru;q=0.9,en;q=0.8", "ru"},
		"UI-01 the browser's order counts":       {"", "", "en;q=0.5, ru;q=0.9", "ru"},
		"UI-01 who reads Ukrainian then Russian": {"", "", "uk,ru;q=0.8", "ru"},
		"UI-01 an unknown language is English":   {"", "", "de", "en"},
		"UI-01 no language is English":           {"", "", "", "en"},
		"UI-01 garbage is English":               {"xx", "yy", ";;;q=,,", "en"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Match(c.choice, c.cookie, c.accept); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestNumbersAndMissingKeys(t *testing.T) {
	t.Parallel()
	en, ru := With(context.Background(), English), With(context.Background(), Russian)
	for name, c := range map[string]struct{ got, want string }{
		"UI-01 English groups with commas":            {Number(en, 10000), "10,000"},
		"UI-01 Russian groups with fixed spaces":      {Number(ru, 1234567), "1\u00a0234\u00a0567"},
		"a key without words shows itself":            {T(en, "no.such_key"), "no.such_key"},
		"an unknown language is English":              {Lang(With(en, "xx")), "en"},
		"UI-01 a context without language is English": {T(context.Background(), "frame.sign_out"), "Sign out"},
		"UI-01 Russian words":                         {T(ru, "frame.sign_out"), "Выйти"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %q, want %q", name, c.got, c.want)
		}
	}
}

// The catalogs' plural rules, on messages of the test's own.
func TestPluralForms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n    int
		want string
	}{{0, "событий"}, {1, "событие"}, {2, "события"}, {5, "событий"}, {11, "событий"}, {21, "событие"}, {104, "события"}, {1011, "событий"}} {
		bundle := i18n.NewBundle(tags[0])
		bundle.MustAddMessages(tags[1], &i18n.Message{ID: "n", One: "{{.Count}} событие", Few: "{{.Count}} события", Many: "{{.Count}} событий", Other: "{{.Count}} события"})
		s := speaker{i18n.NewLocalizer(bundle, Russian), spoken[Russian].numbers}
		data := s.data(nil)
		data["Count"] = s.number(int64(c.n))
		got := s.say("n", i18n.LocalizeConfig{MessageID: "n", TemplateData: data, PluralCount: c.n})
		if want := Number(With(context.Background(), Russian), int64(c.n)) + " " + c.want; got != want {
			t.Errorf("UI-01 %d: got %q, want %q", c.n, got, want)
		}
	}
}
