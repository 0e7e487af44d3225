package owner

import (
	"context"
	"net/http"
	"time"

	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/delivery/queue"
	"mybots/views/layout"
	views "mybots/views/owner"
	"mybots/views/words"
	"mybots/web"
)

// recent is how long a refused caller is worth a warning.
const recent = 5 * time.Minute

// Connection shows how the bot receives and what can be done about it (UI-03).
func (h *Handler) Connection(w http.ResponseWriter, r *http.Request) {
	b, s, err := h.open(r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	h.showConnection(w, r, http.StatusOK, b, s, extra{})
}

// refusal is why a deed was refused; the zero one is none.
type refusal struct{ code, text string }

// extra is what a deed adds to the page; the zero one adds nothing.
type extra struct {
	why   refusal
	typed *draft          // a refused save: it stays in the form
	bad   string          // why its address is refused
	late  *draft          // a save that came too late: the form shows the present settings
	check views.CheckForm // the signature checker
}

func (h *Handler) showConnection(w http.ResponseWriter, r *http.Request, status int, b bots.Bot, s queue.Status, e extra) {
	ctx := r.Context()
	page, err := h.connection(ctx, b, s, e)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	if status == http.StatusOK && nothingNew(w, r, page.Live.Seen) {
		return
	}
	if web.Partial(r) {
		web.Render(w, r, status, views.ConnectionPiece(page))
		return
	}
	f := frame(r, b, s, layout.Connection, words.T(ctx, "conn.title"))
	if t, ok := trialOf(b.ID, f.Flash.Text); ok {
		f.Flash, page.Trial = layout.Flash{}, t.say(ctx)
	}
	web.Render(w, r, status, views.ConnectionPage(f, page))
}

// connection is everything on the page.
func (h *Handler) connection(ctx context.Context, b bots.Bot, s queue.Status, e extra) (views.Connection, error) {
	st := stateOf(s)
	page := views.Connection{
		URL: at(b.ID, "connection"), PauseURL: at(b.ID, "pause"), ChatURL: at(b.ID, "chat"), FailedURL: at(b.ID, "failed"),
		ResetURL: at(b.ID, "connection/reset"), EmergencyURL: at(b.ID, "connection/emergency-reset"),
		ResumeURL: at(b.ID, "connection/resume"), ProbeURL: at(b.ID, "connection/probe"),
		Code: e.why.code, Error: e.why.text,
		Live: views.Live{State: st.say(ctx, s), Do: st.do(), Next: nextTry(ctx, st, s), Queue: queueFacts(ctx, s)},
		Save: h.saveForm(ctx, b, s, e),
	}
	if h.webhooksOff && st == hookOff {
		page.Live.State.Means, page.Live.State.Act = words.T(ctx, "state.hooks_off_means"), words.T(ctx, "state.hooks_off_act")
	}
	if e.late != nil {
		page.Asked = &views.Asked{Mode: mode(ctx, e.late.mode)}
		if e.late.mode == delivery.Webhook {
			page.Asked.Address = e.late.url
		}
	}
	if s.Mode == delivery.Webhook {
		attempts, err := h.queue.Attempts(ctx, b.ID, attemptRows)
		if err != nil {
			return page, err
		}
		page.Live.Hook, page.Live.Attempts = hookFacts(ctx, s, attempts), attemptList(ctx, attempts)
		if page.Hook, err = hookTools(ctx, b.ID, e.check); err != nil {
			return page, err
		}
	} else {
		page.Live.Lease = leaseFacts(s)
		page.Start, page.Open = h.examples(ctx, "YOUR_TOKEN"), st.do() == views.DoStart
	}
	var err error
	if page.Live.State.Off, err = h.switchedOff(ctx, b, st); err != nil {
		return page, err
	}
	page.Live.Seen = seen(ctx, page.Live)
	return page, nil
}

// switchedOff tells since when and why support has switched off the bot's webhook,
// or all bots of its space (UI-06).
func (h *Handler) switchedOff(ctx context.Context, b bots.Bot, st state) (views.Off, error) {
	var off bots.Off
	var err error
	switch {
	case st == disabled:
		off, err = h.bots.SpaceOff(ctx, b.SpaceID)
	case st == hookOff && !h.webhooksOff:
		off, err = h.bots.WebhookOff(ctx, b.ID)
	}
	return views.Off{At: off.At.Time, Reason: off.Reason}, err
}

func queueFacts(ctx context.Context, s queue.Status) views.QueueFacts {
	facts := views.QueueFacts{
		Waiting:        words.T(ctx, "conn.of", "Part", s.Waiting, "Limit", delivery.MaxWaiting),
		WaitingPercent: web.Percent(int64(s.Waiting), delivery.MaxWaiting),
		Size:           words.T(ctx, "conn.of", "Part", web.Size(ctx, s.WaitingBytes), "Limit", web.Size(ctx, delivery.MaxWaitingBytes)),
		SizePercent:    web.Percent(s.WaitingBytes, delivery.MaxWaitingBytes),
		Oldest:         s.OldestWaiting, Position: number(s.Confirmed), Errors: s.Failed,
	}
	if s.MaxIssued > 0 {
		facts.Issued = number(s.MaxIssued)
	}
	return facts
}

func leaseFacts(s queue.Status) views.LeaseFacts {
	facts := views.LeaseFacts{
		Active: s.Active(s.At), Asking: s.Connection.Waiting(s.At), Epoch: number(s.Epoch), Since: s.LeaseSince, Until: s.LeaseUntil,
		Refused: views.RefusedCaller{
			ConsumerID: s.Conflict.ConsumerID, Address: s.Conflict.Address, At: s.Conflict.At,
			Recent: !s.Conflict.At.IsZero() && s.At.Sub(s.Conflict.At) < recent,
		},
	}
	if !s.EpochLost {
		facts.ConsumerID = s.ConsumerID
	}
	return facts
}
