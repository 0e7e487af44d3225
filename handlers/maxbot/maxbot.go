// Package maxbot takes what people write to our bot at the MAX messenger: the
// codes that link their accounts (N-07).
package maxbot

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"mybots/delivery"
	"mybots/web"
)

const (
	secretHeader = "X-Max-Bot-Api-Secret"
	maxBody      = 64 << 10
	workTime     = 10 * time.Second // MAX waits 30 s
)

// linker links the account of whoever sent a code.
type linker interface {
	Link(ctx context.Context, maxUserID int64, text string) (userID int64, err error)
}

// Handler answers MAX's webhook.
type Handler struct {
	log    *slog.Logger
	links  linker
	secret [sha256.Size]byte
}

// New returns the webhook, for calls that carry secret.
func New(log *slog.Logger, links linker, secret delivery.Secret) *Handler {
	return &Handler{log: log, links: links, secret: sha256.Sum256([]byte(secret))}
}

// event is as much of MAX's Update as counts here.
type event struct {
	Type    string `json:"update_type"`
	Message struct {
		Sender account `json:"sender"`
		Body   struct {
			Text string `json:"text"`
		} `json:"body"`
	} `json:"message"` // of message_created
	User    account `json:"user"`    // of bot_started
	Payload string  `json:"payload"` // of bot_started: what the link to the bot carried
}

type account struct {
	ID int64 `json:"user_id"`
}

// ServeHTTP checks the secret before it reads anything. What it understands and
// what it doesn't are answered with 200, as MAX would only send it again; 503 while
// the database can't be reached, for MAX to do so.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	got := sha256.Sum256([]byte(r.Header.Get(secretHeader)))
	if subtle.ConstantTimeCompare(got[:], h.secret[:]) != 1 {
		web.RefuseJSON(w, r, h.log, delivery.Refuse(delivery.Unauthorized, "the secret is missing or wrong"))
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		web.RefuseJSON(w, r, h.log, delivery.Refuse(delivery.MethodNotAllowed, "only POST"))
		return
	}
	body, err := web.ReadJSON(w, r, maxBody)
	if err != nil {
		web.RefuseJSON(w, r, h.log, err)
		return
	}
	if !json.Valid(body) {
		web.RefuseJSON(w, r, h.log, delivery.Refuse(delivery.InvalidRequest, "the body isn't JSON"))
		return
	}
	var e event
	if err := json.Unmarshal(body, &e); err != nil {
		h.done(w) // another shape than that of the updates that count here
		return
	}
	from, text := e.Message.Sender.ID, e.Message.Body.Text
	if e.Type == "bot_started" {
		from, text = e.User.ID, e.Payload
	}
	if e.Type == "message_created" || e.Type == "bot_started" {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), workTime)
		defer cancel()
		if _, err := h.links.Link(ctx, from, text); err != nil && !errors.Is(err, delivery.ErrNotFound) {
			web.RefuseJSON(w, r, h.log, err)
			return
		}
	}
	h.done(w)
}

func (h *Handler) done(w http.ResponseWriter) {
	web.JSON(w, http.StatusOK, []byte(`{"success":true}`+"\n"))
}
