package support

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"mybots/delivery"
	"mybots/delivery/notice"
	views "mybots/views/support"
	"mybots/views/ui"
	"mybots/views/words"
	"mybots/web"
)

const (
	noticesURL    = "/support/notices"
	noticeRows    = 50
	botNoticeRows = 5    // on a bot's page
	forPerson     = "me" // the filter of those that wait for a person
)

// Notices lists the notices to owners, the latest first (N-08).
func (h *Handler) Notices(w http.ResponseWriter, r *http.Request) {
	ctx, q := r.Context(), r.URL.Query()
	state, route := q.Get("state"), q.Get("route")
	filter := notice.Filter{ForPerson: state == forPerson}
	if slices.Contains(notice.States, notice.State(state)) {
		filter.State = notice.State(state)
	} else if !filter.ForPerson {
		state = ""
	}
	if slices.Contains(notice.Routes, route) {
		filter.Route = route
	} else {
		route = ""
	}
	bot := ""
	if id, ok := delivery.ParseID(strings.TrimSpace(q.Get("bot"))); ok && id > 0 {
		filter.BotID, bot = id, number(id)
	}
	before, _ := delivery.ParseID(q.Get("before")) // 0: from the latest
	ways, err := h.notices.Ways(ctx)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	list, err := h.notices.List(ctx, filter, before, noticeRows+1)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	n, err := h.notices.Count(ctx, filter, countMost+1)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	page := views.Notices{
		May: web.PersonOf(r).May(web.Act), States: stateOptions(ctx, state), Routes: routeOptions(ctx, route, "notices.route_any"), Bot: bot,
		Total: words.T(ctx, "notices.total", "N", upTo(ctx, n)), Back: views.Link{URL: "/support", Text: words.T(ctx, "support.back_support")},
	}
	for _, way := range ways {
		page.Ways = append(page.Ways, h.way(ctx, way))
	}
	here := []string{"state", state, "route", route, "bot", bot}
	if before > 0 || filter != (notice.Filter{}) {
		page.AllURL = noticesURL
	}
	if before > 0 {
		page.Pages.FirstURL = at(noticesURL, here...)
	}
	if len(list) > noticeRows {
		list = list[:noticeRows]
		page.Pages.NextURL = at(noticesURL, append(here, "before", number(list[noticeRows-1].ID))...)
	}
	page.Rows = noticeList(ctx, list)
	f := web.Frame(r, words.T(ctx, "notices.title"))
	f.Lead = words.T(ctx, "notices.lead")
	web.Render(w, r, http.StatusOK, views.NoticesPage(f, page))
}

func (h *Handler) way(ctx context.Context, w notice.Way) views.Way {
	v := views.Way{Code: w.Route, Name: words.T(ctx, "notices.route_"+w.Route), Stopped: w.Stopped, Since: w.StoppedAt.Time, Reason: whyNot(ctx, w.Reason, ""), URL: "/support/routes/" + w.Route}
	if w.Allowance != nil {
		v.Portion = words.T(ctx, "notices.portion_left", "N", *w.Allowance)
	}
	if w.Route == notice.MAX && !h.notices.MAX() {
		v.Name = words.T(ctx, "notices.route_max_off")
	}
	return v
}

func stateOptions(ctx context.Context, selected string) []ui.Option {
	list := []ui.Option{
		{Value: "", Label: words.T(ctx, "notices.state_any"), Selected: selected == ""},
		{Value: forPerson, Label: words.T(ctx, "notices.state_person"), Selected: selected == forPerson},
	}
	for _, s := range notice.States {
		list = append(list, ui.Option{Value: string(s), Label: words.T(ctx, "notices.state_"+string(s)), Selected: string(s) == selected})
	}
	return list
}

// routeOptions are the routes, with one for all before them if it has words.
func routeOptions(ctx context.Context, selected, all string) (list []ui.Option) {
	if all != "" {
		list = append(list, ui.Option{Value: "", Label: words.T(ctx, all), Selected: selected == ""})
	}
	for _, route := range notice.Routes {
		list = append(list, ui.Option{Value: route, Label: words.T(ctx, "notices.route_"+route), Selected: route == selected})
	}
	return list
}

// stateKinds are how states look.
var stateKinds = map[notice.State]ui.Kind{
	notice.Queued: ui.Waiting, notice.Sending: ui.Waiting, notice.Retrying: ui.Waiting, notice.Sent: ui.Fine,
	notice.Uncertain: ui.Trouble, notice.Blocked: ui.Trouble, notice.Dead: ui.Trouble, notice.Deduplicated: ui.Off, notice.Stale: ui.Off,
}

func noticeList(ctx context.Context, list []notice.Line) []views.NoticeRow {
	rows := make([]views.NoticeRow, len(list))
	for i, l := range list {
		rows[i] = noticeRow(ctx, l)
	}
	return rows
}

