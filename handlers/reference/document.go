package reference

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"mybots/views/words"
)

// The document describes the Bot API and the webhook. The pages are made from
// it, and every answer of the tests is held against it (UI-10).
//
//go:embed openapi.json
var document []byte

// Document returns the OpenAPI 3.1 document as it is served.
func Document() []byte { return bytes.Clone(document) }

// api is as much of the document as the pages need. Maps whose order the reader
// sees keep the order of the document.
type api struct {
	Paths      ordered[path] `json:"paths"`
	Webhooks   ordered[path] `json:"webhooks"`
	Components struct {
		Schemas    ordered[*schema]  `json:"schemas"`
		Responses  ordered[response] `json:"responses"`
		Headers    ordered[header]   `json:"headers"`
		Parameters ordered[header]   `json:"parameters"`
	} `json:"components"`
}

type path struct {
	Post operation `json:"post"`
}

// said is a text in both languages.
type said struct {
	English string `json:"description"`
	Russian string `json:"x-description-ru"`
}

func (s said) in(lang string) string { return choose(lang, s.English, s.Russian) }

func choose(lang, english, russian string) string {
	if lang == words.Russian {
		return russian
	}
	return english
}

type operation struct {
	said
	ID          string   `json:"operationId"`
	Summary     string   `json:"summary"`
	SummaryRu   string   `json:"x-summary-ru"`
	TryNote     string   `json:"x-try-note"`
	TryNoteRu   string   `json:"x-try-note-ru"`
	Parameters  []header `json:"parameters"`
	RequestBody struct {
		Content map[string]media `json:"content"`
	} `json:"requestBody"`
	Responses ordered[response] `json:"responses"`
}

type header struct {
	said
	Ref     string          `json:"$ref"`
	Name    string          `json:"name"`
	Schema  *schema         `json:"schema"`
	Example json.RawMessage `json:"example"`
}

type media struct {
	Schema  *schema         `json:"schema"`
	Example json.RawMessage `json:"example"`
}

type response struct {
	said
	Ref     string           `json:"$ref"`
	When    string           `json:"x-when"` // a bot's author gives this answer
	WhenRu  string           `json:"x-when-ru"`
	Content map[string]media `json:"content"`
}

type schema struct {
	said
	Ref        string            `json:"$ref"`
	Type       oneOrMore         `json:"type"`
	Format     string            `json:"format"`
	Required   []string          `json:"required"`
	Properties ordered[*schema]  `json:"properties"`
	Items      *schema           `json:"items"`
	OneOf      []*schema         `json:"oneOf"`
	Const      json.RawMessage   `json:"const"`
	Default    json.RawMessage   `json:"default"`
	Minimum    *int64            `json:"minimum"`
	Maximum    *int64            `json:"maximum"`
	Pattern    string            `json:"pattern"`
	MinLength  int               `json:"minLength"`
	MaxLength  int               `json:"maxLength"`
	Examples   []json.RawMessage `json:"examples"`

	Values     []known `json:"x-values"`     // that a text is known to have
	Page       string  `json:"x-page"`       // where it is described
	Payload    bool    `json:"x-payload"`    // an update's
	Status     int     `json:"x-status"`     // of an error
	WhatToDo   string  `json:"x-what-to-do"` // about an error
	WhatToDoRu string  `json:"x-what-to-do-ru"`
}

type known struct {
	said
	Value string `json:"value"`
}

// oneOrMore is a schema's type: one word or a list of them.
type oneOrMore []string

func (o *oneOrMore) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		return json.Unmarshal(b, (*[]string)(o))
	}
	*o = make([]string, 1)
	return json.Unmarshal(b, &(*o)[0])
}

// ordered is a JSON object whose members keep their order.
type ordered[T any] []member[T]

type member[T any] struct {
	Key   string
	Value T
}

func (o *ordered[T]) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	if _, err := d.Token(); err != nil { // {
		return err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		name, ok := key.(string)
		if !ok {
			return fmt.Errorf("got the key %v, want an object", key)
		}
		m := member[T]{Key: name}
		if err := d.Decode(&m.Value); err != nil {
			return fmt.Errorf("%s: %w", m.Key, err)
		}
		*o = append(*o, m)
	}
	return nil
}

func (o ordered[T]) get(key string) (value T, ok bool) {
	for _, m := range o {
		if m.Key == key {
			return m.Value, true
		}
	}
	return value, false
}

// read reads the document. An error is a mistake in it.
func read(b []byte) (*api, error) {
	a := &api{}
	if err := json.Unmarshal(b, a); err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	return a, nil
}

// resolve follows a reference to a schema; what stands beside the reference is
// said of this use alone.
func (a *api) resolve(s *schema) *schema {
	if s.Ref == "" {
		return s
	}
	to, ok := a.Components.Schemas.get(last(s.Ref))
	if !ok {
		panic("reference: the document has no " + s.Ref) // a test resolves all of them
	}
	use := *to
	if s.English != "" {
		use.said = s.said
	}
	return &use
}

// answer follows a reference to a response.
func (a *api) answer(r response) response {
	if r.Ref == "" {
		return r
	}
	to, ok := a.Components.Responses.get(last(r.Ref))
	if !ok {
		panic("reference: the document has no " + r.Ref)
	}
	return to
}

// errors are the schemas of the error codes, each named like its code.
func (a *api) errors() ordered[*schema] {
	var list ordered[*schema]
	for _, m := range a.Components.Schemas {
		if m.Value.Status != 0 {
			list = append(list, m)
		}
	}
	return list
}

// codes are the error codes that an answer may have.
func (r response) codes() []string {
	s := r.Content["application/json"].Schema
	if s == nil {
		return nil
	}
	list := s.OneOf
	if s.Ref != "" {
		list = []*schema{s}
	}
	var codes []string
	for _, one := range list {
		codes = append(codes, last(one.Ref))
	}
	return codes
}

// last is the name at the end of a reference.
func last(ref string) string { return ref[strings.LastIndex(ref, "/")+1:] }
