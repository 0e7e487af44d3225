package support

import (
	"context"
	"net/http"

	"mybots/delivery"
	"mybots/delivery/audit"
	views "mybots/views/support"
	"mybots/views/words"
	"mybots/web"
)

const logRows = 50

// Audit shows the audit log, with bot that of one bot and its space.
func (h *Handler) Audit(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	before, _ := delivery.ParseID(r.URL.Query().Get("before")) // 0: from the latest
	page := views.Audit{Back: views.Link{URL: "/support", Text: words.T(ctx, "support.back_support")}}
	f := web.Frame(r, words.T(ctx, "support.audit"))
	f.Lead = words.T(ctx, "support.audit_lead")
	var filter audit.Filter
	bot := ""
	if id, ok := delivery.ParseID(r.URL.Query().Get("bot")); ok && id > 0 {
		b, err := h.bots.Look(ctx, id)
		if err != nil {
			web.Fail(w, r, h.log, err)
			return
		}
		filter, bot = audit.Filter{BotID: b.ID, SpaceID: b.SpaceID}, number(id)
		page.Back = views.Link{URL: botURL(b.ID), Text: words.T(ctx, "support.back_bot")}
		page.All = views.Link{URL: "/support/audit", Text: words.T(ctx, "support.audit_all")}
		f.Lead = "@" + b.Username + ". " + words.T(ctx, "support.audit_bot")
	}
	lines, err := h.bots.Log(ctx, filter, before, logRows+1)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	if before > 0 {
		page.Pages.FirstURL = at("/support/audit", "bot", bot)
	}
	if len(lines) > logRows {
		lines = lines[:logRows]
		page.Pages.NextURL = at("/support/audit", "bot", bot, "before", number(lines[logRows-1].ID))
	}
	page.Rows = auditList(ctx, lines)
	web.Render(w, r, http.StatusOK, views.AuditPage(f, page))
}

// auditList puts lines of the log into words.
func auditList(ctx context.Context, lines []audit.Line) []views.AuditRow {
	list := make([]views.AuditRow, len(lines))
	for i, l := range lines {
		row := views.AuditRow{
			At: l.At.UTC(), Who: l.Email, Role: known(ctx, "support.role_"+l.Role, l.Role), Action: known(ctx, "support.act_"+l.Action, l.Action), Code: l.Action,
			Before: l.Before, After: l.After, Detail: l.Detail, Reason: l.Reason, About: words.T(ctx, "support.about_platform"),
		}
		if l.UserID == 0 {
			row.Who = words.T(ctx, "support.operator")
		}
		switch {
		case l.BotID != 0:
			row.About, row.AboutURL = "@"+l.BotName, botURL(l.BotID)
		case l.SpaceID != 0:
			row.About, row.AboutURL = words.T(ctx, "support.about_space", "Space", l.Space), at("/support", "q", number(l.SpaceID))
		}
		list[i] = row
	}
	return list
}

// known are the words of a key, or the code itself where there are none.
func known(ctx context.Context, key, code string) string {
	if text := words.T(ctx, key); text != key {
		return text
	}
	return code
}
