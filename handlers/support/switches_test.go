package support_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"mybots/delivery"
	"mybots/delivery/audit"
	"mybots/delivery/bots"
	"mybots/web"
)

// lines are what the audit log has of an action.
func (r *rig) lines(action string) []audit.Line {
	r.t.Helper()
	all, err := r.bots.Log(r.t.Context(), audit.Filter{}, 0, 1000)
	r.must(err)
	var list []audit.Line
	for _, l := range all {
		if l.Action == action {
			list = append(list, l)
		}
	}
	return list
}

// oneLine checks that an action has left one line, and how it was before and after.
func (r *rig) oneLine(t *testing.T, action, before, after, reason string, by *person, role string) {
	t.Helper()
	list := r.lines(action)
	if len(list) != 1 {
		t.Fatalf("%s: got %d lines, want one", action, len(list))
	}
	l := list[0]
	if l.Before != before || l.After != after || l.Reason != reason || l.UserID != by.id || l.Email != by.email || l.Role != role || l.RequestID == "" || l.Address != "127.0.0.1" || l.At.IsZero() {
		t.Errorf("%s: got %+v, want before %q, after %q, reason %q by %s as %s from 127.0.0.1", action, l, before, after, reason, by.email, role)
	}
}

func TestWebhookSwitch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	anna, sue := r.signedIn("anna", web.Owner), r.signedIn("sue", web.Support, web.Act)
	bot := anna.bot("Order helper")
	anna.hook(bot, "https://bots.example.org/hook")
	r.append(bot, `{"text":"hello"}`)
	claim := func() int {
		got, err := r.queue.Claim(t.Context(), []int64{bot}, 1)
		r.must(err)
		return len(got.Claims)
	}
	got, err := r.queue.Claim(t.Context(), []int64{bot}, 1)
	r.must(err)
	under := got.Claims[0]

	t.Run("UI-11 a plain post without a reason switches it off", func(t *testing.T) {
		sue.post(here(bot, "/webhook"), form("allowed", "off")).leads(here(bot, ""))
		r.oneLine(t, "webhook_off", "webhook_allowed=on", "webhook_allowed=off", "", sue, web.Support)
	})
	t.Run("W-03 W-13 the request under way confirms nothing, and none is made after it", func(t *testing.T) {
		fenced, err := r.queue.Fenced(t.Context(), []int64{bot}, []int64{under.Generation})
		if err != nil || len(fenced) != 1 {
			t.Errorf("got %v, %v, want the bot's claim among the fenced ones", fenced, err)
		}
		r.must(r.queue.Release(t.Context(), under, true))
		if n := claim(); n != 0 {
			t.Errorf("got %d claims, want none", n)
		}
		if s, err := r.queue.Status(t.Context(), bot); err != nil || s.Waiting != 1 || s.HookAllowed {
			t.Errorf("got %d waiting, allowed %v, %v, want 1 and not", s.Waiting, s.HookAllowed, err)
		}
	})
	t.Run("W-03 the owner can't save a webhook, and can go to polling", func(t *testing.T) {
		version := func() string {
			s, err := r.queue.Status(t.Context(), bot)
			r.must(err)
			return itoa(s.SettingsVersion)
		}
		hook := form("mode", "webhook", "url", "https://bots.example.org/hook", "pending", "keep", "version", version())
		anna.post("/bots/"+itoa(bot)+"/connection", hook).wants(http.StatusUnprocessableEntity).shows("WEBHOOKS_UNAVAILABLE")
		anna.post("/bots/"+itoa(bot)+"/connection", form("mode", "polling", "pending", "keep", "version", version())).wants(http.StatusSeeOther)
		batch, err := r.queue.Receive(t.Context(), bot, delivery.Poll{ConsumerID: "w", Limit: 10}, "203.0.113.9")
		if err != nil || len(batch.Batch.Updates) != 1 {
			t.Errorf("got %d updates, %v, want 1 by long polling", len(batch.Batch.Updates), err)
		}
	})
	t.Run("UI-06 the reason is kept, and shown to support and to the owner", func(t *testing.T) {
		other := anna.bot("Second")
		anna.hook(other, "https://bots.example.org/second")
		sue.get(here(other, "/webhook")).wants(http.StatusOK).shows("Switch off the webhook")
		sue.post(here(other, "/webhook"), form("allowed", "off", "reason", "It floods a stranger's server")).leads(here(other, ""))
		sue.get(here(other, "")).wants(http.StatusOK).shows("is switched off.", "It floods a stranger's server", "Webhook switched off")
		anna.get("/bots/" + itoa(other) + "/connection").wants(http.StatusOK).shows("It floods a stranger's server").lacks(sue.email)
	})
	t.Run("UI-11 on again, what waits goes out", func(t *testing.T) {
		third := anna.bot("Third")
		anna.hook(third, "https://bots.example.org/third")
		r.append(third, `{}`)
		sue.post(here(third, "/webhook"), form("allowed", "off")).wants(http.StatusSeeOther)
		sue.post(here(third, "/webhook"), form("allowed", "on")).leads(here(third, ""))
		r.oneLine(t, "webhook_on", "webhook_allowed=off", "webhook_allowed=on", "", sue, web.Support)
		if got, err := r.queue.Claim(t.Context(), []int64{third}, 1); err != nil || len(got.Claims) != 1 {
			t.Errorf("got %+v, %v, want a claim", got, err)
		}
	})
	for name, f := range map[string]url.Values{
		"nothing": {}, "another word": form("allowed", "yes"), "twice": {"allowed": {"on", "off"}},
		"a reason too long": form("allowed", "off", "reason", strings.Repeat("x", 501)), "a token as the reason": form("allowed", "off", "reason", "see "+string(delivery.NewSecret(delivery.BotTokenPrefix))),
		"a control character": form("allowed", "off", "reason", "a\x07b"),
	} {
		t.Run("UI-11 refused: "+name, func(t *testing.T) {
			before := r.count(`SELECT count(*) FROM audit`)
			sue.post(here(bot, "/webhook"), f).wants(http.StatusUnprocessableEntity)
			if n := r.count(`SELECT count(*) FROM audit`); n != before {
				t.Errorf("got %d more lines in the log, want none", n-before)
			}
		})
	}
	t.Run("UI-07 there is no such bot", func(t *testing.T) {
		sue.post(here(999, "/webhook"), form("allowed", "off")).wants(http.StatusNotFound)
		sue.get(here(999, "")).wants(http.StatusNotFound)
		sue.get("/support/bots/abc").wants(http.StatusNotFound)
	})
}

