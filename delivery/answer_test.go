package delivery

import (
	"net/http"
	"testing"
	"time"
)

// TestAnswerTable is the table of W-09, row by row.
func TestAnswerTable(t *testing.T) {
	t.Parallel()
	status := func(n int) Answer { return Answer{Kind: Answered, Status: n} }
	rows := []struct {
		name    string
		answer  Answer
		verdict Verdict
		code    string
	}{
		{"200", status(200), VerdictConfirmed, "HTTP_200"},
		{"204", status(204), VerdictConfirmed, "HTTP_204"},
		{"299", status(299), VerdictConfirmed, "HTTP_299"},
		{"400", status(400), VerdictFailed, "HTTP_400"},
		{"413", status(413), VerdictFailed, "HTTP_413"},
		{"422", status(422), VerdictFailed, "HTTP_422"},
		{"401", status(401), VerdictPause, "HTTP_401"},
		{"403", status(403), VerdictPause, "HTTP_403"},
		{"404", status(404), VerdictPause, "HTTP_404"},
		{"410", status(410), VerdictPause, "HTTP_410"},
		{"300", status(300), VerdictPause, CodeRedirect},
		{"301", status(301), VerdictPause, CodeRedirect},
		{"304 without Location", status(304), VerdictPause, CodeRedirect},
		{"308", status(308), VerdictPause, CodeRedirect},
		{"408", status(408), VerdictBudget, "HTTP_408"},
		{"500", status(500), VerdictBudget, "HTTP_500"},
		{"503", status(503), VerdictBudget, "HTTP_503"},
		{"599", status(599), VerdictBudget, "HTTP_599"},
		{"429", status(429), VerdictWait, "HTTP_429"},
		{"101", status(101), VerdictPause, "HTTP_101"},
		{"000", status(0), VerdictPause, "HTTP_0"},
		{"402", status(402), VerdictPause, "HTTP_402"},
		{"405", status(405), VerdictPause, "HTTP_405"},
		{"600", status(600), VerdictPause, "HTTP_600"},
		{"999", status(999), VerdictPause, "HTTP_999"},
		{"certificate", Answer{Kind: BadCertificate}, VerdictPause, CodeCertificate},
		{"every address forbidden", Answer{Kind: Forbidden}, VerdictPause, CodeForbidden},
		{"no answer in 10 s", Answer{Kind: TimedOut}, VerdictBudget, CodeTimeout},
		{"connection broke", Answer{Kind: Lost}, VerdictBudget, CodeConnectionLost},
		{"name look-up", Answer{Kind: NameNotFound}, VerdictWait, CodeDNSFailed},
		{"refused", Answer{Kind: NotConnected}, VerdictWait, CodeConnectionFailed},
		{"cut off by this side", Answer{Kind: Cut}, VerdictNone, ""},
	}
	for _, row := range rows {
		t.Run("W-09 "+row.name, func(t *testing.T) {
			t.Parallel()
			if got := row.answer.Verdict(); got != row.verdict {
				t.Errorf("verdict %q, want %q", got, row.verdict)
			}
			if got := row.answer.Code(); got != row.code {
				t.Errorf("code %q, want %q", got, row.code)
			}
			if row.code != "" {
				if again := AnswerOf(row.code, row.answer.Status); again.Verdict() != row.verdict || again.Code() != row.code {
					t.Errorf("read back from its code: %+v", again)
				}
			}
			if row.code != "" && (HookError{Code: row.code}).Message() == "" {
				t.Errorf("%s has no message", row.code)
			}
		})
	}
	t.Run("W-09 every other status pauses", func(t *testing.T) {
		t.Parallel()
		listed := map[int]bool{400: true, 408: true, 413: true, 422: true, 429: true}
		for n := range 1000 {
			if n/100 == 2 || n/100 == 5 || listed[n] {
				continue
			}
			if got := status(n).Verdict(); got != VerdictPause {
				t.Errorf("%d: %q, want pause", n, got)
			}
		}
	})
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 9, 26, 10, 0, 0, 0, time.UTC)
	date := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	rows := map[string]time.Duration{
		"1": time.Second, "30": 30 * time.Second, "3600": time.Hour, "007": 7 * time.Second,
		"3601": 0, "0": 0, "": 0, "-5": 0, "+5": 0, "5.5": 0, "5s": 0, " 5": 0, "soon": 0,
		"1000000000000000000": 0, "99999999999999999999999999": 0,
		date(time.Second): time.Second, date(90 * time.Second): 90 * time.Second, date(time.Hour): time.Hour,
		date(time.Hour + time.Second): 0, date(0): 0, date(-time.Minute): 0, date(200 * 365 * 24 * time.Hour): 0,
	}
	for header, want := range rows {
		t.Run("W-09 Retry-After "+header, func(t *testing.T) {
			t.Parallel()
			if got := RetryAfter(header, http.ParseTime, now); got != want {
				t.Errorf("%q: %v, want %v", header, got, want)
			}
		})
	}
}
