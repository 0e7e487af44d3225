package owner

import (
	"context"

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

// failureCodes are the product's own reasons for FAILED, in the order in which
// the page explains them. Every other reason is the program's (R-01, W-09, W-10).
var failureCodes = []string{"HTTP_400", "HTTP_413", "HTTP_422", "HTTP_5XX", "DELIVERY_OUTCOME_UNKNOWN"}

// reasonOf puts the reason of a failed update into words; what isn't one of our
// codes is shown as the program wrote it.
func reasonOf(ctx context.Context, reason string) views.Reason {
	for _, code := range failureCodes {
		if reason == code {
			return views.Reason{Words: words.T(ctx, "failed.reason_"+code), Code: code, Do: words.T(ctx, "failed.do_"+code)}
		}
	}
	return views.Reason{Words: reason}
}

// legend explains the reasons that the list has.
func legend(ctx context.Context, groups []queue.FailedGroup) (reasons []views.Reason) {
	there, own := map[string]bool{}, false
	for _, g := range groups {
		if reasonOf(ctx, g.Reason).Code == "" {
			own = true
		}
		there[g.Reason] = true
	}
	for _, code := range failureCodes {
		if there[code] {
			reasons = append(reasons, reasonOf(ctx, code))
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
