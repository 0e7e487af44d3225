package owner_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"mybots/delivery"
	"mybots/delivery/queue"
)

func ids(list ...string) url.Values { return url.Values{"update_id": list} }

var (
	all       = url.Values{"all": {"1"}}
	allFailed = queue.FailedFilter{}
)

func TestRetry(t *testing.T) {
	t.Parallel()
	t.Run("F-02 U-04 what is retried comes again with its event and replay_of_update_id; twice appends once", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		r.fail(id, "no", 4)
		events := map[int64]string{}
		rows, err := r.queue.FailedPage(t.Context(), id, allFailed, 0, 10)
		r.must(err)
		for _, f := range rows {
			events[f.UpdateID] = f.EventID
		}
		page := anna.post(here(id, "failed/retry"), ids("3", "1", "3", "99")).wants(http.StatusOK).
			shows("2 updates were put at the end of the queue as #5–#6.", "1 isn't failed any more", "Now #6, at the end of the queue", "isn't among the failed updates any more")
		page.same("F-01 each row tells", page.became(), []string{"99 refused NOT_FAILED", "3 replayed", "1 replayed"})
		again := anna.post(here(id, "failed/retry"), ids("3", "1")).wants(http.StatusOK).shows("2 aren't failed any more: nothing was done twice.")
		again.same("the second time", again.became(), []string{"3 refused NOT_FAILED", "1 refused NOT_FAILED"})
		anna.get(here(id, "failed")).same("the list", anna.get(here(id, "failed")).listed(), []string{"2", "4"})
		r.clock.advance(delivery.LeaseTime)
		got, err := r.poll(id, "worker", 0)
		r.must(err)
		var seen []string
		for _, u := range got.Batch.Updates {
			seen = append(seen, fmt.Sprint(u.UpdateID, " of ", u.ReplayOf))
			if u.EventID != events[u.ReplayOf] {
				t.Errorf("update %d: got event %s, want %s", u.UpdateID, u.EventID, events[u.ReplayOf])
			}
		}
		if want := []string{"5 of 1", "6 of 3"}; !slices.Equal(seen, want) {
			t.Errorf("got %v, want %v", seen, want)
		}
	})
	for code, c := range map[string]struct{ change, en, ru string }{
		"CHAT_STOPPED": {`UPDATE chats SET access = 'stopped'`, "The person has stopped the bot in this chat", "Человек остановил бота в этом чате"},
		"CHAT_BLOCKED": {`UPDATE chats SET access = 'blocked'`, "The person has blocked the bot", "Человек заблокировал бота"},
		"CHAT_LEFT":    {`UPDATE chats SET access = 'left'`, "The person has left the space", "Человек вышел из пространства"},
		"EXPIRED":      {`UPDATE failed_updates SET expires_at = failed_at`, "It has expired", "Истёк срок"},
		"NOT_FAILED":   {`DELETE FROM failed_updates`, "Nothing was done twice, and you don't have to do anything.", "Дважды ничего не сделано"},
		"BOT_PAUSED":   {`UPDATE queues SET paused = true`, "Resume the bot, then retry.", "Возобновите работу бота и повторите."},
		"BOT_DISABLED": {`UPDATE queues SET disabled = true`, "Ask the administrator of your space", "Попросите администратора пространства"},
		"MAINTENANCE":  {`UPDATE platform SET maintenance = true`, "The platform is being serviced", "Идёт техническое обслуживание"},
		"QUEUE_FULL":   {`UPDATE queues SET waiting = 10000`, "Let your program take what waits", "Дайте программе забрать то, что ожидает"},
	} {
		t.Run("F-02 refused, with the reason in plain words: "+code, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			anna := r.owner()
			id := anna.bot("robot", "Order helper")
			r.fail(id, "no", 2)
			r.db.MustExec(c.change)
			page := anna.post(here(id, "failed/retry"), ids("1", "2")).wants(http.StatusOK).shows(c.en, code, "What was refused, and what to do", "2 updates")
			page.same("rows", page.became(), []string{"1 refused " + code, "2 refused " + code})
			anna.post(here(id, "failed/retry"), ids("2"), "Accept-Language: ru").shows(c.ru, code, "1 событие").lacks("Retried", "refused.")
			if s, err := r.queue.Status(t.Context(), id); err != nil || s.Failed != 2 || s.NextUpdateID != 3 {
				t.Errorf("got %d failed, next %d, %v, want 2 and 3: nothing was appended", s.Failed, s.NextUpdateID, err)
			}
		})
	}
	t.Run("UI-04 all that match, on all pages, and nothing else", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		r.manyFailed(id, 120)
		page := anna.post(here(id, "failed/retry"), url.Values{"all": {"1"}, "type": {"callback_query"}, "reason": {"no such order"}, "update_id": {"2"}}).
			wants(http.StatusOK).shows("20 updates were put at the end of the queue as #121–#140.", here(id, "failed")+"?reason=no+such+order&type=callback_query")
		if got := page.became(); len(got) != 20 || got[0] != "3 replayed" || got[19] != "117 replayed" {
			t.Errorf("got %v, want the 20 that match", got)
		}
		page = anna.post(here(id, "failed/retry"), all).wants(http.StatusOK)
		if got := page.became(); len(got) != 100 {
			t.Errorf("got %d rows, want the other 100", len(got))
		}
		anna.post(here(id, "failed/retry"), all).wants(http.StatusOK).shows("Nothing was left to do").lacks("data-update-id")
	})
	for name, form := range map[string]url.Values{
		"nothing": {}, "no id": ids(""), "letters": ids("1", "x"), "a sign": ids("-1"), "a zero in front": ids("01"), "beyond 2^63": ids("9223372036854775808"),
		"all=0": {"all": {"0"}, "update_id": {"1"}}, "all twice": {"all": {"1", "1"}}, "a strange place": {"all": {"1"}, "after": {"x"}},
		"a filter that can't be": {"all": {"1"}, "reason": {"a\x00b"}},
	} {
		t.Run("UI-11 refused: "+name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			anna := r.owner()
			id := anna.bot("robot", "Order helper")
			r.fail(id, "no", 2)
			for _, deed := range []string{"retry", "skip"} {
				page := anna.post(here(id, "failed/"+deed), form).wants(http.StatusUnprocessableEntity)
				want := "INVALID"
				if name == "nothing" {
					want = "NOTHING_SELECTED"
					page.shows("no update was selected").same("the list is there", page.listed(), []string{"1", "2"})
				}
				if got := page.match(`id="error"[^>]*data-code="([^"]*)"`); got != want {
					t.Errorf("%s: got data-code %q, want %q", deed, got, want)
				}
			}
			anna.get(here(id, "failed/skip") + "?" + form.Encode()).wants(http.StatusUnprocessableEntity)
			if s, err := r.queue.Status(t.Context(), id); err != nil || s.Failed != 2 || s.Waiting != 0 {
				t.Errorf("got %d failed, %d waiting, %v, want 2 and 0", s.Failed, s.Waiting, err)
			}
		})
	}
}

