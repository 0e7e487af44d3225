package reference_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"mybots/delivery"
	"mybots/handlers/reference"
	"mybots/handlers/reference/referencetest"
	"mybots/web"
)

// load reads the document, or a changed one, as anybody's tools would.
func load(t *testing.T, change ...string) (*openapi3.T, error) {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData([]byte(strings.NewReplacer(change...).Replace(string(reference.Document()))))
	if err != nil {
		return nil, err
	}
	return doc, doc.Validate(t.Context())
}

func TestDocument(t *testing.T) {
	t.Parallel()
	doc, err := load(t)
	if err != nil {
		t.Fatalf("UI-10 got %v, want a valid OpenAPI document", err)
	}
	t.Run("UI-10 it is OpenAPI 3.1", func(t *testing.T) {
		t.Parallel()
		if !strings.HasPrefix(doc.OpenAPI, "3.1.") {
			t.Errorf("got %s, want 3.1", doc.OpenAPI)
		}
	})
	t.Run("UI-10 the look at it notices mistakes", func(t *testing.T) {
		t.Parallel()
		for name, change := range map[string][]string{
			"a reference to nothing":        {`"#/components/schemas/Lease"`, `"#/components/schemas/Least"`},
			"a header without a place":      {`"in": "header"`, `"in": "head"`},
			"an example that breaks a rule": {`{"consumer_id": "poller-host1", "timeout": 0}`, `{"consumer_id": "poller-host1", "timeout": 26}`},
		} {
			if _, err := load(t, change...); err == nil {
				t.Errorf("%s: got no error, want one", name)
			}
		}
	})
	t.Run("UI-10 the examples are answers that the contract allows", func(t *testing.T) {
		t.Parallel()
		c, err := referencetest.New()
		if err != nil {
			t.Fatal(err)
		}
		id := "6f0f9c1e-5a7f-4e3b-8c9d-6f1a2b3c4d5e"
		for path, item := range doc.Paths.Map() {
			answer := item.Post.Responses.Value("200").Value.Content["application/json"].Example
			check(t, c, strings.TrimPrefix(path, "/"), http.StatusOK, http.Header{"X-Request-Id": {id}}, answer)
		}
		for code, s := range doc.Components.Schemas {
			status, isError := s.Value.Extensions["x-status"].(float64)
			if !isError {
				continue
			}
			header := http.Header{"X-Request-Id": {id}}
			example := s.Value.Examples[0]
			body, _ := example.(map[string]any)
			details, _ := body["error"].(map[string]any)
			if wait, ok := details["retry_after"].(float64); ok {
				header.Set("Retry-After", strconv.Itoa(int(wait)))
			}
			if code == "METHOD_NOT_ALLOWED" {
				header.Set("Allow", http.MethodPost)
			}
			check(t, c, methodWith(doc, code), int(status), header, example)
		}
	})
	t.Run("UI-10 it says everything in both languages", func(t *testing.T) {
		t.Parallel()
		var raw map[string]any
		if err := json.Unmarshal(reference.Document(), &raw); err != nil {
			t.Fatal(err)
		}
		components, _ := raw["components"].(map[string]any)
		delete(components, "securitySchemes") // of no page
		for _, part := range []string{"paths", "webhooks", "components"} {
			bothLanguages(t, part, raw[part])
		}
	})
}

// methodWith is a method that may answer with the code.
func methodWith(doc *openapi3.T, code string) string {
	for path, item := range doc.Paths.Map() {
		for _, r := range item.Post.Responses.Map() {
			schema := r.Value.Content["application/json"].Schema
			if schema == nil {
				continue
			}
			for _, s := range append(schema.Value.OneOf, schema) {
				if strings.HasSuffix(s.Ref, "/"+code) {
					return strings.TrimPrefix(path, "/")
				}
			}
		}
	}
	return "nothing"
}

func check(t *testing.T, c *referencetest.Contract, method string, status int, header http.Header, answer any) {
	t.Helper()
	body, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	header.Set("Content-Type", "application/json; charset=utf-8")
	if err := c.Check(method, status, header, body, false); err != nil {
		t.Errorf("%s %d: %v\n%s", method, status, err, body)
	}
}

// bothLanguages fails the test for a text that has no Russian beside it.
func bothLanguages(t *testing.T, at string, v any) {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			if text, ok := inner.(string); ok && slices.Contains([]string{"description", "summary", "x-what-to-do", "x-when", "x-try-note"}, key) {
				name := key + "-ru"
				if !strings.HasPrefix(key, "x-") {
					name = "x-" + name
				}
				if russian, _ := v[name].(string); text == "" || russian == "" || !hasRussian(russian) {
					t.Errorf("%s.%s: got %q and %q, want it in both languages", at, key, text, russian)
				}
			}
			if key != "example" && key != "examples" {
				bothLanguages(t, at+"."+key, inner)
			}
		}
	case []any:
		for _, inner := range v {
			bothLanguages(t, at, inner)
		}
	}
}

