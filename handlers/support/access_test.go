package support_test

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"mybots/delivery"
	"mybots/delivery/notice"
	"mybots/web"
)

// who may use an address.
type who int

const (
	everybody who = iota // also who isn't signed in
	people               // everybody who is signed in
	theOwner             // of the bot that the address names; for all others it isn't there
	look
	act
	unmask
)

// expected is what is expected of an address: who may use it, and with which form.
type expected struct {
	who    who
	form   url.Values
	status int // for who may; 0: 200 for a page, 303 for a deed
}

func form(pairs ...string) url.Values {
	f := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		f.Set(pairs[i], pairs[i+1])
	}
	return f
}

// expectations are those of all addresses. An address that isn't here fails the test.
var expectations = map[string]expected{
	"GET /{$}":                {who: everybody, status: http.StatusSeeOther},
	"GET /login":              {who: everybody, status: -1}, // a form, or on to one's own pages
	"POST /login":             {who: everybody, form: form("email", "nobody@example.org", "password", "wrong"), status: http.StatusUnprocessableEntity},
	"POST /logout":            {who: everybody},
	"POST /settings/language": {who: everybody, form: form("language", "en")},
	"POST /settings/theme":    {who: everybody, form: form("theme", "dark")},

	"GET /docs":              {who: everybody},
	"GET /docs/{page}":       {who: everybody},
	"GET /docs/search":       {who: everybody},
	"GET /docs/openapi.json": {who: everybody},

	"GET /settings":                      {who: people},
	"POST /settings/zone":                {who: people, form: form("zone", "utc")},
	"POST /settings/password":            {who: people, status: http.StatusUnprocessableEntity},
	"POST /settings/sign-out-everywhere": {who: people},

	"GET /bots":      {who: people},
	"GET /bots/new":  {who: people},
	"POST /bots/new": {who: people, form: form("username", "?", "name", "?"), status: http.StatusUnprocessableEntity},

	"GET /bots/{id}/token":                       {who: theOwner},
	"GET /bots/{id}/connection":                  {who: theOwner},
	"POST /bots/{id}/connection":                 {who: theOwner, form: form("mode", "polling", "pending", "keep", "version", "1")},
	"POST /bots/{id}/connection/drop":            {who: theOwner, form: form("mode", "polling", "version", "1"), status: http.StatusOK},
	"GET /bots/{id}/connection/secret":           {who: theOwner},
	"POST /bots/{id}/connection/resume":          {who: theOwner, status: -1},
	"POST /bots/{id}/connection/probe":           {who: theOwner, status: -1},
	"POST /bots/{id}/connection/test":            {who: theOwner, status: -1},
	"POST /bots/{id}/connection/check":           {who: theOwner, form: form("header", "t=1", "body", "{}"), status: -1},
	"GET /bots/{id}/connection/reset":            {who: theOwner},
	"POST /bots/{id}/connection/reset":           {who: theOwner},
	"GET /bots/{id}/connection/emergency-reset":  {who: theOwner},
	"POST /bots/{id}/connection/emergency-reset": {who: theOwner},
	"POST /bots/{id}/pause":                      {who: theOwner, form: form("paused", "on")},
	"GET /bots/{id}/failed":                      {who: theOwner},
	"POST /bots/{id}/failed/retry":               {who: theOwner, form: form("update_id", "1"), status: http.StatusOK},
	"GET /bots/{id}/failed/skip":                 {who: theOwner, status: -1},
	"POST /bots/{id}/failed/skip":                {who: theOwner, form: form("update_id", "1"), status: http.StatusOK},
	"GET /bots/{id}/settings":                    {who: theOwner},
	"GET /bots/{id}/delete":                      {who: theOwner},
	"POST /bots/{id}/delete":                     {who: theOwner, form: form("username", "?"), status: http.StatusUnprocessableEntity},
	"GET /bots/{id}/chat":                        {who: theOwner},
	"POST /bots/{id}/chat":                       {who: theOwner, form: form("text", "hello")},
	"POST /bots/{id}/chat/press":                 {who: theOwner, form: form("message_id", "1", "row", "0", "place", "0"), status: -1},
	"POST /bots/{id}/chat/again":                 {who: theOwner, form: form("message_id", "1"), status: -1},
	"POST /bots/{id}/chat/edit":                  {who: theOwner, form: form("message_id", "1", "text", "hello"), status: -1},
	"POST /bots/{id}/chat/delete":                {who: theOwner, form: form("message_id", "1"), status: -1},
	"POST /bots/{id}/chat/access":                {who: theOwner, form: form("access", "stopped")},
	"POST /bots/{id}/chat/file":                  {who: theOwner, form: form("name", "invoice.pdf")},
	"POST /bots/{id}/chat/check":                 {who: theOwner, form: form("message_id", "1", "result", "clean"), status: -1},

	"GET /botfather/{space}":        {who: people},
	"POST /botfather/{space}/start": {who: people, form: form("language", "en")},
	"POST /settings/max/code":       {who: people, status: http.StatusOK},
	"POST /settings/max/unlink":     {who: people},

	"GET /support":                                    {who: look},
	"GET /support/audit":                              {who: look},
	"GET /support/bots/{id}":                          {who: look},
	"GET /support/bots/{id}/updates":                  {who: look},
	"GET /support/bots/{id}/updates/{update}":         {who: look},
	"POST /support/bots/{id}/updates/{update}/unmask": {who: unmask, form: form("reason", "the owner asked"), status: http.StatusOK},
	"GET /support/bots/{id}/webhook":                  {who: act},
	"POST /support/bots/{id}/webhook":                 {who: act, form: form("allowed", "on")},
	"GET /support/spaces/{id}/running":                {who: act},
	"POST /support/spaces/{id}/running":               {who: act, form: form("running", "on")},
	"GET /support/maintenance":                        {who: act},
	"POST /support/maintenance":                       {who: act, form: form("maintenance", "off")},
	"GET /support/notices":                            {who: look},
	"POST /support/routes/{route}":                    {who: act, form: form("sending", "off")},
	"GET /support/notices/{id}":                       {who: look},
	"POST /support/notices/{id}/retry":                {who: act, form: form("reason", "the owner asked")},
	"POST /support/notices/{id}/readdress":            {who: act, form: form("route", "max", "recipient", "123")},
	"POST /support/notices/{id}/close":                {who: act, form: form("reason", "the owner knows")},
}

