package web

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"mybots/delivery"
	"mybots/views/ui"
)

func TestTryPassword(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	checked := 0
	var outcome error
	var wait time.Duration
	r.mux.Handle("POST /try", r.front.RequirePerson(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var err error
		wait, err = r.front.TryPassword(req, password, func() error { checked++; return outcome })
		if !errors.Is(err, outcome) && wait == 0 {
			t.Errorf("got %v, want the check's own error", err)
		}
	})))
	r.signIn(r.client, "anna@example.org")
	try := func() { r.ask(r.client, http.MethodPost, "/try", nil) }
	outcome = delivery.ErrNotFound
	for range accountTries {
		if try(); wait != 0 {
			t.Fatalf("a wrong one: got %v to wait, want none", wait)
		}
	}
	asked := r.memory.asked
	if try(); wait != accountEvery || checked != accountTries || r.memory.asked != asked+1 {
		t.Errorf("one too many: got %v to wait, %d checks and a cost of %d, want %v, %d and 1", wait, checked, r.memory.asked-asked, accountEvery, accountTries)
	}
	if answer, _ := guess(r, "anna@example.org"); answer.StatusCode != http.StatusTooManyRequests {
		t.Errorf("signing in meanwhile: got %d, want 429", answer.StatusCode)
	}
	r.clock.advance(accountEvery)
	outcome = nil
	if try(); wait != 0 {
		t.Errorf("the right one later: got %v to wait, want none", wait)
	}
	outcome = delivery.ErrNotFound
	if try(); wait != 0 {
		t.Errorf("a wrong one after a success: got %v to wait, want none", wait)
	}
}

func TestRenew(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	broken := errors.New("broken")
	var fail error
	r.mux.Handle("POST /renew", r.front.RequirePerson(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		old := SessionHash(req)
		err := r.front.Renew(w, req, func(hash []byte) error {
			if fail != nil {
				return fail
			}
			if err := r.memory.DeleteSession(context.Background(), old); err != nil {
				return err
			}
			return r.memory.CreateSession(context.Background(), hash, PersonOf(req).ID, r.clock.Now())
		})
		if !errors.Is(err, fail) {
			t.Errorf("got %v, want %v", err, fail)
		}
		SetFlash(req, ui.Fine, "said afterwards")
		Answer(w, req, nil, "/bots")
	})))
	r.signIn(r.client, "anna@example.org")
	before := r.cookie(r.client)
	fail = broken
	if r.ask(r.client, http.MethodPost, "/renew", nil); r.cookie(r.client) != before {
		t.Error("when it can't be kept: got another cookie, want the one before")
	}
	fail = nil
	r.ask(r.client, http.MethodPost, "/renew", nil)
	if after := r.cookie(r.client); after == before || after == "" {
		t.Errorf("got the cookie %q, want a new one", after)
	}
	if answer, body := r.ask(r.client, http.MethodGet, "/bots", nil); answer.StatusCode != http.StatusOK || !strings.Contains(body, "said afterwards") {
		t.Errorf("the next page: got %d, want 200 with the flash", answer.StatusCode)
	}
	if answer, _ := r.ask(r.browser(), http.MethodGet, "/bots", nil, "Cookie: "+r.front.store.name+"="+before); answer.StatusCode != http.StatusSeeOther {
		t.Errorf("the old cookie: got %d, want 303 to the sign-in page", answer.StatusCode)
	}
}