func TestSkip(t *testing.T) {
	t.Parallel()
	t.Run("F-03 gone for good; a poller sees skipped_by_owner", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		r.fail(id, "no", 3)
		anna.get(here(id, "failed/skip")+"?update_id=2&update_id=1&type=&reason=").wants(http.StatusOK).shows("Skip 2 failed updates for good?", "gone for good",
			"Skip 2 updates for good", "Chosen one by one: #2, #1.", "skipped_by_owner", "Don't skip").match(`(action="` + here(id, "failed/skip") + `")`)
		page := anna.post(here(id, "failed/skip"), ids("2", "1", "7")).wants(http.StatusOK).
			shows("2 updates were skipped. They are gone for good.", "1 isn't failed any more: nothing was done twice.")
		page.same("rows", page.became(), []string{"7 refused NOT_FAILED", "2 skipped", "1 skipped"})
		again := anna.post(here(id, "failed/skip"), ids("2")).wants(http.StatusOK)
		again.same("the second time", again.became(), []string{"2 refused NOT_FAILED"})
		retried := anna.post(here(id, "failed/retry"), ids("2")).wants(http.StatusOK)
		retried.same("for good", retried.became(), []string{"2 refused NOT_FAILED"})
		r.clock.advance(delivery.LeaseTime)
		got, err := r.poll(id, "worker", 0)
		r.must(err)
		want := []delivery.Range{{From: 1, To: 2, Reason: "skipped_by_owner"}, {From: 3, To: 3, Reason: "failed"}}
		if !slices.Equal(got.Batch.Skipped, want) || len(got.Batch.Updates) != 0 {
			t.Errorf("got %v and %d updates, want %v", got.Batch.Skipped, len(got.Batch.Updates), want)
		}
	})
	t.Run("UI-04 asks about all that match; what has come since isn't skipped unseen", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		r.fail(id, "no", 2)
		r.fail(id, "other", 1)
		asked := anna.get(here(id, "failed/skip")+"?all=1&reason=no").wants(http.StatusOK).shows("Skip 2 failed updates for good?", "Reason = no")
		form := url.Values{"all": {"1"}, "reason": {asked.match(`name="reason" value="([^"]*)"`)}, "seen": {asked.match(`name="seen" value="([^"]*)"`)}}
		r.fail(id, "no", 1)
		page := anna.post(here(id, "failed/skip"), form).wants(http.StatusConflict).shows("Nothing was skipped", "Skip 3 failed updates for good?")
		if got := page.match(`id="error"[^>]*data-code="([^"]*)"`); got != "STALE" {
			t.Errorf("got data-code %q, want STALE", got)
		}
		form.Set("seen", page.match(`name="seen" value="([^"]*)"`))
		done := anna.post(here(id, "failed/skip"), form).wants(http.StatusOK)
		done.same("rows", done.became(), []string{"1 skipped", "2 skipped", "4 skipped"})
		anna.post(here(id, "failed/skip"), form).wants(http.StatusOK).shows("Nothing was left to do")
		anna.get(here(id, "failed/skip") + "?all=1&reason=no").wants(http.StatusOK).shows("Nothing matches the filter")
		one := anna.post(here(id, "failed/skip"), all).wants(http.StatusOK)
		one.same("UI-11 straight, without having been asked", one.became(), []string{"3 skipped"})
		anna.get(here(id, "failed/skip") + "?all=1").wants(http.StatusOK).shows("No failed updates")
	})
}

