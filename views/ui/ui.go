// Package ui holds the small parts that pages are made of. A page hands its
// texts in, ready in the reader's language; the few words that belong to a part
// itself (Copy, Show, Cancel) come from the frame's catalog.
package ui

import (
	"time"

	"github.com/a-h/templ"
)

// Kind is what a state means to its reader. Each has its own icon, so that
// colour is never the only sign.
type Kind string

// The four meanings.
const (
	Fine    Kind = "fine"    // all is well
	Waiting Kind = "waiting" // something goes on, nobody has to act
	Trouble Kind = "trouble" // somebody has to act
	Off     Kind = "off"     // switched off on purpose
)

// icon returns the name of the kind's own shape.
func (k Kind) icon() string {
	switch k {
	case Fine:
		return "check"
	case Waiting:
		return "clock"
	case Trouble:
		return "alert"
	}
	return "pause"
}

// Look is how a button looks.
type Look string

// One primary button a page; dangerous ones are outlined and lead to a
// confirmation.
const (
	Primary Look = "primary"
	Plain   Look = "plain"
	Danger  Look = "danger"
)

// FieldProps describes one line of a form: its label, its control and what is
// wrong with it. ID is also the start of the ids of the hint and of the error.
type FieldProps struct {
	ID, Name, Label string
	Type            string // of the input: "text" if empty
	Value           string // shown again after a refusal; never of a password
	Hint            string // one sentence under the label
	Error           string // why the last value was refused; "" while it wasn't
	Autocomplete    string
	Placeholder     string
	Required        bool
	Mono            bool // ids, addresses and codes
	MaxLength       int  // characters; 0 for no limit
	Attributes      templ.Attributes
}

func (p FieldProps) inputType() string {
	if p.Type == "" {
		return "text"
	}
	return p.Type
}

// ChoiceProps is one radio button or check box with its label and hint.
type ChoiceProps struct {
	ID, Name, Value, Label string
	Hint                   string
	Checked, Disabled      bool
	Attributes             templ.Attributes
}

// Option is one entry of a Select.
type Option struct {
	Value, Label string
	Selected     bool
}

// Hidden is a hidden field of a form.
type Hidden struct{ Name, Value string }

// PagerProps leads through a list by keys, forwards and backwards. An empty
// address leaves its link out, two leave out the pager.
type PagerProps struct {
	Text             string // "1–50 of 312", where that is true
	PreviousURL      string
	NextURL          string
	PreviousFragment templ.Attributes // hx-attributes of the links, if any
	NextFragment     templ.Attributes
}

// exact is the moment as machines and title attributes write it.
func exact(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// machine is the moment of a datetime attribute, whole milliseconds.
func machine(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// describedBy joins the ids of hint and error for aria-describedby.
func describedBy(id, hint, err string) string {
	switch {
	case hint != "" && err != "":
		return id + "-hint " + id + "-error"
	case hint != "":
		return id + "-hint"
	case err != "":
		return id + "-error"
	}
	return ""
}
