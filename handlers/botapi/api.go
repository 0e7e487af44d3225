// Package botapi is the Bot API: what a bot's program calls (contract, parts 1,
// 3 and 4). One file a method; this one brings a call to its method.
package botapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/delivery/chat"
	"mybots/delivery/queue"
	"mybots/delivery/wake"
	"mybots/web"
)

// Prefix is where the Bot API's methods stand.
const Prefix = "/bot-api/v1/"

// What one call may ask of the database, in real time: it never hangs.
const (
	tokenTime = 5 * time.Second // to look its token up
	workTime  = 8 * time.Second // to do its work
)

type botStore interface {
	ByToken(ctx context.Context, token delivery.Secret) (bots.Bot, error)
}

type queues interface {
	Receive(ctx context.Context, botID int64, call delivery.Poll, address string) (queue.Received, error)
	Resume(ctx context.Context, botID int64, ticket delivery.Ticket, limit int, last bool) (queue.Received, error)
	Reject(ctx context.Context, call queue.Once, r delivery.Rejection) ([]byte, bool, error)
	Status(ctx context.Context, botID int64) (queue.Status, error)
}

type chats interface {
	Send(ctx context.Context, bot chat.Bot, call queue.Once, m chat.Outgoing) ([]byte, bool, error)
	Answer(ctx context.Context, bot chat.Bot, call queue.Once, a chat.CallbackAnswer) ([]byte, bool, error)
}

// Handler serves the Bot API.
type Handler struct {
	log    *slog.Logger
	clock  delivery.Clock
	bots   botStore
	queues queues
	chats  chats
	bell   *wake.Bell

	webhooksOff bool
	address     func(*http.Request) string // of the caller, for the owner's eyes
	metrics     *metrics
	methods     map[string]method
}

// Options is what a Handler needs.
type Options struct {
	Log    *slog.Logger
	Clock  delivery.Clock
	Bots   botStore
	Queues queues
	Chats  chats
	Bell   *wake.Bell
	// WebhooksOff: the installation has no webhooks (G-06).
	WebhooksOff bool
	Address     func(*http.Request) string // the caller's address, as it is shown to the owner
	Metrics     Registerer
}

// New returns the Bot API.
func New(o Options) *Handler {
	h := &Handler{log: o.Log, clock: o.Clock, bots: o.Bots, queues: o.Queues, chats: o.Chats, bell: o.Bell, webhooksOff: o.WebhooksOff, address: o.Address,
		metrics: newMetrics(o.Metrics)}
	h.methods = map[string]method{
		"getMe":               h.getMe,
		"getUpdates":          h.getUpdates,
		"rejectUpdate":        h.rejectUpdate,
		"getDeliveryInfo":     h.getDeliveryInfo,
		"getWebhookInfo":      h.getWebhookInfo,
		"sendMessage":         h.sendMessage,
		"answerCallbackQuery": h.answerCallbackQuery,
	}
	return h
}

// call is one call on its way through a method.
type call struct {
	*http.Request
	bot    bots.Bot
	fields *fields
	method string
}

// work returns the context for what the call asks of the database. It outlives
// a caller that hangs up: cancelling a statement costs a connection and saves nothing.
func (c call) work() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(c.Context()), workTime)
}

// answer is a method's success.
type answer struct {
	result   []byte // JSON
	replayed bool   // it is the stored one of an Idempotency-Key
}

// method does one call. Its error is a *delivery.Refusal, or one that web's
// table knows, or our own fault. errGone: nobody is there to be answered.
type method func(call) (answer, error)

// ServeHTTP checks in the order of A-04: 405, 401, 404, 415, 413, 400; the rest
// is the method's.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, known := strings.CutPrefix(r.URL.Path, Prefix)
	do := h.methods[name]
	if !known || do == nil {
		name = "unknown"
	}
	began := time.Now()
	result, err := h.serve(w, r, name, do)
	code := respond(w, r, h.log, result, err)
	h.metrics.answered(name, code, time.Since(began))
	web.Note(r.Context(), "api_method", name, "code", code)
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request, name string, do method) (answer, error) {
	limitTime(w)
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return answer{}, delivery.Refuse(delivery.MethodNotAllowed, "only POST is allowed here; send the fields as a JSON object in the body")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), tokenTime)
	bot, err := h.authorize(ctx, r)
	cancel()
	if err != nil {
		return answer{}, err
	}
	web.Note(r.Context(), "bot_id", bot.ID)
	if do == nil {
		return answer{}, delivery.Refuse(delivery.MethodNotFound, "there is no such method; the methods are getMe, getUpdates, rejectUpdate, getDeliveryInfo, getWebhookInfo, sendMessage and answerCallbackQuery")
	}
	fields, err := readFields(w, r)
	if err != nil {
		return answer{}, err
	}
	result, err := do(call{Request: r, bot: bot, fields: fields, method: name})
	if errors.Is(err, delivery.ErrNotFound) { // the bot was deleted since it was found
		err = delivery.Refuse(delivery.Unauthorized, delivery.UnauthorizedMessage)
	}
	return result, err
}

// limitTime bounds the reading of the body and the writing of the answer, the
// longest poll's wait included, in real time: it guards the network.
func limitTime(w http.ResponseWriter) {
	c := http.NewResponseController(w)
	// Only test recorders have no deadlines; they need none.
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	_ = c.SetWriteDeadline(time.Now().Add(delivery.MaxPollTimeout*time.Second + 20*time.Second))
}