// reader is somebody who tries an address; may tells whether the page is there
// for them, sees whether they are of support.
type reader struct {
	*person
	name string
	may  map[who]bool
	sees bool
}

func TestEveryRoute(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	set := func(list ...who) map[who]bool {
		may := map[who]bool{everybody: true}
		for _, w := range list {
			may[w] = true
		}
		return may
	}
	readers := []reader{
		{r.stranger(), "anonymous", set(), false},
		{r.signedIn("anna", web.Owner), "owner", set(people, theOwner), false},
		{r.signedIn("boris", web.Owner), "other owner", set(people), false},
		{r.signedIn("sam", web.Support), "support(look)", set(people, look), true},
		{r.signedIn("sue", web.Support, web.Act), "support(act)", set(people, look, act), true},
		{r.signedIn("udo", web.Support, web.Unmask), "support(unmask)", set(people, look, unmask), true},
		{r.signedIn("root", web.Admin), "admin", set(people, look, act, unmask), true},
	}
	anna := readers[1].person
	known := map[string]bool{}
	for _, route := range r.list {
		want, ok := expectations[route.Pattern]
		if !ok {
			t.Errorf("%s: nothing is expected of this address; say who may use it", route.Pattern)
			continue
		}
		if known[route.Pattern] {
			t.Errorf("%s is registered twice", route.Pattern)
		}
		known[route.Pattern] = true
		t.Run("UI-07 "+route.Pattern, func(t *testing.T) {
			if got := rightFor(want.who); got != route.Right {
				t.Errorf("got the right %q, want %q", route.Right, got)
			}
			for _, p := range readers {
				r.tryRoute(t, p, anna, route.Pattern, want)
			}
		})
	}
	for _, pattern := range slices.Sorted(maps.Keys(expectations)) {
		if !known[pattern] {
			t.Errorf("%s: got no such address, want one", pattern)
		}
	}
}

// deadNotice leaves a notice about the bot that waits for a person, and returns its id.
func (r *rig) deadNotice(anna *person, botID int64) int64 {
	r.t.Helper()
	r.db.MustExec(`INSERT INTO max_links (user_id, max_user_id, linked_at) VALUES ($1, 987654321, $2) ON CONFLICT DO NOTHING`, anna.id, r.clock.Now())
	r.db.MustExec(`UPDATE notice_routes SET stopped = false, allowance = NULL`)
	anna.hook(botID, "https://bots.example.org/hook?token=TOKEN-MARKER")
	r.settle(botID, delivery.Answer{Kind: delivery.Answered, Status: 401})
	r.notify(map[string]notice.Sender{notice.MAX: answers{Class: notice.ClassPermanent, Code: 404, Reason: notice.WhyStatus}})
	var id int64
	r.must(r.db.Get(&id, `SELECT notice_id FROM notices WHERE bot_id = $1 AND state = 'dead'`, botID))
	return id
}

