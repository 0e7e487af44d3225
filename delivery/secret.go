package delivery

import (
	"crypto/rand"
	"crypto/sha256"
	"log/slog"
	"strings"
)

// Secret is a token, a key or a password. It can't be printed, logged or
// encoded by accident; string(s) is the one way to its value.
type Secret string

const covered = "[secret]"

// String hides the value.
func (Secret) String() string { return covered }

// GoString hides the value from %#v.
func (Secret) GoString() string { return covered }

// MarshalText hides the value from encoders.
func (Secret) MarshalText() ([]byte, error) { return []byte(covered), nil }

// LogValue hides the value from slog.
func (Secret) LogValue() slog.Value { return slog.StringValue(covered) }

// Hash returns the SHA-256 by which a token or key is stored and looked up.
func (s Secret) Hash() []byte {
	sum := sha256.Sum256([]byte(s))
	return sum[:]
}

// The prefixes that tell what a secret is for.
const (
	BotTokenPrefix  = "sbt1_" // a bot's API token
	IntakeKeyPrefix = "sik1_" // the messenger's key (I-01)

	WebhookSecretPrefix = "swh1_" // signs a bot's webhook requests (W-07)
)

// minToken is shorter than any token with its prefix.
const minToken = 40

// NewSecret makes a secret of more than 192 random bits behind prefix.
func NewSecret(prefix string) Secret {
	return Secret(prefix + strings.ToLower(rand.Text()+rand.Text()))
}
