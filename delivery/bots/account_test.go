package bots_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"mybots/delivery"
	"mybots/delivery/bots"
)

// blocked waits until a statement of the test's database waits for a lock.
func (r *rig) blocked() {
	r.t.Helper()
	for end := time.Now().Add(10 * time.Second); ; {
		var n int
		if err := r.db.GetContext(r.t.Context(), &n, `
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`); err != nil {
			r.t.Fatal(err)
		}
		if n > 0 {
			return
		}
		if time.Now().After(end) {
			r.t.Fatal("nothing waits for a lock after ten seconds")
		}
	}
}

func TestAPasswordThatWasChangedMeanwhile(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := t.Context()
	const old, other, mine = "correct horse", "what the operator set", "what the person wanted"
	if err := r.CreateSession(ctx, []byte("a session"), r.owner, r.clock.Now()); err != nil {
		t.Fatal(err)
	}
	// Another change is under way: it has the row, and hasn't committed.
	hash := r.hashOf(other)
	tx := r.db.MustBegin()
	tx.MustExec(`UPDATE people SET password_hash = $2 WHERE user_id = $1`, r.owner, hash)
	done := make(chan error, 1)
	go func() { // ends with the change, which waits for the row
		done <- r.ChangePassword(ctx, bots.Actor{UserID: r.owner}, bots.PasswordChange{Old: old, New: mine, Session: []byte("another")})
	}()
	r.blocked()
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, delivery.ErrStale) {
		t.Errorf("the change that came second: got %v, want ErrStale", err)
	}
	if _, err := r.SignIn(ctx, "anna@example.com", other); err != nil {
		t.Errorf("the first change's password: got %v, want it to be right", err)
	}
	if _, err := r.Session(ctx, []byte("another")); !errors.Is(err, delivery.ErrNotFound) {
		t.Errorf("the session of the second: got %v, want none", err)
	}
	if _, err := r.Session(ctx, []byte("a session")); err != nil {
		t.Errorf("the session there was: got %v, want it still", err)
	}
}

// hashOf returns the hash of a password, as it is kept.
func (r *rig) hashOf(password delivery.Secret) string {
	r.t.Helper()
	id := r.person("hash@example.com", password)
	var hash string
	if err := r.db.GetContext(r.t.Context(), &hash, `SELECT password_hash FROM people WHERE user_id = $1`, id); err != nil {
		r.t.Fatal(err)
	}
	return hash
}

func TestChangePasswordRules(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	by := bots.Actor{UserID: r.owner}
	for name, c := range map[string]struct {
		change bots.PasswordChange
		want   error
	}{
		"9 bytes":                  {bots.PasswordChange{Old: "correct horse", New: "123456789"}, delivery.ErrInvalid},
		"257 bytes":                {bots.PasswordChange{Old: "correct horse", New: delivery.Secret(fmt.Sprintf("%0257d", 0))}, delivery.ErrInvalid},
		"an old one of 257 bytes":  {bots.PasswordChange{Old: delivery.Secret(fmt.Sprintf("%0257d", 0)), New: "1234567890"}, delivery.ErrNotFound},
		"a wrong old one":          {bots.PasswordChange{Old: "wrong horse", New: "1234567890"}, delivery.ErrNotFound},
		"no session to go on with": {bots.PasswordChange{Old: "correct horse", New: "1234567890"}, errAny},
	} {
		err := r.ChangePassword(t.Context(), by, c.change)
		if c.want == errAny && err == nil || c.want != errAny && !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
		if _, err := r.SignIn(t.Context(), "anna@example.com", "correct horse"); err != nil {
			t.Errorf("%s: the old password: got %v, want it to be right still", name, err)
		}
	}
	if err := r.SetZone(t.Context(), by, "Europe/Moscow"); !errors.Is(err, delivery.ErrInvalid) {
		t.Errorf("a zone that isn't one of the two: got %v, want ErrInvalid", err)
	}
	if err := r.SetZone(t.Context(), bots.Actor{UserID: 1 << 40}, bots.ZoneUTC); !errors.Is(err, delivery.ErrNotFound) {
		t.Errorf("nobody's zone: got %v, want ErrNotFound", err)
	}
}

var errAny = errors.New("any error")