func noticeRow(ctx context.Context, l notice.Line) views.NoticeRow {
	row := views.NoticeRow{
		URL: noticesURL + "/" + number(l.ID), ID: number(l.ID), Code: string(l.State), Kind: stateKinds[l.State], State: words.T(ctx, "notices.state_"+string(l.State)),
		What: words.T(ctx, "notices.kind_"+string(l.Kind)) + " · " + l.Code, Bot: "@" + l.BotName, BotURL: botURL(l.BotID),
		Route: words.T(ctx, "notices.route_"+l.Route), To: recipient(l), EventAt: l.EventAt.Time, SentAt: l.SentAt.Time, Tries: int64(l.Tries),
		MessageID: l.MessageID, Key: key(l),
	}
	if l.State == notice.Retrying {
		row.NextAt = l.DueAt.Time
	}
	if l.HTTPCode != 0 {
		row.HTTPCode = number(int64(l.HTTPCode))
	}
	row.Reason = whyNot(ctx, l.Reason, row.HTTPCode)
	if l.Held > 0 {
		row.Held = words.N(ctx, "notices.held", l.Held)
	}
	return row
}

// whyNot puts a notice's reasons into words.
func whyNot(ctx context.Context, reasons, status string) string {
	var list []string
	for _, reason := range strings.Fields(reasons) {
		list = append(list, words.T(ctx, "notices.why_"+reason, "Status", status))
	}
	return strings.Join(list, " ")
}

// recipient is what support sees of where a notice went: of an account at MAX the
// last digits, by which its owner knows it.
func recipient(l notice.Line) string {
	if l.Route == notice.BotFather {
		return l.Email
	}
	return "…" + l.Recipient[max(0, len(l.Recipient)-3):]
}

// Notice shows one notice with what can be decided about it.
func (h *Handler) Notice(w http.ResponseWriter, r *http.Request) {
	h.showNotice(w, r, http.StatusOK, views.Notice{})
}

// showNotice answers with the notice's page; of page what a refused form said is given.
func (h *Handler) showNotice(w http.ResponseWriter, r *http.Request, status int, page views.Notice) {
	ctx := r.Context()
	id, err := pathID(r, "id")
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	l, err := h.notices.Line(ctx, id)
	if err != nil {
		web.Fail(w, r, h.log, err)
		return
	}
	page.Row, page.Text, page.Lang = noticeRow(ctx, l), l.Text, l.Language
	page.QueuedAt, page.TriedAt = l.QueuedAt.Time, l.TriedAt.Time
	page.May, page.Open, page.ForPerson, page.Maybe = web.PersonOf(r).May(web.Act), l.Open(), l.ForPerson(), l.State == notice.Uncertain
	page.Back = views.Link{URL: noticesURL, Text: words.T(ctx, "notices.back")}
	if page.Routes == nil {
		page.Routes = routeOptions(ctx, l.Route, "")
	}
	page.Facts = []views.Fact{
		{Term: words.T(ctx, "notices.col_what"), Value: page.Row.What},
		{Term: words.T(ctx, "support.col_owner"), Value: l.Owner},
		{Term: words.T(ctx, "notices.route"), Value: page.Row.Route},
		{Term: words.T(ctx, "notices.recipient"), Value: page.Row.To},
		{Term: words.T(ctx, "notices.col_tries"), Value: number(int64(l.Tries))},
		{Term: words.T(ctx, "notices.http_code"), Value: orNone(ctx, page.Row.HTTPCode)},
		{Term: words.T(ctx, "notices.message_id"), Value: orNone(ctx, l.MessageID)},
		{Term: words.T(ctx, "notices.held_back"), Value: words.T(ctx, "notices.held_numbers", "Before", l.Counted, "Since", l.Held)},
		{Term: words.T(ctx, "notices.template"), Value: l.Language + " " + l.Template},
		{Term: words.T(ctx, "notices.key"), Value: page.Row.Key, Code: true},
	}
	f := web.Frame(r, words.T(ctx, "notices.single", "ID", number(l.ID)))
	web.Render(w, r, status, views.NoticePage(f, page))
}

// key is the notice's key with its recipient as support sees it, the one before
// the window's start.
func key(l notice.Line) string {
	if i := strings.LastIndex(l.Key, " "+l.Recipient+" "); i >= 0 && l.Route == notice.MAX {
		return l.Key[:i+1] + recipient(l) + l.Key[i+1+len(l.Recipient):]
	}
	return l.Key
}

func orNone(ctx context.Context, text string) string {
	if text == "" {
		return words.T(ctx, "notices.no_value")
	}
	return text
}

// noticesHome is what the first page says of notices.
func (h *Handler) noticesHome(ctx context.Context) (v views.NoticesHome, err error) {
	ways, err := h.notices.Ways(ctx)
	if err != nil {
		return v, err
	}
	for _, way := range ways {
		if way.Stopped {
			v.Stopped = append(v.Stopped, h.way(ctx, way))
		}
	}
	n, err := h.notices.Count(ctx, notice.Filter{ForPerson: true}, countMost+1)
	if n > 0 {
		v.Persons = words.T(ctx, "notices.persons", "N", upTo(ctx, n))
	}
	v.URL, v.AllURL = at(noticesURL, "state", forPerson), noticesURL
	return v, err
}

// noticesCard is what a bot's page says of notices.
func (h *Handler) noticesCard(ctx context.Context, botID, spaceID, ownerID int64) (v views.NoticesCard, err error) {
	list, err := h.notices.List(ctx, notice.Filter{BotID: botID}, 0, botNoticeRows)
	if err != nil {
		return v, err
	}
	v.Rows, v.AllURL = noticeList(ctx, list), at(noticesURL, "bot", number(botID))
	v.Nobody, err = h.notices.Unreachable(ctx, spaceID, ownerID)
	return v, err
}
