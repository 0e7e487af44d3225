package queue_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"mybots/delivery"
	"mybots/delivery/queue"
)

// TestLadder walks the budget and the breaker by the clock alone.
func TestLadder(t *testing.T) {
	t.Parallel()
	r := hookRig(t)
	ids := r.append(5)
	// try makes one attempt for the update and returns how long the next one waits.
	try := func(id int64, a delivery.Answer) time.Duration {
		t.Helper()
		c := r.mustClaim(id)
		before := r.clock.Now()
		h, _ := r.settle(c, a)
		if h.Due.IsZero() {
			return 0
		}
		wait := h.Due.Sub(before)
		r.clock.advance(wait - time.Microsecond)
		if c := r.claim(); c != nil {
			t.Fatalf("claimed %+v a microsecond before it was due", c)
		}
		r.clock.advance(time.Microsecond)
		return wait
	}
	for n, id := range ids[:3] {
		for i, want := range []time.Duration{5 * time.Second, 20 * time.Second, time.Minute, 3 * time.Minute} {
			if got := try(id, status(502)); got != want {
				t.Errorf("W-10 update %d: pause %d is %v, want %v", id, i+1, got, want)
			}
		}
		want := time.Duration(0)
		if n == 2 {
			want = time.Minute // W-12: the third in a row opens the breaker
		}
		if got := try(id, status(502)); got != want {
			t.Errorf("W-10 update %d: after the fifth attempt a wait of %v, want %v", id, got, want)
		}
	}
	for i, want := range []time.Duration{5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, time.Hour} {
		if got := try(ids[3], status(500)); got != want {
			t.Errorf("W-12 probe %d: the next pause is %v, want %v", i+1, got, want)
		}
	}
	s := r.state(r.bot)
	if s.Failed != 3 || s.Waiting != 2 || s.Hook.Head.Charged != 0 {
		t.Errorf("W-12 an outage cost %d updates, %d wait, charged %d; want 3, 2, 0", s.Failed, s.Waiting, s.Hook.Head.Charged)
	}
	if got := s.Hook.State(s.Connection, true, true); got != delivery.HookOpen {
		t.Errorf("W-14 state %q, want circuit_open", got)
	}
	page, err := r.FailedPage(t.Context(), r.bot, queue.FailedFilter{}, 0, 10)
	if err != nil || len(page) != 3 {
		t.Fatalf("FAILED: %d, %v", len(page), err)
	}
	if f := page[0]; f.Reason != delivery.ReasonServerError || f.Attempts != 5 || !f.ByWebhook {
		t.Errorf("FAILED update: %+v, want HTTP_5XX after 5 attempts", f)
	}
	c := r.mustClaim(ids[3])
	if c.Attempt != 6 {
		t.Errorf("W-06 attempt %d, want 6: the probes count", c.Attempt)
	}
	if _, err := r.Confirm(t.Context(), c, 200, 0, false); err != nil {
		t.Fatal(err)
	}
	if s := r.state(r.bot); s.Hook.Breaker != 0 || s.Hook.UsedUp != 0 || s.Confirmed != ids[4] {
		t.Errorf("W-12 after a 2xx: %+v, confirmed %d", s.Hook, s.Confirmed)
	}
}

