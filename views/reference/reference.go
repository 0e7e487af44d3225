// Package reference holds the pages of the Bot API's documentation (UI-10). Each
// page takes one struct with everything on it ready in the reader's language.
package reference

import (
	"mybots/static"
	"mybots/views/layout"

	"github.com/a-h/templ"
)

// Docs is one page of the documentation.
type Docs struct {
	Pages    []layout.Link // all pages, in order
	Contents []layout.Link // the sections of this one
	Query    string        // what was searched for; "" on other pages
	Blocks   []templ.Component
	Previous layout.Link // the pages before and after; an empty URL for none
	Next     layout.Link
}

// Field is one field of a request or an answer.
type Field struct {
	Name     string // "lease.epoch", "skipped[].reason"
	Type     string // in words
	Limits   string // "" for none
	Text     string
	Required bool
	Values   []Value // that it is known to have
	LinkURL  string  // where its own fields are told; "" for nowhere else
	LinkText string
}

// Value is one of the values of a field, a header or a code, and what it means.
type Value struct{ Value, Text string }

// Method is one method of the Bot API.
type Method struct {
	Name, Summary, Text string
	Keyed               bool // needs an Idempotency-Key
	Request             []Field
	Result              []Field
	ResultLink          layout.Link // in place of Result; an empty URL for none
	Curl                string
	Answer              string
	Errors              []ErrorLink
}

// ErrorLink leads from a method to an error that it may answer with.
type ErrorLink struct {
	Code   string
	Status int
}

// Error is one error code.
type Error struct {
	Code     string
	Status   int
	When     string
	WhatToDo string
	Details  []string // the fields beside code and message
}

// Type is one type of update.
type Type struct {
	Name, Text string
	Fields     []Field
	FieldsLink layout.Link // in place of Fields; an empty URL for none
	Example    string
}

// Section is an object with fields that pages lead to.
type Section struct {
	ID, Title, Text string
	Fields          []Field
}

// Answer is what a webhook answers, and what follows.
type Answer struct{ Status, Follows, When string }

// Header is a header of a webhook's request.
type Header struct{ Name, Text, Example string }

// Snippet is code in one language.
type Snippet struct{ Language, Label, Code string }

// Try is the form that calls a method with the reader's own token.
type Try struct {
	Prefix  string // of the methods' addresses
	Methods []TryMethod
	Curl    string // for readers without JavaScript
}

// TryMethod is a method with what to send first.
type TryMethod struct {
	Name, Body, Note string
	Keyed            bool
}

// Results are what a search found.
type Results struct {
	Query string
	Found []Found
	More  bool // there is more than is shown
}

// Found is a section that a search found.
type Found struct{ URL, Title, Page, Excerpt string }

func sheet() string  { return static.URL("css/reference.css") }
func script() string { return static.URL("js/try.js") }
