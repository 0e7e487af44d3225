package web

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"mybots/delivery"
)

// The JSON side: what the Bot API and intake share.

// statuses are those of A-08.
var statuses = map[delivery.Code]int{
	delivery.InvalidRequest:         http.StatusBadRequest,
	delivery.OffsetNotIssued:        http.StatusBadRequest,
	delivery.IdempotencyKeyRequired: http.StatusBadRequest,
	delivery.Unauthorized:           http.StatusUnauthorized,
	delivery.BotDisabled:            http.StatusForbidden,
	delivery.MethodNotFound:         http.StatusNotFound,
	delivery.UpdateNotFound:         http.StatusNotFound,
	delivery.ChatNotFound:           http.StatusNotFound,
	delivery.MethodNotAllowed:       http.StatusMethodNotAllowed,
	delivery.ConsumerConflict:       http.StatusConflict,
	delivery.CursorBehind:           http.StatusConflict,
	delivery.DeliveryModeConflict:   http.StatusConflict,
	delivery.IdempotencyKeyReused:   http.StatusConflict,
	delivery.BotPaused:              http.StatusConflict,
	delivery.RequestTooLarge:        http.StatusRequestEntityTooLarge,
	delivery.UnsupportedMediaType:   http.StatusUnsupportedMediaType,
	delivery.RateLimited:            http.StatusTooManyRequests,
	delivery.Internal:               http.StatusInternalServerError,
	delivery.Maintenance:            http.StatusServiceUnavailable,
	delivery.Unavailable:            http.StatusServiceUnavailable,
}

// JSON writes a finished JSON body.
func JSON(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	// Who can't be written to has gone; their next call finds out what became of this one.
	_, _ = w.Write(body)
}

type errorBody struct {
	OK        bool      `json:"ok"`
	Error     errorJSON `json:"error"`
	RequestID string    `json:"request_id"`
}

type errorJSON struct {
	Code            delivery.Code `json:"code"`
	Message         string        `json:"message"`
	RetryAfter      int64         `json:"retry_after,omitempty"`
	ConfirmedOffset string        `json:"confirmed_offset,omitempty"`
}

// RefuseJSON answers an error in the envelope of A-01 and returns its code. A
// *delivery.Refusal and a *delivery.Invalid tell the caller what they say; a
// database that can't be reached is 503 UNAVAILABLE; anything else is our
// own fault: 500 INTERNAL, with the cause in the log alone.
func RefuseJSON(w http.ResponseWriter, r *http.Request, log *slog.Logger, err error) delivery.Code {
	refusal := refusalOf(err)
	if refusal.Code == delivery.Internal || refusal.Code == delivery.Unavailable {
		log.ErrorContext(r.Context(), "request failed", "request_id", RequestID(r.Context()), "code", refusal.Code, "err", err)
	}
	status, known := statuses[refusal.Code]
	if !known {
		status = http.StatusInternalServerError
	}
	e := errorJSON{Code: refusal.Code, Message: refusal.Message}
	if refusal.RetryAfter > 0 {
		e.RetryAfter = wholeSeconds(refusal.RetryAfter)
		w.Header().Set("Retry-After", strconv.FormatInt(e.RetryAfter, 10))
	}
	if refusal.Code == delivery.CursorBehind {
		e.ConfirmedOffset = strconv.FormatInt(refusal.ConfirmedOffset, 10)
	}
	body, err := json.Marshal(errorBody{Error: e, RequestID: RequestID(r.Context())})
	if err != nil {
		panic("encode an error: " + err.Error()) // strings and numbers always encode
	}
	JSON(w, status, append(body, '\n'))
	return refusal.Code
}

func refusalOf(err error) *delivery.Refusal {
	var refusal *delivery.Refusal
	var invalid *delivery.Invalid
	switch {
	case errors.As(err, &refusal):
		return refusal
	case errors.As(err, &invalid):
		return delivery.Refuse(delivery.InvalidRequest, invalid.Error())
	case errors.Is(err, delivery.ErrUnavailable):
		return &delivery.Refusal{Code: delivery.Unavailable, Message: "the server can't reach its database at the moment; repeat the call", RetryAfter: 2 * time.Second}
	}
	return delivery.Refuse(delivery.Internal, "internal error; the request_id leads support to its cause")
}

// wholeSeconds rounds up, to at least one.
func wholeSeconds(d time.Duration) int64 {
	return max(1, int64(math.Ceil(d.Seconds())))
}

// Bearer returns the one Authorization header's token, "" when there is none,
// more than one, or one without the prefix.
func Bearer(r *http.Request, prefix string) delivery.Secret {
	headers := r.Header.Values("Authorization")
	if len(headers) != 1 {
		return ""
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	if !strings.EqualFold(scheme, "Bearer") || !strings.HasPrefix(token, prefix) || len(token) > 256 {
		return ""
	}
	return delivery.Secret(token)
}

// ReadJSON reads a body of at most limit bytes, in the order of A-04: 415, 413,
// then 400 for what isn't UTF-8. An empty body comes back empty.
func ReadJSON(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if declared := r.Header.Get("Content-Type"); declared != "" {
		kind, _, err := mime.ParseMediaType(declared)
		if err != nil || kind != "application/json" && !(strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json")) {
			return nil, delivery.Refuse(delivery.UnsupportedMediaType, "the body must be JSON: Content-Type: application/json")
		}
	}
	tooLarge := delivery.Refuse(delivery.RequestTooLarge, "the body may hold at most "+strconv.FormatInt(limit>>10, 10)+" KiB")
	if r.ContentLength > limit {
		w.Header().Set("Connection", "close") // what it wanted to send isn't read
		return nil, tooLarge
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, tooLarge
	case err != nil:
		w.Header().Set("Connection", "close")
		return nil, delivery.Refuse(delivery.InvalidRequest, "the body couldn't be read to its end")
	case !utf8.Valid(body):
		return nil, delivery.Refuse(delivery.InvalidRequest, "the body must be UTF-8")
	}
	return body, nil
}
