package delivery

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

var (
	start = time.Date(2026, 9, 26, 10, 0, 0, 0, time.UTC)

	ok           = Answer{Kind: Answered, Status: 200}
	broken       = Answer{Kind: Answered, Status: 500}
	silent       = Answer{Kind: TimedOut}
	refused      = Answer{Kind: NotConnected}
	unprocessed  = Answer{Kind: Answered, Status: 422}
	unauthorized = Answer{Kind: Answered, Status: 401}
	slowDown     = Answer{Kind: Answered, Status: 429, RetryAfter: 30 * time.Second}
)

// opened is a hook whose breaker has just opened.
func opened(now time.Time) Hook {
	return Hook{UsedUp: UsedUpToOpen, Breaker: 1, Due: now.Add(time.Minute), Head: Budget{UpdateID: 4}}
}

func TestBudget(t *testing.T) {
	t.Parallel()
	t.Run("W-10 five attempts with pauses of 5, 20, 60 and 180 s, then FAILED", func(t *testing.T) {
		t.Parallel()
		h, now := Hook{Head: Budget{UpdateID: 1}}, start
		for i, want := range []time.Duration{5 * time.Second, 20 * time.Second, time.Minute, 3 * time.Minute} {
			var fate Fate
			h, fate, _ = h.Settle(broken, now)
			if got := h.Due.Sub(now); fate != FateStays || got != want || h.Head.Charged != i+1 {
				t.Fatalf("attempt %d: %s, pause %v, charged %d; want stays, %v, %d", i+1, fate, got, h.Head.Charged, want, i+1)
			}
			if h.Ready(h.Due.Add(-time.Microsecond)) || !h.Ready(h.Due) {
				t.Errorf("attempt %d: ready too early or too late", i+1)
			}
			now = h.Due
		}
		h, fate, reason := h.Settle(broken, now)
		if fate != FateFailed || reason != ReasonServerError || !h.Ready(now) || h.UsedUp != 1 || h.Head != (Budget{}) {
			t.Errorf("the fifth: %s, %s, %+v", fate, reason, h)
		}
	})
	t.Run("W-10 the last answer gives the reason", func(t *testing.T) {
		t.Parallel()
		for name, c := range map[string]struct {
			last   Answer
			reason string
		}{
			"503":   {Answer{Kind: Answered, Status: 503}, ReasonServerError},
			"408":   {Answer{Kind: Answered, Status: 408}, ReasonOutcomeUnknown},
			"quiet": {silent, ReasonOutcomeUnknown},
			"lost":  {Answer{Kind: Lost}, ReasonOutcomeUnknown},
		} {
			h := Hook{Head: Budget{Charged: MaxCharged - 1, FirstFailed: start}}
			if _, fate, reason := h.Settle(c.last, start.Add(time.Minute)); fate != FateFailed || reason != c.reason {
				t.Errorf("%s: %s, %s; want failed, %s", name, fate, reason, c.reason)
			}
		}
	})
	t.Run("W-10 ten minutes from the first failure, looked at when one more fails", func(t *testing.T) {
		t.Parallel()
		h, _, _ := Hook{}.Settle(broken, start)
		late := start.Add(BudgetTime)
		if !h.Ready(late) {
			t.Error("time alone ended the budget")
		}
		if _, fate, _ := h.Settle(broken, late.Add(-time.Microsecond)); fate != FateStays {
			t.Errorf("a microsecond before: %s", fate)
		}
		if _, fate, reason := h.Settle(silent, late); fate != FateFailed || reason != ReasonOutcomeUnknown {
			t.Errorf("at ten minutes: %s, %s", fate, reason)
		}
		if h, fate, _ := h.Settle(refused, late); fate != FateStays || h.Head.Charged != 1 {
			t.Errorf("a failed connection at ten minutes: %s, charged %d", fate, h.Head.Charged)
		}
	})
	t.Run("W-10 while delivery is paused the clock stands still", func(t *testing.T) {
		t.Parallel()
		h, _, _ := Hook{}.Settle(broken, start)
		h, _, _ = h.Settle(unauthorized, start.Add(5*time.Second))
		h = h.Resume(start.Add(time.Hour), false)
		if got, want := h.Head.FirstFailed, start.Add(time.Hour-5*time.Second); !got.Equal(want) || h.Head.Charged != 1 {
			t.Errorf("the budget begins at %v with %d charged, want %v with 1", got, h.Head.Charged, want)
		}
		if !h.Ready(start.Add(time.Hour)) {
			t.Error("W-11 the update doesn't go out at once")
		}
	})
	t.Run("W-10 two pauses that overlap stop the clock once", func(t *testing.T) {
		t.Parallel()
		h, _, _ := Hook{}.Settle(broken, start)
		h, _, _ = h.Settle(unauthorized, start)      // paused by the answer
		h = h.Stop(start.Add(time.Minute))           // and by the owner
		h = h.Resume(start.Add(2*time.Minute), true) // still paused by the owner
		if h.Go(start.Add(3*time.Minute)).Head.FirstFailed != start.Add(3*time.Minute) {
			t.Errorf("the budget begins at %v", h.Head.FirstFailed)
		}
	})
}

