// Package account serves the settings of whoever is signed in: how pages look
// to them, their password and their sessions.
//
//	GET  /settings                        Settings
//	POST /settings/zone                   SetZone
//	POST /settings/password               ChangePassword
//	POST /settings/sign-out-everywhere    SignOutEverywhere
//	POST /settings/max/code               MAXCode
//	POST /settings/max/unlink             UnlinkMAX
//
// Language and theme, which readers who aren't signed in choose too, are web's.
package account

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"mybots/delivery"
	"mybots/delivery/bots"
	views "mybots/views/account"
	"mybots/views/ui"
	"mybots/views/words"
	"mybots/web"
)

// listed is how many sessions the page lists.
const listed = 20

const settingsURL = "/settings"

// store is what the page asks of package bots.
type store interface {
	SetZone(ctx context.Context, by bots.Actor, zone string) error
	ChangePassword(ctx context.Context, by bots.Actor, c bots.PasswordChange) error
	SignOutEverywhere(ctx context.Context, by bots.Actor) error
	OpenSessions(ctx context.Context, userID int64, this []byte, begun, seen time.Time, limit int) ([]bots.OpenSession, int, error)
}

// Options is what the handlers need from the program.
type Options struct {
	Log     *slog.Logger
	Clock   delivery.Clock
	Bots    store
	Notices linker
	Front   *web.Front // whose sessions and attempts to sign in these are
}

// Handler has a method for the page and for each deed on it.
type Handler struct {
	log     *slog.Logger
	clock   delivery.Clock
	bots    store
	notices linker
	front   *web.Front
}

// New returns the handlers.
func New(o Options) *Handler {
	return &Handler{log: o.Log, clock: o.Clock, bots: o.Bots, notices: o.Notices, front: o.Front}
}

// actor is the reader as the audit log names them.
func actor(r *http.Request) bots.Actor {
	return bots.Actor{UserID: web.PersonOf(r).ID, RequestID: web.RequestID(r.Context()), Address: web.AddressOf(r)}
}

// Settings shows the page.
func (h *Handler) Settings(w http.ResponseWriter, r *http.Request) {
	h.show(w, r, http.StatusOK, views.Settings{})
}

// show answers with the page; of s the refusals are given.
func (h *Handler) show(w http.ResponseWriter, r *http.Request, status int, s views.Settings) {
	ctx, person := r.Context(), web.PersonOf(r)
	s.Now = h.clock.Now()
	begun, seen := web.OpenSince(s.Now)
	open, total, err := h.bots.OpenSessions(ctx, person.ID, web.SessionHash(r), begun, seen, listed)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	for _, o := range open {
		s.Sessions = append(s.Sessions, views.Session{Began: o.Created, Seen: o.Seen, This: o.This})
	}
	s.Open = total
	if s.MAX.Ready = h.notices.MAX(); s.MAX.Ready {
		if s.MAX.Since, err = h.notices.LinkedSince(ctx, person.ID); err != nil {
			web.Fail(w, r, h.log, err)
			return
		}
	}
	s.Email, s.Space, s.Zone, s.Password.Email = person.Email, person.SpaceName, zoneField(person.Zone), person.Email
	s.Role = roleWord(ctx, person.Role)
	f := web.Frame(r, words.T(ctx, "account.title"))
	f.Lead, f.Path = words.T(ctx, "account.lead"), settingsURL
	web.Render(w, r, status, views.SettingsPage(f, s))
}

func roleWord(ctx context.Context, role string) string {
	switch role {
	case web.Admin:
		return words.T(ctx, "account.role_admin")
	case web.Support:
		return words.T(ctx, "account.role_support")
	}
	return words.T(ctx, "account.role_owner")
}

func zoneField(zone string) string {
	if zone == web.UTC {
		return "utc"
	}
	return "browser"
}

// SetZone keeps in which zone the person reads times (UI-05).
func (h *Handler) SetZone(w http.ResponseWriter, r *http.Request) {
	form, err := web.Form(w, r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	ctx := r.Context()
	zone, said := "", "account.zone_browser_set"
	switch form.Get("zone") {
	case "browser":
	case "utc":
		zone, said = bots.ZoneUTC, "account.zone_utc_set"
	default:
		h.show(w, r, http.StatusUnprocessableEntity, views.Settings{ZoneBad: words.T(ctx, "account.zone_bad")})
		return
	}
	if err := h.bots.SetZone(ctx, actor(r), zone); err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	web.SetFlash(r, ui.Fine, words.T(ctx, said))
	web.Answer(w, r, nil, settingsURL)
}

// SignOutEverywhere ends all sessions of the person, this one too.
func (h *Handler) SignOutEverywhere(w http.ResponseWriter, r *http.Request) {
	if err := h.bots.SignOutEverywhere(r.Context(), actor(r)); err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	if err := h.front.EndSession(w, r); err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	web.Answer(w, r, nil, web.SignedOutURL)
}
