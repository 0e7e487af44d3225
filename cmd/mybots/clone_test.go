package main

import (
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/prometheus/client_golang/prometheus"

	"mybots/migrations/dbtest"
)

// These tests keep what a reader of a fresh clone reads true: the tables of the
// documents are those of the program, and what they name exists.

// root is the repository's folder, seen from here.
const root = "../.."

func readDoc(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// documents are all documents but those of the examples.
func documents(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			names = append(names, strings.TrimPrefix(filepath.ToSlash(f), root+"/"))
		}
	}
	for _, want := range []string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs/architecture.md", "docs/operations.md"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is missing", want)
		}
	}
	return names
}

// table returns the lines of the table that begins with the head, without its
// first two.
func table(t *testing.T, text, head string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, head+"\n")
	if !ok {
		t.Fatalf("README.md has no table %q", head)
	}
	var rows strings.Builder
	for line := range strings.Lines(rest) {
		switch {
		case strings.HasPrefix(line, "| ---"):
		case strings.HasPrefix(line, "|"):
			rows.WriteString(line)
		default:
			return rows.String()
		}
	}
	return rows.String()
}

func rows(cells ...[]string) string {
	var b strings.Builder
	for _, row := range cells {
		for _, c := range row {
			b.WriteString(strings.TrimRight("| "+strings.ReplaceAll(c, "|", `\|`), " ") + " ")
		}
		b.WriteString("|\n")
	}
	return b.String()
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

func TestDocuments(t *testing.T) {
	t.Parallel()
	readme := readDoc(t, "README.md")
	t.Run("G-01 README has the settings", func(t *testing.T) {
		t.Parallel()
		var want [][]string
		for _, s := range settings() {
			want = append(want, []string{code(s.name), code(s.otherwise), s.help})
		}
		if got, want := table(t, readme, "| Setting | Default | Meaning |"), rows(want...); got != want {
			t.Errorf("README's settings: got\n%s\nwant\n%s", got, want)
		}
	})
	t.Run("G-01 README has the commands", func(t *testing.T) {
		t.Parallel()
		var want [][]string
		for _, c := range commands() {
			want = append(want, []string{code(c.name), c.help})
		}
		if got, want := table(t, readme, "| Command | What it does |"), rows(want...); got != want {
			t.Errorf("README's commands: got\n%s\nwant\n%s", got, want)
		}
	})
	t.Run("G-01 README has the roles", func(t *testing.T) {
		t.Parallel()
		got := regexp.MustCompile("(?m)^\\| `([a-z]+)`").FindAllStringSubmatch(table(t, readme, "| Role | What it serves |"), -1)
		var names []string
		for _, g := range got {
			names = append(names, g[1])
		}
		if !slices.Equal(names, allRoles) {
			t.Errorf("README's roles: got %v, want %v", names, allRoles)
		}
	})
	t.Run("G-07 README has the metrics", func(t *testing.T) {
		t.Parallel()
		all := metricsOf(t)
		if got, want := table(t, readme, "| Metric | What it says |"), rows(all...); got != want {
			t.Errorf("README's metrics: got\n%s\nwant\n%s", got, want)
		}
		for _, m := range metric.FindAllStringSubmatch(readDoc(t, "docs/operations.md"), -1) {
			if !slices.ContainsFunc(all, func(row []string) bool { return row[0] == code(m[1]) }) {
				t.Errorf("docs/operations.md names %s, which isn't there", m[0])
			}
		}
	})
	t.Run("the changelog tells about this release", func(t *testing.T) {
		t.Parallel()
		got := regexp.MustCompile(`(?m)^## \[([0-9.]+)\]`).FindStringSubmatch(readDoc(t, "CHANGELOG.md"))
		if got == nil || got[1] != release {
			t.Errorf("the first release in CHANGELOG.md: got %q, want %s", got, release)
		}
	})
}

// metricsOf are the product's own metrics with their words, by name.
func metricsOf(t *testing.T) [][]string {
	t.Helper()
	dsn := dbtest.URL(t)
	db, err := sqlx.Open("postgres", dsn)
	if err != nil {
		t.Fatal(err)
	}
	d := &database{DB: db, url: dsn, release: func() error { return nil }}
	c := config{secretKey: make([]byte, 32), baseURL: &url.URL{}}
	s, err := newServer(t.Context(), c, slog.New(slog.DiscardHandler), d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.queue.Close()
		if err := d.close(); err != nil {
			t.Error(err)
		}
	})
	s.httpServer(c.baseURL, allRoles)
	s.newWorker()
	s.newNoticeWorker()
	if _, err := s.listenAdmin(); err != nil {
		t.Fatal(err)
	}
	told := make(chan *prometheus.Desc)
	go func() { // ends when all are told
		defer close(told)
		s.registry.Describe(told)
	}()
	words := regexp.MustCompile(`^Desc\{fqName: "(mybots_[^"]+)", help: "([^"]+)"`)
	var list [][]string
	for d := range told {
		if m := words.FindStringSubmatch(d.String()); m != nil {
			list = append(list, []string{code(m[1]), m[2]})
		}
	}
	slices.SortFunc(list, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	return list
}

// What documents name: a link, a file in backticks, a make target, a command.
var (
	links   = regexp.MustCompile(`(?:\]\(|srcset="|src=")([^)"\s]+)`)
	filesIn = regexp.MustCompile("`((?:[a-zA-Z0-9_.-]+/)*[a-zA-Z0-9_.-]+\\.(?:go|sql|md|py|templ|toml|css|js|png)|(?:\\.ci|scripts|cmd|handlers|views|delivery|migrations|static|web|browsertest|examples|docs)(?:/[a-zA-Z0-9_.-]+)*/?)`")
	targets = regexp.MustCompile("(?m)(?:`|^)make ([a-z][a-z-]*)")
	typed   = regexp.MustCompile("bin/mybots ([a-z]+)( [a-z]+)?")
	metric  = regexp.MustCompile(`\b(mybots_[a-z_]+?)(?:_bucket|_sum|_count)?\b`)
	tests   = regexp.MustCompile("`(Test[A-Za-z0-9]+)`")
)

func TestDocumentsNameWhatExists(t *testing.T) {
	t.Parallel()
	makefile := readDoc(t, "Makefile")
	functions := testFunctions(t)
	for _, name := range documents(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := readDoc(t, name)
			exists := func(path string) bool {
				_, err := os.Stat(path)
				return err == nil
			}
			for _, m := range links.FindAllStringSubmatch(text, -1) {
				path, anchor, _ := strings.Cut(m[1], "#")
				to := filepath.Join(root, filepath.Dir(name), path)
				if path == "" {
					to = filepath.Join(root, name)
				}
				switch {
				case strings.Contains(m[1], "://"):
				case !exists(to):
					t.Errorf("the link %s leads nowhere", m[1])
				case anchor != "" && !hasHeading(t, to, anchor):
					t.Errorf("the link %s leads to no heading", m[1])
				}
			}
			for _, m := range filesIn.FindAllStringSubmatch(text, -1) {
				if !exists(filepath.Join(root, m[1])) && !exists(filepath.Join(root, filepath.Dir(name), m[1])) {
					t.Errorf("the file %s isn't there", m[1])
				}
			}
			for _, m := range targets.FindAllStringSubmatch(text, -1) {
				if !strings.Contains(makefile, "\n"+m[1]+":") {
					t.Errorf("there is no make %s", m[1])
				}
			}
			for _, m := range typed.FindAllStringSubmatch(text, -1) {
				if !slices.ContainsFunc(commands(), func(c command) bool { return c.name == m[1] || c.name == m[1]+m[2] }) {
					t.Errorf("there is no command %q", m[0])
				}
			}
			for _, m := range tests.FindAllStringSubmatch(text, -1) {
				if !functions[m[1]] {
					t.Errorf("there is no test %s", m[1])
				}
			}
		})
	}
}

// hasHeading tells whether a document has the heading that an anchor names.
func hasHeading(t *testing.T, path, anchor string) bool {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		heading := strings.TrimLeft(line, "#")
		if heading == line {
			continue
		}
		slug := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
		if strings.ReplaceAll(slug, " ", "-") == anchor {
			return true
		}
	}
	return false
}

// testFunctions are the names of all test functions.
func testFunctions(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	name := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "data" || d.Name() == ".git"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		for _, m := range name.FindAllStringSubmatch(string(text), -1) {
			names[m[1]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
