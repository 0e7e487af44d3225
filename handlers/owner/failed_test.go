package owner_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/queue"
)

func anybody(context.Context, *sqlx.Tx) error { return nil }

// fail lets n messages come, and the bot's program reject them for that reason.
// The program goes away again; nothing is confirmed. It returns their ids.
func (r *rig) fail(botID int64, reason string, n int) (ids []string) {
	r.t.Helper()
	before, err := r.queue.Status(r.t.Context(), botID)
	r.must(err)
	r.fill(botID, n)
	got, err := r.poll(botID, "rejecter", 0)
	r.must(err)
	for i := range n {
		id := before.NextUpdateID + int64(i)
		_, _, err := r.queue.Reject(r.t.Context(), queue.Once{BotID: botID, Key: fmt.Sprint("reject ", id), Fingerprint: []byte("x")},
			delivery.Rejection{UpdateID: id, Reason: reason, ConsumerID: "rejecter", Epoch: got.Batch.Lease.Epoch})
		r.must(err)
		ids = append(ids, itoa(id))
	}
	r.must(r.queue.Reset(r.t.Context(), botID, anybody))
	return ids
}

// manyFailed puts n failed updates into a bot's empty queue, as fast as
// PostgreSQL can: types and reasons take turns.
func (r *rig) manyFailed(botID int64, n int) {
	r.t.Helper()
	now := r.clock.Now()
	r.db.MustExec(`
INSERT INTO failed_updates (bot_id, update_id, event_id, type, date, expires_at, chat_id, message_id, payload, reason, attempts, failed_at, by_webhook)
SELECT $1, n, gen_random_uuid(), CASE WHEN n % 3 = 0 THEN 'callback_query' ELSE 'message' END, $3::timestamptz - interval '2 days',
       $3::timestamptz + interval '5 days', 550, n, convert_to('{"text":"hello ' || n || '"}', 'UTF8'),
       CASE WHEN n % 2 = 0 THEN 'HTTP_422' ELSE 'no such order' END, 1, $3::timestamptz - interval '1 day', n % 2 = 0 FROM generate_series(1, $2::integer) n`, botID, n, now)
	r.db.MustExec(`INSERT INTO skips (bot_id, from_id, to_id, reason) SELECT $1, n, n, 'failed' FROM generate_series(1, $2::integer) n`, botID, n)
	r.db.MustExec(`UPDATE queues SET failed = $2, next_update_id = $2 + 1, max_issued = $2 WHERE bot_id = $1`, botID, n)
}

var (
	listed = regexp.MustCompile(`data-failed-id="(\d+)"`)
	became = regexp.MustCompile(`data-update-id="(\d+)" data-result="(\w+)" data-reason="(\w*)"`)
)

// listed are the ids of the failed updates on the page.
func (a answer) listed() (ids []string) {
	for _, m := range listed.FindAllStringSubmatch(a.body, -1) {
		ids = append(ids, m[1])
	}
	return ids
}

// became is what the page says about each update: "id result reason".
func (a answer) became() (lines []string) {
	for _, m := range became.FindAllStringSubmatch(a.body, -1) {
		lines = append(lines, strings.TrimSpace(m[1]+" "+m[2]+" "+m[3]))
	}
	return lines
}

func (a answer) same(what string, got, want []string) {
	a.t.Helper()
	if !slices.Equal(got, want) {
		a.t.Errorf("%s: %s: got %v, want %v", a.what, what, got, want)
	}
}

