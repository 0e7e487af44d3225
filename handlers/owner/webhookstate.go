package owner

import (
	"context"
	"strconv"
	"strings"

	"mybots/delivery"
	"mybots/delivery/queue"
	views "mybots/views/owner"
	"mybots/views/words"
)

// hookStateOf judges the delivery to a webhook that may have one and whose bot
// isn't paused.
func hookStateOf(s queue.Status) state {
	switch s.Hook.State(s.Connection, true, s.Waiting > 0) {
	case delivery.HookPaused:
		return hookPaused
	case delivery.HookOpen:
		return hookOpen
	case delivery.HookRetrying:
		switch s.Hook.LastError.Code {
		case delivery.CodeConnectionFailed, delivery.CodeDNSFailed:
			return hookConnecting
		case delivery.HTTPCode(429):
			return hookAsked
		}
		return hookRetrying
	}
	switch {
	case s.Full():
		return hookFull
	case s.Waiting > 0:
		return hookDelivering
	case s.Hook.SuccessAt.IsZero():
		return hookNew
	}
	return hookReady
}

// hook tells whether the state is one of webhook delivery.
func (s state) hook() bool { return strings.HasPrefix(string(s), "hook_") }

// sayHook puts a state of webhook delivery into the reader's words: what
// happened, what is safe, what to do.
func (s state) sayHook(ctx context.Context, status queue.Status) views.State {
	key, h := "state."+string(s), status.Hook
	v := views.State{Code: s.code(), Kind: s.kind(), Word: words.T(ctx, key+"_word")}
	switch s {
	case hookDelivering:
		v.Means = words.N(ctx, "state.hook_delivering_means", status.Waiting)
		return v
	case hookReady:
		v.Means = words.T(ctx, key+"_means")
		return v
	case hookPaused:
		trouble := troubleOf(h.Paused, "")
		if h.LastError.Code == h.Paused {
			trouble.detail = h.LastError.Detail
		}
		v.Means, v.Cause = trouble.cause(ctx), h.Paused
		v.Act = trouble.fix(ctx) + " " + words.T(ctx, "hook.then_resume")
		if h.Open() {
			v.Act += " " + words.T(ctx, "hook.open_too")
		}
	case hookConnecting:
		v.Means, v.Cause = troubleOf(h.LastError.Code, "").cause(ctx), h.LastError.Code
		v.Act = words.T(ctx, key+"_act")
	case hookRetrying:
		trouble := troubleOf(h.LastError.Code, h.LastError.Detail)
		v.Means = trouble.why(ctx) + "."
		if h.Head.Charged > 0 {
			v.Means = words.N(ctx, "hook.retrying_means", h.Head.Charged, "Why", trouble.why(ctx), "ID", number(h.Head.UpdateID), "Limit", delivery.MaxCharged)
		}
		v.Cause, v.Act = h.LastError.Code, words.T(ctx, key+"_act")
	case hookOpen:
		v.Means, v.Cause, v.Act = words.T(ctx, key+"_means"), h.LastError.Code, words.T(ctx, key+"_act")
		if h.ProbeAsked {
			v.Act = words.T(ctx, "state.hook_open_asked_act")
		}
	default:
		v.Means, v.Act = words.T(ctx, key+"_means"), words.T(ctx, key+"_act")
	}
	if s == hookNew {
		return v
	}
	v.Safe = words.N(ctx, "hook.safe", status.Waiting)
	if status.Waiting == 0 {
		v.Safe = words.T(ctx, "hook.safe_none")
	}
	if status.Full() && s != hookFull {
		v.Safe += " " + words.T(ctx, "hook.full_too")
	}
	return v
}

// trouble is why an attempt failed, as the reader's words know it.
type trouble struct {
	code, detail string
	status       int // of an HTTP code, else 0
}

// troubleOf reads a code of last_error (W-09, W-14).
func troubleOf(code, detail string) trouble {
	t := trouble{code: code, detail: detail}
	if text, ok := strings.CutPrefix(code, "HTTP_"); ok {
		t.status, _ = strconv.Atoi(text) // a code that is no status has the words of any
	}
	return t
}

// The codes that have words of their own; statuses beside them share some.
var (
	statusesWithWhy   = map[int]bool{400: true, 401: true, 403: true, 404: true, 408: true, 410: true, 413: true, 422: true, 429: true}
	statusesWithCause = map[int]bool{401: true, 403: true, 404: true, 410: true}
	certificateTold   = map[string]bool{delivery.CertificateExpired: true, delivery.CertificateName: true, delivery.CertificateIssuer: true}
)

// key names the words for the code under what: "hook.why_TIMEOUT".
func (t trouble) key(what string, told map[int]bool) string {
	switch {
	case t.status == 0 && t.code == delivery.CodeCertificate && certificateTold[t.detail]:
		return "hook." + what + "_" + t.code + "_" + t.detail
	case !strings.HasPrefix(t.code, "HTTP_") || told[t.status]:
		return "hook." + what + "_" + t.code
	}
	return "hook." + what + "_status"
}

// why says in half a sentence what went wrong.
func (t trouble) why(ctx context.Context) string {
	if t.status/100 == 5 {
		return words.T(ctx, "hook.why_HTTP_5XX")
	}
	return words.T(ctx, t.key("why", statusesWithWhy))
}

// cause says in whole sentences what stops delivery.
func (t trouble) cause(ctx context.Context) string {
	return words.T(ctx, t.key("cause", statusesWithCause), "Status", strconv.Itoa(t.status))
}

// fix says what to change.
func (t trouble) fix(ctx context.Context) string {
	switch {
	case t.status/100 == 5:
		return words.T(ctx, "hook.fix_5XX")
	case t.status == 400 || t.status == 413 || t.status == 422:
		return words.T(ctx, "hook.fix_can_t_take")
	case t.status == 429:
		return words.T(ctx, "hook.fix_HTTP_429")
	case t.status == 408 || t.code == delivery.CodeTimeout || t.code == delivery.CodeConnectionLost:
		return words.T(ctx, "hook.fix_slow")
	}
	return words.T(ctx, t.key("fix", statusesWithCause))
}
