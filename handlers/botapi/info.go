package botapi

import (
	"encoding/json"
	"strconv"

	"mybots/delivery"
)

type me struct {
	ID          string `json:"id"`
	Username    string `json:"username"`
	DisplayName string `json:"display_name"`
	IsBot       bool   `json:"is_bot"`
}

// getMe tells a program which bot its token is for.
func (h *Handler) getMe(c call) (answer, error) {
	return encode(me{ID: strconv.FormatInt(c.bot.ID, 10), Username: c.bot.Username, DisplayName: c.bot.Name, IsBot: true})
}

type deliveryInfo struct {
	Mode               string     `json:"mode"`
	PendingUpdateCount int        `json:"pending_update_count"`
	PendingBytes       int64      `json:"pending_bytes"`
	OldestPendingDate  *string    `json:"oldest_pending_date"`
	FailedUpdateCount  int        `json:"failed_update_count"`
	ConfirmedOffset    string     `json:"confirmed_offset"`
	MaxIssuedUpdateID  string     `json:"max_issued_update_id"`
	Lease              *infoLease `json:"lease"`
	Limits             limits     `json:"limits"`
}

type infoLease struct {
	ConsumerID string `json:"consumer_id"`
	ExpiresAt  string `json:"expires_at"`
	Waiting    bool   `json:"waiting"`
}

type limits struct {
	Updates int `json:"updates"`
	Bytes   int `json:"bytes"`
}

// getDeliveryInfo tells the state of the queue (W-15). It takes no lease and
// touches none.
func (h *Handler) getDeliveryInfo(c call) (answer, error) {
	ctx, cancel := c.work()
	defer cancel()
	s, err := h.queues.Status(ctx, c.bot.ID)
	if err != nil {
		return answer{}, err
	}
	info := deliveryInfo{
		Mode: string(s.Mode), PendingUpdateCount: s.Waiting, PendingBytes: s.WaitingBytes, FailedUpdateCount: s.Failed,
		ConfirmedOffset: strconv.FormatInt(s.Confirmed, 10), MaxIssuedUpdateID: strconv.FormatInt(s.MaxIssued, 10),
		Limits: limits{Updates: delivery.MaxWaiting, Bytes: delivery.MaxWaitingBytes},
	}
	if !s.OldestWaiting.IsZero() {
		date := delivery.FormatTime(s.OldestWaiting)
		info.OldestPendingDate = &date
	}
	if s.Active(s.At) {
		info.Lease = &infoLease{ConsumerID: s.ConsumerID, ExpiresAt: delivery.FormatTime(s.LeaseUntil), Waiting: s.Connection.Waiting(s.At)}
	}
	return encode(info)
}

type webhookInfo struct {
	URL                string  `json:"url"`
	State              string  `json:"state"`
	PendingUpdateCount int     `json:"pending_update_count"`
	LastError          *string `json:"last_error"`
	LastSuccessDate    *string `json:"last_success_date"`
	NextAttemptDate    *string `json:"next_attempt_date"`
}

// getWebhookInfo tells the state of webhook delivery (W-14): off, for a bot that
// receives by long polling.
func (h *Handler) getWebhookInfo(c call) (answer, error) {
	ctx, cancel := c.work()
	defer cancel()
	s, err := h.queues.Status(ctx, c.bot.ID)
	if err != nil {
		return answer{}, err
	}
	return encode(webhookInfo{State: "off", PendingUpdateCount: s.Waiting})
}

func encode(v any) (answer, error) {
	b, err := json.Marshal(v)
	return answer{result: b}, err
}
