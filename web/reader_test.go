package web

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"mybots/browsertest"
	"mybots/views/layout"
	"mybots/views/ui"

	"github.com/a-h/templ"
	"github.com/chromedp/chromedp/kb"
)

// open serves the specimen page to Anna and opens it.
func open(t *testing.T, s browsertest.Setup) (*rig, *browsertest.Tab) {
	t.Helper()
	r := newRig(t)
	tab := browsertest.Open(t, s)
	r.enter(tab, "anna@example.org")
	return r, tab
}

func TestTimesInTheBrowser(t *testing.T) {
	t.Parallel()
	for zone, c := range map[string]struct{ language, ago, zone string }{
		"Asia/Tokyo":    {"en", "3 minutes ago", "GMT+9"},
		"Europe/Moscow": {"ru", "3 минуты назад", "GMT+3"},
	} {
		t.Run("UI-05 times stand in the reader's zone, with the exact UTC on hover: "+zone, func(t *testing.T) {
			t.Parallel()
			_, tab := open(t, browsertest.Setup{Zone: zone, Language: c.language})
			if got := tab.Text(".facts time"); !strings.HasPrefix(got, c.ago) || !strings.HasSuffix(got, c.zone) {
				t.Errorf("%s: got %q, want %q … %q", zone, got, c.ago, c.zone)
			}
			title := browsertest.Eval[string](tab, `document.querySelector(".facts time").title`)
			if !strings.HasSuffix(title, " UTC") || len(title) != len("2026-09-26 10:00:04 UTC") {
				t.Errorf("%s: got %q on hover, want the exact UTC", zone, title)
			}
			same := `(() => { const e = document.querySelector(".facts time"), shown = e.innerText.match(/\d\d:\d\d:\d\d/)[0];
				return shown === new Date(e.dateTime).toLocaleTimeString("en-GB", {timeZone: "` + zone + `"}) })()`
			if !browsertest.Eval[bool](tab, same) {
				t.Errorf("%s: got %q, want the zone's time", zone, tab.Text(".facts time"))
			}
		})
	}
	t.Run("UI-05 without JavaScript times say that they are UTC", func(t *testing.T) {
		t.Parallel()
		_, tab := open(t, browsertest.Setup{Zone: "Asia/Tokyo", NoScript: true})
		if got := tab.Text(".facts time"); !strings.HasSuffix(got, " UTC") {
			t.Errorf("got %q, want it to end in UTC", got)
		}
	})
}

const covered = `getComputedStyle(document.getElementById("secret")).webkitTextSecurity`

func TestSecretsInTheBrowser(t *testing.T) {
	t.Parallel()
	t.Run("UI-02 a secret is covered, shown and covered again", func(t *testing.T) {
		t.Parallel()
		_, tab := open(t, browsertest.Setup{})
		for _, want := range []string{"disc", "none", "disc"} {
			if got := browsertest.Eval[string](tab, covered); got != want {
				t.Errorf("covered: got %s, want %s", got, want)
			}
			tab.Click("[data-show=secret]")
		}
		if got := tab.Text("[data-show=secret]"); got != "Hide" {
			t.Errorf("the button: got %q, want Hide", got)
		}
	})
	t.Run("UI-02 copying works while it is covered; without a clipboard it is uncovered to be copied by hand", func(t *testing.T) {
		t.Parallel()
		_, tab := open(t, browsertest.Setup{})
		browsertest.Eval[bool](tab, `Object.defineProperty(navigator, "clipboard", {value: {writeText: async s => { window.copied = s }}, configurable: true}), true`)
		tab.Click(".secret [data-copy]")
		tab.Until(`window.copied === document.getElementById("secret").value && document.querySelector(".secret [data-copy]").innerText.includes("Copied")`)
		if got := browsertest.Eval[string](tab, covered); got != "disc" {
			t.Errorf("covered: got %s, want disc", got)
		}
		// A page on plain http has no clipboard; 127.0.0.1 would, so it is taken away.
		browsertest.Eval[bool](tab, `Object.defineProperty(navigator, "clipboard", {value: undefined, configurable: true}), true`)
		tab.Click(".secret [data-copy]")
		tab.Until(`document.querySelector(".secret [data-copy]").innerText.includes("Selected: press Ctrl+C")`)
		selected := `(() => { const s = document.getElementById("secret"); return s.value.slice(s.selectionStart, s.selectionEnd) })()`
		if got := browsertest.Eval[string](tab, selected); !strings.HasPrefix(got, "whs_k3v9") || len(got) != 56 {
			t.Errorf("selected: got %q, want the whole secret", got)
		}
		// Covered text would be copied as its dots.
		if got := browsertest.Eval[string](tab, covered) + " " + tab.Text("[data-show=secret]"); got != "none Hide" {
			t.Errorf("got %s, want it uncovered and its button to say so", got)
		}
		if got := tab.Text("#spoken"); got != "Selected: press Ctrl+C" {
			t.Errorf("said: got %q, want the hint", got)
		}
	})
	t.Run("UI-02 without JavaScript a secret can be read and its buttons are gone", func(t *testing.T) {
		t.Parallel()
		_, tab := open(t, browsertest.Setup{NoScript: true})
		if got := browsertest.Eval[string](tab, covered); got != "none" {
			t.Errorf("covered: got %s, want none", got)
		}
		if got := browsertest.Eval[string](tab, `getComputedStyle(document.querySelector("[data-copy]")).display`); got != "none" {
			t.Errorf("the copy button: got display %s, want none", got)
		}
	})
}

