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
	h.showConnection(w, r, http.StatusOK, b, s, refusal{})
}

// refusal is why a save was refused; the zero one is none.
type refusal struct{ code, text string }

func (h *Handler) showConnection(w http.ResponseWriter, r *http.Request, status int, b bots.Bot, s queue.Status, why refusal) {
	ctx := r.Context()
	page := h.connection(ctx, b, s)
	page.Save.Code, page.Save.Error = why.code, why.text
	if status == http.StatusOK && nothingNew(w, r, page.Live.Seen) {
		return
	}
	if web.Partial(r) {
		web.Render(w, r, status, views.ConnectionPiece(page))
		return
	}
	f := frame(r, b, s, layout.Connection, words.T(ctx, "conn.title"))
	web.Render(w, r, status, views.ConnectionPage(f, page))
}

// connection is everything on the page.
func (h *Handler) connection(ctx context.Context, b bots.Bot, s queue.Status) views.Connection {
	st := stateOf(s)
	page := views.Connection{
		URL: at(b.ID, "connection"), PauseURL: at(b.ID, "pause"), ChatURL: at(b.ID, "chat"), FailedURL: at(b.ID, "failed"),
		ResetURL: at(b.ID, "connection/reset"), EmergencyURL: at(b.ID, "connection/emergency-reset"), DropURL: at(b.ID, "connection/drop"),
		Live:  views.Live{State: st.say(ctx, s), Do: st.do(), Queue: queueFacts(ctx, s), Lease: leaseFacts(s)},
		Save:  views.SaveForm{Version: number(s.SettingsVersion), CanDrop: s.Waiting > 0, Keep: words.T(ctx, "conn.save")},
		Start: h.examples(ctx, "YOUR_TOKEN"),
		Open:  st.do() == views.DoStart,
	}
	if s.Waiting > 0 {
		page.Save.Keep = words.N(ctx, "conn.save_keep", s.Waiting)
	}
	page.Live.Seen = seen(ctx, page.Live)
	return page
}

func queueFacts(ctx context.Context, s queue.Status) views.QueueFacts {
	facts := views.QueueFacts{
		Waiting:        words.T(ctx, "conn.of", "Part", s.Waiting, "Limit", delivery.MaxWaiting),
		WaitingPercent: percent(int64(s.Waiting), delivery.MaxWaiting),
		Size:           words.T(ctx, "conn.of", "Part", size(ctx, s.WaitingBytes), "Limit", size(ctx, delivery.MaxWaitingBytes)),
		SizePercent:    percent(s.WaitingBytes, delivery.MaxWaitingBytes),
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

// percent is how much of limit n is, 0 to 100: at least 1 for something.
func percent(n, limit int64) int {
	if n <= 0 {
		return 0
	}
	return int(min(100, max(1, n*100/limit)))
}

// size writes bytes as a person reads them: whole KiB, rounded up, or MiB with
// one decimal, rounded down.
func size(ctx context.Context, bytes int64) string {
	const kib, mib = 1 << 10, 1 << 20
	switch {
	case bytes < mib:
		return words.T(ctx, "conn.size_kib", "N", (bytes+kib-1)/kib)
	case bytes%mib == 0:
		return words.T(ctx, "conn.size_mib_whole", "N", bytes/mib)
	}
	return words.T(ctx, "conn.size_mib", "Whole", bytes/mib, "Tenth", bytes%mib*10/mib)
}
