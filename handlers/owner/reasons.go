package owner

import (
	"context"
	"slices"
	"strings"

	"mybots/delivery"
	"mybots/delivery/queue"
	views "mybots/views/owner"
	"mybots/views/words"
)

// kinds are the types that we have words for (U-01).
var kinds = map[string]bool{
	"message": true, "message_edited": true, "message_deleted": true,
	"callback_query": true, "chat_access_changed": true, "file_status_changed": true,
}

// kindOf puts an update's type into words; one that we don't know is its code alone.
func kindOf(ctx context.Context, code string) views.Kind {
	k := views.Kind{Code: code}
	if kinds[code] {
		k.Words = words.T(ctx, "failed.kind_"+code)
	}
	return k
}

// failureCodes are the reasons of updates that a webhook failed, in the order in
// which the page explains them (W-09, W-10).
var failureCodes = []string{"HTTP_400", "HTTP_413", "HTTP_422", "HTTP_5XX", "DELIVERY_OUTCOME_UNKNOWN"}

// reasonOf puts the reason of a failed update into words: a webhook's is a code, a
// program's is shown as the program wrote it, even where it looks like a code.
func reasonOf(ctx context.Context, reason string, byWebhook bool) views.Reason {
	if !byWebhook {
		return views.Reason{Words: reason}
	}
	if slices.Contains(failureCodes, reason) {
		return views.Reason{Words: words.T(ctx, "failed.reason_"+reason), Code: reason, Do: words.T(ctx, "failed.do_"+reason)}
	}
	return views.Reason{Words: troubleOf(reason, "").why(ctx), Code: reason}
}

// The filter names a reason in one field. A webhook's code stands as it is; a
// program's words do, too, unless they could be taken for something else.
const (
	byProgram = "program:"
	byWebhook = "webhook:"
)

// writeReason is the field's value for the reason.
func writeReason(reason string, hook bool) string {
	code := slices.Contains(failureCodes, reason)
	switch {
	case hook && !code:
		return byWebhook + reason
	case !hook && (code || strings.HasPrefix(reason, byProgram) || strings.HasPrefix(reason, byWebhook)):
		return byProgram + reason
	}
	return reason
}

// readReason is writeReason backwards.
func readReason(field string) (reason string, hook bool) {
	if reason, ok := strings.CutPrefix(field, byProgram); ok {
		return reason, false
	}
	if reason, ok := strings.CutPrefix(field, byWebhook); ok {
		return reason, true
	}
	return field, slices.Contains(failureCodes, field)
}

// legend explains the reasons that the list has.
func legend(ctx context.Context, groups []queue.FailedGroup) (reasons []views.Reason) {
	there, own := map[string]bool{}, false
	for _, g := range groups {
		if g.ByWebhook {
			there[g.Reason] = true
		} else {
			own = true
		}
	}
	for _, code := range failureCodes {
		if there[code] {
			reasons = append(reasons, reasonOf(ctx, code, true))
		}
	}
	if own {
		reasons = append(reasons, views.Reason{Words: words.T(ctx, "failed.legend_own"), Code: "rejectUpdate", Do: words.T(ctx, "failed.legend_own_text")})
	}
	return reasons
}

// shortReason is how much of a reason a list to choose from shows, in runes.
const shortReason = 60

func short(text string) string {
	runes := []rune(text)
	if len(runes) <= shortReason {
		return text
	}
	return string(runes[:shortReason-1]) + "…"
}

// blocked says why nothing can be retried now, "" when it can (F-02).
func blocked(ctx context.Context, s queue.Status) string {
	switch {
	case s.Maintenance:
		return words.T(ctx, "failed.blocked_MAINTENANCE")
	case s.Disabled:
		return words.T(ctx, "failed.blocked_BOT_DISABLED")
	case s.Paused:
		return words.T(ctx, "failed.blocked_BOT_PAUSED")
	}
	return ""
}

// refusals are the reasons for which a retry is refused, in the order in which
// the page explains them (F-02).
var refusals = []delivery.RefusedFor{
	delivery.RefusedFor(delivery.Maintenance), delivery.RefusedFor(delivery.BotDisabled), delivery.RefusedFor(delivery.BotPaused),
	delivery.RefusedFor(delivery.QueueFull), delivery.ChatStopped, delivery.ChatBlocked, delivery.ChatLeft, delivery.Expired, delivery.NotFailed,
}

// whyNot says why an update wasn't retried or skipped, and what to do.
func whyNot(ctx context.Context, code delivery.RefusedFor) views.Reason {
	key := "other"
	for _, known := range refusals {
		if code == known {
			key = string(code)
		}
	}
	return views.Reason{Words: words.T(ctx, "became.why_"+key), Code: string(code), Do: words.T(ctx, "became.do_"+key)}
}

// reasonShown is the filter's reason as a question names it: the code, or the
// program's own words.
func reasonShown(ctx context.Context, f queue.FailedFilter) string {
	return inQuotes(ctx, f.Reason, !f.ByWebhook && writeReason(f.Reason, false) != f.Reason)
}

// inQuotes puts a program's words into quotation marks where they could be taken
// for a code.
func inQuotes(ctx context.Context, text string, yes bool) string {
	if !yes {
		return text
	}
	return words.T(ctx, "hook.own_words", "Words", text)
}
