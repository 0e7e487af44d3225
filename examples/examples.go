// Package examples holds complete programs for bot authors and cuts out of them
// the pieces that the product's pages show.
package examples

import (
	"embed"
	"fmt"
	"strings"
)

// Languages are the languages that Snippet knows, in the order to show them.
var Languages = []string{"python", "node", "go"}

//go:embed python/smeet.py python/long_poll.py python/bot_logic.py python/inbox.py python/webhook_bot.py
//go:embed node/smeet.mjs node/long_poll.mjs node/bot_logic.mjs node/inbox.mjs node/webhook_bot.mjs
//go:embed go/webhookbot/verify.go
var files embed.FS

// places are the files in which a snippet stands, by its name and language.
var places = map[string]map[string]string{
	"verify":  {"python": "python/webhook_bot.py", "node": "node/webhook_bot.mjs", "go": "go/webhookbot/verify.go"},
	"receive": {"python": "python/long_poll.py", "node": "node/long_poll.mjs"},
	"confirm": {"python": "python/long_poll.py", "node": "node/long_poll.mjs"},
	"errors":  {"python": "python/long_poll.py", "node": "node/long_poll.mjs"},
	"send":    {"python": "python/bot_logic.py", "node": "node/bot_logic.mjs"},
	"inbox":   {"python": "python/inbox.py", "node": "node/inbox.mjs"},
}

// Snippet returns a piece of an example in one of Languages. It is cut from the
// file that the example's tests run. The names: verify, which checks a webhook's
// signature (K-07) and needs nothing else of its file; receive, one step of long
// polling; confirm, the last call before a program ends; errors, what follows
// from each error of getUpdates; inbox, updates and place stored together; send,
// a message with its key. An error means that there is no such piece in that
// language.
func Snippet(name, language string) (code string, err error) {
	place, ok := places[name][language]
	if !ok {
		return "", fmt.Errorf("there is no snippet %q for %q", name, language)
	}
	file, err := files.ReadFile(place)
	if err != nil {
		return "", fmt.Errorf("the snippet %q: %w", name, err)
	}
	code, err = cut(string(file), name)
	if err != nil {
		return "", fmt.Errorf("%s: %w", place, err)
	}
	return code, nil
}

// cut returns the lines between the line that says "snippet: name" and the next
// one that says "snippet end", without the indent that all of them share.
func cut(file, name string) (string, error) {
	var lines []string
	inside, ended := false, false
	for line := range strings.Lines(file) {
		switch mark := strings.TrimLeft(strings.TrimSpace(line), "#/ "); {
		case mark == "snippet: "+name:
			if inside || ended {
				return "", fmt.Errorf("the snippet %s begins twice", name)
			}
			inside = true
		case strings.HasPrefix(mark, "snippet: ") && inside:
			return "", fmt.Errorf("the snippet %s doesn't end before the next", name)
		case mark == "snippet end":
			ended = ended || inside
			inside = false
		case inside:
			lines = append(lines, line)
		}
	}
	if !ended {
		return "", fmt.Errorf("the snippet %s isn't marked", name)
	}
	return strings.Trim(strings.Join(outdent(lines), ""), "\n") + "\n", nil
}

// outdent takes away the indent that all lines with something in them share.
func outdent(lines []string) []string {
	shared := -1
	for _, line := range lines {
		if text := strings.TrimLeft(line, " \t"); strings.TrimSpace(text) != "" {
			if indent := len(line) - len(text); shared < 0 || indent < shared {
				shared = indent
			}
		}
	}
	for i, line := range lines {
		lines[i] = line[min(max(shared, 0), len(line)-len(strings.TrimLeft(line, " \t"))):]
	}
	return lines
}
