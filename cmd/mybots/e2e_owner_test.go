package main_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

// owner is a browser in which the world's owner has signed in.
type owner struct {
	s      *server
	client *http.Client
}

// signIn signs the owner in, by the form of UI-11.
func (s *server) signIn(t testing.TB) *owner {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	o := &owner{s: s, client: &http.Client{Jar: jar, Transport: s.client.Transport, CheckRedirect: s.client.CheckRedirect}}
	if status, _, _ := o.post(t, "/login", url.Values{"email": {ownerMail}, "password": {ownerPass}}); status != http.StatusSeeOther {
		t.Fatalf("sign in: got %d, want 303", status)
	}
	return o
}

// post sends a form as a browser does.
func (o *owner) post(t testing.TB, path string, form url.Values) (status int, location, body string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, o.s.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", o.s.base)
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	return o.do(t, req)
}

func (o *owner) get(t testing.TB, path string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, o.s.base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	status, _, body = o.do(t, req)
	return status, body
}

func (o *owner) do(t testing.TB, req *http.Request) (status int, location, body string) {
	t.Helper()
	resp, err := o.client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", req.Method, req.URL.Path, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", req.Method, req.URL.Path, err)
	}
	return resp.StatusCode, resp.Header.Get("Location"), string(b)
}

// act posts what must succeed: the answer leads to a page.
func (o *owner) act(t testing.TB, b *bot, what string, fields ...string) (location string) {
	t.Helper()
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	status, location, body := o.post(t, "/bots/"+b.id+"/"+what, form)
	if status != http.StatusSeeOther {
		t.Fatalf("POST %s %v: got %d, want 303: %.300s", what, form, status, body)
	}
	return location
}

var versionField = regexp.MustCompile(`name="version"[^>]*value="(\d+)"|value="(\d+)"[^>]*name="version"`)

// version is that of the settings, as the Connection screen shows it.
func (o *owner) version(t testing.TB, b *bot) string {
	t.Helper()
	_, body := o.get(t, "/bots/"+b.id+"/connection")
	m := versionField.FindStringSubmatch(body)
	if m == nil {
		t.Fatalf("the Connection screen shows no version: %.500s", body)
	}
	return m[1] + m[2]
}

// save saves long polling, with what shall become of the waiting updates.
func (o *owner) save(t testing.TB, b *bot, pending string) {
	t.Helper()
	o.act(t, b, "connection", "mode", "polling", "pending", pending, "version", o.version(t, b))
}

