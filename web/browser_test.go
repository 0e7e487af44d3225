package web

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"mybots/views/ui"

	"github.com/a-h/templ"
)

func TestHeadersOfEveryAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.mux.HandleFunc("GET /panic", func(http.ResponseWriter, *http.Request) { panic("sbt1_secret in a panic") })
	for name, c := range map[string]struct {
		method, path string
		want         int
	}{
		"a page": {"GET", "/login", 200}, "no page": {"GET", "/nowhere", 404}, "a redirect": {"GET", "/bots", 303},
		"a refused form": {"POST", "/login", 422}, "a wrong method": {"GET", "/logout", 405}, "a panic": {"GET", "/panic", 500},
	} {
		answer, body := r.ask(r.browser(), c.method, c.path, url.Values{})
		if answer.StatusCode != c.want {
			t.Errorf("%s: got %d, want %d", name, answer.StatusCode, c.want)
		}
		for header, want := range map[string]string{
			"Content-Security-Policy":    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
			"X-Content-Type-Options":     "nosniff",
			"X-Frame-Options":            "DENY",
			"Referrer-Policy":            "same-origin",
			"Cross-Origin-Opener-Policy": "same-origin",
			"Cache-Control":              "no-store",
			"Vary":                       "Cookie, Accept-Language, HX-Request, HX-Request-Type",
		} {
			if got := answer.Header.Get(header); got != want {
				t.Errorf("%s: %s: got %q, want %q", name, header, got, want)
			}
		}
		if len(answer.Header.Get("X-Request-Id")) != 36 {
			t.Errorf("%s: X-Request-Id: got %q, want a UUID", name, answer.Header.Get("X-Request-Id"))
		}
		if strings.Contains(body, "sbt1_") || strings.Contains(body, "goroutine") {
			t.Errorf("%s: got %s, want no panic's words", name, body)
		}
	}
	if log := r.log.String(); !strings.Contains(log, `"route":"GET /panic"`) || !strings.Contains(log, `"status":500`) || !strings.Contains(log, "goroutine") {
		t.Errorf("log: got %s, want the panic with its stack and its route", log)
	}
}

func TestTheLogHasNoPaths(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.mux.HandleFunc("GET /bots/{id}/failed", func(http.ResponseWriter, *http.Request) {})
	r.ask(r.client, "GET", "/bots/7301/failed?token=sbt1_x", nil)
	r.ask(r.client, "GET", "/nowhere/sbt1_y", nil)
	log := r.log.String()
	if !strings.Contains(log, `"route":"GET /bots/{id}/failed"`) || strings.Contains(log, "7301") || strings.Contains(log, "sbt1_") {
		t.Errorf("got %s, want the route and neither path nor query", log)
	}
	if got := strings.Count(log, `"msg":"request"`); got != 2 {
		t.Errorf("lines: got %d, want 2", got)
	}
}

func TestForeignSitesChangeNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	changed := 0
	r.mux.HandleFunc("/change", func(http.ResponseWriter, *http.Request) { changed++ })
	for _, c := range []struct {
		method string
		header []string
		want   int
	}{
		{"POST", []string{"Sec-Fetch-Site: cross-site"}, 403},
		{"POST", []string{"Sec-Fetch-Site: same-site"}, 403},
		{"PUT", []string{"Sec-Fetch-Site: cross-site"}, 403},
		{"DELETE", []string{"Sec-Fetch-Site: cross-site"}, 403},
		{"POST", []string{"Origin: https://evil.example"}, 403},
		{"POST", []string{"Origin: null"}, 403},
		{"POST", []string{"Sec-Fetch-Site: same-origin"}, 200},
		{"POST", []string{"Sec-Fetch-Site: none"}, 200},
		{"POST", nil, 200},
		{"GET", []string{"Sec-Fetch-Site: cross-site"}, 200},
	} {
		before := changed
		answer, body := r.ask(r.client, c.method, "/change", nil, c.header...)
		if answer.StatusCode != c.want || (changed > before) != (c.want == 200) {
			t.Errorf("%s %v: got %d, reached %v, want %d", c.method, c.header, answer.StatusCode, changed > before, c.want)
		}
		if c.want == 403 && !strings.Contains(body, `data-code="FORBIDDEN"`) {
			t.Errorf("%s %v: got %s, want our page", c.method, c.header, body)
		}
	}
}

