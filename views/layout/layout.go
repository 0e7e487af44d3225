// Package layout is the frame in which every page stands: head, top bar, the
// head of a bot's pages, the sign-in page and the pages that say what went
// wrong.
package layout

import (
	"context"
	"time"
	"unicode"
	"unicode/utf8"

	"mybots/static"
	"mybots/views/ui"
	"mybots/views/words"

	"github.com/a-h/templ"
)

// Frame is what the frame shows around a page. web.Frame fills all but the
// page's own: Lead, Narrow, Actions and Bot.
type Frame struct {
	Title     string          // of the window; also the h1, unless Bot is set
	Lead      string          // one sentence under the h1; "" for none
	Narrow    bool            // a single form: as wide as a form is read
	Actions   templ.Component // beside the h1: the page's primary link; nil for none
	Path      string          // of this page: language and theme lead back to it
	Theme     string          // "light", "dark", or "" for what the device says
	Zone      string          // in which times are shown: "utc", or "" for the browser's
	Space     string          // name of the space; "" for none
	Person    string          // email of who is signed in; "" for nobody
	Home      string          // where the product's name leads
	Nav       []Link          // the main menu
	Flash     Flash           // what the last deed did
	Banner    Banner          // of the platform's maintenance
	SearchURL string          // where support looks for bots; "" for people who aren't of support
	Bot       *BotHead        // on a bot's pages: its head with the h1 and the tabs
}

// Link is an entry of a menu.
type Link struct {
	URL, Text string
	Current   bool // the page, or one of its sub-pages, is shown now
}

// Flash is a sentence about what the last deed did; an empty Text is none.
type Flash struct {
	Kind ui.Kind
	Text string
}

// Banner says on every page what goes on with the platform; an empty Title is
// none.
type Banner struct {
	Title, Text string
	Since       time.Time
}

// Tab is one of a bot's pages.
type Tab string

// The tabs of a bot's pages.
const (
	Connection Tab = "connection"
	Failed     Tab = "failed"
	Chat       Tab = "chat"
	Settings   Tab = "settings"
)

// BotHead is the head of a bot's pages. A tab whose address is empty is left out.
type BotHead struct {
	Name      string
	Username  string // without the @
	State     ui.Kind
	StateWord string
	BackURL   string // to all bots; "" leaves the link out
	Current   Tab
	Failed    int64 // how many failed updates; shown beside the tab

	ConnectionURL, FailedURL, ChatURL, SettingsURL string
}

type tabLink struct {
	Link
	count int64
}

func (b BotHead) tabs(ctx context.Context) []tabLink {
	var tabs []tabLink
	for _, t := range []struct {
		tab   Tab
		url   string
		count int64
	}{{Connection, b.ConnectionURL, 0}, {Failed, b.FailedURL, b.Failed}, {Chat, b.ChatURL, 0}, {Settings, b.SettingsURL, 0}} {
		if t.url != "" {
			tabs = append(tabs, tabLink{Link{t.url, words.T(ctx, "tab."+string(t.tab)), t.tab == b.Current}, t.count})
		}
	}
	return tabs
}

// Initials returns the first letters of the first two words of a name, for the
// round sign beside it; "?" where it has no letter or digit.
func Initials(name string) string {
	var initials []rune
	inWord := false
	for _, r := range name {
		letter := unicode.IsLetter(r) || unicode.IsDigit(r)
		if letter && !inWord {
			initials = append(initials, unicode.ToUpper(r))
		}
		if inWord = letter; len(initials) == 2 {
			break
		}
	}
	if len(initials) == 0 || !utf8.ValidString(string(initials)) {
		return "?"
	}
	return string(initials)
}

// windowTitle is the text of <title>.
func (f Frame) windowTitle(ctx context.Context) string {
	title := f.Title
	if f.Bot != nil {
		title += " · " + f.Bot.Name
	}
	return title + " · " + words.T(ctx, "frame.product")
}

// htmxConfig keeps htmx inside the content security policy: no style of its
// own and requests to this origin alone. What would need eval isn't used in
// any page (a test looks).
const htmxConfig = `{"includeIndicatorCSS":false,"mode":"same-origin","defaultTimeout":30000}`

func script() string { return static.URL("js/app.js") }
func style() string  { return static.URL("css/app.css") }

// otherLanguage is the one that the switch offers.
func otherLanguage(ctx context.Context) string {
	if words.Lang(ctx) == words.English {
		return words.Russian
	}
	return words.English
}

// nextTheme is the one that the theme button brings: device, light, dark, device.
func nextTheme(theme string) string {
	switch theme {
	case "light":
		return "dark"
	case "dark":
		return "system"
	}
	return "light"
}

func themeIcon(theme string) string {
	switch theme {
	case "light":
		return "sun"
	case "dark":
		return "moon"
	}
	return "system"
}

func themeWords(ctx context.Context, theme string) string {
	if theme != "light" && theme != "dark" {
		theme = "system"
	}
	return words.T(ctx, "frame.theme_"+theme)
}
