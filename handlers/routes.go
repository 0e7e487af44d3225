// Package handlers has every address of the product on one page; the rooms
// below it serve them.
package handlers

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/delivery/chat"
	"mybots/delivery/queue"
	"mybots/delivery/wake"
	"mybots/handlers/botapi"
	"mybots/handlers/intake"
	"mybots/handlers/owner"
	"mybots/static"
	"mybots/web"
)

// Options is what the handlers work with.
type Options struct {
	Log            *slog.Logger
	Clock          delivery.Clock
	Bots           *bots.Store
	Queue          *queue.Queue
	Chats          *chat.Store
	Bell           *wake.Bell
	TestClock      intake.TestClock // nil: there is none
	BaseURL        *url.URL
	TrustedProxies []netip.Prefix
	Metrics        prometheus.Registerer
	Ready          func(context.Context) map[string]string // "ok" for each check that passes
	Pages, API     bool                                    // which of them this process serves
}

// Routes returns the whole public side.
func Routes(o Options) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		web.JSON(w, http.StatusOK, []byte(`{"status":"ok"}`+"\n"))
	})
	mux.HandleFunc("GET /readyz", readyz(o.Ready))
	if o.API {
		api := botapi.New(botapi.Options{
			Log: o.Log, Clock: o.Clock, Bots: o.Bots, Queues: o.Queue, Chats: o.Chats, Bell: o.Bell, Metrics: o.Metrics,
			Address: func(r *http.Request) string { return web.ClientAddress(r, o.TrustedProxies).String() },
		})
		mux.Handle("/bot-api/", json500(o.Log, api))
		in := intake.New(o.Log, o.Bots, o.Queue, o.TestClock, o.Metrics)
		mux.Handle("/internal/v1/events", json500(o.Log, http.HandlerFunc(in.Events)))
		if o.TestClock != nil {
			mux.Handle("/internal/v1/clock/advance", json500(o.Log, http.HandlerFunc(in.Advance)))
		}
		mux.Handle("/internal/", json500(o.Log, http.HandlerFunc(noSuchAddress(o.Log))))
	}
	if o.Pages {
		pages(mux, o)
	}
	return web.Observe(o.Log, asWritten(mux))
}

// asWritten lets no path of the JSON side be cleaned: the mux would answer
// /bot-api//v1/getMe with a redirect, where a program expects its envelope.
func asWritten(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, prefix := range []string{"/bot-api", "/internal"} {
			if r.URL.Path == prefix || strings.HasPrefix(r.URL.Path, prefix+"/") && path.Clean(r.URL.Path) != strings.TrimSuffix(r.URL.Path, "/") {
				r.URL.Path = prefix + "/" // where nothing is: the handler says so in JSON
			}
		}
		mux.ServeHTTP(w, r)
	})
}

// pages adds all that people see.
func pages(mux *http.ServeMux, o Options) {
	f := web.New(web.Options{Log: o.Log, Clock: o.Clock, Rows: sessionRows{o.Bots}, Accounts: o.Bots, BaseURL: o.BaseURL, TrustedProxies: o.TrustedProxies})
	m := http.NewServeMux()
	m.HandleFunc("GET /{$}", f.Root)
	m.HandleFunc("GET /login", f.SignInPage)
	m.HandleFunc("POST /login", f.SignIn)
	m.HandleFunc("POST /logout", f.SignOut)
	m.HandleFunc("POST /settings/language", f.SetLanguage)
	m.HandleFunc("POST /settings/theme", f.SetTheme)

	own := owner.New(owner.Options{Log: o.Log, Bots: o.Bots, Queue: o.Queue, Chat: o.Chats, BaseURL: o.BaseURL})
	page := func(pattern string, h http.HandlerFunc) { m.Handle(pattern, f.RequirePerson(h)) }
	page("GET /bots", own.Bots)
	page("GET /bots/new", own.NewBot)
	page("POST /bots/new", own.CreateBot)
	page("GET /bots/{id}/token", own.Token)
	page("GET /bots/{id}/connection", own.Connection)
	page("POST /bots/{id}/connection", own.SaveConnection)
	page("GET /bots/{id}/connection/drop", own.ConfirmDrop)
	page("GET /bots/{id}/connection/reset", own.ConfirmReset)
	page("POST /bots/{id}/connection/reset", own.Reset)
	page("GET /bots/{id}/connection/emergency-reset", own.ConfirmEmergencyReset)
	page("POST /bots/{id}/connection/emergency-reset", own.EmergencyReset)
	page("POST /bots/{id}/pause", own.Pause)
	page("GET /bots/{id}/failed", own.Failed)
	page("POST /bots/{id}/failed/retry", own.Retry)
	page("GET /bots/{id}/failed/skip", own.ConfirmSkip)
	page("POST /bots/{id}/failed/skip", own.Skip)
	page("GET /bots/{id}/settings", own.Settings)
	page("GET /bots/{id}/delete", own.ConfirmDelete)
	page("POST /bots/{id}/delete", own.Delete)
	page("GET /bots/{id}/chat", own.Chat)
	page("POST /bots/{id}/chat", own.Write)
	page("POST /bots/{id}/chat/press", own.Press)
	page("POST /bots/{id}/chat/again", own.Again)
	page("POST /bots/{id}/chat/edit", own.EditMessage)
	page("POST /bots/{id}/chat/delete", own.DeleteMessage)
	page("POST /bots/{id}/chat/access", own.ChangeAccess)
	page("POST /bots/{id}/chat/file", own.AttachFile)
	page("POST /bots/{id}/chat/check", own.FinishCheck)
	mux.Handle("GET "+static.Prefix, static.Handler())
	mux.Handle("/", f.Browser(web.Pages(m)))
}

// json500 answers a panic of the JSON side in its envelope.
func json500(log *slog.Logger, next http.Handler) http.Handler {
	return web.Recover(log, func(w http.ResponseWriter, r *http.Request) {
		web.RefuseJSON(w, r, log, delivery.Refuse(delivery.Internal, "internal error; the request_id leads support to its cause"))
	}, next)
}

func noSuchAddress(log *slog.Logger) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		web.RefuseJSON(w, r, log, delivery.Refuse(delivery.MethodNotFound, "there is nothing at this address"))
	}
}

// readyz answers 200 when every check is ok, else 503, and says which isn't.
func readyz(ready func(context.Context) map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		checks, status, word := ready(r.Context()), http.StatusOK, "ok"
		for _, c := range checks {
			if c != "ok" {
				status, word = http.StatusServiceUnavailable, "not ready"
			}
		}
		body, err := json.Marshal(map[string]any{"status": word, "checks": checks})
		if err != nil {
			panic("encode the checks: " + err.Error()) // strings always encode
		}
		web.JSON(w, status, append(body, '\n'))
	}
}
