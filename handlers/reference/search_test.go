package reference_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mybots/delivery"
	"mybots/handlers/reference"
)

func TestServedDocument(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.get("/docs/openapi.json", "ru")
	t.Run("UI-10 the document is served as it is, for everybody to keep", func(t *testing.T) {
		t.Parallel()
		if first.body != string(reference.Document()) || first.header.Get("Content-Type") != "application/json; charset=utf-8" {
			t.Errorf("got %s and other bytes, want the document", first.header.Get("Content-Type"))
		}
		for _, name := range []string{"Set-Cookie", "Vary"} {
			if v := first.header.Get(name); v != "" {
				t.Errorf("got %s: %s, want none", name, v)
			}
		}
		if c := first.header.Get("Cache-Control"); !strings.Contains(c, "public") {
			t.Errorf("got Cache-Control %q, want public", c)
		}
	})
	t.Run("UI-10 who has it already gets 304", func(t *testing.T) {
		t.Parallel()
		if again := r.get("/docs/openapi.json", "en", "If-None-Match: "+first.header.Get("ETag")); again.status != http.StatusNotModified || again.body != "" {
			t.Errorf("got %d, want 304", again.status)
		}
	})
}

// The limits are written by hand: each stands in its own line of the tables.
func TestLimits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	en, ru := r.get("/docs/limits", "en").body, r.get("/docs/limits", "ru").body
	for name, c := range map[string]struct{ english, russian string }{
		"A-04 body":          {fmt.Sprintf("<td data-label=\"Limit\">%d KiB", delivery.MaxRequestBody>>10), fmt.Sprintf(">%d КиБ", delivery.MaxRequestBody>>10)},
		"P-03 polls":         {fmt.Sprintf(">%d a second per bot", delivery.PollsPerSecond), fmt.Sprintf(">%d в секунду на бота", delivery.PollsPerSecond)},
		"P-01 timeout":       {fmt.Sprintf(">0 to %d seconds", delivery.MaxPollTimeout), fmt.Sprintf(">от 0 до %d секунд", delivery.MaxPollTimeout)},
		"P-01 limit":         {fmt.Sprintf(">1 to %d updates", delivery.MaxBatch), fmt.Sprintf(">от 1 до %d событий", delivery.MaxBatch)},
		"P-17 batch":         {fmt.Sprintf(">%d MiB of payload", delivery.MaxBatchBytes>>20), fmt.Sprintf(">%d МиБ данных", delivery.MaxBatchBytes>>20)},
		"P-01 consumer_id":   {fmt.Sprintf(">1 to %d of <code>", delivery.MaxConsumerID), fmt.Sprintf(">от 1 до %d из <code>", delivery.MaxConsumerID)},
		"R-01 reason":        {fmt.Sprintf(">1 to %d characters<", delivery.MaxReason), fmt.Sprintf(">от 1 до %d символов<", delivery.MaxReason)},
		"I-06 text":          {fmt.Sprintf(">1 to %d characters<", delivery.MaxText), fmt.Sprintf(">от 1 до %d символов<", delivery.MaxText)},
		"Q-02 waiting":       {fmt.Sprintf(">%d,000, or %d MiB", delivery.MaxWaiting/1000, delivery.MaxWaitingBytes>>20), fmt.Sprintf(">%d 000 или %d МиБ", delivery.MaxWaiting/1000, delivery.MaxWaitingBytes>>20)},
		"Q-03 payload":       {fmt.Sprintf(">%d KiB<", delivery.MaxPayload>>10), fmt.Sprintf(">%d КиБ<", delivery.MaxPayload>>10)},
		"Q-01 retention":     {fmt.Sprintf(">%d days from", int(delivery.Retention.Hours()/24)), fmt.Sprintf(">%d дней с", int(delivery.Retention.Hours()/24))},
		"A-06 key":           {fmt.Sprintf("kept for %d days", int(delivery.KeyRetention.Hours()/24)), fmt.Sprintf("хранится %d дней", int(delivery.KeyRetention.Hours()/24))},
		"P-04 lease":         {fmt.Sprintf(">%.0f seconds<", delivery.LeaseTime.Seconds()), fmt.Sprintf(">%.0f секунд<", delivery.LeaseTime.Seconds())},
		"W-08 connecting":    {fmt.Sprintf(">%.0f seconds<", delivery.ConnectTime.Seconds()), fmt.Sprintf(">%.0f секунд<", delivery.ConnectTime.Seconds())},
		"W-08 whole request": {fmt.Sprintf(">%.0f seconds<", delivery.RequestTime.Seconds()), fmt.Sprintf(">%.0f секунд<", delivery.RequestTime.Seconds())},
		"W-10 budget":        {fmt.Sprintf(">%d within %.0f minutes", delivery.MaxCharged, delivery.BudgetTime.Minutes()), fmt.Sprintf(">%d за %.0f минут", delivery.MaxCharged, delivery.BudgetTime.Minutes())},
	} {
		if !strings.Contains(en, c.english) || !strings.Contains(ru, c.russian) {
			t.Errorf("UI-10 %s: got no %q or no %q on the page, want both", name, c.english, c.russian)
		}
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	found := regexp.MustCompile(`(?s)data-testid="found".*?href="([^"]+)"`)
	for name, c := range map[string]struct{ language, query, want string }{
		"a code":                        {"en", "CURSOR_BEHIND", "/docs/errors#CURSOR_BEHIND"},
		"in any case":                   {"en", "cursor_behind", "/docs/errors#CURSOR_BEHIND"},
		"a method first":                {"en", "answerCallbackQuery", "/docs/methods#answerCallbackQuery"},
		"all words":                     {"en", "circuit breaker", "/docs/webhook#breaker"},
		"Russian with another ending":   {"ru", "подписи", "/docs/signature"},
		"an English word in Russian":    {"ru", "failover", "/docs/polling#lease"},
		"a Russian word in English":     {"en", "аренда", "/docs/polling#lease"},
		"a field that the document has": {"ru", "oldest_pending_date", "/docs/methods#getDeliveryInfo"},
	} {
		t.Run("UI-10 "+name, func(t *testing.T) {
			t.Parallel()
			p := r.get("/docs/search?q="+url.QueryEscape(c.query), c.language)
			var list []string
			for _, m := range found.FindAllStringSubmatch(p.body, -1) {
				list = append(list, m[1])
			}
			if !slices.Contains(list, c.want) {
				t.Errorf("%s: got %v, want %s among it", c.query, list, c.want)
			}
		})
	}
	t.Run("UI-10 a query is shown as text, and only its beginning is looked at", func(t *testing.T) {
		t.Parallel()
		for _, q := range []string{`"><script>alert(1)</script>`, strings.Repeat("x", 100_000), strings.Repeat("a ", 5000), "\xff\xfe", "   ", "{{.}}"} {
			p := r.get("/docs/search?q="+url.QueryEscape(q), "en")
			if p.status != http.StatusOK || strings.Contains(p.body, "<script>alert") || len(p.body) > 100_000 {
				t.Errorf("%.20q: got %d with %d bytes", q, p.status, len(p.body))
			}
		}
	})
}