func TestFailedTenThousand(t *testing.T) {
	t.Parallel()
	t.Run("UI-04 F-05 10,000 rows: the list, Retry and Skip of all in one go", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		shop, other := anna.bot("robot", "Order helper"), anna.bot("robot2", "Other")
		r.manyFailed(shop, 10_001)
		r.manyFailed(other, 10_000)
		timed := func(what string, a func() answer) answer {
			t.Helper()
			from := time.Now()
			got := a().wants(http.StatusOK)
			t.Logf("%s: %v, %d KiB", what, time.Since(from).Round(time.Millisecond), len(got.body)>>10)
			return got
		}
		page := timed("the list", func() answer { return anna.get(here(shop, "failed")) }).shows("10,001 updates weren't delivered", "1–50 of 10,001", "Retry all 10,001")
		if got := page.listed(); len(got) != 50 {
			t.Errorf("got %d rows, want 50", len(got))
		}
		timed("its last page", func() answer { return anna.get(here(shop, "failed") + "?after=9950") }).shows("9,951–10,000 of 10,001")
		timed("filtered", func() answer { return anna.get(here(shop, "failed") + "?reason=HTTP_422&type=message") }).shows("3,334 of 10,001 match")
		page = timed("retry", func() answer { return anna.post(here(shop, "failed/retry"), all) }).
			shows("10,000 updates were put at the end of the queue as #10002–#20001.", "1 more matches", "Retry 1 more")
		if got := page.became(); len(got) != 10_000 || got[9_999] != "10000 replayed" {
			t.Errorf("got %d rows, want 10,000 replayed", len(got))
		}
		if s, err := r.queue.Status(t.Context(), shop); err != nil || s.Failed != 1 || s.Waiting != 10_000 {
			t.Errorf("got %d failed, %d waiting, %v, want 1 and 10,000", s.Failed, s.Waiting, err)
		}
		rest := url.Values{"all": {"1"}, "after": {page.match(`name="after" value="(\d+)"`)}}
		last := anna.post(here(shop, "failed/retry"), rest).wants(http.StatusOK)
		last.same("the one that was left", last.became(), []string{"10001 refused QUEUE_FULL"})
		timed("asked before skipping", func() answer { return anna.get(here(other, "failed/skip") + "?all=1") }).shows("Skip 10,000 failed updates for good?")
		page = timed("skip", func() answer { return anna.post(here(other, "failed/skip"), all) }).shows("10,000 updates were skipped.")
		if got := page.became(); len(got) != 10_000 {
			t.Errorf("got %d rows, want 10,000 skipped", len(got))
		}
		anna.get(here(other, "failed")).shows("No failed updates")
	})
	t.Run("UI-11 as many update_id as a form may have", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		anna := r.owner()
		id := anna.bot("robot", "Order helper")
		r.manyFailed(id, 4_500)
		var some, many []string
		for i := 1; i <= 5_000; i++ {
			many = append(many, fmt.Sprint(i))
		}
		some = many[:4_000]
		page := anna.post(here(id, "failed/skip"), ids(some...)).wants(http.StatusOK)
		if got := page.became(); len(got) != 4_000 || strings.Contains(strings.Join(got, "\n"), "refused") {
			t.Errorf("got %d rows, want 4,000 skipped", len(got))
		}
		anna.post(here(id, "failed/skip"), ids(many...)).wants(http.StatusRequestEntityTooLarge)
	})
}
