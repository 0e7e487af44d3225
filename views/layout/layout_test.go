package layout

import (
	"context"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mybots/static"
	"mybots/views/ui"
	"mybots/views/words"

	"github.com/a-h/templ"
)

var update = flag.Bool("update", false, "rewrite testdata/*.golden.html")

// What changes with the assets and not with the pages.
var (
	htmx = regexp.MustCompile(`<meta name="htmx-config"[^>]*><script src="/static/vendor/[^>]*></script>`)
	hash = regexp.MustCompile(`\.[0-9a-f]{8}\.`)
)

func frame() Frame {
	return Frame{
		Title: "Title", Lead: "Lead.", Path: "/bots?x=1&y=2", Theme: "dark", Space: "Green <shop>", Person: "anna@example.org", Home: "/bots",
		Nav:   []Link{{URL: "/bots", Text: "Bots", Current: true}, {URL: "/docs", Text: "Docs"}},
		Flash: Flash{Kind: ui.Fine, Text: "3 updates were put at the end."},
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	bot := frame()
	bot.Bot = &BotHead{Name: "Order <helper>", Username: "order_bot", State: ui.Waiting, StateWord: "Retrying", BackURL: "/bots",
		Current: Failed, Failed: 1234, ConnectionURL: "/bots/7/connection", FailedURL: "/bots/7/failed", ChatURL: "/bots/7/chat"}
	content := templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		_, err := io.WriteString(w, "<p>the content</p>")
		return err
	})
	out := Frame{Title: "Вход", Path: "/login", Home: "/login", Narrow: true}
	for name, c := range map[string]struct {
		lang string
		page templ.Component
	}{
		"page":    {"en", Page(frame())},
		"bot":     {"ru", Page(bot)},
		"signin":  {"ru", SignInPage(out, SignIn{Email: `anna"@example.org`, Next: "/bots", Refused: true})},
		"trouble": {"en", TroublePage(frame(), Trouble{Code: "INTERNAL", Title: "Broken", Text: "Try again.", RequestID: "req-1", BackURL: "/bots"})},
		"piece":   {"en", TroublePiece(Trouble{Code: "STALE", Title: "Stale", Text: "Look again."})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			if err := c.page.Render(templ.WithChildren(words.With(t.Context(), c.lang), content), &b); err != nil {
				t.Fatal(err)
			}
			got := hash.ReplaceAllString(htmx.ReplaceAllString(b.String(), ""), ".HASH.")
			got = strings.ReplaceAll(got, "><", ">\n<") + "\n"
			file := filepath.Join("testdata", name+".golden.html")
			if *update {
				if err := os.MkdirAll("testdata", 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s differs (-update rewrites it): got\n%s", file, got)
			}
			if name == "piece" {
				return
			}
			for part, n := range map[string]int{"<h1>": 1, `<main id="content"`: 1, "<header class=\"bar\">": 1, `id="flash" role="status"`: 1, `class="skip" href="#content"`: 1} {
				if got := strings.Count(b.String(), part); got != n {
					t.Errorf("%s: got %d, want %d", part, got, n)
				}
			}
			if got := strings.Contains(b.String(), static.URL("js/app.js")); !got {
				t.Error("got no script of our own, want it")
			}
			if got := strings.Contains(b.String(), "htmx-config"); got != static.HasHTMX() {
				t.Errorf("htmx: got %v, want %v as it was built", got, static.HasHTMX())
			}
		})
	}
}

func TestInitials(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Order helper": "OH", "помощник по заказам": "ПП", "solo": "S", "  x-ray 7 ": "XR", "🌸": "?", "": "?", "زهور خضراء": "زخ", "7 seas": "7S",
	} {
		if got := Initials(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

func TestThemeGoesRound(t *testing.T) {
	t.Parallel()
	for theme, want := range map[string]string{"": "light", "light": "dark", "dark": "system", "odd": "light"} {
		if got := nextTheme(theme); got != want {
			t.Errorf("after %q: got %q, want %q", theme, got, want)
		}
	}
}
