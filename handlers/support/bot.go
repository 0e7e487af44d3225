package support

import (
	"context"
	"net/http"

	"mybots/delivery"
	"mybots/delivery/audit"
	"mybots/delivery/bots"
	"mybots/delivery/queue"
	views "mybots/views/support"
	"mybots/views/ui"
	"mybots/views/words"
	"mybots/web"
)

const (
	attemptRows = 50 // UI-03
	auditRows   = 10 // on a bot's page
)

// Bot shows the whole state of a bot's delivery (UI-06).
func (h *Handler) Bot(w http.ResponseWriter, r *http.Request) {
	b, s, err := h.open(r)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	page, err := h.bot(r, b, s)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	f := web.Frame(r, b.Name)
	f.Lead = "@" + b.Username
	web.Render(w, r, http.StatusOK, views.BotPage(f, page))
}

// open finds the bot that the path names and looks at its queue.
func (h *Handler) open(r *http.Request) (bots.Found, queue.Status, error) {
	id, err := pathID(r, "id")
	if err != nil {
		return bots.Found{}, queue.Status{}, err
	}
	b, err := h.bots.Look(r.Context(), id)
	if err != nil {
		return bots.Found{}, queue.Status{}, err
	}
	s, err := h.queue.Status(r.Context(), id)
	return b, s, err
}

func (h *Handler) bot(r *http.Request, b bots.Found, s queue.Status) (page views.Bot, err error) {
	ctx := r.Context()
	if page.States, err = h.states(ctx, b, s); err != nil {
		return page, err
	}
	attempts, err := h.queue.Attempts(ctx, b.ID, attemptRows)
	if err != nil {
		return page, err
	}
	groups, err := h.queue.FailedMaskedGroups(ctx, b.ID)
	if err != nil {
		return page, err
	}
	lines, err := h.bots.Log(ctx, audit.Filter{BotID: b.ID, SpaceID: b.SpaceID}, 0, auditRows)
	if err != nil {
		return page, err
	}
	if page.Notices, err = h.noticesCard(ctx, b.ID, b.SpaceID, b.OwnerID); err != nil {
		return page, err
	}
	page.Facts = []views.Fact{
		{Term: words.T(ctx, "support.col_bot"), Value: number(b.ID), Code: true},
		{Term: words.T(ctx, "support.col_owner"), Value: b.Owner, URL: at("/support", "q", b.Owner)},
		{Term: words.T(ctx, "support.col_space"), Value: b.Space, URL: at("/support", "q", b.Space)},
	}
	page.Queue, page.Lease, page.Hook = queueFacts(ctx, b.ID, s), leaseFacts(ctx, s), hookFacts(ctx, s)
	page.Attempts = attemptList(ctx, attempts)
	for _, g := range groups {
		page.Groups = append(page.Groups, groupRow(ctx, g))
	}
	page.Audit, page.AuditURL = auditList(ctx, lines), at("/support/audit", "bot", number(b.ID))
	page.Switches = views.Switches{
		May: web.PersonOf(r).May(web.Act), HookOn: s.HookAllowed, SpaceOn: b.Running, SpaceURL: spaceURL(b.SpaceID),
	}
	if b.Deleted.IsZero() {
		page.Switches.HookURL = botURL(b.ID) + "/webhook"
	}
	return page, nil
}

func queueFacts(ctx context.Context, botID int64, s queue.Status) views.Queue {
	return views.Queue{
		Waiting: words.T(ctx, "conn.of", "Part", s.Waiting, "Limit", delivery.MaxWaiting), WaitingPercent: web.Percent(int64(s.Waiting), delivery.MaxWaiting),
		Size: words.T(ctx, "conn.of", "Part", web.Size(ctx, s.WaitingBytes), "Limit", web.Size(ctx, delivery.MaxWaitingBytes)), SizePercent: web.Percent(s.WaitingBytes, delivery.MaxWaitingBytes),
		Oldest: s.OldestWaiting, Position: number(s.Confirmed), Issued: number(s.MaxIssued), Next: number(s.NextUpdateID), Failed: int64(s.Failed),
		WaitingURL: botURL(botID) + "/updates", FailedURL: botURL(botID) + "/updates?list=failed",
	}
}

