package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gorilla/sessions"
)

// What people do with their own sign-in asks these of the entrance.

// TryPassword runs check, which finds out whether the reader knows their own
// password. It counts as an attempt to sign in: after too many of them check
// isn't run, the answer costs what one does, and wait is how long until the next
// attempt. check's error comes back as it is; nil is a success.
func (f *Front) TryPassword(r *http.Request, password string, check func() error) (wait time.Duration, err error) {
	email, from := strings.ToLower(PersonOf(r).Email), ClientAddress(r, f.proxies)
	if wait := f.throttle.try(email, from); wait > 0 {
		_, _ = f.accounts.SignIn(r.Context(), "", password[:min(len(password), maxPassword)]) // for its cost alone
		return wait, nil
	}
	if err := check(); err != nil {
		return 0, err
	}
	f.throttle.succeed(email, from)
	return 0, nil
}

// Renew lets the reader go on under a new session id: keep stores a session
// under its hash. The cookie changes only if that went well; what SetFlash keeps
// then belongs to the new session. Ending the old one is keep's matter.
func (f *Front) Renew(w http.ResponseWriter, r *http.Request, keep func(idHash []byte) error) error {
	id := newID()
	hash, _ := hashOf(id)
	if err := keep(hash); err != nil {
		return err
	}
	session := f.store.fresh()
	session.ID, session.IsNew = id, false
	readerOf(r.Context()).session = session
	http.SetCookie(w, sessions.NewCookie(session.Name(), id, session.Options))
	return nil
}

// EndSession ends the reader's session and takes its cookie away.
func (f *Front) EndSession(w http.ResponseWriter, r *http.Request) error {
	session := readerOf(r.Context()).session
	if session == nil {
		return nil
	}
	if err := f.store.end(w, r, session); err != nil {
		return fmt.Errorf("sign out: %w", err)
	}
	return nil
}

// SignedOutURL is the sign-in page that says that all sessions have ended.
const SignedOutURL = "/login?signed-out=everywhere"

func signedOutEverywhere(query url.Values) bool { return query.Get("signed-out") == "everywhere" }

// OpenSince tells which sessions are open at now: those that began after begun
// and were seen after seen.
func OpenSince(now time.Time) (begun, seen time.Time) {
	return now.Add(-sessionLife), now.Add(-sessionIdle)
}
