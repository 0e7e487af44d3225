package reference

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"mybots/views/layout"
	views "mybots/views/reference"
	"mybots/views/words"
)

// snippets returns a piece of an example program in one of its languages.
type snippets func(name, language string) (string, error)

// maker makes the parts of the pages that come from the document and from the examples.
type maker struct {
	ctx     context.Context
	api     *api
	base    string
	snippet snippets
}

// part makes the part of that name and says which sections are in it.
func (m maker) part(name string) (templ.Component, []heading, error) {
	if snippet, ok := strings.CutPrefix(name, "snippet "); ok {
		name, label, _ := strings.Cut(snippet, " ")
		return m.snippets(name, label)
	}
	switch name {
	case "methods":
		list, sections := m.methods()
		return views.Methods(list), sections, nil
	case "errors":
		list, sections := m.errors()
		return views.Errors(list), sections, nil
	case "update":
		update, _ := m.api.Components.Schemas.get("Update")
		plain := *update // the payloads follow, each by itself
		plain.Properties = slices.DeleteFunc(slices.Clone(update.Properties), func(p member[*schema]) bool { return p.Value.Payload })
		return views.Fields(words.T(m.ctx, "reference.update"), m.api.fields(m.ctx, &plain), false), nil, nil
	case "types":
		list, sections := m.types()
		return views.Types(list), sections, nil
	case "message":
		return m.message()
	case "answers":
		return views.Answers(m.answers()), nil, nil
	case "headers":
		return views.Headers(m.headers()), nil, nil
	case "try":
		return views.TryForm(m.try()), nil, nil
	}
	return nil, nil, fmt.Errorf("there is no part %q", name)
}

// languages are those of the examples, and how they are called.
var languages = []struct{ key, name string }{{"python", "Python"}, {"node", "Node.js"}, {"go", "Go"}}

// snippets shows a piece under its label in every language that has it; an error
// when none has.
func (m maker) snippets(name, label string) (templ.Component, []heading, error) {
	var list []views.Snippet
	var missing []error
	for _, l := range languages {
		code, err := m.snippet(name, l.key)
		if err != nil {
			missing = append(missing, err)
			continue
		}
		list = append(list, views.Snippet{Language: l.name, Label: l.name + ": " + label, Code: code})
	}
	if len(list) == 0 {
		return nil, nil, errors.Join(missing...)
	}
	return views.Snippets(list), nil, nil
}

func (m maker) methods() (list []views.Method, sections []heading) {
	lang := words.Lang(m.ctx)
	for _, p := range m.api.Paths {
		op := p.Value.Post
		request, answer := op.RequestBody.Content["application/json"], m.api.answer(op.Responses[0].Value).Content["application/json"]
		v := views.Method{
			Name: op.ID, Summary: choose(lang, op.Summary, op.SummaryRu), Text: op.in(lang), Keyed: op.keyed(),
			Request: m.api.fields(m.ctx, request.Schema), Curl: m.curl(op), Answer: pretty(answer.Example),
		}
		result, _ := answer.Schema.Properties.get("result")
		if v.ResultLink.URL, v.ResultLink.Text = m.api.described(m.ctx, result); v.ResultLink.URL == "" {
			v.Result = m.api.fields(m.ctx, result)
		}
		for _, r := range op.Responses {
			for _, code := range m.api.answer(r.Value).codes() {
				if s, ok := m.api.Components.Schemas.get(code); ok && s.Status != 0 {
					v.Errors = append(v.Errors, views.ErrorLink{Code: code, Status: s.Status})
				}
			}
		}
		list = append(list, v)
		said := []string{v.Summary, v.Text}
		for _, f := range slices.Concat(v.Request, v.Result) {
			said = append(said, f.Name, f.Text)
		}
		sections = append(sections, heading{level: 2, id: v.Name, title: v.Name, text: strings.Join(said, " ")})
	}
	return list, sections
}

func (o operation) keyed() bool { return len(o.Parameters) > 0 }

// curl is a call by curl with the document's example.
func (m maker) curl(op operation) string {
	var body bytes.Buffer
	if err := json.Compact(&body, op.RequestBody.Content["application/json"].Example); err != nil {
		panic("reference: the example of " + op.ID + " isn't JSON: " + err.Error())
	}
	key := ""
	if op.keyed() {
		p, _ := m.api.Components.Parameters.get("Idempotency-Key")
		key = "  -H 'Idempotency-Key: " + strings.Trim(string(p.Example), `"`) + "' \\\n"
	}
	return "curl -sS -X POST " + m.base + "/bot-api/v1/" + op.ID + " \\\n  -H \"Authorization: Bearer $SMEET_TOKEN\" \\\n" + key +
		"  -H 'Content-Type: application/json' \\\n  -d '" + body.String() + "'"
}

