package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mybots/delivery"
	"mybots/views/words"
)

func TestFail(t *testing.T) {
	t.Parallel()
	secret := "pq: password authentication failed for user mybots"
	for name, c := range map[string]struct {
		err        error
		want       int
		code, says string
		retry      string
		logged     bool
	}{
		"not found":        {fmt.Errorf("bot 7: %w", delivery.ErrNotFound), 404, "NOT_FOUND", "There is no such page", "", false},
		"stale":            {fmt.Errorf("save: %w", delivery.ErrStale), 409, "STALE", "Somebody changed this meanwhile", "", false},
		"conflict":         {fmt.Errorf("%s: %w", secret, delivery.ErrConflict), 409, "CONFLICT", "Nothing was changed", "", false},
		"invalid":          {&delivery.Invalid{Field: "url", Rule: secret}, 422, "INVALID", "Something in the form", "", false},
		"unavailable":      {fmt.Errorf("%s: %w", secret, delivery.ErrUnavailable), 503, "UNAVAILABLE", "no update is lost", "5", true},
		"maintenance":      {&delivery.Refusal{Code: delivery.Maintenance, RetryAfter: 30 * time.Second}, 503, "MAINTENANCE", "Maintenance is going on", "30", false},
		"rate limited":     {&delivery.Refusal{Code: delivery.RateLimited, RetryAfter: 200 * time.Millisecond}, 429, "RATE_LIMITED", "Too many requests", "1", false},
		"refused":          {delivery.Refuse(delivery.DeliveryModeConflict, secret), 409, "DELIVERY_MODE_CONFLICT", "Nothing was changed", "", false},
		"refused as bad":   {delivery.Refuse(delivery.InvalidRequest, secret), 422, "INVALID_REQUEST", "Something in the form", "", false},
		"too large":        {fmt.Errorf("form: %w", &http.MaxBytesError{Limit: 1}), 413, "REQUEST_TOO_LARGE", "too much at once", "", false},
		"our fault":        {errors.New(secret), 500, "INTERNAL", "Something went wrong on our side", "", true},
		"a cancelled call": {fmt.Errorf("query: %w", context.Canceled), 500, "INTERNAL", "Something went wrong on our side", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, partial := range []bool{false, true} {
				var log lockedBuffer
				r := httptest.NewRequest(http.MethodGet, "/x", nil)
				if partial {
					r.Header.Set("HX-Request-Type", "partial")
				}
				r = r.WithContext(context.WithValue(r.Context(), requestIDKey{}, "req-1"))
				w := httptest.NewRecorder()
				Fail(w, r, slog.New(slog.NewJSONHandler(&log, nil)), c.err)
				body := w.Body.String()
				if w.Code != c.want || Status(c.err) != c.want {
					t.Errorf("status: got %d and %d, want %d", w.Code, Status(c.err), c.want)
				}
				if !strings.Contains(body, `data-code="`+c.code+`"`) || !strings.Contains(body, c.says) || strings.Contains(body, secret) {
					t.Errorf("got %s, want %s and %q and nothing of the cause", body, c.code, c.says)
				}
				if got := strings.Contains(body, "<html"); got == partial {
					t.Errorf("a whole page: got %v, want %v", got, !partial)
				}
				if got := strings.Contains(body, "req-1"); got != (c.want >= 500) {
					t.Errorf("the request's number: got %v, want %v", got, c.want >= 500)
				}
				if got := w.Header().Get("Retry-After"); got != c.retry {
					t.Errorf("Retry-After: got %q, want %q", got, c.retry)
				}
				if got := strings.Count(log.String(), "\n"); got != map[bool]int{true: 1}[c.logged] {
					t.Errorf("log lines: got %d, want logged %v once", got, c.logged)
				}
			}
		})
	}
}

func TestFailWhenTheReaderHasGone(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var log lockedBuffer
	w := httptest.NewRecorder()
	Fail(w, httptest.NewRequest("GET", "/", nil).WithContext(ctx), slog.New(slog.NewJSONHandler(&log, nil)), fmt.Errorf("query: %w", ctx.Err()))
	if w.Body.Len() != 0 || log.String() != "" {
		t.Errorf("got %q and log %q, want nothing", w.Body.String(), log.String())
	}
}

// Every sentence about an error exists in both languages.
func TestEveryTroubleHasWords(t *testing.T) {
	t.Parallel()
	names := []string{"method", "forbidden", "unauthorized", "too_large", "internal", "conflict"}
	for _, k := range known {
		names = append(names, k.key)
	}
	for _, o := range refused {
		names = append(names, o.key)
	}
	for _, lang := range []string{"en", "ru"} {
		ctx := words.With(t.Context(), lang)
		for _, name := range names {
			for _, key := range []string{"trouble." + name, "trouble." + name + "_text"} {
				if got := words.T(ctx, key); got == key {
					t.Errorf("UI-01 %s: got no words for %s, want some", lang, key)
				}
			}
		}
	}
}

func TestPagesOfTheMux(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, c := range map[string]struct {
		method, path string
		want         int
		allow, says  string
	}{
		"no such page":              {"GET", "/nowhere", 404, "", "Такой страницы нет"},
		"a change by GET":           {"GET", "/logout", 405, "POST", "По этому адресу так нельзя"},
		"a method nobody takes":     {"DELETE", "/login", 405, "GET, HEAD, POST", "По этому адресу так нельзя"},
		"a path with dots is cured": {"GET", "/bots/../login", 307, "", ""},
	} {
		answer, body := r.ask(r.client, c.method, c.path, nil, "Accept-Language: ru")
		if answer.StatusCode != c.want || answer.Header.Get("Allow") != c.allow || !strings.Contains(body, c.says) {
			t.Errorf("%s: got %d, Allow %q, %s\nwant %d, %q, %q", name, answer.StatusCode, answer.Header.Get("Allow"), body, c.want, c.allow, c.says)
		}
	}
}
