// Package referencetest holds answers of the Bot API against the OpenAPI document
// (UI-10), in tests alone, and remembers what it has seen of the document: what no
// answer has shown is either not tested or not so.
package referencetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"mybots/handlers/reference"
)

// outside are the codes that a call of something that isn't a method may get: its
// token is looked at before its name.
var outside = []string{"UNAUTHORIZED", "METHOD_NOT_FOUND", "METHOD_NOT_ALLOWED", "INTERNAL", "UNAVAILABLE"}

// Contract is the document with what has been seen of it. It may be used by many
// tests at once.
type Contract struct {
	doc      node
	compiler *jsonschema.Compiler // of the document with payloads of any form
	strict   *jsonschema.Compiler // of the document as it is

	mu   sync.Mutex
	seen map[string]bool
}

// node is an object of the document.
type node = map[string]any

// New reads the document. An error is a mistake in it.
func New() (*Contract, error) {
	c := &Contract{seen: map[string]bool{}}
	var err error
	if c.strict, c.doc, err = compiler(func(node) {}); err != nil {
		return nil, err
	}
	// What the messenger writes passes through untouched (U-03): its form is the
	// messenger's matter.
	c.compiler, _, err = compiler(func(doc node) {
		properties := child(doc, "components", "schemas", "Update", "properties")
		for name, p := range properties {
			if isPayload(p) {
				properties[name] = node{"type": "object"}
			}
		}
	})
	return c, err
}

const resource = "openapi.json"

func compiler(change func(node)) (*jsonschema.Compiler, node, error) {
	raw, err := jsonschema.UnmarshalJSON(bytes.NewReader(reference.Document()))
	if err != nil {
		return nil, nil, fmt.Errorf("read the document: %w", err)
	}
	doc, ok := raw.(node)
	if !ok {
		return nil, nil, fmt.Errorf("the document is a %T, want an object", raw)
	}
	change(doc)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	return c, doc, c.AddResource(resource, doc)
}

// answer is an answer with what the document says of it.
type answer struct {
	method string
	status int
	header http.Header
	body   node
	code   string // of a failure; "" for a success
	spec   node   // the response
	at     string // where that stands
	marks  map[string]bool
}

// Check holds one answer against the document. method is the last part of the
// address, whatever it was, and head is set for an answer to HEAD, which has no
// body. The error says what the document doesn't.
func (c *Contract) Check(method string, status int, header http.Header, body []byte, head bool) error {
	a := answer{method: method, status: status, header: header, marks: map[string]bool{}}
	if got, want := header.Get("Content-Type"), "application/json; charset=utf-8"; got != want {
		return fmt.Errorf("got the Content-Type %q, want %q", got, want)
	}
	if head {
		return nil
	}
	raw, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("the body isn't JSON: %w", err)
	}
	var ok bool
	if a.body, ok = raw.(node); !ok {
		return fmt.Errorf("the body is a %T, want an object", raw)
	}
	a.code = text(child(a.body, "error")["code"])
	if err := c.find(&a); err != nil {
		return err
	}
	pointer := a.at + "/content/application~1json/schema"
	if err := c.validate(c.compiler, pointer, a.body); err != nil {
		return err
	}
	if err := c.walk(a.marks, child(a.spec, "content", "application/json", "schema"), a.body, a.method+"."); err != nil {
		return err
	}
	if err := c.headers(&a); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.Copy(c.seen, a.marks)
	return nil
}

// find finds the response that the document has for the answer.
func (c *Contract) find(a *answer) error {
	spec := child(c.doc, "paths", "/"+a.method, "post", "responses", strconv.Itoa(a.status))
	a.at = "#/paths/~1" + a.method + "/post/responses/" + strconv.Itoa(a.status)
	if child(c.doc, "paths", "/"+a.method) == nil {
		if !slices.Contains(outside, a.code) {
			return fmt.Errorf("no method %q: got %q, want one of %v", a.method, a.code, outside)
		}
		name := ""
		for _, word := range strings.Split(a.code, "_") {
			name += word[:1] + strings.ToLower(word[1:])
		}
		spec, a.method = node{"$ref": "#/components/responses/" + name}, ""
	}
	if spec == nil {
		return fmt.Errorf("the document has no status %d for %s", a.status, a.method)
	}
	if ref := text(spec["$ref"]); ref != "" {
		a.at, spec = ref, c.follow(ref)
	}
	a.spec = spec
	switch {
	case a.code == "" && a.method != "":
		a.marks["method "+a.method] = true
	case a.code != "":
		a.marks["code "+a.code] = true
		a.marks[pair(a.method, a.code)] = true
		if want := child(c.doc, "components", "schemas", a.code)["x-status"]; fmt.Sprint(want) != strconv.Itoa(a.status) {
			return fmt.Errorf("got %s with status %d, want %v", a.code, a.status, want)
		}
	}
	return nil
}

func pair(method, code string) string { return "answer " + method + " " + code }

func (c *Contract) validate(compiler *jsonschema.Compiler, pointer string, v any) error {
	// The compiler isn't made for several goroutines; it keeps what it has compiled.
	c.mu.Lock()
	schema, err := compiler.Compile(resource + pointer)
	c.mu.Unlock()
	if err != nil {
		return fmt.Errorf("compile %s: %w", pointer, err)
	}
	return schema.Validate(v)
}

// headers checks the headers that the document names, and that no other of them is there.
func (c *Contract) headers(a *answer) error {
	documented := child(a.spec, "headers")
	for name, ref := range child(c.doc, "components", "headers") {
		values := a.header.Values(name)
		_, known := documented[name]
		h, _ := ref.(node)
		switch {
		case len(values) > 1, len(values) > 0 && !known:
			return fmt.Errorf("got the header %s: %q, want none or one that is documented for this answer", name, values)
		case len(values) == 0:
			if known && h["required"] == true {
				return fmt.Errorf("got no header %s, want one", name)
			}
			continue
		}
		if err := c.validate(c.strict, "#/components/headers/"+name+"/schema", headerValue(h, values[0])); err != nil {
			return fmt.Errorf("the header %s: %w", name, err)
		}
		a.marks["header "+name] = true
	}
	if got, want := a.header.Get("Retry-After"), child(a.body, "error")["retry_after"]; a.code != "" && got != strings.TrimPrefix(fmt.Sprint(want), "<nil>") {
		return fmt.Errorf("got Retry-After %q, want retry_after %v", got, want)
	}
	if got := text(a.body["request_id"]); a.code != "" && got != a.header.Get("X-Request-Id") {
		return fmt.Errorf("got request_id %q, want X-Request-Id %q", got, a.header.Get("X-Request-Id"))
	}
	return nil
}

func headerValue(h node, value string) any {
	if child(h, "schema")["type"] == "integer" {
		return json.Number(value)
	}
	return value
}

// child goes down from an object by its keys; nil when there is no such object.
func child(n node, keys ...string) node {
	for _, key := range keys {
		n, _ = n[key].(node)
	}
	return n
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

// follow finds what a reference into the document names.
func (c *Contract) follow(ref string) node {
	return child(c.doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
}

func isPayload(property any) bool {
	p, _ := property.(node)
	return p["x-payload"] == true
}
