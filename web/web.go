// Package web is what all handlers of the browser side share: rendering, the
// one table from errors to answers, sessions and sign-in, the middleware, forms
// and the reader's language. The Bot API and intake take the middleware alone.
package web

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"mybots/views/words"

	"github.com/gorilla/sessions"
)

// Clock is the product's time (G-05).
type Clock interface{ Now() time.Time }

// The roles of people (G-01).
const (
	Owner   = "owner"
	Support = "support"
	Admin   = "admin"
)

// UTC is the zone of people who read all times in UTC.
const UTC = "utc"

// Person is who is signed in.
type Person struct {
	ID        int64
	Email     string
	Role      string // Owner, Support or Admin
	SpaceID   int64
	SpaceName string
	Language  string // chosen in the settings: "en", "ru", or "" for none
	Zone      string // chosen in the settings: UTC, or "" for the browser's own
	MayAct    bool   // of support: may switch things on and off
	MayUnmask bool   // of support: may look into an update
}

// home is where the person's pages begin.
func (p Person) home() string {
	if p.May(Look) {
		return "/support"
	}
	return "/bots"
}

// accounts is what sign-in asks of the rest of the product.
type accounts interface {
	// SignIn returns the id of the person with that email and password, or
	// delivery.ErrNotFound for an unknown email and a wrong password alike, at
	// the same cost. An empty email is always unknown.
	SignIn(ctx context.Context, email, password string) (personID int64, err error)
	// SetLanguage keeps the language that the person chose.
	SetLanguage(ctx context.Context, personID int64, language string) error
}

// Options is what a Front needs from the program.
type Options struct {
	Log      *slog.Logger
	Clock    Clock
	Rows     sessionRows
	Accounts accounts
	// BaseURL is where browsers find the product. With https the cookies are
	// Secure and the answers carry HSTS.
	BaseURL *url.URL
	// TrustedProxies are the networks whose X-Forwarded-For is believed.
	TrustedProxies []netip.Prefix
	// Platform tells of maintenance, for the banner; nil: there never is any.
	Platform platform
}

// Front is the browser side's entrance: it knows who reads, in which language,
// and lets people in and out.
type Front struct {
	log      *slog.Logger
	store    *store
	accounts accounts
	secure   bool
	proxies  []netip.Prefix
	platform platform
	throttle *throttle
}

// New returns the entrance.
func New(o Options) *Front {
	secure := o.BaseURL != nil && strings.EqualFold(o.BaseURL.Scheme, "https")
	return &Front{
		log:      o.Log,
		store:    newStore(o.Rows, o.Clock, secure),
		accounts: o.Accounts,
		secure:   secure,
		proxies:  o.TrustedProxies,
		platform: o.Platform,
		throttle: newThrottle(o.Clock),
	}
}

// The cookies of readers who aren't signed in, and of the theme.
const (
	languageCookie = "smeet_language"
	themeCookie    = "smeet_theme"
)

type readerKey struct{}

// reader is what Browser finds out about who asks.
type reader struct {
	front   *Front
	session *sessions.Session // new for who isn't signed in
	person  *Person
	theme   string
	flash   string // waits to be shown
	shown   bool   // a frame has it
	blind   bool   // the database didn't tell who asks: it isn't asked again
}

// readerOf returns an empty reader outside of Browser.
func readerOf(ctx context.Context) *reader {
	if r, ok := ctx.Value(readerKey{}).(*reader); ok {
		return r
	}
	return &reader{}
}

// Of returns the signed-in person, or false.
func Of(ctx context.Context) (Person, bool) {
	if p := readerOf(ctx).person; p != nil {
		return *p, true
	}
	return Person{}, false
}

// PersonOf is Of for handlers behind RequirePerson or RequireRole; without them
// it panics.
func PersonOf(r *http.Request) Person {
	p, ok := Of(r.Context())
	if !ok {
		panic("web: PersonOf without RequirePerson")
	}
	return p
}

// Browser is the middleware around all pages: security headers, forms of a
// limited size from this origin alone, the session, the language and the theme.
func (f *Front) Browser(next http.Handler) http.Handler {
	origin := http.NewCrossOriginProtection()
	origin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fail(w, r, http.StatusForbidden, "FORBIDDEN", "forbidden")
	}))
	inner := f.read(Recover(f.log, broken, origin.Handler(Limit(formLimit, next))))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.headers(w.Header())
		inner.ServeHTTP(w, r)
	})
}

// read finds out who asks and puts it into the context.
func (f *Front) read(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reader := &reader{front: f, theme: theme(r)}
		ctx := words.With(r.Context(), words.Match("", cookieValue(r, languageCookie), r.Header.Get("Accept-Language")))
		session, err := f.store.Get(r, f.store.name)
		if err != nil {
			reader.blind = true
			Fail(w, r.WithContext(context.WithValue(ctx, readerKey{}, reader)), f.log, err)
			return
		}
		reader.session = session
		if row, ok := rowOf(session); ok {
			reader.person, reader.flash = &row.Person, row.Flash
			ctx = words.With(ctx, words.Match(row.Person.Language, cookieValue(r, languageCookie), r.Header.Get("Accept-Language")))
		}
		pass(next, w, r, context.WithValue(ctx, readerKey{}, reader))
	})
}

func theme(r *http.Request) string {
	if t := cookieValue(r, themeCookie); t == "light" || t == "dark" {
		return t
	}
	return ""
}

func cookieValue(r *http.Request, name string) string {
	c, err := r.Cookie(name)
	if err != nil {
		return "" // there is none
	}
	return c.Value
}

// RequirePerson lets signed-in people through. Others go to the sign-in page
// and come back afterwards; a piece for htmx gets 401 and sends the whole
// window there.
func (f *Front) RequirePerson(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := Of(r.Context()); ok {
			next.ServeHTTP(w, r)
			return
		}
		to := "/login"
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			to += "?next=" + url.QueryEscape(r.URL.Path)
		}
		if r.Header.Get("HX-Request") == "true" {
			w.Header().Set("HX-Redirect", to)
			fail(w, r, http.StatusUnauthorized, "UNAUTHORIZED", "unauthorized")
			return
		}
		http.Redirect(w, r, to, http.StatusSeeOther)
	})
}
