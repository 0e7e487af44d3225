package owner

import (
	"context"
	"strconv"
	"time"

	"mybots/delivery"
	"mybots/delivery/queue"
	views "mybots/views/owner"
	"mybots/views/ui"
	"mybots/views/words"
	"mybots/web"
)

const (
	// attemptRows is how many requests the page lists (UI-03).
	attemptRows = 50
	// drainSample is how many confirmed ones tell how fast the program is.
	drainSample = 10
)

// nextTry is when the next attempt is made, where it is waited for.
func nextTry(ctx context.Context, st state, s queue.Status) views.NextTry {
	next := views.NextTry{Label: words.T(ctx, "hook.next")}
	switch {
	case s.Waiting == 0:
		return views.NextTry{}
	case st == hookOpen:
		next.Label = words.T(ctx, "hook.next_probe")
	case st != hookConnecting && st != hookAsked && st != hookRetrying:
		return views.NextTry{}
	}
	if s.Hook.ProbeAsked || !s.Hook.Due.After(s.At) {
		next.Now = true
	} else {
		next.At = s.Hook.Due
	}
	return next
}

// hookFacts are the numbers and times of webhook delivery.
func hookFacts(ctx context.Context, s queue.Status, attempts []queue.Attempt) *views.HookFacts {
	h := s.Hook
	facts := &views.HookFacts{
		Address: s.HookURL, SecretAt: s.HookSavedAt, SuccessAt: h.SuccessAt,
		Budget: words.T(ctx, "hook.budget_none"), Breaker: words.T(ctx, "hook.breaker_closed"),
	}
	if e := h.LastError; !e.At.IsZero() {
		facts.Error = views.HookError{Words: troubleOf(e.Code, e.Detail).why(ctx), Code: e.Code, At: e.At}
	}
	// The budget may still be that of an update that is gone.
	mine := s.Waiting > 0 && h.Head.UpdateID == s.Confirmed
	switch {
	case mine && h.Head.Charged > 0:
		facts.Budget = words.T(ctx, "hook.budget_used", "ID", number(h.Head.UpdateID), "Charged", h.Head.Charged, "Limit", delivery.MaxCharged)
		facts.Still = !h.StoppedAt.IsZero()
		facts.Ends = h.Head.FirstFailed.Add(delivery.BudgetTime)
	case s.Waiting > 0:
		facts.Budget = words.T(ctx, "hook.budget_fresh")
	}
	if mine && h.Head.Attempts > 0 {
		facts.Made = words.T(ctx, "hook.budget_made", "N", h.Head.Attempts)
	}
	switch {
	case h.Open():
		facts.Breaker = words.T(ctx, "hook.breaker_open", "N", h.Breaker)
	case h.UsedUp > 0:
		facts.Breaker = words.T(ctx, "hook.breaker_counting", "N", h.UsedUp, "Limit", delivery.UsedUpToOpen)
	}
	if stateOf(s) == hookDelivering || stateOf(s) == hookFull {
		facts.Drain = drain(ctx, s.Waiting, attempts)
	}
	return facts
}

// drain estimates how long what waits takes to go out, one request after the
// other; "" while too few were confirmed to tell.
func drain(ctx context.Context, waiting int, attempts []queue.Attempt) string {
	var took time.Duration
	n := 0
	for _, a := range attempts {
		if a.Fate == delivery.FateConfirmed {
			took += a.Took
			n++
		}
	}
	if n < drainSample {
		return ""
	}
	whole := took / time.Duration(n) * time.Duration(waiting)
	text := words.T(ctx, "hook.under_minute")
	switch {
	case whole >= 2*time.Hour:
		text = words.T(ctx, "hook.hours", "N", int64((whole+30*time.Minute)/time.Hour))
	case whole >= time.Minute:
		text = words.T(ctx, "hook.minutes", "N", int64((whole+30*time.Second)/time.Minute))
	}
	return words.N(ctx, "hook.drain_about", waiting, "Time", text)
}

// attemptList puts the requests into words.
func attemptList(ctx context.Context, attempts []queue.Attempt) []views.Attempt {
	list := make([]views.Attempt, len(attempts))
	for i, a := range attempts {
		list[i] = views.Attempt{At: a.At, UpdateID: number(a.UpdateID), Number: int64(a.Number), Code: answerCode(a), Took: web.Took(ctx, a.Took)}
		list[i].Kind, list[i].Result = result(ctx, a)
		if a.Fate != delivery.FateConfirmed {
			list[i].Why = troubleOf(a.Code, a.Detail).why(ctx)
		}
	}
	return list
}

// answerCode is the status that came, with the code where that isn't the status
// again; without a status the code alone.
func answerCode(a queue.Attempt) string {
	switch status := strconv.Itoa(a.Status); {
	case a.Status == 0:
		return a.Code
	case a.Code == "" || a.Code == delivery.HTTPCode(a.Status):
		return status
	default:
		return status + " " + a.Code
	}
}

// result says what followed from an attempt.
func result(ctx context.Context, a queue.Attempt) (ui.Kind, string) {
	verdict := verdictOf(a)
	switch {
	case a.Fate == delivery.FateConfirmed:
		return ui.Fine, words.T(ctx, "hook.result_confirmed")
	case a.Fate == delivery.FateFailed && verdict == delivery.VerdictFailed:
		return ui.Trouble, words.T(ctx, "hook.result_failed")
	case a.Fate == delivery.FateFailed:
		return ui.Trouble, words.T(ctx, "hook.result_used_up")
	case verdict == delivery.VerdictPause:
		return ui.Trouble, words.T(ctx, "hook.result_pause")
	case verdict == delivery.VerdictWait:
		return ui.Waiting, words.T(ctx, "hook.result_wait")
	case a.Charged == 0: // an open breaker charges nothing
		return ui.Waiting, words.T(ctx, "hook.result_probe")
	}
	return ui.Waiting, words.T(ctx, "hook.result_charged", "Charged", a.Charged, "Limit", delivery.MaxCharged)
}

// verdictOf reads the answer of an attempt in the table of W-09 again.
func verdictOf(a queue.Attempt) delivery.Verdict {
	return delivery.AnswerOf(a.Code, a.Status).Verdict()
}