func TestFailedList(t *testing.T) {
	t.Parallel()
	t.Run("F-01 type, reason, attempts and dates; the program's words stand as they are", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		anna.get(here(id, "failed")).wants(http.StatusOK).shows("No failed updates", here(id, "connection")).lacks(`data-failed-id`)
		r.fail(id, `no <b>order</b> "1047" {{.Count}}`, 1)
		r.db.MustExec(`UPDATE failed_updates SET attempts = 5`)
		page := anna.get(here(id, "failed")).wants(http.StatusOK).shows("1 update wasn't delivered", "Message", "message", "Your program wrote:",
			`no <b>order</b> "1047" {{.Count}}`, "Attempts", "Written", "Expires").lacks("<b>order")
		page.same("the list", page.listed(), []string{"1"})
		page.match(`(?s)data-label="Attempts"><span class="num">(5)</span>`)
		if got := strings.Count(page.body, "<time "); got != 3 {
			t.Errorf("got %d times, want 3: written, failed, expires", got)
		}
	})
	t.Run("F-01 each of our reasons in words with its code, in both languages", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		r.fail(id, "HTTP_422", 1)
		r.fail(id, "DELIVERY_OUTCOME_UNKNOWN", 1)
		r.db.MustExec(`UPDATE failed_updates SET by_webhook = true`)
		anna.get(here(id, "failed")).shows("it can't handle this content", "HTTP_422", "your program may have handled it", "drops what it has handled already, by event_id").
			lacks("Your program wrote:")
		anna.get(here(id, "failed"), "Accept-Language: ru").shows("Не доставлены 2 события", "не может обработать такие данные", "HTTP_422", "отбрасывает уже обработанное")
	})
	t.Run("UI-04 filtered by type and reason at an address of its own, with numbers", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		r.manyFailed(id, 12)
		anna.get(here(id, "failed")).shows("12 updates weren't delivered", "Button press (4)", "Message (8)", "no such order (6)").lacks("Clear filters")
		page := anna.get(here(id, "failed")+"?type=callback_query&reason=no+such+order").wants(http.StatusOK).
			shows("2 of 12 match", "Retry all 2 that match", "Skip all 2 that match…", "Clear filters").lacks("Retry all 12")
		page.same("the list", page.listed(), []string{"3", "9"})
		page.match(`<option value="callback_query" (selected)>`)
		anna.get(here(id, "failed")+"?reason=HTTP_422").same("the list", anna.get(here(id, "failed")+"?reason=HTTP_422").listed(), []string{"2", "4", "6", "8", "10", "12"})
		anna.get(here(id, "failed")+"?type=message&reason=unheard-of").wants(http.StatusOK).shows("Nothing matches the filter", "Clear filters", "unheard-of (0)").
			lacks("No failed updates", "data-failed-id")
		anna.get(here(id, "failed") + "?type=a%00b").wants(http.StatusUnprocessableEntity)
		anna.get(here(id, "failed") + "?reason=%ff").wants(http.StatusUnprocessableEntity)
	})
	t.Run("UI-04 50 a page, forwards and backwards, each update once", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		r.manyFailed(id, 240)
		next, all := here(id, "failed")+"?reason=HTTP_422", []string{}
		for _, part := range []string{"1–50 of 120", "51–100 of 120", "101–120 of 120"} {
			page := anna.get(next).wants(http.StatusOK).shows(part)
			all = append(all, page.listed()...)
			if part != "101–120 of 120" {
				next = page.match(`rel="next" href="([^"]+)"`)
			} else {
				back := anna.get(page.match(`rel="prev" href="([^"]+)"`)).shows("51–100 of 120")
				anna.get(back.match(`rel="prev" href="([^"]+)"`)).shows("1–50 of 120").lacks(`rel="prev"`)
			}
		}
		var want []string
		for i := 2; i <= 240; i += 2 {
			want = append(want, fmt.Sprint(i))
		}
		if !slices.Equal(all, want) {
			t.Errorf("got %v, want every second one of 240 in order", all)
		}
		anna.get(here(id, "failed")+"?after=240").wants(http.StatusOK).shows("The list ends before this page", "Go to the first page")
		anna.get(here(id, "failed") + "?after=x").wants(http.StatusOK).shows("1–50 of 240")
	})
	t.Run("UI-04 a program that gives each update another reason: the filter offers the most frequent", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		r.manyFailed(id, 60)
		r.db.MustExec(`UPDATE failed_updates SET reason = 'no order ' || update_id || repeat('!', 240), by_webhook = false WHERE update_id > 3`)
		page := anna.get(here(id, "failed")+"?reason="+url.QueryEscape("no order 60"+strings.Repeat("!", 240))).wants(http.StatusOK).
			shows("The 50 most frequent reasons are listed.", "1 of 60 matches")
		if got := strings.Count(page.body, `<option value="no order`); got > 50 || got < 45 {
			t.Errorf("got %d reasons to choose from, want about 50", got)
		}
	})
	t.Run("F-05 the tab, the card, the connection and the list have one number", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		agree := func(want int) {
			t.Helper()
			badge := regexp.MustCompile(`(?s)/failed['"][^>]*>\s*<span>Failed updates</span>\s*<span class="badge">([\d,]+)</span>`)
			link := regexp.MustCompile(`(?s)class="errors" href="` + here(id, "failed") + `"><span class="num">([\d,]+)</span>`)
			number := func(a answer, e *regexp.Regexp) string {
				if m := e.FindStringSubmatch(a.body); m != nil {
					return m[1]
				}
				return "0"
			}
			connection := anna.get(here(id, "connection"))
			got := []string{
				fmt.Sprint(len(anna.get(here(id, "failed")).listed())), number(anna.get(here(id, "failed")), badge), number(anna.get(here(id, "chat")), badge),
				number(anna.get(here(id, "settings")), badge), number(connection, badge), number(connection, link), number(anna.get("/bots"), link),
				number(anna.get(here(id, "connection"), piece...), badge), number(anna.get(here(id, "chat"), piece...), badge),
			}
			s, err := r.queue.Status(t.Context(), id)
			r.must(err)
			for _, n := range append(got, fmt.Sprint(s.Failed)) {
				if n != fmt.Sprint(want) {
					t.Errorf("list, tabs, card, connection, pieces: got %v and %d, want %d everywhere", got, s.Failed, want)
					return
				}
			}
		}
		agree(0)
		ids := r.fail(id, "no", 5)
		agree(5)
		anna.post(here(id, "failed/retry"), url.Values{"update_id": ids[:1]}).wants(http.StatusOK)
		agree(4)
		anna.post(here(id, "failed/skip"), url.Values{"update_id": ids[1:3]}).wants(http.StatusOK)
		agree(2)
		r.clock.advance(delivery.Retention)
		_, err := r.queue.Expire(t.Context())
		r.must(err)
		agree(0)
	})
	t.Run("F-02 while nothing can be retried, the page says why", func(t *testing.T) {
		t.Parallel()
		for change, want := range map[string]string{
			`UPDATE queues SET paused = true`: "The bot is paused, so nothing can be retried now.", `UPDATE queues SET disabled = true`: "Your space runs no bots at present",
			`UPDATE platform SET maintenance = true`: "The platform is being serviced",
		} {
			r := newRig(t)
			anna := r.owner()
			id := anna.bot("robot", "Order helper")
			r.fail(id, "no", 1)
			r.db.MustExec(change)
			anna.get(here(id, "failed")).shows(want).match(`(?s)<button type="submit" class="button primary" (disabled)`)
		}
	})
	t.Run("UI-07 nobody sees another bot's failed updates", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		mine, other := anna.bot("robot", "Order helper"), anna.bot("robot2", "Other")
		r.fail(other, "of the other", 1)
		anna.get(here(mine, "failed")).shows("No failed updates").lacks("of the other")
		anna.post(here(mine, "failed/skip"), url.Values{"all": {"1"}}).wants(http.StatusOK)
		anna.get(here(other, "failed")).shows("of the other")
	})
}