func rightFor(w who) web.Right {
	return map[who]web.Right{everybody: web.Anyone, people: web.SignedIn, theOwner: web.SignedIn, look: web.Look, act: web.Act, unmask: web.Unmask}[w]
}

// tryRoute lets one reader try an address of a bot of anna's with one update.
func (r *rig) tryRoute(t *testing.T, p reader, anna *person, pattern string, want expected) {
	t.Helper()
	method, path, _ := strings.Cut(pattern, " ")
	path = strings.TrimSuffix(path, "{$}")
	if strings.Contains(path, "{") {
		id := anna.bot("Order helper")
		r.append(id, `{"text":"hello"}`)
		switch {
		case strings.HasPrefix(path, "/support/spaces/"):
			id = r.space
		case strings.HasPrefix(path, "/support/notices/"):
			id = r.deadNotice(anna, id)
		}
		path = strings.NewReplacer("{route}", "max", "{page}", "polling", "{id}", itoa(id), "{space}", itoa(r.space), "{update}", "1").Replace(path)
	}
	lines := r.count(`SELECT count(*) FROM audit`)
	got := p.ask(method, path, want.form)
	switch {
	case p.may[want.who]:
		status := want.status
		if status == 0 {
			status = map[string]int{http.MethodGet: http.StatusOK, http.MethodPost: http.StatusSeeOther}[method]
		}
		if status == -1 && (got.status == http.StatusNotFound && strings.HasPrefix(pattern, "GET") || got.status == http.StatusForbidden || got.status >= 500) || status > 0 && got.status != status {
			t.Errorf("%s: got %d, want %d", p.name, got.status, status)
		}
		if to := got.header.Get("Location"); to == "/login" && pattern != "POST /logout" && pattern != "GET /{$}" && want.who != people {
			t.Errorf("%s: got sent to sign in, want the page", p.name)
		}
	case p.name == "anonymous":
		if to := got.header.Get("Location"); got.status != http.StatusSeeOther || to != "/login" && !strings.HasPrefix(to, "/login?next=") {
			t.Errorf("%s: got %d to %q, want 303 to /login", p.name, got.status, to)
		}
	default:
		status := http.StatusNotFound
		if p.sees && (want.who == act || want.who == unmask) {
			status = http.StatusForbidden
		}
		if got.status != status {
			t.Errorf("%s: got %d, want %d", p.name, got.status, status)
		}
	}
	if !p.may[want.who] {
		if n := r.count(`SELECT count(*) FROM audit`) - lines; n != 0 {
			t.Errorf("%s: got %d lines in the audit log, want none", p.name, n)
		}
	}
	if pattern == "POST /logout" || pattern == "POST /settings/sign-out-everywhere" {
		if p.email != "" {
			p.signIn()
		}
	}
}

// Who had a right when the page was shown may have lost it by the deed.
func TestRightsAreAskedInTheDeed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	anna, sue := r.signedIn("anna", web.Owner), r.signedIn("sue", web.Support, web.Act, web.Unmask)
	bot := anna.bot("Order helper")
	r.append(bot, `{"text":"hello"}`)
	dead := noticePage(r.deadNotice(anna, bot))
	sue.get(here(bot, "")).wants(http.StatusOK)
	r.db.MustExec(`UPDATE people SET may_act = false, may_unmask = false WHERE user_id = $1`, sue.id)
	for path, f := range map[string]url.Values{
		here(bot, "/webhook"):                           form("allowed", "off"),
		"/support/spaces/" + itoa(r.space) + "/running": form("running", "off"),
		"/support/maintenance":                          form("maintenance", "on"),
		here(bot, "/updates/1/unmask"):                  form("reason", "why not"),
		"/support/routes/max":                           form("sending", "off"),
		dead + "/retry":                                 form("reason", "why not"),
		dead + "/readdress":                             form("route", "max", "recipient", "5"),
		dead + "/close":                                 form("reason", "why not"),
	} {
		t.Run("UI-06 "+path, func(t *testing.T) { sue.post(path, f).wants(http.StatusForbidden) })
	}
	t.Run("N-08 the notice and its route are as they were", func(t *testing.T) {
		if n := r.count(`SELECT count(*) FROM notices JOIN notice_routes USING (route) WHERE route = 'max' AND state = 'dead' AND recipient = '987654321' AND NOT stopped`); n != 1 {
			t.Errorf("got %d, want one", n)
		}
	})
	r.db.MustExec(`UPDATE people SET role = 'owner' WHERE user_id = $1`, sue.id)
	t.Run("UI-07 who isn't of support any more", func(t *testing.T) { sue.get("/support").wants(http.StatusNotFound) })
}