func TestSwitching(t *testing.T) {
	t.Parallel()
	t.Run("M-03 nothing that the webhook delivered is issued again", func(t *testing.T) {
		t.Parallel()
		r := hookRig(t)
		ids := r.append(4)
		if _, err := r.Confirm(t.Context(), r.mustClaim(ids[0]), 200, 0, false); err != nil {
			t.Fatal(err)
		}
		r.settle(r.mustClaim(ids[1]), status(400))
		r.toPolling(r.bot, false)
		got := r.poll(t, delivery.Poll{ConsumerID: "a", Limit: 100})
		if got.Confirmed != ids[2] || len(got.Updates) != 2 || got.Updates[0].UpdateID != ids[2] || len(got.Skipped) != 0 {
			t.Errorf("the first poll: %+v; want updates %d and %d, nothing skipped", got, ids[2], ids[3])
		}
		if s := r.state(r.bot); s.Failed != 1 || !s.Hook.LastError.At.IsZero() {
			t.Errorf("FAILED %d, last error %+v; want 1 and none", s.Failed, s.Hook.LastError)
		}
	})
	t.Run("M-03 the position is set before DROP cancels", func(t *testing.T) {
		t.Parallel()
		r := hookRig(t)
		ids := r.append(3)
		if _, err := r.Confirm(t.Context(), r.mustClaim(ids[0]), 200, 0, false); err != nil {
			t.Fatal(err)
		}
		r.toPolling(r.bot, true)
		got := r.poll(t, delivery.Poll{ConsumerID: "a", Limit: 100})
		want := []delivery.Range{{From: ids[1], To: ids[2], Reason: delivery.SkipCancelled}}
		if got.Confirmed != ids[1] || !slices.Equal(got.Skipped, want) || got.NextOffset != ids[2]+1 {
			t.Errorf("the first poll: %+v; want %v skipped", got, want)
		}
	})
	t.Run("M-03 with nothing waiting the position is the next id", func(t *testing.T) {
		t.Parallel()
		r := hookRig(t)
		ids := r.append(1)
		r.settle(r.mustClaim(ids[0]), status(422))
		r.toPolling(r.bot, false)
		if got := r.poll(t, delivery.Poll{ConsumerID: "a", Limit: 100}); got.Confirmed != ids[0]+1 || !got.Empty() {
			t.Errorf("the first poll: %+v", got)
		}
	})
	t.Run("M-02 KEEP: what waited for a poll goes out by webhook", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		ids := r.append(2)
		r.poll(t, delivery.Poll{ConsumerID: "a", Limit: 100})
		r.toWebhook(r.bot, false)
		r.mustClaim(ids[0])
	})
	t.Run("M-04 a save ends a pause and closes the breaker, W-03 the platform's no stays", func(t *testing.T) {
		t.Parallel()
		r := hookRig(t)
		ids := r.append(1)
		r.settle(r.mustClaim(ids[0]), status(401))
		if c := r.claim(); c != nil {
			t.Fatalf("W-11 claimed while delivery is paused: %+v", c)
		}
		first := r.toWebhook(r.bot, false)
		if second := r.toWebhook(r.bot, false); string(first) == string(second) {
			t.Error("M-04 two saves gave the same secret")
		}
		if s := r.state(r.bot); s.Hook.Paused != "" || s.Hook.LastError.Code != "HTTP_401" {
			t.Errorf("after the save: %+v", s.Hook)
		}
		targets, err := r.bots.Targets(t.Context(), []int64{r.bot})
		if err != nil || targets[r.bot].URL != "https://hooks.example.com/" {
			t.Errorf("target %+v, %v", targets[r.bot], err)
		}
		r.db.MustExec(`UPDATE queues SET hook_allowed = false WHERE bot_id = $1`, r.bot)
		if c := r.claim(); c != nil {
			t.Errorf("W-03 claimed although the platform has switched it off: %+v", c)
		}
		_, _, err = r.bots.SaveWebhook(t.Context(), r.owner(r.bot), r.bot, r.state(r.bot).SettingsVersion, "https://h.example.com/", false)
		var refusal *delivery.Refusal
		if !errors.As(err, &refusal) || refusal.Code != delivery.WebhooksUnavailable {
			t.Errorf("save: %v, want WEBHOOKS_UNAVAILABLE", err)
		}
		r.toPolling(r.bot, false)
		if targets, err := r.bots.Targets(t.Context(), []int64{r.bot}); err != nil || len(targets) != 0 {
			t.Errorf("by long polling there are the targets %v, %v", targets, err)
		}
	})
	t.Run("M-05 a stale save changes nothing", func(t *testing.T) {
		t.Parallel()
		r := hookRig(t)
		before := r.state(r.bot)
		_, _, err := r.bots.SaveWebhook(t.Context(), r.owner(r.bot), r.bot, before.SettingsVersion-1, "https://elsewhere.example.com/", true)
		if !errors.Is(err, delivery.ErrStale) {
			t.Errorf("got %v, want ErrStale", err)
		}
		after := r.state(r.bot)
		before.At, after.At = time.Time{}, time.Time{}
		if after != before {
			t.Errorf("a stale save changed\n%+v\nto\n%+v", before, after)
		}
	})
}

func TestPausesOfTheBot(t *testing.T) {
	t.Parallel()
	t.Run("M-07 a paused bot sends nothing, W-10 its budget's clock stands still", func(t *testing.T) {
		t.Parallel()
		r := hookRig(t)
		within := anybody
		ids := r.append(1)
		r.settle(r.mustClaim(ids[0]), status(500))
		first := r.state(r.bot).Hook.Head.FirstFailed
		if err := r.Pause(t.Context(), r.bot, true, within); err != nil {
			t.Fatal(err)
		}
		r.clock.advance(time.Hour)
		if c := r.claim(); c != nil {
			t.Fatalf("claimed while the bot is paused: %+v", c)
		}
		if err := r.Pause(t.Context(), r.bot, false, within); err != nil {
			t.Fatal(err)
		}
		if got := r.state(r.bot).Hook.Head.FirstFailed; got.Sub(first) != time.Hour {
			t.Errorf("the budget began %v later, want 1h", got.Sub(first))
		}
		r.mustClaim(ids[0])
	})
	t.Run("W-11 retention runs on while delivery is paused", func(t *testing.T) {
		t.Parallel()
		r := hookRig(t)
		ids := r.append(1)
		r.settle(r.mustClaim(ids[0]), status(404))
		r.clock.advance(delivery.Retention)
		fresh := r.append(1)
		if err := r.ResumeWebhook(t.Context(), r.bot, anybody); err != nil {
			t.Fatal(err)
		}
		got, err := r.Claim(t.Context(), []int64{r.bot}, 1)
		if err != nil || len(got.Claims) != 0 || !slices.Equal(got.Expired, []int64{r.bot}) {
			t.Fatalf("Q-01 claimed %+v, %v; want the bot as expired", got, err)
		}
		if n, err := r.ExpireOf(t.Context(), r.bot); err != nil || n != 1 {
			t.Fatalf("expired %d, %v; want 1", n, err)
		}
		r.mustClaim(fresh[0])
	})
}
