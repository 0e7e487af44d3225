package reference

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"mybots/views/ui"
)

// prose turns the Markdown of the pages into HTML that keeps to the content
// security policy: no HTML of the text's own, no style attributes, code blocks as
// ui.Code. Each heading has its anchor behind it: "## Offsets {#offsets}".
type prose struct{ goldmark.Markdown }

// newProse returns the prose of the context's language.
func newProse(ctx context.Context) prose {
	return prose{goldmark.New(
		goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignNone))),
		goldmark.WithParserOptions(parser.WithHeadingAttribute(), parser.WithASTTransformers(util.Prioritized(tables{}, 100))),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(codeBlocks{ctx}, 100))),
	)}
}

// heading is a section of a text.
type heading struct {
	level     int
	id, title string
	text      string // of the section, as one line
}

// render returns the HTML and the sections. What stands before the first heading
// is a section without id.
func (p prose) render(source string) (html string, sections []heading, err error) {
	src := []byte(source)
	root := p.Parser().Parse(text.NewReader(src))
	sections = []heading{{}}
	for n := root.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok {
			id, _ := h.AttributeString("id")
			name, ok := id.([]byte)
			if !ok {
				return "", nil, fmt.Errorf("the heading %q has no anchor", plain(n, src))
			}
			sections = append(sections, heading{level: h.Level, id: string(name), title: plain(n, src)})
			continue
		}
		s := &sections[len(sections)-1]
		s.text = strings.TrimSpace(s.text + " " + plain(n, src))
	}
	var out bytes.Buffer
	if err := p.Renderer().Render(&out, src, root); err != nil {
		return "", nil, err
	}
	return out.String(), sections, nil
}

// plain is the text of a node in one line.
func plain(node ast.Node, source []byte) string {
	var b strings.Builder
	// The visitor returns no error.
	_ = ast.Walk(node, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(n.Segment.Value(source))
				if n.SoftLineBreak() || n.HardLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.FencedCodeBlock:
			if entering {
				b.Write(n.Lines().Value(source))
			}
		default:
			if !entering && n.Type() == ast.TypeBlock {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(b.String()), " ")
}

// tables lets tables stack on narrow windows: there each cell says its column,
// unless there are but two.
type tables struct{}

func (tables) Transform(root *ast.Document, reader text.Reader, _ parser.Context) {
	// The visitor returns no error.
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		table, ok := n.(*extast.Table)
		if !ok || !entering {
			return ast.WalkContinue, nil
		}
		table.SetAttributeString("class", []byte("stacked"))
		var columns []string
		for cell := table.FirstChild().FirstChild(); cell != nil; cell = cell.NextSibling() {
			columns = append(columns, plain(cell, reader.Source()))
		}
		if len(columns) < 3 { // the one beside the first needs no name
			return ast.WalkSkipChildren, nil
		}
		for row := table.FirstChild().NextSibling(); row != nil; row = row.NextSibling() {
			i := 0
			for cell := row.FirstChild(); cell != nil && i < len(columns); cell = cell.NextSibling() {
				cell.SetAttributeString("data-label", []byte(columns[i]))
				i++
			}
		}
		return ast.WalkSkipChildren, nil
	})
}

// codeBlocks shows a fenced block as ui.Code. What stands behind the language
// labels it: "```json The error".
type codeBlocks struct{ ctx context.Context }

func (c codeBlocks) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindFencedCodeBlock, func(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		block, ok := node.(*ast.FencedCodeBlock)
		if !ok || block.Info == nil {
			return ast.WalkStop, fmt.Errorf("a code block has no language")
		}
		label := string(block.Info.Segment.Value(source))
		if _, words, said := strings.Cut(label, " "); said {
			label = words
		}
		return ast.WalkSkipChildren, ui.Code(label, strings.TrimSuffix(string(block.Lines().Value(source)), "\n")).Render(c.ctx, w)
	})
}
