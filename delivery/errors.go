package delivery

import (
	"errors"
	"fmt"
	"time"
)

// The errors that the rooms share. They are wrapped with what was tried and
// compared with errors.Is.
var (
	// ErrNotFound: there is no such thing, or it isn't the caller's.
	ErrNotFound = errors.New("not found")
	// ErrConflict: it would collide with something that is there already.
	ErrConflict = errors.New("conflict")
	// ErrStale: what the caller looked at has changed since.
	ErrStale = errors.New("changed elsewhere meanwhile")
	// ErrInvalid: the input breaks a rule; see Invalid for the field.
	ErrInvalid = errors.New("invalid")
	// ErrUnavailable: the database can't be reached.
	ErrUnavailable = errors.New("database unavailable")
)

// Invalid is an ErrInvalid that names the field and the rule that it breaks.
type Invalid struct {
	Field string // the field's name as the caller wrote it
	Rule  string // a sentence that says what is allowed
}

func (e *Invalid) Error() string { return fmt.Sprintf("%s %s", e.Field, e.Rule) }

// Is makes every Invalid an ErrInvalid.
func (e *Invalid) Is(target error) bool { return target == ErrInvalid }

// Code is an error code of the Bot API and of intake (A-08, I-01).
type Code string

// The codes of A-08.
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

// The codes that only single events of an intake batch get (I-01).
const (
	QueueFull       Code = "QUEUE_FULL"
	BotNotFound     Code = "BOT_NOT_FOUND"
	PayloadTooLarge Code = "PAYLOAD_TOO_LARGE"
	InvalidEvent    Code = "INVALID_EVENT"
)

// The codes that a refused save of the Connection screen gets (W-01, W-03).
const (
	WebhookURLForbidden Code = "WEBHOOK_URL_FORBIDDEN"
	WebhooksUnavailable Code = "WEBHOOKS_UNAVAILABLE"
)

// Refusal is the product saying no to a bot's program, in the words that the
// program gets.
type Refusal struct {
	Code    Code
	Message string
	// RetryAfter says how long to wait; zero where A-05 asks for none.
	RetryAfter time.Duration
	// ConfirmedOffset is the position that CURSOR_BEHIND carries (P-10).
	ConfirmedOffset int64
}

func (r *Refusal) Error() string { return string(r.Code) + ": " + r.Message }

// Refuse returns a Refusal that asks for no waiting.
func Refuse(code Code, message string) *Refusal { return &Refusal{Code: code, Message: message} }