func TestSpaceSwitch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	anna, sue := r.signedIn("anna", web.Owner), r.signedIn("sue", web.Support, web.Act)
	poller, hooked := anna.bot("Poller"), anna.bot("Hooked")
	r.fail(poller, `{"text":"one"}`, "no")
	r.append(poller, `{"text":"two"}`)
	anna.hook(hooked, "https://bots.example.org/hook")
	r.append(hooked, `{"text":"one"}`)
	r.append(hooked, `{"text":"two"}`)
	r.settle(hooked, delivery.Answer{Kind: delivery.Answered, Status: 422})
	r.settle(hooked, delivery.Answer{Kind: delivery.Answered, Status: 500})
	running := "/support/spaces/" + itoa(r.space) + "/running"
	status := func(id int64) (waiting, failed int, first time.Time) {
		s, err := r.queue.Status(t.Context(), id)
		r.must(err)
		if n := r.count(`SELECT count(*) FROM failed_updates WHERE bot_id = $1`, id); n != s.Failed {
			t.Errorf("F-05 bot %d: got %d failed updates counted, %d kept", id, s.Failed, n)
		}
		return s.Waiting, s.Failed, s.Hook.Head.FirstFailed
	}
	_, _, began := status(hooked)

	sue.get(running).wants(http.StatusOK).shows("Switch off 2 bots")
	sue.post(running, form("running", "off", "reason", "Unpaid")).leads(running)
	r.oneLine(t, "space_off", "running=on", "running=off", "Unpaid", sue, web.Support)
	t.Run("F-04 F-05 what failed is cancelled, what waits is kept", func(t *testing.T) {
		for id, want := range map[int64]int{poller: 1, hooked: 1} {
			if waiting, failed, _ := status(id); waiting != want || failed != 0 {
				t.Errorf("got %d waiting, %d failed, want %d and 0", waiting, failed, want)
			}
		}
	})
	t.Run("P-16 nobody receives, intake refuses", func(t *testing.T) {
		_, err := r.queue.Receive(t.Context(), poller, delivery.Poll{ConsumerID: "w", Limit: 10}, "203.0.113.9")
		if no := (*delivery.Refusal)(nil); !errors.As(err, &no) || no.Code != delivery.BotDisabled {
			t.Errorf("got %v, want BOT_DISABLED", err)
		}
		r.clock.advance(time.Minute)
		if got, err := r.queue.Claim(t.Context(), []int64{hooked}, 1); err != nil || len(got.Claims) != 0 {
			t.Errorf("got %+v, %v, want no claim", got, err)
		}
		results, err := r.queue.Append(t.Context(), []delivery.Event{{BotID: poller, EventID: "7d3f7a52-4f0e-4b64-9d2a-2c1f8e5b6a11", Type: "message", Date: r.clock.Now(), Payload: []byte(`{}`)}})
		if err != nil || results[0].Refusal == nil || results[0].Refusal.Code != delivery.BotDisabled {
			t.Errorf("got %+v, %v, want BOT_DISABLED", results, err)
		}
	})
	t.Run("UI-06 a bot made meanwhile is born switched off", func(t *testing.T) {
		s, err := r.queue.Status(t.Context(), anna.bot("Late"))
		if err != nil || !s.Disabled {
			t.Errorf("got disabled %v, %v, want true", s.Disabled, err)
		}
	})
	t.Run("UI-06 the owner reads why", func(t *testing.T) {
		anna.get("/bots/" + itoa(poller) + "/connection").wants(http.StatusOK).shows("Unpaid").lacks(sue.email)
	})
	r.clock.advance(20 * time.Minute)
	sue.post(running, form("running", "on")).leads(running)
	r.oneLine(t, "space_on", "running=off", "running=on", "", sue, web.Support)
	t.Run("W-10 the budget's clock stood still, and delivery goes on", func(t *testing.T) {
		_, _, now := status(hooked)
		if stood := now.Sub(began); stood < 21*time.Minute || stood > 22*time.Minute {
			t.Errorf("got the first failure moved by %v, want 21 minutes", stood)
		}
		if got, err := r.queue.Claim(t.Context(), []int64{hooked}, 1); err != nil || len(got.Claims) != 1 {
			t.Errorf("got %+v, %v, want a claim", got, err)
		}
		batch, err := r.queue.Receive(t.Context(), poller, delivery.Poll{ConsumerID: "w", Limit: 10}, "203.0.113.9")
		if err != nil || len(batch.Batch.Updates) != 1 {
			t.Errorf("got %d updates, %v, want what waited", len(batch.Batch.Updates), err)
		}
	})
	t.Run("UI-07 there is no such space", func(t *testing.T) {
		sue.post("/support/spaces/999/running", form("running", "off")).wants(http.StatusNotFound)
	})
}

