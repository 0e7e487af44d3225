package web

import "net/http"

// SessionHash returns the hash by which the reader's session is kept, for what
// belongs to one session alone. It is nil for who isn't signed in.
func SessionHash(r *http.Request) []byte {
	session := readerOf(r.Context()).session
	if session == nil {
		return nil
	}
	hash, ok := hashOf(session.ID)
	if !ok {
		return nil
	}
	return hash
}
