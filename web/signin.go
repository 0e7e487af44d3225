package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"mybots/delivery"
	"mybots/views/layout"
	"mybots/views/words"
)

// The longest email and password that are looked at.
const (
	maxEmail    = 254
	maxPassword = 256
)

// Root leads from / to where the reader's pages begin.
func (f *Front) Root(w http.ResponseWriter, r *http.Request) {
	to := "/login"
	if p, ok := Of(r.Context()); ok {
		to = p.home()
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// SignInPage shows the form (UI-11). Who is signed in already goes on.
func (f *Front) SignInPage(w http.ResponseWriter, r *http.Request) {
	next := safeNext(r.URL.Query().Get("next"), "")
	if p, ok := Of(r.Context()); ok {
		http.Redirect(w, r, cmp.Or(next, p.home()), http.StatusSeeOther)
		return
	}
	again := layout.SignIn{Next: next}
	if signedOutEverywhere(r.URL.Query()) {
		again.Ended = words.T(r.Context(), "signin.ended_everywhere")
	}
	f.showSignIn(w, r, http.StatusOK, again)
}

// SignIn takes the form. An unknown email, a wrong password and too many
// attempts get the same words at the same cost; the last has its own status.
func (f *Front) SignIn(w http.ResponseWriter, r *http.Request) {
	form, err := Form(w, r)
	if err != nil {
		Fail(w, r, f.log, err)
		return
	}
	email := strings.ToLower(strings.TrimSpace(form.Get("email")))
	again := layout.SignIn{Email: email, Next: safeNext(form.Get("next"), ""), Refused: true}
	if len(email) > maxEmail || len(form.Get("password")) > maxPassword {
		again.Email = ""
		f.showSignIn(w, r, http.StatusUnprocessableEntity, again)
		return
	}
	personID, wait, err := f.check(r, email, form.Get("password"))
	if wait > 0 {
		w.Header().Set("Retry-After", seconds(wait))
		f.showSignIn(w, r, http.StatusTooManyRequests, again)
		return
	}
	if errors.Is(err, delivery.ErrNotFound) {
		f.showSignIn(w, r, http.StatusUnprocessableEntity, again)
		return
	}
	if err != nil {
		Fail(w, r, f.log, err)
		return
	}
	person, err := f.store.begin(w, r, readerOf(r.Context()).session, personID)
	if err != nil {
		Fail(w, r, f.log, err)
		return
	}
	http.Redirect(w, r, cmp.Or(again.Next, person.home()), http.StatusSeeOther)
}

// check asks the accounts, unless there were too many attempts: then it asks
// for nobody, which costs the same, and returns how long to wait.
func (f *Front) check(r *http.Request, email, password string) (personID int64, wait time.Duration, err error) {
	from := ClientAddress(r, f.proxies)
	if wait := f.throttle.try(email, from); wait > 0 {
		_, _ = f.accounts.SignIn(r.Context(), "", password) // for its cost alone
		return 0, wait, nil
	}
	personID, err = f.accounts.SignIn(r.Context(), email, password)
	if err == nil {
		f.throttle.succeed(email, from)
	}
	return personID, 0, err
}

func (f *Front) showSignIn(w http.ResponseWriter, r *http.Request, status int, s layout.SignIn) {
	ctx := r.Context()
	frame := Frame(r, words.T(ctx, "signin.title"))
	frame.Lead, frame.Narrow = words.T(ctx, "signin.lead"), true
	if s.Next != "" {
		frame.Lead = words.T(ctx, "signin.needed")
	}
	Render(w, r, status, layout.SignInPage(frame, s))
}

// SignOut ends the session, here and in the database.
func (f *Front) SignOut(w http.ResponseWriter, r *http.Request) {
	if session := readerOf(r.Context()).session; session != nil {
		if err := f.store.end(w, r, session); err != nil {
			Fail(w, r, f.log, err)
			return
		}
	}
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

// EndSessions ends all sessions of a person, on every device: for a new
// password, or somebody who left.
func (f *Front) EndSessions(ctx context.Context, personID int64) error {
	if err := f.store.rows.DeleteSessions(ctx, personID); err != nil {
		return fmt.Errorf("end the sessions of person %d: %w", personID, err)
	}
	return nil
}

// SetLanguage keeps the reader's language: with the person, and in a cookie for
// when nobody is signed in (UI-01).
func (f *Front) SetLanguage(w http.ResponseWriter, r *http.Request) {
	form, err := Form(w, r)
	if err != nil {
		Fail(w, r, f.log, err)
		return
	}
	language := form.Get("language")
	if !words.Known(language) {
		Fail(w, r, f.log, &delivery.Invalid{Field: "language", Rule: "is en or ru"})
		return
	}
	if p, ok := Of(r.Context()); ok {
		if err := f.accounts.SetLanguage(r.Context(), p.ID, language); err != nil {
			Fail(w, r, f.log, err)
			return
		}
	}
	f.keepChoice(w, languageCookie, language)
	http.Redirect(w, r, safeNext(form.Get("next"), "/"), http.StatusSeeOther)
}

// SetTheme keeps the reader's colours in a cookie: light, dark, or system for
// what the device says.
func (f *Front) SetTheme(w http.ResponseWriter, r *http.Request) {
	form, err := Form(w, r)
	if err != nil {
		Fail(w, r, f.log, err)
		return
	}
	switch theme := form.Get("theme"); theme {
	case "light", "dark", "system":
		f.keepChoice(w, themeCookie, theme)
	default:
		Fail(w, r, f.log, &delivery.Invalid{Field: "theme", Rule: "is light, dark or system"})
		return
	}
	http.Redirect(w, r, safeNext(form.Get("next"), "/"), http.StatusSeeOther)
}

// keepChoice sets a cookie that says nothing about its owner.
func (f *Front) keepChoice(w http.ResponseWriter, name, value string) {
	http.SetCookie(w, &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: int((365 * 24 * time.Hour).Seconds()),
		HttpOnly: true, Secure: f.secure, SameSite: http.SameSiteLaxMode,
	})
}
