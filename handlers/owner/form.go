package owner

import (
	"net/url"

	"mybots/web"
)

// form is a posted form whose fields are looked at one by one.
type form struct{ url.Values }

// one is web.One of the form.
func (f form) one(field string, choices ...string) (string, bool) {
	return web.One(f.Values, field, choices...)
}
