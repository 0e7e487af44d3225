package browsertest

import (
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// View is one way to look at a page.
type View struct {
	Width int  // of the window in pixels
	Dark  bool // the device prefers dark colours
}

// Views shows the page as it stands in light and in dark, in windows of each of
// the widths, or of 1280 and 360 pixels (UI-08), and calls look for every view.
// The page isn't loaded anew for that: what was typed and where one got to stays.
// Afterwards the tab is as it was opened.
func (tab *Tab) Views(look func(View), widths ...int) {
	tab.t.Helper()
	if len(widths) == 0 {
		widths = []int{1280, 360}
	}
	for _, width := range widths {
		for _, dark := range []bool{false, true} {
			v := View{Width: width, Dark: dark}
			tab.see(v)
			look(v)
		}
	}
	tab.see(View{Width: tab.setup.Width, Dark: tab.setup.Dark})
}

func (tab *Tab) see(v View) {
	tab.t.Helper()
	scheme := "light"
	if v.Dark {
		scheme = "dark"
	}
	tab.Do(chromedp.EmulateViewport(int64(v.Width), 900))
	call(tab, "colours", emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
}
