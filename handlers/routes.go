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
	"mybots/delivery/notice"
	"mybots/delivery/queue"
	"mybots/delivery/wake"
	"mybots/handlers/account"
	"mybots/handlers/botapi"
	"mybots/handlers/intake"
	"mybots/handlers/maxbot"
	"mybots/handlers/owner"
	"mybots/handlers/reference"
	"mybots/handlers/support"
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
	Guard          owner.Guard                             // of webhooks; nil: there are none
	Sender         owner.Sender                            // of test requests; nil: webhooks are off
	WebhooksOff    bool                                    // the installation has none (W-03)
	Notices        *notice.Store                           // to owners
	MAXSecret      delivery.Secret                         // of MAX's webhook; "": there is none (N-07)
}

// Routes returns the whole public side.
func Routes(o Options) Site {
	var site Site
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		web.JSON(w, http.StatusOK, []byte(`{"status":"ok"}`+"\n"))
	})
	mux.HandleFunc("GET /readyz", readyz(o.Ready))
	if o.API {
		api := botapi.New(botapi.Options{
			Log: o.Log, Clock: o.Clock, Bots: o.Bots, Queues: o.Queue, Chats: o.Chats, Bell: o.Bell, WebhooksOff: o.WebhooksOff, Metrics: o.Metrics,
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
		t := pages(o)
		mux.Handle("GET "+static.Prefix, static.Handler())
		mux.Handle("/", t.handler())
		site.Pages = t.list
	}
	if o.MAXSecret != "" && (o.API || o.Pages) {
		mux.Handle("/max/webhook", json500(o.Log, maxbot.New(o.Log, o.Notices, o.MAXSecret)))
	}
	site.Handler = web.Observe(o.Log, asWritten(mux))
	return site
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

// pages is all that people see, each with the right that it takes.
func pages(o Options) *table {
	f := web.New(web.Options{Log: o.Log, Clock: o.Clock, Rows: sessionRows{o.Bots}, Accounts: o.Bots, BaseURL: o.BaseURL, TrustedProxies: o.TrustedProxies, Platform: platformState{o.Bots}})
	t := newTable(f)
	t.page("GET /{$}", web.Anyone, f.Root)
	t.page("GET /login", web.Anyone, f.SignInPage)
	t.page("POST /login", web.Anyone, f.SignIn)
	t.page("POST /logout", web.Anyone, f.SignOut)
	t.page("POST /settings/language", web.Anyone, f.SetLanguage)
	t.page("POST /settings/theme", web.Anyone, f.SetTheme)

	docs := reference.New(o.BaseURL)
	t.page("GET /docs", web.Anyone, docs.Start)
	t.page("GET /docs/{page}", web.Anyone, docs.Page)
	t.page("GET /docs/search", web.Anyone, docs.Search)
	t.page("GET /docs/openapi.json", web.Anyone, docs.OpenAPI)

	acc := account.New(account.Options{Log: o.Log, Clock: o.Clock, Bots: o.Bots, Notices: o.Notices, Front: f})
	t.page("GET /settings", web.SignedIn, acc.Settings)
	t.page("POST /settings/zone", web.SignedIn, acc.SetZone)
	t.page("POST /settings/password", web.SignedIn, acc.ChangePassword)
	t.page("POST /settings/sign-out-everywhere", web.SignedIn, acc.SignOutEverywhere)
	t.page("POST /settings/max/code", web.SignedIn, acc.MAXCode)
	t.page("POST /settings/max/unlink", web.SignedIn, acc.UnlinkMAX)

	own := owner.New(owner.Options{Log: o.Log, Bots: o.Bots, Queue: o.Queue, Chat: o.Chats, Notices: o.Notices, BaseURL: o.BaseURL, Guard: o.Guard, Sender: o.Sender, WebhooksOff: o.WebhooksOff})
	t.page("GET /bots", web.SignedIn, own.Bots)
	t.page("GET /bots/new", web.SignedIn, own.NewBot)
	t.page("POST /bots/new", web.SignedIn, own.CreateBot)
	t.page("GET /bots/{id}/token", web.SignedIn, own.Token)
	t.page("GET /bots/{id}/connection", web.SignedIn, own.Connection)
	t.page("POST /bots/{id}/connection", web.SignedIn, own.SaveConnection)
	t.page("POST /bots/{id}/connection/drop", web.SignedIn, own.ConfirmDrop)
	t.page("GET /bots/{id}/connection/secret", web.SignedIn, own.Secret)
	t.page("POST /bots/{id}/connection/resume", web.SignedIn, own.ResumeDelivery)
	t.page("POST /bots/{id}/connection/probe", web.SignedIn, own.ProbeNow)
	t.page("POST /bots/{id}/connection/test", web.SignedIn, own.SendTest)
	t.page("POST /bots/{id}/connection/check", web.SignedIn, own.CheckSignature)
	t.page("GET /bots/{id}/connection/reset", web.SignedIn, own.ConfirmReset)
	t.page("POST /bots/{id}/connection/reset", web.SignedIn, own.Reset)
	t.page("GET /bots/{id}/connection/emergency-reset", web.SignedIn, own.ConfirmEmergencyReset)
	t.page("POST /bots/{id}/connection/emergency-reset", web.SignedIn, own.EmergencyReset)
	t.page("POST /bots/{id}/pause", web.SignedIn, own.Pause)
	t.page("GET /bots/{id}/failed", web.SignedIn, own.Failed)
	t.page("POST /bots/{id}/failed/retry", web.SignedIn, own.Retry)
	t.page("GET /bots/{id}/failed/skip", web.SignedIn, own.ConfirmSkip)
	t.page("POST /bots/{id}/failed/skip", web.SignedIn, own.Skip)
	t.page("GET /bots/{id}/settings", web.SignedIn, own.Settings)
	t.page("GET /bots/{id}/delete", web.SignedIn, own.ConfirmDelete)
	t.page("POST /bots/{id}/delete", web.SignedIn, own.Delete)
	t.page("GET /bots/{id}/chat", web.SignedIn, own.Chat)
	t.page("POST /bots/{id}/chat", web.SignedIn, own.Write)
	t.page("POST /bots/{id}/chat/press", web.SignedIn, own.Press)
	t.page("POST /bots/{id}/chat/again", web.SignedIn, own.Again)
	t.page("POST /bots/{id}/chat/edit", web.SignedIn, own.EditMessage)
	t.page("POST /bots/{id}/chat/delete", web.SignedIn, own.DeleteMessage)
	t.page("POST /bots/{id}/chat/access", web.SignedIn, own.ChangeAccess)
	t.page("POST /bots/{id}/chat/file", web.SignedIn, own.AttachFile)
	t.page("POST /bots/{id}/chat/check", web.SignedIn, own.FinishCheck)
	t.page("GET /botfather/{space}", web.SignedIn, own.BotFather)
	t.page("POST /botfather/{space}/start", web.SignedIn, own.StartBotFather)

	sup := support.New(support.Options{Log: o.Log, Bots: o.Bots, Queue: o.Queue, Notices: o.Notices, WebhooksOff: o.WebhooksOff})
	t.page("GET /support", web.Look, sup.Home)
	t.page("GET /support/audit", web.Look, sup.Audit)
	t.page("GET /support/bots/{id}", web.Look, sup.Bot)
	t.page("GET /support/bots/{id}/updates", web.Look, sup.Updates)
	t.page("GET /support/bots/{id}/updates/{update}", web.Look, sup.Update)
	t.page("POST /support/bots/{id}/updates/{update}/unmask", web.Unmask, sup.Unmask)
	t.page("GET /support/bots/{id}/webhook", web.Act, sup.AskWebhook)
	t.page("POST /support/bots/{id}/webhook", web.Act, sup.Webhook)
	t.page("GET /support/spaces/{id}/running", web.Act, sup.AskRunning)
	t.page("POST /support/spaces/{id}/running", web.Act, sup.Running)
	t.page("GET /support/maintenance", web.Act, sup.AskMaintenance)
	t.page("POST /support/maintenance", web.Act, sup.Maintenance)
	t.page("GET /support/notices", web.Look, sup.Notices)
	t.page("POST /support/routes/{route}", web.Act, sup.Route)
	t.page("GET /support/notices/{id}", web.Look, sup.Notice)
	t.page("POST /support/notices/{id}/retry", web.Act, sup.RetryNotice)
	t.page("POST /support/notices/{id}/readdress", web.Act, sup.ReaddressNotice)
	t.page("POST /support/notices/{id}/close", web.Act, sup.CloseNotice)
	return t
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
