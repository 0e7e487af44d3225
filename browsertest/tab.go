package browsertest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is how long a tab waits for one step: a page, a click, a condition. A
// test may take many; how long all of them take is go test's matter.
const patience = 60 * time.Second

// Setup is how a tab's reader is.
type Setup struct {
	Width    int    // of the window in pixels; 1280 if 0
	Dark     bool   // the device prefers dark colours
	NoScript bool   // JavaScript is off in pages
	Language string // Accept-Language; "en" if ""
	Zone     string // the reader's time zone; "UTC" if ""
	Statuses []int  // 4xx and 5xx answers that the test expects
}

// Tab is one test's tab. Its methods end the test when they can't do what they say.
type Tab struct {
	t     *testing.T
	ctx   context.Context
	setup Setup

	mu       sync.Mutex
	problems []string
}

// Open opens a tab with its own cookies. It is closed with the test, which
// then fails for what went wrong in its pages.
func Open(t *testing.T, s Setup) *Tab {
	t.Helper()
	tab := open(t, s)
	t.Cleanup(func() {
		for _, p := range tab.Problems() {
			t.Errorf("in the page: %s", p)
		}
	})
	return tab
}

// open is Open without the reckoning at the end.
func open(t *testing.T, s Setup) *Tab {
	t.Helper()
	parent, err := start()
	if err != nil {
		t.Fatal(err)
	}
	s.fill()
	tab := &Tab{t: t, setup: s}
	ctx, end := chromedp.NewContext(parent, chromedp.WithNewBrowserContext(), chromedp.WithListener(func(event any) {
		if problem := judge(event, s.Statuses); problem != "" {
			tab.mu.Lock()
			defer tab.mu.Unlock()
			tab.problems = append(tab.problems, problem)
		}
	}))
	t.Cleanup(end)
	// The first run starts the tab, which then lives as long as that run's context.
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	tab.ctx = ctx
	tab.emulate(s)
	return tab
}

// step is the context of one step.
func (tab *Tab) step() (context.Context, context.CancelFunc) {
	return context.WithTimeout(tab.ctx, patience)
}

// fill puts in what isn't given.
func (s *Setup) fill() {
	if s.Width == 0 {
		s.Width = 1280
	}
	if s.Language == "" {
		s.Language = "en"
	}
	if s.Zone == "" {
		s.Zone = "UTC"
	}
}

func (tab *Tab) emulate(s Setup) {
	tab.t.Helper()
	call(tab, "focus", emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	tab.see(View{Width: s.Width, Dark: s.Dark})
	call(tab, "zone", emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: s.Zone})
	call(tab, "language", network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Accept-Language": s.Language}})
	call(tab, "scripts", emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: s.NoScript})
}

// judge returns what is wrong about an event of the tab, or "".
func judge(event any, statuses []int) string {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		return "exception: " + (&chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails}).Error()
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeAssert {
			return fmt.Sprintf("console.%s: %s", e.Type, values(e.Args))
		}
	case *log.EventEntryAdded: // the browser's own words, broken policies among them
		if e.Entry.Level == log.EntryLevelError && !expected(e.Entry, statuses) {
			return fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		u, err := url.Parse(e.Request.URL)
		if err != nil || (u.Scheme != "data" && u.Scheme != "about" && u.Hostname() != "127.0.0.1") {
			return "request to elsewhere: " + e.Request.URL
		}
	}
	return ""
}

func expected(e *log.Entry, statuses []int) bool {
	return e.Source == log.EntrySourceNetwork && slices.ContainsFunc(statuses, func(status int) bool {
		return strings.Contains(e.Text, fmt.Sprintf("status of %d", status))
	})
}

func values(args []*runtime.RemoteObject) string {
	var words []string
	for _, a := range args {
		words = append(words, strings.Trim(string(a.Value)+" "+a.Description, " "))
	}
	return strings.Join(words, " ")
}

// Problems returns what went wrong in the pages so far.
func (tab *Tab) Problems() []string {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	return slices.Clone(tab.problems)
}

// Do runs steps of chromedp.
func (tab *Tab) Do(steps ...chromedp.Action[chromedp.Void]) {
	tab.t.Helper()
	ctx, done := tab.step()
	defer done()
	if err := chromedp.Do(ctx, steps...); err != nil {
		tab.t.Fatal(err)
	}
}

