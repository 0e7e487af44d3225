package delivery

import "time"

// The limits of webhook delivery, each beside the clause that sets it.
const (
	ConnectTime   = 5 * time.Second  // name look-up, connection and TLS (W-08)
	RequestTime   = 10 * time.Second // a whole request, the connection included (W-08)
	MaxAnswer     = 64 << 10         // bytes of an answer that are read (W-08)
	KeepAliveTime = 60 * time.Second // of a connection, on the product's clock (W-02)

	MaxCharged     = 5                // attempts that an update's budget allows (W-10)
	BudgetTime     = 10 * time.Minute // from the first charged attempt (W-10)
	UsedUpToOpen   = 3                // updates in a row that open the breaker (W-12)
	minConnectWait = 5 * time.Second  // after a failed connection, doubled (W-09)
	maxConnectWait = 5 * time.Minute  // up to here
	minRetryAfter  = time.Second      // of a Retry-After that counts (W-09)
	maxRetryAfter  = time.Hour
)

// budgetWaits are the pauses between charged attempts (W-10).
var budgetWaits = [MaxCharged - 1]time.Duration{5 * time.Second, 20 * time.Second, time.Minute, 3 * time.Minute}

// breakerWaits are the pauses of the open breaker; the last one repeats (W-12).
var breakerWaits = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour}

// Hook is what a bot's queue row says about webhook delivery. Like Connection it
// is a value: the rules return it changed, and the row's lock makes the decision
// and the write one.
type Hook struct {
	Paused     string    // the code that paused delivery, "" while it isn't paused (W-11)
	StoppedAt  time.Time // since when nothing is sent, by a pause of any kind; zero: it is sent
	Due        time.Time // nothing is sent before; zero: at once
	Failures   int       // failed connections since the last 2xx, each doubles the wait (W-09)
	UsedUp     int       // updates in a row that used up their budget, no 2xx between (W-12)
	Breaker    int       // 0: closed; n: open, and the n-th pause runs or its probe is under way (W-12)
	ProbeAsked bool      // one probe at once that leaves the schedule as it is (W-12)
	Head       Budget    // of the first update that waits
	LastError  HookError // stays after a later success (W-14)
	SuccessAt  time.Time // of the last 2xx; zero: none yet
}

// Budget is what the first waiting update has used up (W-10).
type Budget struct {
	UpdateID    int64     // whose budget this is; 0: nobody's yet
	Attempts    int       // requests made for it, charged or not (X-SMeet-Attempt)
	Charged     int       // of them charged
	FirstFailed time.Time // when the first charged one failed
}

// HookError is the last failed attempt. At is zero while there was none.
type HookError struct {
	Code   string
	Detail string // of Answer.Detail
	At     time.Time
}

// Fate is what becomes of the update that an attempt was made for.
type Fate string

// The fates.
const (
	FateStays     Fate = "stays"     // in its place
	FateConfirmed Fate = "confirmed" // gone
	FateFailed    Fate = "failed"    // FAILED, with a reason
)

// Ready tells whether an attempt may be made at now. Whether something waits,
// and whether the bot may do anything at all, others know.
func (h Hook) Ready(now time.Time) bool {
	return h.Paused == "" && (h.ProbeAsked || !h.Due.After(now))
}

// Open tells whether the breaker is open (W-12).
func (h Hook) Open() bool { return h.Breaker > 0 }

// The states of webhook delivery (W-14), the most serious first.
const (
	HookOff      = "off"          // the bot receives by long polling
	HookDisabled = "disabled"     // by the platform
	HookPaused   = "paused"       // until the owner ends it
	HookOpen     = "circuit_open" // the breaker
	HookRetrying = "retrying"     // the last attempt failed and is made again
	HookActive   = "active"
)

// State names the state of webhook delivery of a bot with this connection.
// allowed: the platform lets the bot have a webhook; waiting: something waits.
func (h Hook) State(c Connection, allowed, waiting bool) string {
	switch {
	case c.Mode != Webhook:
		return HookOff
	case !allowed || c.Disabled:
		return HookDisabled
	case h.Paused != "" || c.Paused:
		return HookPaused
	case h.Open():
		return HookOpen
	case h.Retrying(waiting):
		return HookRetrying
	}
	return HookActive
}

// Retrying tells whether something waits whose last attempt failed.
func (h Hook) Retrying(waiting bool) bool { return waiting && (!h.Due.IsZero() || h.Failures > 0) }

// Settle judges the answer to an attempt for the update of h.Head by the table
// of W-09, the budget of W-10 and the breaker of W-12. It returns the state from
// now on, what becomes of the update, and the reason of a FAILED one.
func (h Hook) Settle(a Answer, now time.Time) (next Hook, fate Fate, reason string) {
	verdict := a.Verdict()
	if verdict == VerdictNone { // W-13
		return h, FateStays, ""
	}
	if verdict == VerdictConfirmed {
		h.Head, h.Due, h.Failures, h.UsedUp, h.Breaker, h.ProbeAsked = Budget{}, time.Time{}, 0, 0, 0, false
		h.SuccessAt = now
		return h, FateConfirmed, ""
	}
	h.LastError = HookError{Code: a.Code(), Detail: a.Detail, At: now}
	switch verdict {
	case VerdictFailed:
		h.Head = Budget{}
		if !h.ProbeAsked { // W-12: while open, the next update is probed at once; so it is while closed
			h.Due = time.Time{}
		}
		return h, FateFailed, a.Code()
	case VerdictPause:
		h.Paused = a.Code()
		if h.StoppedAt.IsZero() {
			h.StoppedAt = now
		}
		h.reschedule(now)
		return h, FateStays, ""
	}
	if h.Open() {
		if !h.ProbeAsked {
			h.Breaker++
			h.Due = now.Add(h.breakerWait())
		}
		h.ProbeAsked = false
		return h, FateStays, ""
	}
	if verdict == VerdictWait {
		h.Due = now.Add(h.wait(a))
		if a.RetryAfter == 0 {
			h.Failures++
		}
		return h, FateStays, ""
	}
	return h.charge(a, now)
}

