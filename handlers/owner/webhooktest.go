package owner

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"mybots/delivery"
	"mybots/delivery/queue"
	"mybots/delivery/webhook"
	views "mybots/views/owner"
	"mybots/views/ui"
	"mybots/views/words"
	"mybots/web"
)

// testPayload is the payload of an update of type test.
const testPayload = `{"text":"A test request from the Connection page. Answer it with 200."}`

// SendTest sends one signed request outside the queue. The next page says how the
// answer would be taken; nothing is confirmed, charged or paused (M-08).
func (h *Handler) SendTest(w http.ResponseWriter, r *http.Request) {
	b, s, err := h.open(r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	ctx := r.Context()
	why := testRefused(ctx, s)
	if why.code != "" {
		h.showConnection(w, r, http.StatusConflict, b, s, extra{why: why})
		return
	}
	targets, err := h.bots.Targets(ctx, []int64{b.ID})
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	target, ok := targets[b.ID]
	if !ok { // switched since the look above
		h.showConnection(w, r, http.StatusConflict, b, s, extra{why: refusal{string(delivery.DeliveryModeConflict), words.T(ctx, "hook.test_refused_polling")}})
		return
	}
	began := time.Now()
	answer := h.sender.Send(ctx, webhook.Request{
		BotID: b.ID, Version: target.Version, URL: target.URL, Secret: target.Secret, Attempt: 1,
		Update: delivery.Update{EventID: uuid.NewString(), Type: "test", Date: s.At, Payload: []byte(testPayload)},
	})
	t := newTrial(b.ID, answer, time.Since(began))
	if t.verdict == delivery.VerdictNone {
		web.Fail(w, r, h.log, fmt.Errorf("test request of bot %d: %w", b.ID, context.Canceled)) // the reader has gone
		return
	}
	web.SetFlash(r, t.kind(), t.flash(ctx))
	web.Answer(w, r, nil, at(b.ID, "connection"))
}

// testRefused says why no test request may be sent; the zero refusal: it may.
func testRefused(ctx context.Context, s queue.Status) refusal {
	switch {
	case s.Mode != delivery.Webhook:
		return refusal{string(delivery.DeliveryModeConflict), words.T(ctx, "hook.test_refused_polling")}
	case !s.HookAllowed:
		return refusal{string(delivery.WebhooksUnavailable), words.T(ctx, "hook.test_refused_off")}
	case s.Maintenance:
		return refusal{string(delivery.Maintenance), words.T(ctx, "hook.test_refused_maintenance")}
	case s.Disabled:
		return refusal{string(delivery.BotDisabled), words.T(ctx, "hook.test_refused_disabled")}
	case s.Paused:
		return refusal{string(delivery.BotPaused), words.T(ctx, "hook.test_refused_paused")}
	}
	return refusal{}
}

// trial is what came of a test request. It goes to the next page in the flash,
// which the server keeps: behind the words stands a mark that the page reads.
type trial struct {
	botID   int64
	verdict delivery.Verdict
	trouble // its code is HTTP_200 and the like for a good one, too
	took    time.Duration
}

func newTrial(botID int64, a delivery.Answer, took time.Duration) trial {
	return trial{botID: botID, verdict: a.Verdict(), trouble: troubleOf(a.Code(), a.Detail), took: took}
}

// verdicts are those that a test request can have (M-08).
var verdicts = []delivery.Verdict{
	delivery.VerdictConfirmed, delivery.VerdictFailed, delivery.VerdictPause, delivery.VerdictBudget, delivery.VerdictWait,
}

func (t trial) flash(ctx context.Context) string {
	detail := t.detail
	if detail == "" {
		detail = "-"
	}
	return fmt.Sprintf("%s [test %d %s %s %s %d]", words.T(ctx, "hook.test_flash", "Result", words.T(ctx, "hook.test_"+string(t.verdict))),
		t.botID, t.verdict, t.code, detail, t.took.Milliseconds())
}

// trialOf reads the mark of a flash; false: it has none of this bot.
func trialOf(botID int64, flash string) (t trial, ok bool) {
	_, mark, ok := strings.Cut(flash, " [test ")
	fields := strings.Fields(strings.TrimSuffix(mark, "]"))
	if !ok || len(fields) != 5 || fields[0] != number(botID) {
		return trial{}, false
	}
	verdict := delivery.Verdict(fields[1])
	ms, err := strconv.ParseInt(fields[4], 10, 64)
	if err != nil || !slices.Contains(verdicts, verdict) {
		return trial{}, false
	}
	detail := strings.TrimPrefix(fields[3], "-")
	return trial{botID: botID, verdict: verdict, trouble: troubleOf(fields[2], detail), took: time.Duration(ms) * time.Millisecond}, true
}

func (t trial) kind() ui.Kind {
	switch t.verdict {
	case delivery.VerdictConfirmed:
		return ui.Fine
	case delivery.VerdictWait:
		return ui.Waiting
	}
	return ui.Trouble
}

// say puts the result into words: what came, what would follow, what to change.
func (t trial) say(ctx context.Context) *views.Trial {
	key := "hook.test_" + string(t.verdict)
	v := &views.Trial{
		Verdict: string(t.verdict), Code: t.code, Kind: t.kind(),
		Title: words.T(ctx, "hook.test_flash", "Result", words.T(ctx, key)), Follows: words.T(ctx, key+"_text"),
	}
	switch {
	case t.status > 0:
		v.Answer = words.T(ctx, "hook.test_answered", "Status", strconv.Itoa(t.status), "Took", web.Took(ctx, t.took))
	default:
		v.Answer = words.T(ctx, "hook.test_no_answer", "Why", t.why(ctx), "Took", web.Took(ctx, t.took))
	}
	if t.verdict != delivery.VerdictConfirmed {
		v.Fix = t.fix(ctx)
	}
	if t.verdict == delivery.VerdictPause && t.status > 0 {
		v.Answer = t.cause(ctx)
	}
	return v
}
