package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// mayImport is the table of rooms: what each may use of the product's own
// packages. docs/architecture.md draws it.
var mayImport = map[string][]string{
	"cmd/mybots": {"delivery", "delivery/bots", "delivery/chat", "delivery/notice", "delivery/pg", "delivery/queue", "delivery/wake", "delivery/webhook",
		"handlers", "handlers/intake", "migrations", "migrations/localpg", "static"},
	"cmd/loadtest": {"delivery", "delivery/bots", "delivery/chat", "delivery/pg", "delivery/queue", "delivery/wake", "delivery/webhook", "handlers", "handlers/intake", "web",
		"migrations", "migrations/localpg"},
	"handlers": {"delivery", "delivery/bots", "delivery/chat", "delivery/notice", "delivery/queue", "delivery/wake",
		"delivery/webhook", "handlers/account", "handlers/botapi", "handlers/intake", "handlers/maxbot", "handlers/owner", "handlers/reference", "handlers/support", "static", "web"},
	"handlers/account": {"delivery", "delivery/bots", "delivery/notice", "views/account", "views/ui", "views/words", "web"},
	"handlers/botapi":  {"delivery", "delivery/bots", "delivery/chat", "delivery/queue", "delivery/wake", "web"},
	"handlers/intake":  {"delivery", "delivery/queue", "web"},
	"handlers/maxbot":  {"delivery", "delivery/notice", "web"},
	"handlers/owner":   {"delivery", "delivery/bots", "delivery/chat", "delivery/notice", "delivery/queue", "delivery/webhook", "examples", "views/layout", "views/owner", "views/ui", "views/words", "web"},
	"handlers/support": {"delivery", "delivery/audit", "delivery/bots", "delivery/notice", "delivery/queue", "views/support", "views/ui", "views/words", "web"},

	"handlers/reference":               {"examples", "views/layout", "views/reference", "views/ui", "views/words", "web"},
	"handlers/reference/referencetest": {"handlers/reference"},

	"web":             {"delivery", "views/layout", "views/ui", "views/words"},
	"views/layout":    {"static", "views/ui", "views/words"},
	"views/account":   {"views/layout", "views/ui", "views/words"},
	"views/owner":     {"static", "views/layout", "views/ui", "views/words"},
	"views/reference": {"static", "views/layout", "views/ui", "views/words"},
	"views/support":   {"static", "views/layout", "views/ui", "views/words"},
	"views/ui":        {"views/words"},
	"views/words":     {},
	"static":          {},

	"delivery":         {},
	"delivery/pg":      {"delivery"},
	"delivery/queue":   {"delivery", "delivery/pg"},
	"delivery/audit":   {"delivery/pg"},
	"delivery/bots":    {"delivery", "delivery/audit", "delivery/pg", "delivery/queue"},
	"delivery/chat":    {"delivery", "delivery/pg", "delivery/queue"},
	"delivery/notice":  {"delivery", "delivery/audit", "delivery/pg"},
	"delivery/wake":    {},
	"delivery/webhook": {"delivery", "delivery/bots", "delivery/queue"},

	"botkit":         {}, // what bot authors import stands alone
	"botkit/bottest": {"botkit"},

	"examples":               {},
	"examples/go/webhookbot": {},

	"migrations":         {},
	"migrations/localpg": {},
	"migrations/dbtest":  {"migrations", "migrations/localpg"},
	"browsertest":        {},
}

// testOnly are the rooms that only tests may use.
var testOnly = []string{"migrations/dbtest", "browsertest", "handlers/reference/referencetest"}

func TestImports(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}}:{{join .Imports " "}}`, "mybots/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		from, imports, _ := strings.Cut(strings.TrimSpace(line), ":")
		room := strings.TrimPrefix(from, "mybots/")
		allowed, known := mayImport[room]
		if !known {
			t.Errorf("the room %s isn't in the table", room)
			continue
		}
		for _, i := range strings.Fields(imports) {
			to, ours := strings.CutPrefix(i, "mybots/")
			switch {
			case ours && !slices.Contains(allowed, to):
				t.Errorf("%s may not import %s", room, to)
			case ours && slices.Contains(testOnly, to) && !slices.Contains(testOnly, room):
				t.Errorf("%s may import %s in tests only", room, to)
			case !ours && room == "delivery" && strings.Contains(i, "."):
				t.Errorf("delivery may import the standard library only, not %s", i)
			case !ours && strings.HasPrefix(room, "views/") && strings.HasPrefix(i, "github.com/jmoiron"):
				t.Errorf("%s may not know the database", room)
			}
		}
	}
}
