package web

import "net/http"

// Right is what somebody must be allowed for a page or a deed.
type Right string

// The rights. Each of support's is had beside the right to look.
const (
	Anyone   Right = "anyone"
	SignedIn Right = "signed in" // whose it is, the page itself decides (UI-07)
	Look     Right = "look"      // support's pages
	Act      Right = "act"       // support's switches (UI-06)
	Unmask   Right = "unmask"    // one update's content, with a reason
)

// May tells whether the person has the right. Admins have every one.
func (p Person) May(right Right) bool {
	switch right {
	case Anyone, SignedIn:
		return true
	case Look:
		return p.Role == Support || p.Role == Admin
	case Act:
		return p.Role == Admin || p.Role == Support && p.MayAct
	case Unmask:
		return p.Role == Admin || p.Role == Support && p.MayUnmask
	}
	return false
}

// Require lets people with the right through. Who isn't signed in goes to the
// sign-in page. For who isn't of support there is no such page (UI-07); who is,
// and has other rights only, is told so with 403.
func (f *Front) Require(right Right, next http.Handler) http.Handler {
	if right == Anyone {
		return next
	}
	return f.RequirePerson(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch p := PersonOf(r); {
		case p.May(right):
			next.ServeHTTP(w, r)
		case p.May(Look):
			fail(w, r, http.StatusForbidden, "NO_RIGHT", "no_right")
		default:
			NotFound(w, r)
		}
	}))
}

// RequireRole is RequirePerson for people of one of the roles; for all others
// there is no such page (UI-07).
func (f *Front) RequireRole(next http.Handler, roles ...string) http.Handler {
	return f.RequirePerson(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := PersonOf(r)
		for _, role := range roles {
			if p.Role == role {
				next.ServeHTTP(w, r)
				return
			}
		}
		NotFound(w, r)
	}))
}

// AddressOf is where the request came from, as the audit log keeps it; "" outside
// of Browser.
func AddressOf(r *http.Request) string {
	front := readerOf(r.Context()).front
	if front == nil {
		return ""
	}
	return ClientAddress(r, front.proxies).String()
}