func TestTheFrameInTheBrowser(t *testing.T) {
	t.Parallel()
	t.Run("UI-01 language and theme change without JavaScript and lead back", func(t *testing.T) {
		t.Parallel()
		_, tab := open(t, browsertest.Setup{NoScript: true})
		tab.Leave("[name=language]")
		if got := tab.Path() + " " + tab.Text(".tools [name=language]"); got != "/bots English" {
			t.Errorf("got %q, want /bots in Russian", got)
		}
		tab.Leave("[name=theme]")
		light := browsertest.Eval[string](tab, "getComputedStyle(document.body.parentElement).backgroundColor")
		tab.Leave("[name=theme]")
		dark := browsertest.Eval[string](tab, "getComputedStyle(document.body.parentElement).backgroundColor")
		if light == dark || !tab.Has("[data-theme=dark]") {
			t.Errorf("got %s and %s, want two colours", light, dark)
		}
		tab.Leave("[action='/logout'] button")
		if got := tab.Path(); got != "/login" {
			t.Errorf("got %s, want /login", got)
		}
	})
	t.Run("UI-08 the keyboard alone signs in, skips to the content and sees its focus", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		tab := browsertest.Open(t, browsertest.Setup{})
		tab.Go(r.url + "/login")
		tab.Press(kb.Tab)
		tab.Until(`document.activeElement.className === "skip" && document.activeElement.getBoundingClientRect().top >= 0`)
		tab.Press(kb.Enter)
		tab.Until(`document.activeElement.id === "content"`)
		tab.Press(kb.Tab)
		tab.Press("anna@example.org")
		tab.Press(kb.Tab)
		tab.Press(password)
		if got := browsertest.Eval[string](tab, `getComputedStyle(document.activeElement).outlineStyle`); got != "solid" {
			t.Errorf("focus: got outline %s, want solid", got)
		}
		tab.LeaveByKey(kb.Enter)
		if got := tab.Path(); got != "/bots" {
			t.Errorf("got %s, want /bots", got)
		}
	})
	t.Run("UI-08 long and right-to-left names stay inside", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		tab := browsertest.Open(t, browsertest.Setup{Language: "ru"})
		for _, space := range []string{strings.Repeat("W", 64), "متجر الزهور الخضراء في وسط المدينة"} {
			anna := r.memory.people["anna@example.org"]
			anna.SpaceName = space
			r.memory.people["anna@example.org"] = anna
			r.enter(tab, "anna@example.org")
			for _, width := range []int{1280, 960, 720, 360} {
				tab.Resize(width)
				tab.Fits()
			}
		}
	})
	t.Run("a refused form has the focus on what is wrong", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		tab := browsertest.Open(t, browsertest.Setup{Statuses: []int{http.StatusUnprocessableEntity}})
		tab.Go(r.url + "/login")
		tab.Type("#email", "anna@example.org")
		tab.Type("#password", "wrong")
		tab.Leave("main button[type=submit]")
		tab.Until(`document.activeElement.id === "error"`)
	})
}

// The forms of this page are sent by htmx, under the policy of every page.
func TestPiecesInTheBrowser(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	done := 0
	form := func(of layout.Flash) templ.Component {
		return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
			if _, err := fmt.Fprintf(w, `<form id="f" method="post" action="/piece" hx-post="/piece" hx-target="this" hx-swap="outerHTML"><p id="done">%d</p>`, done); err != nil {
				return err
			}
			if of.Text != "" {
				if err := layout.FlashPiece(of).Render(ctx, w); err != nil {
					return err
				}
			}
			return with(divided("row"), ui.Field(ui.FieldProps{ID: "a", Name: "a", Label: "a"}), ui.Button(ui.Plain, "Send", nil)).Render(ctx, w)
		})
	}
	closed := func(c templ.Component) templ.Component { return templ.Join(c, raw("</form>")) }
	r.mux.Handle("GET /piece", r.front.RequirePerson(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		Render(w, req, 200, with(layout.Page(Frame(req, "Pieces")), closed(form(layout.Flash{}))))
	})))
	r.mux.Handle("POST /piece", r.front.RequirePerson(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		values, err := Form(w, req)
		if err != nil {
			Fail(w, req, r.front.log, err)
			return
		}
		if values.Get("a") != "" {
			Render(w, req, 422, closed(templ.Join(form(layout.Flash{}), ui.Errors("BAD", "Leave it empty."))))
			return
		}
		done++
		Answer(w, req, closed(form(layout.Flash{Kind: ui.Fine, Text: "It is done."})), "/piece")
	})))
	tab := browsertest.Open(t, browsertest.Setup{Statuses: []int{422, 401}})
	r.enter(tab, "anna@example.org")
	tab.Go(r.url + "/piece")
	tab.Click("#f button")
	tab.Until(`document.getElementById("done").textContent === "1" && document.querySelector("main > #flash").innerText === "It is done."`)
	tab.Type("#a", "x")
	tab.Click("#f button")
	tab.Until(`document.activeElement.id === "error" && document.activeElement.dataset.code === "BAD"`)
	tab.Axe()
	if err := r.front.EndSessions(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	tab.Leave("#f button")
	if got := tab.Path(); got != "/login" {
		t.Errorf("after the session's end: got %s, want /login", got)
	}
}

func raw(s string) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	})
}
