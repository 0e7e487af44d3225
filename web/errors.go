package web

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"mybots/delivery"
	"mybots/views/layout"
	"mybots/views/words"
)

// outcome is how an error is told to a stranger: the status, the code in
// data-code, and the key of the words.
type outcome struct {
	status int
	code   string
	key    string
	wait   time.Duration // Retry-After; 0 for none
}

// known is the one table from the product's errors to answers.
var known = []struct {
	is error
	outcome
}{
	{delivery.ErrNotFound, outcome{status: http.StatusNotFound, code: "NOT_FOUND", key: "not_found"}},
	{delivery.ErrStale, outcome{status: http.StatusConflict, code: "STALE", key: "stale"}},
	{delivery.ErrConflict, outcome{status: http.StatusConflict, code: "CONFLICT", key: "conflict"}},
	{delivery.ErrInvalid, outcome{status: http.StatusUnprocessableEntity, code: "INVALID", key: "invalid"}},
	{delivery.ErrUnavailable, outcome{status: http.StatusServiceUnavailable, code: "UNAVAILABLE", key: "unavailable", wait: 5 * time.Second}},
}

// refused has the refusals that aren't a plain conflict.
var refused = map[delivery.Code]outcome{
	delivery.InvalidRequest:  {status: http.StatusUnprocessableEntity, key: "invalid"},
	delivery.Unauthorized:    {status: http.StatusUnauthorized, key: "unauthorized"},
	delivery.UpdateNotFound:  {status: http.StatusNotFound, key: "not_found"},
	delivery.ChatNotFound:    {status: http.StatusNotFound, key: "not_found"},
	delivery.BotNotFound:     {status: http.StatusNotFound, key: "not_found"},
	delivery.RequestTooLarge: {status: http.StatusRequestEntityTooLarge, key: "too_large"},
	delivery.PayloadTooLarge: {status: http.StatusRequestEntityTooLarge, key: "too_large"},
	delivery.RateLimited:     {status: http.StatusTooManyRequests, key: "rate_limited"},
	delivery.Internal:        {status: http.StatusInternalServerError, key: "internal"},
	delivery.Maintenance:     {status: http.StatusServiceUnavailable, key: "maintenance"},
	delivery.Unavailable:     {status: http.StatusServiceUnavailable, key: "unavailable"},
}

func tooLarge(err error) bool {
	var e *http.MaxBytesError
	return errors.As(err, &e)
}

// outcomeOf looks an error up; what no row knows is our own fault.
func outcomeOf(err error) outcome {
	if refusal := (*delivery.Refusal)(nil); errors.As(err, &refusal) {
		o, ok := refused[refusal.Code]
		if !ok {
			o = outcome{status: http.StatusConflict, key: "conflict"}
		}
		o.code, o.wait = string(refusal.Code), refusal.RetryAfter
		return o
	}
	if tooLarge(err) {
		return outcome{status: http.StatusRequestEntityTooLarge, code: "REQUEST_TOO_LARGE", key: "too_large"}
	}
	for _, k := range known {
		if errors.Is(err, k.is) {
			return k.outcome
		}
	}
	return outcome{status: http.StatusInternalServerError, code: "INTERNAL", key: "internal"}
}

// Status returns the status with which Fail answers err.
func Status(err error) int { return outcomeOf(err).status }

// Fail answers with the page, or for htmx the piece, that tells a stranger
// about err in the reader's language. What is our fault is logged here, once
// (maintenance isn't), and answered with "something went wrong" and the request's number. A reader
// who has gone gets nothing.
func Fail(w http.ResponseWriter, r *http.Request, log *slog.Logger, err error) {
	ctx := r.Context()
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return
	}
	o := outcomeOf(err)
	if o.status >= http.StatusInternalServerError && o.code != string(delivery.Maintenance) {
		log.ErrorContext(ctx, "request failed", "request_id", RequestID(ctx), "code", o.code, "error", err)
	}
	answerTrouble(w, r, o)
}

// NotFound answers that there is no such page.
func NotFound(w http.ResponseWriter, r *http.Request) {
	answerTrouble(w, r, outcomeOf(delivery.ErrNotFound))
}

// fail answers without an error, and without a line in the log.
func fail(w http.ResponseWriter, r *http.Request, status int, code, key string) {
	answerTrouble(w, r, outcome{status: status, code: code, key: key})
}

// broken answers after a panic.
func broken(w http.ResponseWriter, r *http.Request) {
	answerTrouble(w, r, outcomeOf(errors.New("panic")))
}

func answerTrouble(w http.ResponseWriter, r *http.Request, o outcome) {
	ctx := r.Context()
	t := layout.Trouble{
		Code:  o.code,
		Title: words.T(ctx, "trouble."+o.key),
		Text:  words.T(ctx, "trouble."+o.key+"_text"),
	}
	if o.status >= http.StatusInternalServerError {
		t.RequestID = RequestID(ctx)
	}
	if o.wait > 0 {
		w.Header().Set("Retry-After", seconds(o.wait))
	}
	frame := Frame(r, t.Title)
	frame.Narrow = true
	t.BackURL = frame.Home
	RenderEither(w, r, o.status, layout.TroublePiece(t), layout.TroublePage(frame, t))
}

// seconds writes a wait for Retry-After, rounded up.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

// Pages serves mux with our own pages in place of its plain texts: 404 for
// paths that it doesn't have, 405 with Allow for methods that a path doesn't take.
func Pages(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		said := &unsaid{header: http.Header{}}
		h.ServeHTTP(said, r)
		if allow := said.header.Get("Allow"); said.status == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", allow)
			fail(w, r, http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED", "method")
			return
		}
		NotFound(w, r)
	})
}

// unsaid takes an answer that nobody gets.
type unsaid struct {
	header http.Header
	status int
}

func (u *unsaid) Header() http.Header         { return u.header }
func (u *unsaid) WriteHeader(status int)      { u.status = status }
func (u *unsaid) Write(p []byte) (int, error) { return len(p), nil }
