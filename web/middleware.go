package web

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/google/uuid"
)

type requestIDKey struct{}

// RequestID returns the request's number, "" outside of Observe.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// Observe is the outermost middleware: it numbers the request, says the number
// in X-Request-Id, and logs one line when it is done. The line has the route's
// pattern, never the path or the query, which may hold what isn't for logs.
func Observe(log *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		id := uuid.NewString()
		said := &statusWriter{ResponseWriter: w}
		noted := &notes{}
		ctx := context.WithValue(context.WithValue(r.Context(), requestIDKey{}, id), notesKey{}, noted)
		w.Header().Set("X-Request-Id", id)
		defer func() {
			level := slog.LevelInfo
			if r.Pattern == "GET /healthz" || r.Pattern == "GET /readyz" {
				level = slog.LevelDebug // asked every few seconds, for nobody to read
			}
			log.Log(ctx, level, "request", append([]any{"request_id", id, "method", r.Method, "route", r.Pattern,
				"status", said.code(), "took", time.Since(began)}, noted.all()...)...)
		}()
		pass(next, said, r, ctx)
	})
}

// pass serves a copy of r with ctx and brings the route that it took back to r.
func pass(next http.Handler, w http.ResponseWriter, r *http.Request, ctx context.Context) {
	inner := r.WithContext(ctx)
	defer func() { r.Pattern = inner.Pattern }()
	next.ServeHTTP(w, inner)
}

// Recover answers a panic with answer, if nothing has been answered yet, and
// logs it with its stack; the stranger sees neither.
func Recover(log *slog.Logger, answer http.HandlerFunc, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said := &statusWriter{ResponseWriter: w}
		defer func() {
			reason := recover()
			if reason == nil {
				return
			}
			if reason == http.ErrAbortHandler {
				panic(reason) // the handler wants the connection dropped
			}
			ctx := r.Context()
			log.ErrorContext(ctx, "panic", "request_id", RequestID(ctx), "route", r.Pattern,
				"reason", reason, "stack", string(debug.Stack()))
			if said.status != 0 {
				panic(http.ErrAbortHandler) // half an answer is out: drop the connection
			}
			answer(w, r)
		}()
		next.ServeHTTP(said, r)
	})
}

// Limit lets no body of more than n bytes in; reading on gives an
// *http.MaxBytesError, which Fail answers with 413.
func Limit(n int64, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, n)
		next.ServeHTTP(w, r)
	})
}

// WriteWithin ends the connection when the answer isn't out after d. It is in
// real time: it guards the network, not the product.
func WriteWithin(d time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Only test recorders have no deadlines; they need none.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(d))
		next.ServeHTTP(w, r)
	})
}

// statusWriter remembers the status.
type statusWriter struct {
	http.ResponseWriter
	status int // 0 until something is said
}

func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController through.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// code is the status as it is logged.
func (w *statusWriter) code() int {
	if w.status == 0 {
		return http.StatusOK
	}
	return w.status
}
