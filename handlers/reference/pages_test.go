package reference_test

import (
	"encoding/json"
	"html"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"mybots/examples"
	"mybots/handlers/reference"
)

// got is what a browser got.
type got struct {
	status int
	header http.Header
	body   string
}

// get opens a page as somebody who isn't signed in.
func (r *rig) get(path, language string, headers ...string) got {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.url+path, nil)
	r.must(err)
	req.Header.Set("Accept-Language", language)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	r.must(err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	r.must(err)
	return got{resp.StatusCode, resp.Header, string(body)}
}

var (
	anchor = regexp.MustCompile(`<(?:h2|h3|section)[^>]* id="([^"]+)"`)
	link   = regexp.MustCompile(`href="((?:/docs|#)[^"]*)"`)
	// A key without words shows itself.
	noWords  = regexp.MustCompile(`[>"]reference\.\w+[<"]`)
	patience = regexp.MustCompile(`"timeout":\d+`)
	pre      = regexp.MustCompile(`(?s)<code data-copy-text>(curl .*?)</code>`)
)

func TestPages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	pages := map[string]map[string]string{"en": {}, "ru": {}}
	for language := range pages {
		for _, path := range addresses {
			p := r.get(path, language)
			if p.status != http.StatusOK || p.header.Get("Content-Language") != language {
				t.Fatalf("UI-10 %s in %s: got %d in %q, want 200 without a session", path, language, p.status, p.header.Get("Content-Language"))
			}
			pages[language][path] = p.body
		}
	}
	anchors := func(language, path string) (ids []string) {
		for _, m := range anchor.FindAllStringSubmatch(pages[language][path], -1) {
			ids = append(ids, m[1])
		}
		return ids
	}
	t.Run("UI-10 UI-01 both languages have the same sections", func(t *testing.T) {
		t.Parallel()
		for _, path := range addresses[:11] {
			if en, ru := anchors("en", path), anchors("ru", path); !slices.Equal(en, ru) || slices.Compact(slices.Sorted(slices.Values(en))) == nil && path != "/docs/try" {
				t.Errorf("%s: got %v and %v, want the same", path, en, ru)
			}
		}
	})
	t.Run("UI-10 every link leads to a section that is there", func(t *testing.T) {
		t.Parallel()
		for language, all := range pages {
			for path, body := range all {
				for _, m := range link.FindAllStringSubmatch(body, -1) {
					to, id, _ := strings.Cut(html.UnescapeString(m[1]), "#")
					if to == "" {
						to = path
					}
					_, known := all[to]
					if !known && to != "/docs/openapi.json" || id != "" && id != "content" && !slices.Contains(anchors(language, to), id) {
						t.Errorf("%s in %s: the link %s leads nowhere", path, language, m[1])
					}
				}
			}
		}
	})
	t.Run("UI-10 each page has its text in its language", func(t *testing.T) {
		t.Parallel()
		for _, path := range addresses {
			if pages["en"][path] == pages["ru"][path] || noWords.MatchString(pages["en"][path]) || noWords.MatchString(pages["ru"][path]) {
				t.Errorf("%s: got a page without words of its language", path)
			}
			// The switch of the language is Russian on English pages.
			if english := strings.ReplaceAll(pages["en"][path], "Русский", ""); hasRussian(english) {
				t.Errorf("%s: got Russian on the English page", path)
			}
			if strings.Contains(pages["en"][path], "{base}") || strings.Contains(pages["ru"][path], "{{") {
				t.Errorf("%s: got a place that nothing was put in", path)
			}
		}
	})
	t.Run("UI-10 every method, code and type of the document is on its page", func(t *testing.T) {
		t.Parallel()
		doc, err := load(t)
		if err != nil {
			t.Fatal(err)
		}
		for language := range pages {
			for path := range doc.Paths.Map() {
				if !slices.Contains(anchors(language, "/docs/methods"), strings.TrimPrefix(path, "/")) {
					t.Errorf("%s: got no section on the page in %s", path, language)
				}
			}
			for name, s := range doc.Components.Schemas {
				if s.Value.Extensions["x-status"] != nil && !slices.Contains(anchors(language, "/docs/errors"), name) {
					t.Errorf("%s: got no section on the page in %s", name, language)
				}
			}
			for name, p := range doc.Components.Schemas["Update"].Value.Properties {
				if p.Extensions["x-payload"] != nil && !slices.Contains(anchors(language, "/docs/updates"), name) {
					t.Errorf("%s: got no section on the page in %s", name, language)
				}
			}
		}
	})
	t.Run("UI-10 the code is cut from the examples, in every language that has it", func(t *testing.T) {
		t.Parallel()
		for path, names := range map[string][]string{"/docs/polling": {"receive", "errors"}, "/docs/signature": {"verify"}, "/docs/idempotency": {"send"}, "/docs/running": {"inbox"}} {
			for _, name := range names {
				n := 0
				for _, language := range examples.Languages {
					code, err := examples.Snippet(name, language)
					if err != nil {
						continue // not every language has every piece
					}
					n++
					if !strings.Contains(html.UnescapeString(pages["ru"][path]), code) {
						t.Errorf("%s: got no snippet %s in %s", path, name, language)
					}
				}
				if n < 2 {
					t.Errorf("%s: got the snippet %s in %d languages, want two or more", path, name, n)
				}
			}
		}
	})
	t.Run("UI-10 the curl examples are calls that the methods take", func(t *testing.T) {
		t.Parallel()
		n := 0
		for path, body := range pages["ru"] {
			for _, m := range pre.FindAllStringSubmatch(body, -1) {
				n++
				r.curl(t, path, html.UnescapeString(m[1]))
			}
		}
		if n < 12 {
			t.Errorf("got %d examples, want those of all methods and more", n)
		}
	})
	t.Run("UI-10 what isn't there is 404", func(t *testing.T) {
		t.Parallel()
		for _, path := range []string{"/docs/nothing", "/docs/", "/docs/start", "/docs/polling/x", "/docs/..%2fbots"} {
			if p := r.get(path, "en"); p.status != http.StatusNotFound {
				t.Errorf("%s: got %d, want 404", path, p.status)
			}
		}
	})
}