func TestConnectWaits(t *testing.T) {
	t.Parallel()
	t.Run("W-09 5 s doubled up to 5 min, charges nothing, reset by a 2xx", func(t *testing.T) {
		t.Parallel()
		h, now := Hook{}, start
		for i, want := range []int{5, 10, 20, 40, 80, 160, 300, 300, 300} {
			h, _, _ = h.Settle(refused, now)
			if got := h.Due.Sub(now); got != time.Duration(want)*time.Second || h.Head.Charged != 0 || h.UsedUp != 0 {
				t.Errorf("failure %d: wait %v, charged %d; want %d s, 0", i+1, got, h.Head.Charged, want)
			}
			now = h.Due
		}
		h, _, _ = h.Settle(broken, now)
		h, _, _ = h.Settle(refused, h.Due)
		if got := h.Due.Sub(h.LastError.At); got != 5*time.Minute {
			t.Errorf("after a 500: %v, want 5 min: only a 2xx resets", got)
		}
		h, _, _ = h.Settle(ok, h.Due)
		h, _, _ = h.Settle(refused, now)
		if got := h.Due.Sub(now); got != 5*time.Second {
			t.Errorf("after a 2xx: %v, want 5 s", got)
		}
	})
	t.Run("W-09 a 429 waits as it says, else as a failed connection", func(t *testing.T) {
		t.Parallel()
		h, _, _ := Hook{}.Settle(slowDown, start)
		if got := h.Due.Sub(start); got != 30*time.Second || h.Failures != 0 || h.LastError.Code != "HTTP_429" {
			t.Errorf("wait %v, %+v", got, h)
		}
		plain := Answer{Kind: Answered, Status: 429}
		h, _, _ = h.Settle(plain, start)
		h, _, _ = h.Settle(plain, start)
		if got := h.Due.Sub(start); got != 10*time.Second || h.Head.Charged != 0 {
			t.Errorf("the second without Retry-After: %v, want 10 s", got)
		}
	})
	t.Run("W-12 the owner's probe ends the wait after a failed connection, not that of a charged attempt", func(t *testing.T) {
		t.Parallel()
		h, _, _ := Hook{}.Settle(refused, start)
		if !h.Probe(start).Ready(start) {
			t.Error("the wait stays")
		}
		h, _, _ = h.Settle(broken, start)
		if h.Probe(start).Ready(start) {
			t.Error("a charged attempt was brought forward")
		}
	})
}