// Go opens the address and waits until its page has loaded.
func (tab *Tab) Go(address string) {
	tab.t.Helper()
	ctx, done := tab.step()
	defer done()
	if err := chromedp.Do(ctx, chromedp.Navigate(address)); err != nil {
		tab.t.Fatalf("open %s: %v", address, err)
	}
}

// Cookie gives the tab a cookie for the address, a session's for example.
func (tab *Tab) Cookie(address, name, value string) {
	tab.t.Helper()
	call(tab, "a cookie", network.SetCookie, network.SetCookieParams{Name: name, Value: value, URL: address})
}

// Resize changes the window's width.
func (tab *Tab) Resize(width int) {
	tab.t.Helper()
	tab.Do(chromedp.EmulateViewport(int64(width), 900))
}

// Leave clicks what leads to another page and waits until that has loaded.
func (tab *Tab) Leave(css string) {
	tab.t.Helper()
	ctx, done := tab.step()
	defer done()
	if _, err := chromedp.RunResponse(ctx, chromedp.Click(chromedp.CSS(css))); err != nil {
		tab.t.Fatalf("leave by %s: %v", css, err)
	}
}

// LeaveByKey presses a key that leads to another page and waits until that has loaded.
func (tab *Tab) LeaveByKey(key string) {
	tab.t.Helper()
	ctx, done := tab.step()
	defer done()
	if _, err := chromedp.RunResponse(ctx, chromedp.KeyEvent(key)); err != nil {
		tab.t.Fatalf("leave by a key: %v", err)
	}
}

// Click clicks what stays on the page.
func (tab *Tab) Click(css string) { tab.t.Helper(); tab.Do(chromedp.Click(chromedp.CSS(css))) }

// Type types text into the field.
func (tab *Tab) Type(css, text string) {
	tab.t.Helper()
	tab.Do(chromedp.SendKeys(chromedp.CSS(css), text))
}

// Press presses keys wherever the focus is; see package kb for their names.
func (tab *Tab) Press(keys string) { tab.t.Helper(); tab.Do(chromedp.KeyEvent(keys)) }

// Text returns the text of the first such element as it is seen.
func (tab *Tab) Text(css string) string {
	tab.t.Helper()
	return Eval[string](tab, fmt.Sprintf("document.querySelector(%q).innerText", css))
}

// Has reports whether there is such an element.
func (tab *Tab) Has(css string) bool {
	tab.t.Helper()
	return Eval[bool](tab, fmt.Sprintf("document.querySelector(%q) !== null", css))
}

// Path returns path and query of the page.
func (tab *Tab) Path() string {
	tab.t.Helper()
	return Eval[string](tab, "location.pathname + location.search")
}

// Until waits until the expression is true in the page.
func (tab *Tab) Until(expression string) {
	tab.t.Helper()
	ctx, done := tab.step()
	defer done()
	if _, err := chromedp.Run(ctx, chromedp.Poll[bool](expression)); err != nil {
		tab.t.Fatalf("wait until %s: %v", expression, err)
	}
}

// Eval returns the value of an expression in the tab's page.
func Eval[T any](tab *Tab, expression string) T {
	tab.t.Helper()
	ctx, done := tab.step()
	defer done()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		tab.t.Fatalf("evaluate %s: %v", expression, err)
	}
	return v
}

// Fits fails the test when the page is wider than its window.
func (tab *Tab) Fits() {
	tab.t.Helper()
	const wider = `(() => { const root = document.documentElement; if (root.scrollWidth <= root.clientWidth) return "";
		const e = [...document.body.querySelectorAll("*")].filter(e => e.getBoundingClientRect().right > root.clientWidth + 0.5).pop();
		return root.scrollWidth + " px in " + root.clientWidth + ": " + (e ? e.outerHTML.slice(0, 200) : "?") })()`
	if got := Eval[string](tab, wider); got != "" {
		tab.t.Errorf("the page scrolls sideways: %s", got)
	}
}

// Screenshot writes a PNG of the whole page. Tests call it with a path that the
// developer asked for; "" does nothing.
func (tab *Tab) Screenshot(path string) {
	tab.t.Helper()
	if path == "" {
		return
	}
	ctx, done := tab.step()
	defer done()
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100)) // 100 is PNG, less is JPEG
	if err != nil {
		tab.t.Fatalf("screenshot: %v", err)
	}
	if err := os.WriteFile(path, png, 0o644); err != nil {
		tab.t.Fatal(err)
	}
}
