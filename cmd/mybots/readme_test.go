package main_test

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
)

// example is one line of README's section "The API", with its answer.
type example struct {
	method  string // "" for intake
	headers []string
	body    string
	want    string
}

var (
	apiLine   = regexp.MustCompile(`^call (\w+)(?: -H '([^']+)')?(?: -d '(.+)')?$`)
	eventLine = regexp.MustCompile(`^curl .*/internal/v1/events" .* -d '(.+)'$`)
)

// examples reads the section's block.
func examples(t *testing.T) []example {
	t.Helper()
	_, section, ok := strings.Cut(readText(t, "README.md"), "\n## The API\n")
	_, block, ok2 := strings.Cut(section, "```sh\n")
	block, _, ok3 := strings.Cut(block, "```")
	if !ok || !ok2 || !ok3 {
		t.Fatal("README has no examples of the API")
	}
	var list []example
	for line := range strings.Lines(block) {
		line = strings.TrimSuffix(line, "\n")
		if answer, ok := strings.CutPrefix(line, "# "); ok {
			list[len(list)-1].want = answer
		} else if m := eventLine.FindStringSubmatch(line); m != nil {
			list = append(list, example{body: m[1]})
		} else if m := apiLine.FindStringSubmatch(line); m != nil {
			e := example{method: m[1], body: m[3]}
			if m[2] != "" {
				e.headers = []string{m[2]}
			}
			list = append(list, e)
		}
	}
	return list
}

func readText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What is new in every run: moments of the answer, request ids, how long to wait.
var fresh = regexp.MustCompile(`("expires_at":|"request_id":|"is_bot":true\},"date":)"[^"]*"|("retry_after":)[0-9]+`)

func stale(answer string) string { return fresh.ReplaceAllString(answer, "$1$2…") }

func TestExamplesOfReadme(t *testing.T) {
	t.Parallel()
	t.Run("A-01 I-01 P-10 README's calls have README's answers", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		s := w.serve(t)
		made := w.operate(t, "", "bot", "add", "--space", w.space, "--owner", ownerMail, "--username", "demo_echo_bot", "--name", "Echo", "--json")
		w.secret(made["token"])
		list := examples(t)
		if len(list) < 6 {
			t.Fatalf("got %d examples, want at least 6", len(list))
		}
		for _, e := range list {
			path, token := "/bot-api/v1/"+e.method, made["token"]
			if e.method == "" {
				path, token = "/internal/v1/events", w.key
			}
			a, err := s.send(s.request(http.MethodPost, path, token, e.body, e.headers...))
			if err != nil {
				t.Fatalf("%s %s: %v", path, e.body, err)
			}
			if got, want := stale(strings.TrimSpace(string(a.body))), stale(e.want); got != want {
				t.Errorf("%s %s: got\n%s\nwant\n%s", path, e.body, a.body, e.want)
			}
		}
	})
}

// TestAfterRestore runs the statement that docs/operations.md gives for after a
// restore, on a queue of which some is confirmed, some issued and some waits.
func TestAfterRestore(t *testing.T) {
	t.Parallel()
	t.Run("P-07 P-13 U-02 no id twice, one skipped range, no offset from before confirms", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		s := w.serve(t)
		b, empty := w.bot(t), w.bot(t)
		s.write(t, some(b, 3)...)
		s.poll(t, b, `{"consumer_id":"me","timeout":0,"limit":2}`)
		s.poll(t, b, `{"consumer_id":"me","epoch":"1","offset":"2","timeout":0,"limit":1}`)

		_, statement, ok := strings.Cut(readText(t, "docs/operations.md"), "-- after a restore\n")
		statement, _, closed := strings.Cut(statement, "```")
		if !ok || !closed {
			t.Fatal("docs/operations.md has no statement for after a restore")
		}
		w.db(t).MustExec(statement)

		s.write(t, some(b, 1)...)
		s.write(t, some(empty, 1)...)
		for _, step := range []struct {
			bot        *bot
			body, want string
		}{
			{b, `{"consumer_id":"me","epoch":"1","offset":"3","timeout":0,"limit":2}`, "2 3 | | 2..4"},
			{b, `{"consumer_id":"me","epoch":"1000002","offset":"4","timeout":0}`, "1000004 | 4-1000003 cancelled | 4..1000005"},
			{b, `{"consumer_id":"me","epoch":"1000002","offset":"1000005","timeout":0}`, "| | 1000005..1000005"},
			{empty, `{"consumer_id":"me","epoch":"1","offset":"1","timeout":0}`, "1000001 | 1-1000000 cancelled | 1..1000002"},
		} {
			if got := s.poll(t, step.bot, step.body).outline(); got != step.want {
				t.Errorf("%s: got %q, want %q", step.body, got, step.want)
			}
		}
	})
}
