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
// for each violation. All rules but those about colours look at the document, at
// where its elements are and which can be seen. Where all of that is as it was at
// the last run in the page, in the other colours for example, only the rules
// about colours run again: the others would say the same.
const axeRun = `(() => {
	const of = e => { const r = e.getBoundingClientRect();
		return [r.x, r.y, r.width, r.height, e.scrollWidth, e.scrollHeight, e.value, e.checked, e.disabled, e.open, e.checkVisibility({opacityProperty: true, visibilityProperty: true})] };
	const now = JSON.stringify([innerWidth, document.title, document.documentElement.outerHTML, [...document.querySelectorAll("*")].map(of)]);
	const same = window.axeSaw === now;
	window.axeSaw = now;
	const only = same ? {type: "rule", values: ["color-contrast", "link-in-text-block"]} : ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
	return axe.run(document, {runOnly: only, resultTypes: ["violations"], preload: false}).then(result => {
		if (result.violations.length > 0) window.axeSaw = ""; // say it every time
		return result.violations.map(v => v.id + ": " + v.help + "\n" + v.nodes.map(n => "    " + n.target + "  " + n.failureSummary.replaceAll("\n", " ")).join("\n"));
	});
})()`

// axeHere tells whether the page has the library already.
const axeHere = `typeof axe === "object"`

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
	if tab.setup.NoScript {
		tab.t.Fatal("axe-core is a script and can't run in a tab without JavaScript: look at the same page in a tab with it")
	}
	if !Eval[bool](tab, axeHere) {
		source, err := axeSource()
		if err != nil {
			tab.t.Fatal(err)
		}
		// The 0 keeps the library's own value from coming back.
		Eval[int](tab, source+"\n;0")
	}
	return Eval[[]string](tab, axeRun)
}

// call sends one command of the protocol; what names it in the failure.
func call[P, R any](tab *Tab, what string, command cdp.Command[P, R], params P) {
	tab.t.Helper()
	ctx, done := tab.step()
	defer done()
	if _, err := chromedp.Call(ctx, command, params); err != nil {
		tab.t.Fatalf("emulate %s: %v", what, err)
	}
}
