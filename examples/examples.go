// Package examples holds complete programs for bot authors and cuts out of them
// the pieces that the product's pages show.
package examples

import (
	_ "embed"
	"fmt"
	"strings"
)

// Languages are the languages that Snippet knows, in the order to show them.
var Languages = []string{"python", "node", "go"}

//go:embed python/webhook_bot.py
var pythonFile string

//go:embed node/webhook_bot.mjs
var nodeFile string

//go:embed go/webhookbot/verify.go
var goFile string

// Snippet returns the code that checks a webhook's signature (K-07) in one of
// Languages. It is cut from the file that the example's tests run, and needs
// nothing else of that file. An error means that the language isn't one of them.
func Snippet(language string) (code string, err error) {
	file, ok := map[string]string{"python": pythonFile, "node": nodeFile, "go": goFile}[language]
	if !ok {
		return "", fmt.Errorf("there is no snippet for %q", language)
	}
	return cut(file)
}

// cut returns the lines between the line that says "snippet: verify" and the one
// that says "snippet end".
func cut(file string) (string, error) {
	var code strings.Builder
	inside, ended := false, false
	for line := range strings.Lines(file) {
		switch strings.TrimLeft(strings.TrimSpace(line), "#/ ") {
		case "snippet: verify":
			if inside || ended {
				return "", fmt.Errorf("the snippet begins twice")
			}
			inside = true
			continue
		case "snippet end":
			if !inside {
				return "", fmt.Errorf("the snippet ends before it begins")
			}
			inside, ended = false, true
			continue
		}
		if inside {
			code.WriteString(line)
		}
	}
	if !ended {
		return "", fmt.Errorf("the snippet isn't marked")
	}
	return strings.Trim(code.String(), "\n") + "\n", nil
}