func TestOwner(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testClock)
	s, other := w.serve(t), w.serve(t)
	o := s.signIn(t)
	// held adds a bot of whose n updates all were handed to consumer a.
	held := func(t *testing.T, n int) (*bot, string) {
		t.Helper()
		b := w.bot(t)
		s.write(t, some(b, n)...)
		return b, s.poll(t, b, at("a", "", "", now)).Lease.Epoch
	}
	takes := map[string]func(*testing.T, *bot){
		"a reset":               func(t *testing.T, b *bot) { o.act(t, b, "connection/reset") },
		"a save that keeps":     func(t *testing.T, b *bot) { o.save(t, b, "keep") },
		"an emergency reset":    func(t *testing.T, b *bot) { b.token = o.emergency(t, b) },
		"a save that drops all": func(t *testing.T, b *bot) { o.save(t, b, "drop") },
	}

	for name, take := range takes {
		t.Run("P-08 M-06 "+name+" ends the waiting poll with a conflict, in every replica", func(t *testing.T) {
			for _, poller := range []*server{s, other} {
				b, epoch := held(t, 1)
				done := poller.waiting(t, b, at("a", epoch, "2", `,"timeout":25`))
				take(t, b)
				e := receive(t, 3*time.Second, "the poll ends", done)
				if e.err != nil || e.code != "CONSUMER_CONFLICT" || e.retry != 1 {
					t.Errorf("got %q, retry_after %d, %v, want CONSUMER_CONFLICT and 1", e.code, e.retry, e.err)
				}
				// Anybody gets the lease now; the old epoch is foreign.
				if got := poller.poll(t, b, at("b", epoch, "2", now)); got.Lease.ConsumerID != "b" || got.Lease.Epoch == epoch || got.ConfirmedOffset != "2" {
					t.Errorf("got %s with %+v", got.outline(), got.Lease)
				}
			}
		})
		t.Run("P-08 P-07 after "+name+" the old epoch confirms nothing", func(t *testing.T) {
			for _, expired := range []bool{false, true} {
				b, epoch := held(t, 2)
				if expired {
					s.advance(t, 61*time.Second)
					other.follows(t)
				}
				take(t, b)
				want := "1 2 | | 1..3"
				if name == "a save that drops all" {
					want = "| 1-2 cancelled | 1..3"
				}
				got := s.poll(t, b, at("a", epoch, "3", now))
				if got.outline() != want || got.Lease.Epoch == epoch {
					t.Errorf("lease expired %v: got %s in epoch %s, want %s in a new one", expired, got.outline(), got.Lease.Epoch, want)
				}
			}
		})
	}
	t.Run("M-02 M-01 DROP cancels what waits, FAILED stays, KEEP keeps", func(t *testing.T) {
		b, epoch := held(t, 5)
		s.reject(t, b, "2", "a", epoch)
		s.poll(t, b, at("a", epoch, "2", now))
		o.save(t, b, "keep")
		if i := s.info(t, b); i.Pending != 3 || i.Failed != 1 {
			t.Errorf("after KEEP: got %+v", i)
		}
		o.save(t, b, "drop")
		s.write(t, event{bot: b})
		if i := s.info(t, b); i.Pending != 1 || i.Failed != 1 || i.PendingBytes != int64(len(`{"text":"hello"}`)) {
			t.Errorf("after DROP: got %+v", i)
		}
		if got := s.poll(t, b, at("a", "", "", now)); got.outline() != "6 | 2-2 failed 3-5 cancelled | 2..7" {
			t.Errorf("got %s", got.outline())
		}
	})
	t.Run("M-05 a save from old settings is refused and changes nothing", func(t *testing.T) {
		b, _ := held(t, 2)
		old := o.version(t, b)
		o.save(t, b, "keep")
		status, _, body := o.post(t, "/bots/"+b.id+"/connection", url.Values{"mode": {"polling"}, "pending": {"drop"}, "version": {old}})
		if status != http.StatusConflict || !strings.Contains(body, `id="error"`) {
			t.Errorf("got %d, want 409 with the error", status)
		}
		if i := s.info(t, b); i.Pending != 2 {
			t.Errorf("got %d pending, want 2: nothing changed", i.Pending)
		}
	})
	t.Run("M-06 an emergency reset revokes the token and shows a new one once", func(t *testing.T) {
		b, _ := held(t, 2)
		old := b.token
		b.token = o.emergency(t, b)
		if b.token == old {
			t.Fatal("the token is the old one")
		}
		for _, r := range []*server{s, other} {
			r.refused(t, "UNAUTHORIZED", &bot{w: w, token: old}, "getMe", "{}")
			r.ok(t, b, "getMe", "{}")
		}
		if _, body := o.get(t, "/bots/"+b.id+"/token"); strings.Contains(body, b.token) {
			t.Error("the page shows the token twice")
		}
		if got := s.poll(t, b, at("b", "", "", now)); got.outline() != "1 2 | | 1..3" {
			t.Errorf("got %s: the queue stays", got.outline())
		}
	})
}

var tokenShown = regexp.MustCompile(`sbt1_[a-z2-7]{20,}`)

// emergency does an emergency reset and reads the new token from its one page.
func (o *owner) emergency(t testing.TB, b *bot) (token string) {
	t.Helper()
	location := o.act(t, b, "connection/emergency-reset")
	_, body := o.get(t, location)
	if !strings.Contains(body, `id="token"`) {
		t.Fatalf("the page shows no token: %.300s", body)
	}
	token = tokenShown.FindString(body)
	o.s.w.secret(token)
	return token
}