var (
	curlURL  = regexp.MustCompile(`^curl -sS -X POST (\S+) \\\n`)
	curlLine = regexp.MustCompile(`^  -(?:H (?:"([^"]*)"|'([^']*)')|d '([^']*)')(?: \\)?$`)
)

// curl reads a command as a shell would and makes its call: its fields must be
// such as the method takes, and the document's too.
func (r *rig) curl(t *testing.T, path, command string) {
	t.Helper()
	to := curlURL.FindStringSubmatch(command)
	if to == nil || !strings.HasPrefix(to[1], r.url+"/bot-api/v1/") {
		t.Errorf("%s: got no address of this server in\n%s", path, command)
		return
	}
	method, body := strings.TrimPrefix(to[1], r.url+"/bot-api/v1/"), ""
	var headers []string
	for _, line := range strings.Split(command, "\n")[1:] {
		m := curlLine.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("%s: a shell wouldn't read %q", path, line)
			return
		}
		if m[3] != "" {
			body = m[3]
		} else {
			headers = append(headers, m[1]+m[2])
		}
	}
	if len(headers) == 0 || headers[0] != "Authorization: Bearer $SMEET_TOKEN" {
		t.Errorf("%s: got %v, want the token from a variable first", path, headers)
	}
	n := strconv.Itoa(int(r.names.Add(1)))
	b := r.bot("curl_" + n)
	if code := b.call(method, patience.ReplaceAllString(body, `"timeout":0`), headers[1:]...).Error.Code; slices.Contains([]string{"INVALID_REQUEST", "IDEMPOTENCY_KEY_REQUIRED", "METHOD_NOT_FOUND", "UNSUPPORTED_MEDIA_TYPE"}, code) {
		t.Errorf("%s: got %s for\n%s", path, code, command)
	}
	if body == "" {
		return
	}
	var fields any
	if err := json.Unmarshal([]byte(body), &fields); err != nil {
		t.Fatal(err)
	}
	if err := compile(t, "#/paths/~1"+method+"/post/requestBody/content/application~1json/schema").Validate(fields); err != nil {
		t.Errorf("%s: the document doesn't allow %s: %v", path, body, err)
	}
}

// compile returns the schema at a place of the document.
func compile(t *testing.T, at string) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(reference.Document())))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	if err := c.AddResource("openapi.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("openapi.json" + at)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
