package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"mybots/delivery"
)

// What a form may weigh, and how long it may take to arrive.
const (
	formLimit = 64 << 10
	formTime  = 10 * time.Second
)

// Form reads the posted form. Its fields are those of the body, never of the
// query. The errors are for Fail: too large, or not a form at all.
func Form(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	conn := http.NewResponseController(w)
	if err := conn.SetReadDeadline(time.Now().Add(formTime)); err == nil {
		// A deadline that passes later would end the request's context.
		defer func() { _ = conn.SetReadDeadline(time.Time{}) }()
	}
	if err := r.ParseForm(); err != nil {
		if tooLarge(err) {
			return nil, err
		}
		return nil, &delivery.Invalid{Field: "form", Rule: "can't be read"}
	}
	return r.PostForm, nil
}

// One returns the field's value if it is one of the choices, else false. A field
// that comes twice says nothing.
func One(form url.Values, field string, choices ...string) (string, bool) {
	values := form[field]
	if len(values) != 1 || !slices.Contains(choices, values[0]) {
		return "", false
	}
	return values[0], true
}

// safeNext returns next if it is a path on this site, else fallback: no scheme,
// no host, nothing that a browser would take for one.
func safeNext(next, fallback string) string {
	if !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\") || len(next) > 2048 {
		return fallback
	}
	if strings.ContainsFunc(next, unicode.IsControl) {
		return fallback
	}
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil {
		return fallback
	}
	return next
}

// refererPath is the path of the page that the request came from, if that was ours.
func refererPath(r *http.Request) string {
	u, err := url.Parse(r.Referer())
	if err != nil || u.Host != r.Host {
		return ""
	}
	return u.EscapedPath()
}