func leaseFacts(ctx context.Context, s queue.Status) views.Lease {
	l := views.Lease{
		Mode: words.T(ctx, "support.mode_"+string(s.Mode)), Version: number(s.SettingsVersion), Active: s.Active(s.At), Asking: s.Connection.Waiting(s.At),
		ConsumerID: s.ConsumerID, Epoch: number(s.Epoch), Since: s.LeaseSince, Until: s.LeaseUntil,
		Refused: s.Conflict.ConsumerID, RefusedTime: s.Conflict.At,
	}
	if s.Conflict.Address != "" {
		l.RefusedAt = words.T(ctx, "support.from", "Address", s.Conflict.Address)
	}
	return l
}

func hookFacts(ctx context.Context, s queue.Status) views.Hook {
	h := s.Hook
	v := views.Hook{
		Saved: s.HookURL != "", Host: host(s.HookURL), SavedAt: s.HookSavedAt, Allowed: s.HookAllowed, Paused: h.Paused, StoppedAt: h.StoppedAt,
		Budget: words.T(ctx, "support.budget_none"), Breaker: words.T(ctx, "support.breaker_closed"),
		ErrorCode: h.LastError.Code, ErrorWhy: why(ctx, h.LastError.Code), ErrorAt: h.LastError.At, SuccessAt: h.SuccessAt,
	}
	if s.Mode != delivery.Webhook {
		return v
	}
	mine := h.Head.UpdateID == s.Confirmed
	switch {
	case s.Waiting > 0 && mine && h.Head.Attempts > 0:
		v.Budget = words.T(ctx, "support.budget_used", "ID", number(h.Head.UpdateID), "Charged", h.Head.Charged, "Limit", delivery.MaxCharged, "Made", h.Head.Attempts)
		if h.Head.Charged > 0 {
			v.Still = !h.StoppedAt.IsZero()
			v.Ends = h.Head.FirstFailed.Add(delivery.BudgetTime)
		}
	case s.Waiting > 0:
		v.Budget = words.T(ctx, "support.budget_fresh")
	}
	switch {
	case h.Open():
		v.Breaker = words.T(ctx, "support.breaker_open", "N", h.Breaker)
	case h.UsedUp > 0:
		v.Breaker = words.T(ctx, "support.breaker_counting", "N", h.UsedUp, "Limit", delivery.UsedUpToOpen)
	}
	if h.Failures > 0 {
		v.Failures = words.T(ctx, "support.connect_failures", "N", h.Failures)
	}
	if goesOn := s.Waiting > 0 && h.Paused == "" && s.HookAllowed && s.Stopped() == nil; goesOn {
		v.NextNow = h.ProbeAsked || !h.Due.After(s.At)
		v.NextAt = h.Due
	}
	return v
}

func attemptList(ctx context.Context, attempts []queue.Attempt) []views.Attempt {
	list := make([]views.Attempt, len(attempts))
	for i, a := range attempts {
		v := views.Attempt{At: a.At, UpdateID: number(a.UpdateID), Number: int64(a.Number), Code: a.Code, Why: why(ctx, a.Code), Took: web.Took(ctx, a.Took)}
		if a.Code == "" {
			v.Code = number(int64(a.Status))
		}
		switch a.Fate {
		case delivery.FateConfirmed:
			v.Kind, v.Result = ui.Fine, words.T(ctx, "support.fate_confirmed")
		case delivery.FateFailed:
			v.Kind, v.Result = ui.Trouble, words.T(ctx, "support.fate_failed")
		case delivery.FateStays:
			v.Kind, v.Result = ui.Waiting, words.T(ctx, "support.fate_stays")
			if a.Charged > 0 {
				v.Result = words.T(ctx, "support.fate_charged", "Charged", a.Charged, "Limit", delivery.MaxCharged)
			}
		}
		list[i] = v
	}
	return list
}

func groupRow(ctx context.Context, g queue.FailedGroup) views.Group {
	row := views.Group{Type: g.Type, Reason: g.Reason, Why: why(ctx, g.Reason), Code: g.ByWebhook, Count: int64(g.Count)}
	if !g.ByWebhook {
		row.Why = words.T(ctx, "support.own_words")
	}
	return row
}
