package botkit

import (
	"context"
	"encoding/json"
	"strings"
	"time"
	"unicode"
)

// Me is the bot that a token is for.
type Me struct {
	ID          ID     `json:"id"`
	Username    string `json:"username"`
	DisplayName string `json:"display_name"`
	IsBot       bool   `json:"is_bot"`
}

// GetMe tells which bot the token is for.
func (c *Client) GetMe(ctx context.Context) (Me, error) {
	var me Me
	err := c.read(ctx, "getMe", &me)
	return me, err
}

// Poll is one call of getUpdates (part 3 of the contract).
type Poll struct {
	ConsumerID string        `json:"consumer_id"`
	Epoch      ID            `json:"epoch,omitempty"`
	Offset     ID            `json:"offset,omitempty"` // confirms all updates below it
	Timeout    time.Duration `json:"-"`                // 0 to 25 s, whole seconds
	Limit      int           `json:"limit,omitempty"`  // 1 to 100; 0: 100
}

// Batch is what getUpdates returns.
type Batch struct {
	Updates         []json.RawMessage `json:"updates"` // read them with ParseUpdate
	ConfirmedOffset ID                `json:"confirmed_offset"`
	NextOffset      ID                `json:"next_offset"`
	Skipped         []SkippedRange    `json:"skipped"`
	Lease           Lease             `json:"lease"`
}

// SkippedRange says that updates left the queue before they were confirmed.
type SkippedRange struct {
	From   ID     `json:"from_update_id"`
	To     ID     `json:"to_update_id"` // the last one
	Reason string `json:"reason"`       // cancelled, skipped_by_owner, expired, failed, or a later one
}

// Lease says who receives the bot's updates.
type Lease struct {
	ConsumerID string    `json:"consumer_id"`
	Epoch      ID        `json:"epoch"`
	ExpiresAt  time.Time `json:"expires_at"`
	Waiting    bool      `json:"waiting"` // in DeliveryInfo: a poll waits
}

// GetUpdates asks once for the next batch; it is never repeated by itself. Bots
// use Bot.Poll, which knows what to do about every error.
func (c *Client) GetUpdates(ctx context.Context, p Poll) (Batch, error) {
	var b Batch
	params := struct {
		Poll
		Timeout int `json:"timeout"`
	}{p, int(p.Timeout / time.Second)}
	err := c.once(ctx, "getUpdates", "", params, &b, p.Timeout+answerTime)
	return b, err
}

// Rejection is one call of rejectUpdate (part 4 of the contract).
type Rejection struct {
	UpdateID   ID     `json:"update_id"`
	Reason     string `json:"reason"` // the owner reads it: no secrets, no personal data
	ConsumerID string `json:"consumer_id"`
	Epoch      ID     `json:"epoch"`
}

// RejectUpdate moves an update to the owner's FAILED list. The reason is cut to
// what the server takes. UpdateNotFound: it no longer waits; ConsumerConflict:
// the lease is gone.
func (c *Client) RejectUpdate(ctx context.Context, key string, r Rejection) error {
	r.Reason = plain(r.Reason)
	var result struct{}
	return c.write(ctx, "rejectUpdate", key, r, &result)
}

// plain makes a reason that the server takes: 1 to 256 characters, none of them
// a control character.
func plain(reason string) string {
	text := []rune(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(reason, "?")))
	if len(text) == 0 {
		return "no reason given"
	}
	return string(text[:min(len(text), 256)])
}

// DeliveryInfo is the state of the bot's queue (W-15).
type DeliveryInfo struct {
	Mode               string     `json:"mode"` // polling or webhook
	PendingUpdateCount int        `json:"pending_update_count"`
	PendingBytes       int64      `json:"pending_bytes"`
	OldestPendingDate  *time.Time `json:"oldest_pending_date"` // nil: nothing waits
	FailedUpdateCount  int        `json:"failed_update_count"`
	ConfirmedOffset    ID         `json:"confirmed_offset"`
	MaxIssuedUpdateID  ID         `json:"max_issued_update_id"`
	Lease              *Lease     `json:"lease"` // nil: nobody receives
	Limits             struct {
		Updates int   `json:"updates"`
		Bytes   int64 `json:"bytes"`
	} `json:"limits"`
}

// GetDeliveryInfo tells the state of the queue. It takes no lease.
func (c *Client) GetDeliveryInfo(ctx context.Context) (DeliveryInfo, error) {
	var info DeliveryInfo
	err := c.read(ctx, "getDeliveryInfo", &info)
	return info, err
}

// WebhookInfo is the state of webhook delivery (W-14).
type WebhookInfo struct {
	URL                string `json:"url"`
	State              string `json:"state"` // off, active, retrying, paused, circuit_open, disabled
	PendingUpdateCount int    `json:"pending_update_count"`
	LastError          *struct {
		Code    string    `json:"code"`
		Message string    `json:"message"`
		Date    time.Time `json:"date"`
	} `json:"last_error"`
	LastSuccessDate *time.Time `json:"last_success_date"`
	NextAttemptDate *time.Time `json:"next_attempt_date"`
}

// GetWebhookInfo tells the state of webhook delivery.
func (c *Client) GetWebhookInfo(ctx context.Context) (WebhookInfo, error) {
	var info WebhookInfo
	err := c.read(ctx, "getWebhookInfo", &info)
	return info, err
}

// Outgoing is one message to send.
type Outgoing struct {
	ChatID           ID         `json:"chat_id"`
	Text             string     `json:"text"` // 1 to 4096 characters
	ReplyToMessageID ID         `json:"reply_to_message_id,omitempty"`
	Buttons          [][]Button `json:"buttons,omitempty"` // rows
}

// SendMessage sends a message, once for each key: take u.Key("reply") or another
// ActionKey. The server refuses a call without one.
func (c *Client) SendMessage(ctx context.Context, key string, m Outgoing) (Message, error) {
	var sent Message
	err := c.write(ctx, "sendMessage", key, m, &sent)
	return sent, err
}

// AnswerCallbackQuery answers the press of a button, once for each key. The
// person sees text, at most 200 characters; "" just ends the waiting.
func (c *Client) AnswerCallbackQuery(ctx context.Context, key, callbackQueryID, text string) error {
	params := struct {
		CallbackQueryID string `json:"callback_query_id"`
		Text            string `json:"text,omitempty"`
	}{callbackQueryID, text}
	var result struct{}
	return c.write(ctx, "answerCallbackQuery", key, params, &result)
}
