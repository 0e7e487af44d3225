package botkit

import (
	"encoding/json"
	"fmt"
	"time"
)

// Code is an error code of the Bot API. A Code is an error itself, so
// that errors.Is(err, botkit.ChatNotFound) tells what a call failed with.
type Code string

// The codes of the Bot API.
const (
	InvalidRequest         Code = "INVALID_REQUEST"
	OffsetNotIssued        Code = "OFFSET_NOT_ISSUED"
	IdempotencyKeyRequired Code = "IDEMPOTENCY_KEY_REQUIRED"
	Unauthorized           Code = "UNAUTHORIZED"
	BotDisabled            Code = "BOT_DISABLED"
	MethodNotFound         Code = "METHOD_NOT_FOUND"
	UpdateNotFound         Code = "UPDATE_NOT_FOUND"
	ChatNotFound           Code = "CHAT_NOT_FOUND"
	MethodNotAllowed       Code = "METHOD_NOT_ALLOWED"
	ConsumerConflict       Code = "CONSUMER_CONFLICT"
	CursorBehind           Code = "CURSOR_BEHIND"
	DeliveryModeConflict   Code = "DELIVERY_MODE_CONFLICT"
	IdempotencyKeyReused   Code = "IDEMPOTENCY_KEY_REUSED"
	BotPaused              Code = "BOT_PAUSED"
	RequestTooLarge        Code = "REQUEST_TOO_LARGE"
	UnsupportedMediaType   Code = "UNSUPPORTED_MEDIA_TYPE"
	RateLimited            Code = "RATE_LIMITED"
	Internal               Code = "INTERNAL"
	Maintenance            Code = "MAINTENANCE"
	Unavailable            Code = "UNAVAILABLE"
)

// Codes of the kit itself, for calls with no answer from the Bot API.
const (
	NoAnswer  Code = "NO_ANSWER"  // the connection failed or broke: the call may have been done, or not
	BadAnswer Code = "BAD_ANSWER" // the body isn't the Bot API's, for example a proxy's page
	BadResult Code = "BAD_RESULT" // the Bot API's own answer doesn't have the shape that this kit knows
)

// Error returns the code.
func (c Code) Error() string { return string(c) }

// Error is a call of the Bot API that failed. errors.As finds it; errors.Is with
// a Code compares the code.
type Error struct {
	Method          string
	Code            Code
	Status          int           // of HTTP; 0 without an answer
	Message         string        // the server's words
	RetryAfter      time.Duration // 0: the server named no time
	ConfirmedOffset ID            // with CURSOR_BEHIND
	RequestID       string        // to tell support; "" if there is none
	Details         map[string]json.RawMessage
	cause           error
}

// Error holds no token and nothing of the request's body.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s: %s: %s", e.Method, e.Code, e.Message)
	if e.RequestID != "" {
		text += " (request " + e.RequestID + ")"
	}
	return text
}

// Is compares the code with a Code.
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code == e.Code
}

// Unwrap returns what broke the connection, for example context.Canceled.
func (e *Error) Unwrap() error { return e.cause }

// passing tells whether the same call may succeed later with nothing changed.
func (e *Error) passing() bool {
	return e.Code == NoAnswer || e.Code == BadAnswer || e.Status == 429 || e.Status >= 500
}