// A failure that was under way when the space was switched off is cancelled, too.
func TestLateFailureOfASwitchedOffSpace(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	anna, sue := r.signedIn("anna", web.Owner), r.signedIn("sue", web.Support, web.Act)
	bot := anna.bot("Hooked")
	anna.hook(bot, "https://bots.example.org/hook")
	r.append(bot, `{}`)
	got, err := r.queue.Claim(t.Context(), []int64{bot}, 1)
	r.must(err)
	r.must(r.bots.RunSpace(t.Context(), bots.Actor{UserID: sue.id}, r.space, false, ""))
	_, _, err = r.queue.Settle(t.Context(), got.Claims[0], delivery.Answer{Kind: delivery.Answered, Status: 422}, time.Millisecond)
	r.must(err)
	t.Run("F-04 F-05 nothing stays behind", func(t *testing.T) {
		s, err := r.queue.Status(t.Context(), bot)
		if n := r.count(`SELECT count(*) FROM failed_updates`); err != nil || s.Failed != 0 || s.Waiting != 0 || n != 0 {
			t.Errorf("got %d failed, %d kept, %d waiting, %v, want none", s.Failed, n, s.Waiting, err)
		}
	})
}

func TestMaintenanceSwitch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	anna, sue := r.signedIn("anna", web.Owner), r.signedIn("sue", web.Support, web.Act)
	poller, hooked, paused := anna.bot("Poller"), anna.bot("Hooked"), anna.bot("Paused")
	r.fail(poller, `{"text":"one"}`, "no")
	for _, id := range []int64{hooked, paused} {
		anna.hook(id, "https://bots.example.org/hook")
		r.append(id, `{"text":"one"}`)
		r.settle(id, delivery.Answer{Kind: delivery.Answered, Status: 500})
	}
	first := func(id int64) time.Time {
		s, err := r.queue.Status(t.Context(), id)
		r.must(err)
		return s.Hook.Head.FirstFailed
	}
	began := map[int64]time.Time{hooked: first(hooked), paused: first(paused)}
	sue.post("/support/maintenance", form("maintenance", "on", "message", "Back at noon", "message_ru", "Вернёмся в полдень", "reason", "new disks")).leads("/support")
	r.oneLine(t, "maintenance_on", "maintenance=off", "maintenance=on", "new disks", sue, web.Support)

	t.Run("UI-06 every page has the banner, in the reader's language", func(t *testing.T) {
		anna.get("/bots").wants(http.StatusOK).shows("Maintenance is going on", "Back at noon")
		r.stranger().get("/login").wants(http.StatusOK).shows("Back at noon")
		anna.get("/nowhere").wants(http.StatusNotFound).shows("Back at noon")
		anna.post("/settings/language", form("language", "ru", "next", "/bots")).wants(http.StatusSeeOther)
		anna.get("/bots").wants(http.StatusOK).shows("Вернёмся в полдень").lacks("Back at noon")
		sue.get("/support").wants(http.StatusOK).shows("Back at noon", "Вернёмся в полдень")
	})
	t.Run("P-16 nobody receives, and no replay is made", func(t *testing.T) {
		_, err := r.queue.Receive(t.Context(), poller, delivery.Poll{ConsumerID: "w", Limit: 10}, "203.0.113.9")
		if no := (*delivery.Refusal)(nil); !errors.As(err, &no) || no.Code != delivery.Maintenance || no.RetryAfter <= 0 {
			t.Errorf("got %v, want MAINTENANCE with retry_after", err)
		}
		anna.post("/bots/"+itoa(poller)+"/failed/retry", form("all", "1")).shows("MAINTENANCE")
		r.clock.advance(time.Minute)
		if got, err := r.queue.Claim(t.Context(), []int64{hooked}, 1); err != nil || len(got.Claims) != 0 {
			t.Errorf("got %+v, %v, want no claim", got, err)
		}
	})
	t.Run("I-01 intake goes on", func(t *testing.T) { r.append(poller, `{"text":"meanwhile"}`) })
	t.Run("UI-06 the message can be changed; empty, the product's own words stand there", func(t *testing.T) {
		sue.get("/support/maintenance").wants(http.StatusOK).shows("Back at noon", "End maintenance")
		sue.post("/support/maintenance", form("maintenance", "on")).leads("/support")
		sue.get("/support").shows("Nothing is lost").lacks("Back at noon")
		if list := r.lines("maintenance_on"); len(list) != 2 || list[0].Before != "maintenance=on" {
			t.Errorf("got %+v, want a second line from on to on", list)
		}
	})
	// One bot is paused and resumed by its owner meanwhile: its clock stands all the time.
	r.must(r.bots.Pause(t.Context(), bots.Actor{UserID: anna.id}, paused, true))
	r.clock.advance(10 * time.Minute)
	r.must(r.bots.Pause(t.Context(), bots.Actor{UserID: anna.id}, paused, false))
	r.clock.advance(9 * time.Minute)
	sue.post("/support/maintenance", form("maintenance", "off", "reason", "done")).leads("/support")
	r.oneLine(t, "maintenance_off", "maintenance=on", "maintenance=off", "done", sue, web.Support)
	t.Run("W-10 the budgets' clocks stood still, and all goes on", func(t *testing.T) {
		for id, was := range began {
			if stood := first(id).Sub(was); stood < 20*time.Minute || stood > 21*time.Minute {
				t.Errorf("bot %d: got the first failure moved by %v, want 20 minutes", id, stood)
			}
		}
		sue.get("/support").lacks("Back at noon", "Nothing is lost").shows("No maintenance")
		if got, err := r.queue.Claim(t.Context(), []int64{hooked, paused}, 2); err != nil || len(got.Claims) != 2 {
			t.Errorf("got %+v, %v, want two claims", got, err)
		}
		batch, err := r.queue.Receive(t.Context(), poller, delivery.Poll{ConsumerID: "w", Limit: 10}, "203.0.113.9")
		if err != nil || len(batch.Batch.Updates) != 1 {
			t.Errorf("got %d updates, %v, want what waited", len(batch.Batch.Updates), err)
		}
	})
}
