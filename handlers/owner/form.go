package owner

import "net/url"

// form is a posted form whose fields are looked at one by one.
type form struct{ url.Values }

// one returns the field's value if it is one of the choices, else false. A
// field that comes twice says nothing.
func (f form) one(field string, choices ...string) (string, bool) {
	values := f.Values[field]
	if len(values) != 1 {
		return "", false
	}
	for _, c := range choices {
		if values[0] == c {
			return c, true
		}
	}
	return "", false
}
