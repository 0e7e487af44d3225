//go:build unix

package localpg

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
)

// keptLines is how much of a program's output goes into the error when it fails.
const keptLines = 20

// output takes what PostgreSQL's programs print: each line goes to the log, the last are kept.
type output struct {
	log     *slog.Logger
	program string

	mu   sync.Mutex
	part []byte
	last []string
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.part = append(o.part, b...)
	for {
		i := bytes.IndexByte(o.part, '\n')
		if i < 0 {
			return len(b), nil
		}
		o.line(string(o.part[:i]))
		o.part = o.part[i+1:]
	}
}

func (o *output) line(s string) {
	if strings.TrimSpace(s) == "" {
		return
	}
	o.last = append(o.last, s)
	if len(o.last) > keptLines {
		o.last = o.last[1:]
	}
	if strings.HasPrefix(s, "PANIC:") || strings.Contains(s, "was terminated by signal") {
		o.log.Warn("private PostgreSQL says", "program", o.program, "line", s)
		return
	}
	o.log.Debug("private PostgreSQL says", "program", o.program, "line", s)
}

// tail returns the last lines.
func (o *output) tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	lines := o.last
	if len(o.part) > 0 {
		lines = append(lines[:len(lines):len(lines)], string(o.part))
	}
	if len(lines) == 0 {
		return "(it printed nothing)"
	}
	return strings.Join(lines, "\n")
}
