package botkit

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strings"
)

// Secret is an API token or a webhook secret. However it is printed, logged or
// encoded, it shows as "secret"; string(s) is the text itself.
type Secret string

// String returns "secret".
func (Secret) String() string { return "secret" }

// GoString returns "secret".
func (Secret) GoString() string { return "secret" }

// Format writes "secret", whatever the verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("secret")) }

// MarshalText returns "secret".
func (Secret) MarshalText() ([]byte, error) { return []byte("secret"), nil }

// LogValue returns "secret".
func (Secret) LogValue() slog.Value { return slog.StringValue("secret") }

// ActionKey returns the Idempotency-Key of one action on one event, for example
// ActionKey(u.EventID, "reply"). It is the same after a repeat, a restart and an
// owner's replay, so that the action happens once. What doesn't fit a key (more
// than 255 characters, or others than visible ASCII) is hashed.
func ActionKey(eventID, action string, more ...string) string {
	key := strings.Join(append([]string{eventID, action}, more...), ":")
	if len(key) <= 255 && visible(key) {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// visible tells whether s is one or more visible ASCII characters.
func visible(s string) bool {
	for _, c := range []byte(s) {
		if c < '!' || c > '~' {
			return false
		}
	}
	return s != ""
}
