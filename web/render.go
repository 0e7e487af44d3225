package web

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"strings"

	"mybots/views/layout"
	"mybots/views/words"

	"github.com/a-h/templ"
)

// csp allows what the pages use and nothing else: own scripts, own styles,
// requests and forms to this origin.
const csp = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// headers are those of every answer to a browser. Nothing that a handler
// answers is kept by anybody unless the handler says so.
func (f *Front) headers(h http.Header) {
	h.Set("Content-Security-Policy", csp)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Cookie, Accept-Language, HX-Request, HX-Request-Type")
	if f.secure {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// Partial reports whether the request wants a piece of the page. htmx asks for
// whole pages too: for boosted links and when it goes back in the history.
func Partial(r *http.Request) bool {
	return r.Header.Get("HX-Request-Type") == "partial" &&
		r.Header.Get("HX-Boosted") != "true" && r.Header.Get("HX-History-Restore-Request") != "true"
}

// Render answers with status and the component. It is rendered into memory
// first, so that a mistake in a template answers 500 and leaves no half page.
func Render(w http.ResponseWriter, r *http.Request, status int, c templ.Component) {
	ctx := r.Context()
	var page bytes.Buffer
	if err := c.Render(ctx, &page); err != nil {
		if ctx.Err() != nil {
			return // the reader has gone
		}
		panic(err) // Recover logs it and answers
	}
	if !Partial(r) {
		readerOf(ctx).flashShown(ctx)
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Language", words.Lang(ctx))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(page.Bytes()) // fails only when the reader has gone
	}
}

// RenderEither renders the piece for htmx and the whole page for the rest.
func RenderEither(w http.ResponseWriter, r *http.Request, status int, piece, page templ.Component) {
	if Partial(r) {
		page = piece
	}
	Render(w, r, status, page)
}

// Answer ends a deed: htmx gets the piece that it put there, the rest goes to
// location with 303. A nil piece sends htmx to location, too.
func Answer(w http.ResponseWriter, r *http.Request, piece templ.Component, location string) {
	switch {
	case !Partial(r):
		http.Redirect(w, r, location, http.StatusSeeOther)
	case piece == nil:
		w.Header().Set("HX-Redirect", location)
		w.WriteHeader(http.StatusOK)
	default:
		Render(w, r, http.StatusOK, piece)
	}
}

// Frame returns the frame of a page of this request: who reads, the menu, and
// the flash of the last deed. title is the window's and the h1.
func Frame(r *http.Request, title string) layout.Frame {
	ctx := r.Context()
	reader := readerOf(ctx)
	f := layout.Frame{Title: title, Path: herePath(r), Theme: reader.theme, Home: "/login", Nav: menu(ctx, reader.person, r.URL.Path), Flash: reader.showFlash(), Banner: banner(r, reader)}
	if p := reader.person; p != nil {
		f.Person, f.Space, f.Home = p.Email, p.SpaceName, p.home()
		f.Zone = p.Zone
		if p.May(Look) {
			f.SearchURL = "/support"
		}
	}
	return f
}

// herePath is where the language and theme buttons lead back to. A form that was
// refused stands at an address that only takes POST; then it is the page that
// the browser came from, without its query.
func herePath(r *http.Request) string {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return safeNext(r.URL.RequestURI(), "/")
	}
	return safeNext(refererPath(r), "/")
}

// menu leads to the screens that there are for the person, nil for who isn't
// signed in; support may have bots, too, and then finds BotFather on My bots.
func menu(ctx context.Context, p *Person, path string) []layout.Link {
	var links []layout.Link
	if p != nil && p.May(Look) {
		links = append(links, layout.Link{URL: "/support", Text: words.T(ctx, "frame.support")})
	}
	if p != nil {
		links = append(links, layout.Link{URL: "/bots", Text: words.T(ctx, "frame.my_bots")})
	}
	if p != nil && !p.May(Look) {
		links = append(links, layout.Link{URL: "/botfather/" + strconv.FormatInt(p.SpaceID, 10), Text: words.T(ctx, "frame.botfather")})
	}
	links = append(links, layout.Link{URL: "/docs", Text: words.T(ctx, "frame.docs")})
	for i := range links {
		links[i].Current = path == links[i].URL || strings.HasPrefix(path, links[i].URL+"/")
	}
	return links
}
