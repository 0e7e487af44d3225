package referencetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// walk goes through a value beside its schema: it marks the fields that it sees
// and refuses those that the document doesn't name. The schemas say only what must
// be so, since bots' programs shall bear new fields; the tests may not.
func (c *Contract) walk(marks map[string]bool, schema node, value any, at string) error {
	schema, at = c.use(schema, value, at)
	switch v := value.(type) {
	case node:
		properties := child(schema, "properties")
		for name, inner := range v {
			p, known := properties[name]
			if !known {
				if at == "Update." {
					continue // of a type that isn't in the document (U-01)
				}
				return fmt.Errorf("the document has no field %s%s", at, name)
			}
			property, _ := p.(node)
			if isPayload(property) {
				c.payload(marks, property, name, inner)
				continue
			}
			marks["field "+at+name] = true
			if err := c.walk(marks, property, inner, at+name+"."); err != nil {
				return err
			}
		}
		if kind := text(v["type"]); at == "Update." && v[kind] == nil {
			return fmt.Errorf("an update of type %q has no field of that name", kind)
		}
	case []any:
		items, _ := schema["items"].(node)
		for _, inner := range v {
			if err := c.walk(marks, items, inner, at); err != nil {
				return err
			}
		}
	case string:
		if known, ok := schema["x-values"].([]any); ok && at != "Update.type." && !slices.ContainsFunc(known, func(k any) bool { n, _ := k.(node); return n["value"] == v }) {
			return fmt.Errorf("the document doesn't know the value %q of %s", v, strings.TrimSuffix(at, "."))
		}
	}
	return nil
}

// payload marks the fields of a payload that has the form of the document.
func (c *Contract) payload(marks map[string]bool, property node, name string, value any) {
	found := map[string]bool{"field Update." + name: true}
	if c.validate(c.strict, text(property["$ref"]), value) == nil && c.walk(found, property, value, "") == nil {
		maps.Copy(marks, found)
	}
}

// use finds the schema that is meant: behind a reference, and among several
// errors the one of this code.
func (c *Contract) use(schema node, value any, at string) (node, string) {
	if several, ok := schema["oneOf"].([]any); ok {
		v, _ := value.(node)
		code := text(child(v, "error")["code"])
		for _, s := range several {
			if one, _ := s.(node); strings.HasSuffix(text(one["$ref"]), "/"+code) {
				schema = one
			}
		}
	}
	if ref := text(schema["$ref"]); ref != "" {
		return c.follow(ref), ref[strings.LastIndex(ref, "/")+1:] + "."
	}
	return schema, at
}

// all lists everything that the document promises to answer with.
func (c *Contract) all() map[string]bool {
	all := map[string]bool{}
	for path, item := range child(c.doc, "paths") {
		item, _ := item.(node)
		method := strings.TrimPrefix(path, "/")
		all["method "+method] = true
		c.list(all, child(item, "post", "responses", "200", "content", "application/json", "schema"), method+".")
	}
	for name, s := range child(c.doc, "components", "schemas") {
		s, _ := s.(node)
		if s["x-status"] != nil {
			all["code "+name] = true
			c.list(all, s, name+".")
		}
	}
	for name := range child(c.doc, "components", "headers") {
		all["header "+name] = true
	}
	return all
}

// list adds the fields of a schema.
func (c *Contract) list(all map[string]bool, schema node, at string) {
	schema, at = c.use(schema, nil, at)
	if items, ok := schema["items"].(node); ok {
		c.list(all, items, at)
	}
	for name, p := range child(schema, "properties") {
		if key := "field " + at + name; !all[key] {
			all[key] = true
			p, _ := p.(node)
			c.list(all, p, at+name+".")
		}
	}
}

// Unseen lists the methods, codes, fields and headers of the document that no
// answer has shown, in order.
func (c *Contract) Unseen() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return missing(c.all(), c.seen)
}

// UnseenCodes lists each method with each of its codes that no answer has shown,
// as "answer getUpdates CURSOR_BEHIND".
func (c *Contract) UnseenCodes() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[string]bool{pair("", "METHOD_NOT_FOUND"): true}
	for path, item := range child(c.doc, "paths") {
		item, _ := item.(node)
		for _, r := range child(item, "post", "responses") {
			response, _ := r.(node)
			if ref := text(response["$ref"]); ref != "" {
				response = c.follow(ref)
			}
			schema := child(response, "content", "application/json", "schema")
			list, _ := schema["oneOf"].([]any)
			for _, s := range append(slices.Clone(list), schema) {
				s, _ := s.(node)
				if ref := text(s["$ref"]); ref != "" {
					all[pair(strings.TrimPrefix(path, "/"), ref[strings.LastIndex(ref, "/")+1:])] = true
				}
			}
		}
	}
	return missing(all, c.seen)
}

func missing(all, seen map[string]bool) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !seen[name] {
			list = append(list, name)
		}
	}
	return list
}
