// Package owner holds the owner's pages: their bots, a bot's connection, its
// token, its settings and its test chat. Each page takes one struct with
// everything on it ready in the reader's language.
package owner

import (
	"context"
	"time"

	"mybots/static"
	"mybots/views/ui"
	"mybots/views/words"

	"github.com/a-h/templ"
)

// State says how a bot is: the one vocabulary of all pages.
type State struct {
	Code  string // for programs and tests, in data-state
	Kind  ui.Kind
	Word  string // for the pill
	Means string // one sentence or two: what it means, and what is safe
	Act   string // what to do; "" when there is nothing
	Cause string // the code of what stops delivery; "" for none
	Safe  string // what isn't lost; "" where Means says it
	Off   Off    // of what the platform's support has switched off
}

// Off is since when and why support has switched something off; a zero time: it
// hasn't.
type Off struct {
	At     time.Time
	Reason string
}

// Example is a command that is ready to run.
type Example struct {
	Label  string // what it is for
	Before string // the command up to the token
	Token  string // stands in the middle, covered where it is the real one
	After  string // the rest
}

// sheet is the style sheet of these pages alone.
func sheet() string { return static.URL("css/owner.css") }

// How often pages look whether something has changed.
const (
	cardsEvery      = "every 10s"
	connectionEvery = "every 5s"
	chatEvery       = "every 2s"
)

// active is a yes or no in a data attribute.
func active(yes bool) string {
	if yes {
		return "true"
	}
	return "false"
}

// focus makes a field take the focus when it comes.
func focus(yes bool) templ.Attributes {
	if !yes {
		return nil
	}
	return templ.Attributes{"autofocus": true}
}

// startLook makes the reader's own language the button that stands out.
func startLook(ctx context.Context, lang string) ui.Look {
	if words.Lang(ctx) == lang {
		return ui.Primary
	}
	return ui.Plain
}
