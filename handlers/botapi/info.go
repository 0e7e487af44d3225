package botapi

import (
	"encoding/json"
	"strconv"
	"time"

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
	info.OldestPendingDate = date(s.OldestWaiting)
	if s.Active(s.At) {
		info.Lease = &infoLease{ConsumerID: s.ConsumerID, ExpiresAt: delivery.FormatTime(s.LeaseUntil), Waiting: s.Connection.Waiting(s.At)}
	}
	return encode(info)
}

type webhookInfo struct {
	URL                string        `json:"url"`
	State              string        `json:"state"`
	PendingUpdateCount int           `json:"pending_update_count"`
	LastError          *webhookError `json:"last_error"`
	LastSuccessDate    *string       `json:"last_success_date"`
	NextAttemptDate    *string       `json:"next_attempt_date"`
}

type webhookError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Date    string `json:"date"`
}

// getWebhookInfo tells the state of webhook delivery (W-14).
func (h *Handler) getWebhookInfo(c call) (answer, error) {
	ctx, cancel := c.work()
	defer cancel()
	s, err := h.queues.Status(ctx, c.bot.ID)
	if err != nil {
		return answer{}, err
	}
	info := webhookInfo{State: s.Hook.State(s.Connection, s.HookAllowed && !h.webhooksOff, s.Waiting > 0), PendingUpdateCount: s.Waiting}
	if info.State == delivery.HookOff {
		return encode(info)
	}
	info.URL = s.HookURL
	if e := s.Hook.LastError; !e.At.IsZero() {
		info.LastError = &webhookError{Code: e.Code, Message: e.Message(), Date: delivery.FormatTime(e.At)}
	}
	info.LastSuccessDate = date(s.Hook.SuccessAt)
	if info.State == delivery.HookOpen || info.State == delivery.HookRetrying {
		next := s.At
		if s.Hook.Due.After(next) && !s.Hook.ProbeAsked {
			next = s.Hook.Due
		}
		info.NextAttemptDate = date(next)
	}
	return encode(info)
}

// date writes a time, nil for none.
func date(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := delivery.FormatTime(t)
	return &text
}

func encode(v any) (answer, error) {
	b, err := json.Marshal(v)
	return answer{result: b}, err
}