func TestBreaker(t *testing.T) {
	t.Parallel()
	usedUp := func(h Hook, now time.Time) Hook {
		h.Head = Budget{Charged: MaxCharged - 1, FirstFailed: now}
		h, _, _ = h.Settle(broken, now)
		return h
	}
	t.Run("W-12 three used-up budgets in a row open it; only a 2xx between resets", func(t *testing.T) {
		t.Parallel()
		h := usedUp(usedUp(Hook{}, start), start)
		h, _, _ = h.Settle(unprocessed, start)
		h, _, _ = h.Settle(refused, start)
		h, _, _ = h.Settle(slowDown, start)
		if h.Open() {
			t.Fatal("open after two")
		}
		reset, _, _ := h.Settle(ok, start)
		if usedUp(reset, start).Open() {
			t.Error("a 2xx between didn't reset")
		}
		h = usedUp(h, start)
		if !h.Open() || h.Due.Sub(start) != time.Minute {
			t.Errorf("after three: %+v", h)
		}
	})
	t.Run("W-12 pauses of 1, 5, 15, 30, 60, 60 minutes; a failed probe charges nothing", func(t *testing.T) {
		t.Parallel()
		for name, failure := range map[string]Answer{"500": broken, "silence": silent, "refused": refused, "429": slowDown} {
			h, now := opened(start), start
			for i, want := range []int{1, 5, 15, 30, 60, 60, 60} {
				if got := h.Due.Sub(now); got != time.Duration(want)*time.Minute {
					t.Errorf("%s: pause %d is %v, want %d min", name, i+1, got, want)
				}
				now = h.Due
				var fate Fate
				h, fate, _ = h.Settle(failure, now)
				if fate != FateStays || h.Head.Charged != 0 || !h.Head.FirstFailed.IsZero() {
					t.Errorf("%s: probe %d: %s, %+v", name, i+1, fate, h.Head)
				}
			}
		}
	})
	t.Run("W-12 a 2xx closes it", func(t *testing.T) {
		t.Parallel()
		h, fate, _ := opened(start).Settle(ok, start)
		if fate != FateConfirmed || h.Open() || h.UsedUp != 0 || !h.Due.IsZero() {
			t.Errorf("%s, %+v", fate, h)
		}
	})
	t.Run("W-12 a failed probe that the owner asked for leaves the schedule as it was", func(t *testing.T) {
		t.Parallel()
		before := opened(start)
		h := before.Probe(start)
		if !h.Ready(start) {
			t.Fatal("the probe doesn't go out at once")
		}
		h, _, _ = h.Settle(broken, start.Add(time.Second))
		if h.Due != before.Due || h.Breaker != before.Breaker || h.ProbeAsked || h.Ready(start.Add(2*time.Second)) {
			t.Errorf("after it: %+v", h)
		}
	})
	t.Run("W-12 400, 413 and 422 to a probe: FAILED, and the next is probed at once", func(t *testing.T) {
		t.Parallel()
		for _, asked := range []bool{false, true} {
			h := opened(start)
			now := h.Due
			if asked {
				now = start
				h = h.Probe(now)
			}
			due := h.Due
			h, fate, reason := h.Settle(unprocessed, now)
			if fate != FateFailed || reason != "HTTP_422" || !h.Open() || !h.Ready(now) {
				t.Errorf("asked %v: %s %s %+v", asked, fate, reason, h)
			}
			h, _, _ = h.Settle(broken, now)
			if asked && h.Due != due {
				t.Errorf("the schedule moved to %v", h.Due)
			}
			if !asked && h.Due.Sub(now) != 5*time.Minute {
				t.Errorf("the failed probe waits %v, want 5 min", h.Due.Sub(now))
			}
		}
	})
	t.Run("W-12 a pause while open; Resume sends one probe", func(t *testing.T) {
		t.Parallel()
		h := opened(start)
		now := h.Due
		h, _, _ = h.Settle(unauthorized, now)
		if h.Ready(now.Add(time.Hour)) || h.Paused != "HTTP_401" || !h.Open() {
			t.Fatalf("paused: %+v", h)
		}
		now = now.Add(2 * time.Hour)
		h = h.Resume(now, false)
		if !h.Ready(now) || !h.ProbeAsked {
			t.Fatalf("resumed: %+v", h)
		}
		h, _, _ = h.Settle(broken, now)
		if h.Ready(now) || h.Due.Sub(now) != time.Minute {
			t.Errorf("after the failed probe: %+v; want one pause, not a second probe at once", h)
		}
	})
	t.Run("M-04 a save closes it", func(t *testing.T) {
		t.Parallel()
		h := opened(start).Saved(start, false)
		if h.Open() || h.UsedUp != 0 || !h.Ready(start) {
			t.Errorf("%+v", h)
		}
	})
}

