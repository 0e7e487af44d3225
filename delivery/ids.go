package delivery

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxCallbackID is how long a callback query's id may be, in bytes.
const MaxCallbackID = 255

// ParseID reads an id, offset or epoch: decimal digits without sign or leading
// zero, up to 2^63-1.
func ParseID(s string) (int64, bool) {
	if s == "" || len(s) > MaxIDDigits || len(s) > 1 && s[0] == '0' {
		return 0, false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// Storable tells whether a text can be kept: valid UTF-8 without NUL.
func Storable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsRune(s, 0)
}

// HasControl tells whether a text holds a control character.
func HasControl(s string) bool { return strings.ContainsFunc(s, unicode.IsControl) }

// ValidConsumerID tells whether s may name a receiver (P-01). A token by mistake
// is no name: names are kept, logged and shown, tokens never.
func ValidConsumerID(s string) bool {
	if s == "" || len(s) > MaxConsumerID || strings.HasPrefix(s, BotTokenPrefix) && len(s) >= minToken {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}
