package examples

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// drivers run a snippet, and nothing else of its file, through the vectors: each
// prints a line "true" or "false" for each case.
var drivers = map[string]struct {
	needs string // in the snippet
	start func(t *testing.T, folder, snippet, vectors string) *exec.Cmd
}{
	"python": {"def verify_signature(", func(t *testing.T, folder, snippet, vectors string) *exec.Cmd {
		file := filepath.Join(folder, "try.py")
		writeFile(t, file, snippet+`
import json, sys
for c in json.load(open(sys.argv[1], encoding="utf-8"))["cases"]:
    valid = verify_signature(c["secret"].encode(), c["header"], c["body"].encode(), c["now"])
    print(str(valid).lower())
`)
		return exec.Command(tool(t, "python3"), file, vectors)
	}},
	"node": {"export function verifySignature(", func(t *testing.T, folder, snippet, vectors string) *exec.Cmd {
		file := filepath.Join(folder, "try.mjs")
		writeFile(t, file, snippet+`
import { readFileSync } from 'node:fs';
for (const c of JSON.parse(readFileSync(process.argv[2])).cases) {
  console.log(verifySignature(c.secret, c.header, Buffer.from(c.body), c.now));
}
`)
		return exec.Command(tool(t, "node"), file, vectors)
	}},
	"go": {"func VerifySignature(", func(t *testing.T, folder, snippet, vectors string) *exec.Cmd {
		writeFile(t, filepath.Join(folder, "go.mod"), "module try\n\ngo 1.24\n")
		writeFile(t, filepath.Join(folder, "verify.go"), "package main\n\n"+snippet)
		writeFile(t, filepath.Join(folder, "main.go"), `package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

func main() {
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	var v struct {
		Cases []struct {
			Secret, Header, Body string
			Now                  int64
		}
	}
	if err := json.Unmarshal(text, &v); err != nil {
		panic(err)
	}
	for _, c := range v.Cases {
		fmt.Println(VerifySignature([]byte(c.Secret), c.Header, []byte(c.Body), time.Unix(c.Now, 0)))
	}
}
`)
		cmd := exec.Command(tool(t, "go"), "run", ".", vectors)
		cmd.Dir = folder
		return cmd
	}},
}

func TestSnippets(t *testing.T) {
	t.Parallel()
	path, err := filepath.Abs("testdata/signature.json")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	for _, language := range Languages {
		t.Run("K-07 "+language, func(t *testing.T) {
			t.Parallel()
			snippet, err := Snippet("verify", language)
			if err != nil {
				t.Fatal(err)
			}
			d := drivers[language]
			if !strings.Contains(snippet, d.needs) || strings.Contains(snippet, "snippet") {
				t.Errorf("got a snippet without %q, or with its marks:\n%s", d.needs, snippet)
			}
			cmd := d.start(t, t.TempDir(), snippet, path)
			cmd.Stderr = t.Output()
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("the snippet by itself: %v", err)
			}
			got := strings.Fields(string(out))
			if len(got) != len(v.Cases) {
				t.Fatalf("got %d lines, want %d", len(got), len(v.Cases))
			}
			for i, c := range v.Cases {
				if want := fmt.Sprint(c.Valid); got[i] != want {
					t.Errorf("%s: got %s, want %s", c.Name, got[i], want)
				}
			}
		})
	}
	t.Run("another language", func(t *testing.T) {
		t.Parallel()
		for _, c := range [][2]string{{"verify", "cobol"}, {"", "python"}, {"inbox", "go"}} {
			if code, err := Snippet(c[0], c[1]); err == nil {
				t.Errorf("%v: got %q, want an error", c, code)
			}
		}
	})
}

// Every snippet is there in each language that it names, and shows what it says.
func TestEverySnippet(t *testing.T) {
	t.Parallel()
	shows := map[string]string{"verify": "v1", "receive": "offset", "confirm": "confirmed_offset", "errors": "CONSUMER_CONFLICT", "send": "reply", "inbox": "offset"}
	for name, languages := range places {
		for language := range languages {
			t.Run("UI-10 "+name+" "+language, func(t *testing.T) {
				t.Parallel()
				code, err := Snippet(name, language)
				if err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(code, shows[name]) || shows[name] == "" || strings.HasPrefix(code, " ") || strings.Contains(code, "snippet") || strings.Count(code, "\n") > 45 {
					t.Errorf("got a piece without %q, or indented, marked or too long:\n%s", shows[name], code)
				}
			})
		}
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		file, want string // "": an error
	}{
		"marked":        {"a\n# snippet: verify\n\n  b\nc\n\n  # snippet end\nd\n", "  b\nc\n"},
		"other comment": {"// snippet: verify\nb\n// snippet end", "b\n"},
		"not marked":    {"a\n", ""},
		"no end":        {"# snippet: verify\na\n", ""},
		"no beginning":  {"a\n# snippet end\n", ""},
		"indented":      {"  # snippet: verify\n  a\n\n    b\n  # snippet end\n", "a\n\n  b\n"},
		"others beside": {"# snippet: x\n1\n# snippet end\n# snippet: verify\na\n# snippet end\n# snippet: y\n2\n# snippet end\n", "a\n"},
		"one inside":    {"# snippet: verify\na\n# snippet: x\nb\n# snippet end\n", ""},
		"twice":         {"# snippet: verify\na\n# snippet end\n# snippet: verify\nb\n# snippet end\n", ""},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := cut(c.file, "verify")
			if got != c.want || (err == nil) != (c.want != "") {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// tool finds a program; without it the test fails with the line that brings it.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is missing; this brings it: %s", name, map[string]string{
			"python3": "apt-get install -y --no-install-recommends python3",
			"node":    "apt-get install -y --no-install-recommends nodejs",
			"go":      "see https://go.dev/doc/install",
		}[name])
	}
	return path
}