func TestHookState(t *testing.T) {
	t.Parallel()
	c := Connection{Mode: Webhook}
	for name, row := range map[string]struct {
		hook    Hook
		c       Connection
		allowed bool
		want    string
	}{
		"polling":             {Hook{Paused: "HTTP_401"}, Connection{Mode: Polling}, true, HookOff},
		"switched off":        {Hook{Paused: "HTTP_401"}, c, false, HookDisabled},
		"space runs no bots":  {Hook{}, Connection{Mode: Webhook, Disabled: true}, true, HookDisabled},
		"paused":              {Hook{Paused: "HTTP_401", Breaker: 1}, c, true, HookPaused},
		"paused by its owner": {Hook{}, Connection{Mode: Webhook, Paused: true}, true, HookPaused},
		"open":                {opened(start), c, true, HookOpen},
		"waits for a retry":   {Hook{Due: start}, c, true, HookRetrying},
		"connection fails":    {Hook{Failures: 1}, c, true, HookRetrying},
		"all is well":         {Hook{LastError: HookError{Code: "HTTP_500", At: start}}, c, true, HookActive},
	} {
		t.Run("W-14 "+name, func(t *testing.T) {
			t.Parallel()
			if got := row.hook.State(row.c, row.allowed, true); got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
}

// TestHookHistories lets anything happen in any order.
func TestHookHistories(t *testing.T) {
	t.Parallel()
	t.Run("W-10 W-11 W-12 random histories", rapid.MakeCheck(func(t *rapid.T) {
		answers := []Answer{ok, broken, silent, refused, unprocessed, unauthorized, slowDown}
		h, now := Hook{Head: Budget{UpdateID: 1}}, start
		failed := 0 // in a row by their budget, since the last 2xx or save
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 700).Draw(t, "seconds")) * time.Second)
			before := h
			switch rapid.SampledFrom([]string{"attempt", "attempt", "attempt", "resume", "probe", "save", "stop", "go"}).Draw(t, "what") {
			case "attempt":
				if !h.Ready(now) {
					continue
				}
				a := rapid.SampledFrom(answers).Draw(t, "answer")
				var fate Fate
				var reason string
				h, fate, reason = h.Settle(a, now)
				switch {
				case (fate == FateConfirmed) != (a == ok):
					t.Fatalf("W-09 %+v came to %s", a, fate)
				case fate == FateFailed && reason != "HTTP_422":
					failed++
					if before.Open() {
						t.Fatal("W-12 a probe used up a budget")
					}
				case fate == FateConfirmed:
					failed = 0
				}
				if h.Head.Charged >= MaxCharged {
					t.Fatalf("W-10 charged %d and still waiting", h.Head.Charged)
				}
			case "resume":
				h = h.Resume(now, false)
			case "probe":
				h = h.Probe(now)
			case "save":
				h, failed = h.Saved(now, false), 0
			case "stop":
				h = h.Stop(now)
			case "go":
				h = h.Go(now)
			}
			switch {
			case failed > UsedUpToOpen:
				t.Fatalf("W-12 an outage moved %d updates to FAILED", failed)
			case h.Paused != "" && h.Ready(now.Add(1000*time.Hour)):
				t.Fatal("W-11 time ended a pause")
			case h.Paused != "" && h.StoppedAt.IsZero():
				t.Fatal("W-10 the budget's clock runs while delivery is paused")
			case h.Due.Sub(now) > time.Hour:
				t.Fatalf("W-12 the next attempt is %v away", h.Due.Sub(now))
			case h.Head.FirstFailed.After(now):
				t.Fatalf("W-10 the first failure lies ahead: %v", h.Head.FirstFailed.Sub(now))
			}
		}
	}))
}