func hasRussian(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r >= 'а' && r <= 'я' })
}

func TestCodes(t *testing.T) {
	t.Parallel()
	doc, err := load(t)
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]int{}
	for name, s := range doc.Components.Schemas {
		if status, ok := s.Value.Extensions["x-status"].(float64); ok {
			documented[name] = int(status)
		}
	}
	t.Run("UI-10 A-08 the document has the product's codes, with their statuses", func(t *testing.T) {
		t.Parallel()
		codes := codesOfA08(t)
		if len(codes) < 10 {
			t.Fatalf("got the codes %v, want those of A-08 found in the source", codes)
		}
		for _, code := range codes {
			if _, ok := documented[code]; !ok {
				t.Errorf("%s: got nothing in the document, want it", code)
			}
		}
		for code, status := range documented {
			if !slices.Contains(codes, code) {
				t.Errorf("%s: the product has no such code", code)
			}
			w := httptest.NewRecorder()
			web.RefuseJSON(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil), slog.New(slog.DiscardHandler), delivery.Refuse(delivery.Code(code), "x"))
			if w.Code != status {
				t.Errorf("%s: got %d in the document, want %d", code, status, w.Code)
			}
		}
	})
}

// source parses a file of the product.
func source(t *testing.T, path string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../"+path, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// codesOfA08 reads the constants under "The codes of A-08."
func codesOfA08(t *testing.T) (codes []string) {
	t.Helper()
	for _, d := range source(t, "delivery/errors.go").Decls {
		block, ok := d.(*ast.GenDecl)
		if !ok || block.Tok != token.CONST || !strings.Contains(block.Doc.Text(), "codes of A-08") {
			continue
		}
		for _, spec := range block.Specs {
			value, _ := spec.(*ast.ValueSpec)
			literal, _ := value.Values[0].(*ast.BasicLit)
			code, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			codes = append(codes, code)
		}
	}
	return codes
}

func TestMethods(t *testing.T) {
	t.Parallel()
	doc, err := load(t)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("UI-10 A-09 the document has the methods that are served", func(t *testing.T) {
		t.Parallel()
		var documented, served []string
		for path, item := range doc.Paths.Map() {
			documented = append(documented, strings.TrimPrefix(path, "/"))
			if "/"+item.Post.OperationID != path {
				t.Errorf("%s: got the operation %q, want the same name", path, item.Post.OperationID)
			}
		}
		ast.Inspect(source(t, "handlers/botapi/api.go"), func(n ast.Node) bool {
			list, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			if m, ok := list.Type.(*ast.MapType); ok {
				if v, ok := m.Value.(*ast.Ident); ok && v.Name == "method" {
					for _, e := range list.Elts {
						pair, _ := e.(*ast.KeyValueExpr)
						key, _ := pair.Key.(*ast.BasicLit)
						served = append(served, strings.Trim(key.Value, `"`))
					}
				}
			}
			return true
		})
		slices.Sort(documented)
		slices.Sort(served)
		if !slices.Equal(documented, served) || len(served) == 0 {
			t.Errorf("got %v in the document, want %v", documented, served)
		}
	})
	t.Run("UI-10 P-01 R-01 I-06 the ranges are those of the product", func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct {
			method, field string
			want          float64
			got           func(*openapi3.Schema) *float64
		}{
			{"getUpdates", "timeout", delivery.MaxPollTimeout, func(s *openapi3.Schema) *float64 { return s.Max }},
			{"getUpdates", "limit", delivery.MaxBatch, func(s *openapi3.Schema) *float64 { return s.Max }},
			{"getUpdates", "consumer_id", delivery.MaxConsumerID, longest},
			{"rejectUpdate", "reason", delivery.MaxReason, longest},
			{"sendMessage", "text", delivery.MaxText, longest},
			{"answerCallbackQuery", "callback_query_id", delivery.MaxCallbackID, longest},
		} {
			s := doc.Paths.Find("/" + c.method).Post.RequestBody.Value.Content["application/json"].Schema.Value.Properties[c.field]
			if got := c.got(s.Value); got == nil || *got != c.want {
				t.Errorf("%s.%s: got %v, want %v", c.method, c.field, got, c.want)
			}
		}
		limits := doc.Components.Schemas["DeliveryInfo"].Value.Properties["limits"].Value.Properties
		if limits["updates"].Value.Const != float64(delivery.MaxWaiting) || limits["bytes"].Value.Const != float64(delivery.MaxWaitingBytes) {
			t.Errorf("got the limits %v and %v, want those of Q-02", limits["updates"].Value.Const, limits["bytes"].Value.Const)
		}
	})
}

func longest(s *openapi3.Schema) *float64 {
	if s.MaxLength == nil {
		return nil
	}
	n := float64(*s.MaxLength)
	return &n
}
