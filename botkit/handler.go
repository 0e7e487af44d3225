package botkit

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
)

// Handler handles an update, whichever way it came. nil is a good outcome: the
// update is done with, and is confirmed. An error or a panic is none: it is not
// confirmed and comes again (K-01, K-02). An update may come more than once, so
// give whatever the handler does a key, u.Key("reply").
//
// ctx ends when the handler has had its time, or some seconds after the bot was
// asked to stop.
type Handler interface {
	Handle(ctx context.Context, u *Update) error
}

// HandlerFunc is a function that is a Handler.
type HandlerFunc func(ctx context.Context, u *Update) error

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, u *Update) error { return f(ctx, u) }

// Middleware makes a handler that does something around next. One that doesn't
// call next and returns nil, as a limiter does, is a good outcome: the update is
// done with. Its errors surface: no error handler sees them (K-04).
type Middleware func(next Handler) Handler

// PanicError is a panic in a handler, a middleware, an error handler or a
// policy. No error handler sees it (K-02).
type PanicError struct {
	Value any
	Stack []byte
}

// Error names the value's kind only, since the value may quote the update.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %T", e.Value) }

// guard calls f and turns a panic into a *PanicError.
func guard(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}

// RejectedError says that an update can never be handled, see Reject.
type RejectedError struct{ Reason string }

// Error returns the reason.
func (e *RejectedError) Error() string { return "rejected: " + e.Reason }

// Reject returns the error with which a handler, an error handler or a
// DecodePolicy says that this update can never be handled. It then moves to the
// owner's FAILED list with the reason, from where the owner can replay it, and
// holds up no other: by rejectUpdate when polling, by the answer 422 from a
// webhook. Once an update is in an Inbox it is parked there instead. The owner
// reads the reason: no secrets, no personal data.
func Reject(reason string) error { return &RejectedError{Reason: reason} }

// rejected returns the reason if err is one of Reject's.
func rejected(err error) (reason string, ok bool) {
	if r, ok := errors.AsType[*RejectedError](err); ok {
		return r.Reason, true
	}
	return "", false
}
