package botkit_test

import (
	"os"
	"strings"
	"testing"
)

// The program in the README is the body of Example, which compiles.
func TestReadme(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, program, _ := strings.Cut(string(readme), "func main() {\n")
	program, _, found := strings.Cut(program, "\n}\n")
	_, example, _ := strings.Cut(string(source), "func Example() {\n")
	example, _, _ = strings.Cut(example, "\n}\n")
	if !found || program != example {
		t.Errorf("the README's program isn't Example's body: got\n%s\nwant\n%s", program, example)
	}
}