func TestFormsHaveALimit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.mux.HandleFunc("POST /form", func(w http.ResponseWriter, req *http.Request) {
		form, err := Form(w, req)
		if err != nil {
			Fail(w, req, r.front.log, err)
			return
		}
		_, _ = io.WriteString(w, form.Get("a"))
	})
	for name, c := range map[string]struct {
		path string
		size int
		want int
	}{"small": {"/form", 10, 200}, "at the limit": {"/form", 64<<10 - 2, 200}, "over it": {"/form", 64<<10 - 1, 413}} {
		answer, _ := r.ask(r.client, "POST", c.path, url.Values{"a": {strings.Repeat("x", c.size)}})
		if answer.StatusCode != c.want {
			t.Errorf("%s: got %d, want %d", name, answer.StatusCode, c.want)
		}
	}
	if _, body := r.ask(r.client, "POST", "/form?a=query", url.Values{"a": {"body"}}); body != "body" {
		t.Errorf("got %q, want the body's field", body)
	}
	if _, body := r.ask(r.client, "POST", "/form?a=query", url.Values{"b": {"x"}}); body != "" {
		t.Errorf("got %q, want nothing from the query", body)
	}
	if answer, _ := r.ask(r.client, "POST", "/form?a=%zz", nil); answer.StatusCode != 422 {
		t.Errorf("garbage: got %d, want 422", answer.StatusCode)
	}
}

func TestPiecesAndPages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.mux.HandleFunc("/piece", func(w http.ResponseWriter, req *http.Request) {
		var piece templ.Component
		if req.URL.RawQuery == "" {
			piece = text("the piece")
		}
		if req.Method == "POST" {
			Answer(w, req, piece, "/bots")
			return
		}
		RenderEither(w, req, 200, text("the piece"), text("the page"))
	})
	for name, c := range map[string]struct {
		method, path string
		header       []string
		want         int
		body, to     string
	}{
		"a reader without JavaScript":   {"GET", "/piece", nil, 200, "the page", ""},
		"htmx wants a piece":            {"GET", "/piece", []string{"HX-Request: true", "HX-Request-Type: partial"}, 200, "the piece", ""},
		"htmx wants the page":           {"GET", "/piece", []string{"HX-Request: true", "HX-Request-Type: full"}, 200, "the page", ""},
		"htmx boosts a link":            {"GET", "/piece", []string{"HX-Request-Type: partial", "HX-Boosted: true"}, 200, "the page", ""},
		"htmx goes back in the history": {"GET", "/piece", []string{"HX-Request-Type: partial", "HX-History-Restore-Request: true"}, 200, "the page", ""},
		"a deed without JavaScript":     {"POST", "/piece", nil, 303, "", "/bots"},
		"a deed by htmx":                {"POST", "/piece", []string{"HX-Request-Type: partial"}, 200, "the piece", ""},
		"a deed by htmx that moves on":  {"POST", "/piece?on", []string{"HX-Request-Type: partial"}, 200, "", "/bots"},
	} {
		answer, body := r.ask(r.client, c.method, c.path, nil, c.header...)
		to := answer.Header.Get("Location") + answer.Header.Get("HX-Redirect")
		if answer.StatusCode != c.want || to != c.to || body != c.body {
			t.Errorf("%s: got %d %q %q, want %d %q %q", name, answer.StatusCode, to, body, c.want, c.to, c.body)
		}
	}
}

func TestFlash(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.mux.HandleFunc("POST /deed", func(w http.ResponseWriter, req *http.Request) {
		SetFlash(req, ui.Fine, `3 updates <b>"were" put at the end`)
		Answer(w, req, nil, "/bots")
	})
	const want = `<p>3 updates &lt;b&gt;&#34;were&#34; put at the end</p>`
	r.signIn(r.client, "anna@example.org")
	other := r.browser()
	r.signIn(other, "anna@example.org")
	r.ask(r.client, "POST", "/deed", nil)
	r.ask(r.client, "GET", "/nothing-shown", nil, "HX-Request-Type: partial")
	if _, body := r.ask(other, "GET", "/bots", nil); strings.Contains(body, want) {
		t.Error("another session: got the flash, want none")
	}
	if _, body := r.ask(r.client, "GET", "/bots", nil); !strings.Contains(body, want) {
		t.Errorf("the next page: got %s, want %s", body, want)
	}
	if _, body := r.ask(r.client, "GET", "/bots", nil); strings.Contains(body, want) {
		t.Error("the page after that: got the flash again, want none")
	}
	if answer, _ := r.ask(r.browser(), "POST", "/deed", nil); answer.StatusCode != 303 {
		t.Errorf("without a session: got %d, want 303", answer.StatusCode)
	}
}
