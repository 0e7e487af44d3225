// Package support answers for support's pages: they find bots, see the whole
// state of delivery, look into one update with a reason, and switch things off
// and on (UI-06). Who may do what, the routes say; the store asks again in the
// transaction of each deed.
//
//	GET  /support                                     Home
//	GET  /support/audit                               Audit
//	GET  /support/maintenance                         AskMaintenance
//	POST /support/maintenance                         Maintenance
//	GET  /support/spaces/{id}/running                 AskRunning
//	POST /support/spaces/{id}/running                 Running
//	GET  /support/bots/{id}                           Bot
//	GET  /support/bots/{id}/webhook                   AskWebhook
//	POST /support/bots/{id}/webhook                   Webhook
//	GET  /support/bots/{id}/updates                   Updates
//	GET  /support/bots/{id}/updates/{update}          Update
//	POST /support/bots/{id}/updates/{update}/unmask   Unmask
//	GET  /support/notices                             Notices
//	POST /support/routes/{route}                      Route
//	GET  /support/notices/{id}                        Notice
//	POST /support/notices/{id}/retry                  RetryNotice
//	POST /support/notices/{id}/readdress              ReaddressNotice
//	POST /support/notices/{id}/close                  CloseNotice
package support

import (
	"context"
	"log/slog"

	"github.com/jmoiron/sqlx"

	"mybots/delivery/audit"
	"mybots/delivery/bots"
	"mybots/delivery/notice"
	"mybots/delivery/queue"
)

// botStore is what the pages ask of package bots.
type botStore interface {
	Find(ctx context.Context, text string, after int64, limit int) ([]bots.Found, error)
	Count(ctx context.Context, text string, most int) (int, error)
	Look(ctx context.Context, botID int64) (bots.Found, error)
	Attention(ctx context.Context, rank int, after int64, limit int) ([]bots.Needs, error)
	CountAttention(ctx context.Context, most int) (int, error)
	Space(ctx context.Context, spaceID int64) (bots.Space, error)
	Log(ctx context.Context, f audit.Filter, before int64, limit int) ([]audit.Line, error)
	Maintenance(ctx context.Context) (bots.Maintenance, error)
	WebhookOff(ctx context.Context, botID int64) (bots.Off, error)
	SpaceOff(ctx context.Context, spaceID int64) (bots.Off, error)
	AllowWebhook(ctx context.Context, by bots.Actor, botID int64, allowed bool, reason string) error
	RunSpace(ctx context.Context, by bots.Actor, spaceID int64, running bool, reason string) error
	Maintain(ctx context.Context, by bots.Actor, m queue.Maintenance, reason string) error
	Unmask(ctx context.Context, by bots.Actor, botID, updateID int64, reason string) (queue.Kept, []byte, error)
	ActingFor(by bots.Actor, reason string) (func(context.Context, *sqlx.Tx, audit.Entry) error, error)
}

// outbox is what the pages ask of package notice.
type outbox interface {
	MAX() bool
	List(ctx context.Context, f notice.Filter, before int64, limit int) ([]notice.Line, error)
	Count(ctx context.Context, f notice.Filter, most int) (int, error)
	Line(ctx context.Context, id int64) (notice.Line, error)
	Unreachable(ctx context.Context, spaceID, userID int64) (bool, error)
	Retry(ctx context.Context, id int64, within notice.Within) error
	Readdress(ctx context.Context, id int64, route, recipient string, within notice.Within) error
	Close(ctx context.Context, id int64, within notice.Within) error
	Ways(ctx context.Context) ([]notice.Way, error)
	StopRoute(ctx context.Context, route string, within notice.Within) error
	ResumeRoute(ctx context.Context, route string, portion int, within notice.Within) error
}

// queueReader looks at a bot's queue; no content of an update comes from it.
type queueReader interface {
	Status(ctx context.Context, botID int64) (queue.Status, error)
	Attempts(ctx context.Context, botID int64, limit int) ([]queue.Attempt, error)
	FailedMaskedGroups(ctx context.Context, botID int64) ([]queue.FailedGroup, error)
	WaitingMasked(ctx context.Context, botID, after int64, limit int) ([]queue.Kept, error)
	FailedMasked(ctx context.Context, botID, after int64, limit int) ([]queue.Kept, error)
	Peek(ctx context.Context, botID, updateID int64) (queue.Kept, string, error)
}

// Options is what the handlers need from the program.
type Options struct {
	Log         *slog.Logger
	Bots        botStore
	Queue       queueReader
	Notices     outbox
	WebhooksOff bool // the installation has none (W-03)
}

// Handler has a method for each page and deed of support.
type Handler struct {
	log         *slog.Logger
	bots        botStore
	queue       queueReader
	notices     outbox
	webhooksOff bool
}

// New returns support's handlers.
func New(o Options) *Handler {
	return &Handler{log: o.Log, bots: o.Bots, queue: o.Queue, notices: o.Notices, webhooksOff: o.WebhooksOff}
}
