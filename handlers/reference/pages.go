package reference

import (
	"context"
	"embed"
	"fmt"
	"strings"

	"github.com/a-h/templ"

	"mybots/views/layout"
	"mybots/views/words"
)

// texts has each page in each language: pages/polling.en.md. The first line is
// the page's title, "# …", the second paragraph its lead. A line like "{{errors}}"
// is where a part made from the document or from an example goes.
//
//go:embed pages
var texts embed.FS

// names are the pages in the order in which they are read; "" is /docs itself.
var names = []string{"", "polling", "webhook", "updates", "methods", "errors", "signature", "idempotency", "limits", "running", "try"}

// page is a page in one language.
type page struct {
	name, title, lead string
	blocks            []templ.Component
	sections          []heading
}

// address is where a page stands.
func address(name string) string {
	if name == "" {
		return "/docs"
	}
	return "/docs/" + name
}

// library is all pages in one language.
type library []page

// newLibrary makes all pages. base is where programs find the product. An error is
// a mistake in a text.
func newLibrary(lang, base string, a *api, snippet snippets) (library, error) {
	ctx := words.With(context.Background(), lang)
	m := maker{ctx: ctx, api: a, base: base, snippet: snippet}
	md := newProse(ctx)
	var l library
	for _, name := range names {
		p, err := m.page(name, md)
		if err != nil {
			return nil, fmt.Errorf("page %q in %s: %w", name, lang, err)
		}
		l = append(l, p)
	}
	return l, nil
}

func (m maker) page(name string, md prose) (page, error) {
	file := name
	if file == "" {
		file = "start"
	}
	source, err := texts.ReadFile("pages/" + file + "." + words.Lang(m.ctx) + ".md")
	if err != nil {
		return page{}, err
	}
	title, rest, ok := strings.Cut(string(source), "\n\n")
	lead, body, found := strings.Cut(rest, "\n\n")
	if !ok || !found || !strings.HasPrefix(title, "# ") {
		return page{}, fmt.Errorf("want a title and a lead")
	}
	p := page{name: name, title: strings.TrimPrefix(title, "# "), lead: strings.ReplaceAll(lead, "\n", " ")}
	var text strings.Builder
	flush := func() error {
		html, sections, err := md.render(text.String())
		text.Reset()
		p.blocks = append(p.blocks, templ.Raw(html)) // our own text; its own HTML is left out
		p.sections = append(p.sections, sections...)
		return err
	}
	for line := range strings.Lines(strings.ReplaceAll(body, "{base}", m.base)) {
		part, ok := strings.CutPrefix(strings.TrimSpace(line), "{{")
		if !ok {
			text.WriteString(line)
			continue
		}
		if err := flush(); err != nil {
			return page{}, err
		}
		block, sections, err := m.part(strings.TrimSuffix(part, "}}"))
		if err != nil {
			return page{}, err
		}
		p.blocks = append(p.blocks, block)
		p.sections = append(p.sections, sections...)
	}
	return p, flush()
}

// find returns the page of that name and its place.
func (l library) find(name string) (int, bool) {
	for i, p := range l {
		if p.name == name {
			return i, true
		}
	}
	return 0, false
}

// links lead to all pages.
func (l library) links(current string) []layout.Link {
	var list []layout.Link
	for _, p := range l {
		list = append(list, layout.Link{URL: address(p.name), Text: p.title, Current: p.name == current})
	}
	return list
}

// contents lead to the page's main sections.
func (p page) contents() []layout.Link {
	var list []layout.Link
	for _, s := range p.sections {
		if s.level == 2 {
			list = append(list, layout.Link{URL: "#" + s.id, Text: s.title})
		}
	}
	return list
}
