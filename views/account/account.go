// Package account has the page of what a person settles for themselves.
package account

import (
	"context"
	"time"

	"mybots/views/ui"
	"mybots/views/words"
)

// Settings is the page.
type Settings struct {
	Email, Role, Space string
	Zone               string // of times: "utc" or "browser"
	ZoneBad            string // why the last choice was refused; "" while it wasn't
	Now                time.Time
	Sessions           []Session
	Open               int // how many sessions there are; Sessions may be fewer
	Password           Password
	MAX                MAX
}

// MAX is the person's account at the MAX messenger.
type MAX struct {
	Ready bool      // there is a way to MAX
	Since time.Time // zero: not linked
}

// Session is one open session.
type Session struct {
	Began, Seen time.Time
	This        bool // of the reader
}

// Password is the form for a new password. It never holds one.
type Password struct {
	Email string // for the browser's list of passwords
	Code  string // of the refusal; "" while there is none
	Wait  int    // seconds until the next attempt; 0 for none

	OldError, NewError, AgainError string
}

// where says whose browser a session is in.
func (s Session) where(ctx context.Context) string {
	if s.This {
		return words.T(ctx, "account.this_browser")
	}
	return words.T(ctx, "account.other_browser")
}

// refused is why the password wasn't changed, in a sentence; the fields say more.
func (p Password) refused(ctx context.Context) string {
	switch {
	case p.Wait > 0:
		return words.T(ctx, "account.refused") + " " + words.N(ctx, "account.wait", p.Wait)
	case p.Code != "":
		return words.T(ctx, "account.refused")
	}
	return ""
}

// pick is one of several choices that a button each makes.
type pick struct {
	value, text string
	lang        string // of the text, if it isn't the page's
}

func languages() []pick {
	return []pick{{words.English, "English", words.English}, {words.Russian, "Русский", words.Russian}}
}

func zones(ctx context.Context) []pick {
	return []pick{{value: "browser", text: words.T(ctx, "account.zone_browser")}, {value: "utc", text: words.T(ctx, "account.zone_utc")}}
}

func themes(ctx context.Context) []pick {
	return []pick{
		{value: "system", text: words.T(ctx, "account.theme_system")},
		{value: "light", text: words.T(ctx, "account.theme_light")},
		{value: "dark", text: words.T(ctx, "account.theme_dark")},
	}
}

// theme is the frame's theme as the form names it.
func theme(of string) string {
	if of == "" {
		return "system"
	}
	return of
}

func oldField(ctx context.Context, p Password) ui.FieldProps {
	return ui.FieldProps{ID: "old", Name: "old", Type: "password", Label: words.T(ctx, "account.old"), Error: p.OldError, Autocomplete: "current-password", Required: true, MaxLength: 256}
}

func newField(ctx context.Context, p Password) ui.FieldProps {
	return ui.FieldProps{ID: "new", Name: "new", Type: "password", Label: words.T(ctx, "account.new"), Hint: words.T(ctx, "account.new_hint"), Error: p.NewError, Autocomplete: "new-password", Required: true, MaxLength: 256}
}

func againField(ctx context.Context, p Password) ui.FieldProps {
	return ui.FieldProps{ID: "again", Name: "again", Type: "password", Label: words.T(ctx, "account.again"), Error: p.AgainError, Autocomplete: "new-password", Required: true, MaxLength: 256}
}
