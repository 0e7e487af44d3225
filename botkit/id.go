package botkit

import (
	"cmp"
	"strings"
)

// ID is an id, an offset or an epoch: a string of decimal digits. They pass
// 2^53, so they stay strings everywhere and are never turned into a float
// . "" is no id.
type ID string

// Compare compares two ids as numbers, whatever their length: -1 if a is less
// than b, 0 if they are the same number, 1 if a is more. No id is less than any.
func (a ID) Compare(b ID) int {
	if a == "" || b == "" {
		return cmp.Compare(len(a), len(b))
	}
	x, y := strings.TrimLeft(string(a), "0"), strings.TrimLeft(string(b), "0")
	if c := cmp.Compare(len(x), len(y)); c != 0 {
		return c
	}
	return strings.Compare(x, y)
}

// Valid tells whether the id is 1 to 20 decimal digits.
func (a ID) Valid() bool {
	return a != "" && len(a) <= 20 && strings.Trim(string(a), "0123456789") == ""
}
