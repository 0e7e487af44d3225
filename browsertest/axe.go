package browsertest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
)

// axeFile is where npm puts the library, from the repository's root.
const axeFile = "node_modules/axe-core/axe.min.js"

// axeRun asks for every rule set that the pages must pass and returns one line
// for each violation.
const axeRun = `axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}).then(
	result => result.violations.map(v => v.id + ": " + v.help + "\n" + v.nodes.map(n => "    " + n.target + "  " + n.failureSummary.replaceAll("\n", " ")).join("\n")))`

// axeSource reads the library once, from the repository that the tests run in.
var axeSource = sync.OnceValues(func() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		source, err := os.ReadFile(filepath.Join(dir, axeFile))
		if err == nil {
			return string(source), nil
		}
		if parent := filepath.Dir(dir); parent != dir {
			dir = parent
			continue
		}
		return "", errors.New("axe-core is missing: make assets")
	}
})

// Axe fails the test for every violation that axe-core finds in the page (UI-08).
func (tab *Tab) Axe() {
	tab.t.Helper()
	if found := tab.violations(); len(found) > 0 {
		tab.t.Errorf("axe-core at %s:\n%s", tab.Path(), strings.Join(found, "\n"))
	}
}

func (tab *Tab) violations() []string {
	tab.t.Helper()
	source, err := axeSource()
	if err != nil {
		tab.t.Fatal(err)
	}
	// The 0 keeps the library's own value from coming back.
	Eval[int](tab, source+"\n;0")
	return Eval[[]string](tab, axeRun)
}

// call sends one command of the protocol; what names it in the failure.
func call[P, R any](tab *Tab, what string, command cdp.Command[P, R], params P) {
	tab.t.Helper()
	if _, err := chromedp.Call(tab.ctx, command, params); err != nil {
		tab.t.Fatalf("emulate %s: %v", what, err)
	}
}
