// Package browsertest looks at the pages with a real Chromium, in tests alone.
// A package has one browser, a test its own tab with cookies of its own:
//
//	func TestMain(m *testing.M) { browsertest.Main(m) }
//
//	tab := browsertest.Open(t, browsertest.Setup{Width: 360, Dark: true})
//	tab.Go(server.URL + "/bots")
//	tab.Axe()
//
// A test fails by itself when its pages throw, write an error to the console,
// break their content security policy, or ask anybody but 127.0.0.1.
package browsertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

// install is what a machine without Chromium is told.
const install = "apt-get install -y --no-install-recommends chromium"

// browser is the package's one browser, started by the first tab.
var browser struct {
	once sync.Once
	ctx  context.Context
	err  error
	stop func()
}

// Main runs the package's tests and ends the browser, if one was started.
func Main(m *testing.M) {
	code := m.Run()
	Close()
	os.Exit(code)
}

// Close ends the browser, if one was started, for a package whose TestMain does
// more than Main.
func Close() {
	if browser.stop != nil {
		browser.stop()
	}
}

// executable finds Chromium: CHROMIUM, else what the machine has.
func executable() (string, error) {
	if path := os.Getenv("CHROMIUM"); path != "" {
		return path, nil
	}
	for _, name := range []string{"chromium", "/usr/bin/chromium", "google-chrome", "chromium-browser"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no Chromium found: %s (or name one in CHROMIUM)", install)
}

// start starts the browser once and returns its context.
func start() (context.Context, error) {
	browser.once.Do(func() {
		path, err := executable()
		if err != nil {
			browser.err = err
			return
		}
		dir, err := os.MkdirTemp("", "browsertest")
		if err != nil {
			browser.err = err
			return
		}
		options := append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(path),
			chromedp.UserDataDir(dir),
			chromedp.WindowSize(1280, 900),
			chromedp.NoSandbox, // tests run as root in containers
			chromedp.DisableGPU,
			chromedp.Flag("disable-quic", true),
			chromedp.Flag("disable-component-update", true),
			chromedp.Flag("hide-scrollbars", true),
		)
		allocator, endAllocator := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, endBrowser := chromedp.NewContext(allocator)
		browser.stop = func() {
			endBrowser()
			endAllocator()
			if err := os.RemoveAll(dir); err != nil {
				fmt.Fprintln(os.Stderr, "browsertest:", err)
			}
		}
		browser.ctx, browser.err = ctx, chromedp.Do(ctx) // no steps: starts it
	})
	return browser.ctx, browser.err
}