// charge charges the head's budget (W-10). The time is looked at here alone.
func (h Hook) charge(a Answer, now time.Time) (Hook, Fate, string) {
	h.Head.Charged++
	if h.Head.FirstFailed.IsZero() {
		h.Head.FirstFailed = now
	}
	if h.Head.Charged < MaxCharged && now.Sub(h.Head.FirstFailed) < BudgetTime {
		h.Due = now.Add(budgetWaits[h.Head.Charged-1])
		return h, FateStays, ""
	}
	h.Head, h.Due = Budget{}, time.Time{}
	if h.UsedUp++; h.UsedUp >= UsedUpToOpen {
		h.Breaker = 1
		h.Due = now.Add(h.breakerWait())
	}
	if a.Kind == Answered && a.Status/100 == 5 {
		return h, FateFailed, ReasonServerError
	}
	return h, FateFailed, ReasonOutcomeUnknown
}

// wait is how long an uncharged failure waits (W-09).
func (h Hook) wait(a Answer) time.Duration {
	if a.RetryAfter > 0 {
		return a.RetryAfter
	}
	if h.Failures > 6 { // 5 s doubled seven times is over 5 min
		return maxConnectWait
	}
	return min(minConnectWait<<h.Failures, maxConnectWait)
}

func (h Hook) breakerWait() time.Duration {
	return breakerWaits[min(h.Breaker, len(breakerWaits))-1]
}

// reschedule ends an attempt that neither failed nor succeeded: while the
// breaker is open its next probe comes a pause later, unless it stands already.
func (h *Hook) reschedule(now time.Time) {
	h.ProbeAsked = false
	switch {
	case !h.Open():
		h.Due = time.Time{}
	case !h.Due.After(now):
		h.Due = now.Add(h.breakerWait())
	}
}

// Resume is the owner's Resume delivery: a paused delivery goes on at once, with
// the budget that the update had. While the breaker is open it sends one probe
// (W-11, W-12). stopped: the bot itself is paused, so the budget's clock stays.
func (h Hook) Resume(now time.Time, stopped bool) Hook {
	if h.Paused != "" {
		h.Paused = ""
		if !stopped {
			h = h.start(now)
		}
		h.reschedule(now)
	}
	if h.Open() {
		h.ProbeAsked = true
	}
	return h
}

// Probe is the owner's Probe now: an open breaker sends one probe at once
// (W-12), and the wait after failed connections ends.
func (h Hook) Probe(now time.Time) Hook {
	switch {
	case h.Paused != "":
	case h.Open():
		h.ProbeAsked = true
	case h.Failures > 0 && h.LastError.uncharged():
		h.Due = time.Time{}
	}
	return h
}

// uncharged tells whether the error was a failed connection.
func (e HookError) uncharged() bool { return e.Code == CodeConnectionFailed || e.Code == CodeDNSFailed }

// Saved is a save of the settings: delivery goes on at once, with a closed
// breaker; the update keeps its budget (M-04). stopped is as for Resume.
func (h Hook) Saved(now time.Time, stopped bool) Hook {
	h.Paused, h.ProbeAsked = "", false
	if !stopped {
		h = h.start(now)
	}
	h.Due, h.Failures, h.UsedUp, h.Breaker = time.Time{}, 0, 0, 0
	return h
}

// Stop is a pause of the bot itself (M-07), Go its end: while nothing may be
// sent, the budget's clock stands still (W-10).
func (h Hook) Stop(now time.Time) Hook {
	if h.StoppedAt.IsZero() {
		h.StoppedAt = now
	}
	return h
}

// Go ends a pause of the bot itself; see Stop.
func (h Hook) Go(now time.Time) Hook {
	if h.Paused != "" {
		return h
	}
	return h.start(now)
}

// start moves the budget's clock on by the time for which it stood.
func (h Hook) start(now time.Time) Hook {
	if !h.StoppedAt.IsZero() && !h.Head.FirstFailed.IsZero() {
		stood := h.StoppedAt
		if h.Head.FirstFailed.After(stood) { // a request that was under way at the stop failed after it
			stood = h.Head.FirstFailed
		}
		h.Head.FirstFailed = h.Head.FirstFailed.Add(max(0, now.Sub(stood)))
	}
	h.StoppedAt = time.Time{}
	return h
}

// RetryAfter reads the header of a 429: whole seconds or a date, 1 s to 1 h from
// now; 0 for anything else (W-09).
func RetryAfter(header string, date func(string) (time.Time, error), now time.Time) time.Duration {
	var wait time.Duration
	if seconds, ok := parseSeconds(header); ok {
		wait = seconds
	} else if at, err := date(header); err == nil {
		wait = at.Sub(now)
	}
	if wait < minRetryAfter || wait > maxRetryAfter {
		return 0
	}
	return wait
}

// parseSeconds reads digits; more of them than an hour has are over any limit.
func parseSeconds(s string) (time.Duration, bool) {
	if s == "" {
		return 0, false
	}
	n := 0
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = min(n*10+int(c-'0'), 1_000_000)
	}
	return time.Duration(n) * time.Second, true
}