func (m maker) errors() (list []views.Error, sections []heading) {
	lang := words.Lang(m.ctx)
	for _, s := range m.api.errors() {
		e := views.Error{Code: s.Key, Status: s.Value.Status, When: s.Value.in(lang), WhatToDo: choose(lang, s.Value.WhatToDo, s.Value.WhatToDoRu)}
		details, _ := s.Value.Properties.get("error")
		for _, p := range details.Properties {
			if p.Key != "code" && p.Key != "message" {
				e.Details = append(e.Details, p.Key)
			}
		}
		list = append(list, e)
		sections = append(sections, heading{level: 3, id: e.Code, title: e.Code, text: e.When + " " + e.WhatToDo})
	}
	return list, sections
}

func (m maker) types() (list []views.Type, sections []heading) {
	update, _ := m.api.Components.Schemas.get("Update")
	for _, p := range update.Properties {
		if !p.Value.Payload {
			continue
		}
		t := views.Type{Name: p.Key, Text: p.Value.in(words.Lang(m.ctx))}
		if t.FieldsLink.URL, t.FieldsLink.Text = m.api.described(m.ctx, p.Value); t.FieldsLink.URL == "" {
			t.Fields = m.api.fields(m.ctx, p.Value)
		}
		for _, example := range update.Examples {
			var e struct{ Type string }
			if err := json.Unmarshal(example, &e); err == nil && e.Type == p.Key {
				t.Example = pretty(example)
			}
		}
		list = append(list, t)
		sections = append(sections, heading{level: 3, id: t.Name, title: t.Name, text: t.Text})
	}
	return list, sections
}

// message is the section that updates and methods lead to.
func (m maker) message() (templ.Component, []heading, error) {
	s, _ := m.api.Components.Schemas.get("Message")
	section := views.Section{ID: "message-object", Title: words.T(m.ctx, "reference.message"), Text: s.in(words.Lang(m.ctx)), Fields: m.api.fields(m.ctx, s)}
	text := section.Text
	for _, f := range section.Fields {
		text += " " + f.Name + " " + f.Text
	}
	return views.Objects([]views.Section{section}), []heading{{level: 2, id: section.ID, title: section.Title, text: text}}, nil
}

func (m maker) answers() (list []views.Answer) {
	lang := words.Lang(m.ctx)
	for _, r := range m.api.Webhooks[0].Value.Post.Responses {
		status := strings.ToLower(r.Key)
		if r.Key == "default" {
			status = words.T(m.ctx, "reference.any_other")
		}
		list = append(list, views.Answer{Status: status, Follows: r.Value.in(lang), When: choose(lang, r.Value.When, r.Value.WhenRu)})
	}
	return list
}

func (m maker) headers() (list []views.Header) {
	op := m.api.Webhooks[0].Value.Post
	for kind := range op.RequestBody.Content {
		list = append(list, views.Header{Name: "Content-Type", Text: words.T(m.ctx, "reference.content_type"), Example: kind})
	}
	for _, h := range op.Parameters {
		list = append(list, views.Header{Name: h.Name, Text: h.in(words.Lang(m.ctx)), Example: strings.Trim(string(h.Example), `"`)})
	}
	return list
}

func (m maker) try() views.Try {
	t := views.Try{Prefix: "/bot-api/v1/"}
	lang := words.Lang(m.ctx)
	for _, p := range m.api.Paths {
		op := p.Value.Post
		t.Methods = append(t.Methods, views.TryMethod{
			Name: op.ID, Body: pretty(op.RequestBody.Content["application/json"].Example),
			Note: choose(lang, op.TryNote, op.TryNoteRu), Keyed: op.keyed(),
		})
		if t.Curl == "" {
			t.Curl = m.curl(op)
		}
	}
	return t
}

// section is where a section stands.
func section(p page, h heading) layout.Link {
	url, title := address(p.name), p.title
	if h.id != "" {
		url, title = url+"#"+h.id, h.title
	}
	return layout.Link{URL: url, Text: title}
}
