// Package reference answers for /docs: the Bot API's documentation for authors
// of bots (UI-10), for everybody, signed in or not. What can be made from the
// OpenAPI document is; the rest is Markdown in both languages.
//
// The handlers and their addresses:
//
//	GET /docs               Start
//	GET /docs/{page}        Page
//	GET /docs/search        Search
//	GET /docs/openapi.json  OpenAPI
package reference

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/a-h/templ"

	"mybots/examples"
	views "mybots/views/reference"
	"mybots/views/words"
	"mybots/web"
)

// Handler has a method for each page. Everything is made when it is made.
type Handler struct {
	libraries map[string]library
	index     index
	tag       string // of the document
}

// New returns the documentation; base is where programs find the product. It
// panics for a mistake in the document or in a text, which the tests find first.
func New(base *url.URL) *Handler {
	a, err := read(document)
	if err != nil {
		panic(fmt.Errorf("the documentation: %w", err))
	}
	h := &Handler{libraries: map[string]library{}}
	for _, lang := range []string{words.English, words.Russian} {
		if h.libraries[lang], err = newLibrary(lang, strings.TrimSuffix(base.String(), "/"), a, examples.Snippet); err != nil {
			panic(fmt.Errorf("the documentation: %w", err))
		}
	}
	h.index = newIndex(h.libraries)
	sum := sha256.Sum256(document)
	h.tag = `"` + hex.EncodeToString(sum[:16]) + `"`
	return h
}

// Start is the first page.
func (h *Handler) Start(w http.ResponseWriter, r *http.Request) { h.show(w, r, "") }

// Page is one of the others.
func (h *Handler) Page(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("page")
	if name == "" {
		web.NotFound(w, r)
		return
	}
	h.show(w, r, name)
}

func (h *Handler) show(w http.ResponseWriter, r *http.Request, name string) {
	l := h.libraries[words.Lang(r.Context())]
	i, ok := l.find(name)
	if !ok {
		web.NotFound(w, r)
		return
	}
	d := views.Docs{Pages: l.links(name), Contents: l[i].contents(), Blocks: l[i].blocks}
	if i > 0 {
		d.Previous = d.Pages[i-1]
	}
	if i+1 < len(l) {
		d.Next = d.Pages[i+1]
	}
	f := web.Frame(r, l[i].title)
	f.Lead = l[i].lead
	web.Render(w, r, http.StatusOK, views.Page(f, d))
}

// Search looks for the words of the query q in all sections.
func (h *Handler) Search(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	query := strings.TrimSpace(r.URL.Query().Get("q"))
	if utf8.RuneCountInString(query) > maxQuery {
		query = string([]rune(query)[:maxQuery])
	}
	query = strings.ToValidUTF8(query, "")
	lang := words.Lang(ctx)
	found, more := h.index.find(lang, query)
	f := web.Frame(r, words.T(ctx, "reference.search_title"))
	web.Render(w, r, http.StatusOK, views.Page(f, views.Docs{
		Pages: h.libraries[lang].links("search"), Query: query,
		Blocks: []templ.Component{views.SearchResults(views.Results{Query: query, Found: found, More: more})},
	}))
}

// OpenAPI is the document itself, the same for everybody.
func (h *Handler) OpenAPI(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Type", "application/json; charset=utf-8")
	header.Set("Cache-Control", "public, max-age=300")
	header.Set("ETag", h.tag)
	header.Del("Vary")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(document))
}
