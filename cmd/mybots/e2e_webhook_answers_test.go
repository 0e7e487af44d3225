package main_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// answerRow is a row of the table in W-09.
type answerRow struct {
	does   script
	before func(*hooked) // the event is written
	stands string        // after two events, the endpoint being well again
	failed string        // the one row of the Failed page
	wait   time.Duration // until the next attempt, 0 for none
	says   string        // in last_error.message
}

func TestWebhookAnswers(t *testing.T) {
	t.Parallel()
	w, e := newHookWorld(t)
	s := w.serve(t)
	o := s.signIn(t)
	elsewhere := e.sink()
	leads := func(addresses ...string) func(*hooked) {
		return func(h *hooked) { e.names.lead(h.host, addresses...) }
	}
	shows := func(c tls.Certificate) func(*hooked) { return func(h *hooked) { e.present(h.sink, c) } }
	later := func(h *hooked) { // the product's time, in a minute
		h.queue(says(429, "Retry-After: "+w.now().Add(time.Minute).UTC().Format(http.TimeFormat)))
	}
	const confirmed = "active, 0 waiting, 0 failed, at 3"
	good := time.Now().Add(time.Hour)

	rows := map[string]answerRow{
		"no address is allowed":      {before: leads("10.1.2.3", "169.254.169.254"), stands: "paused ADDRESS_FORBIDDEN, 2 waiting, 0 failed, at 1"},
		"one address is allowed":     {before: leads("10.1.2.3", "127.0.0.1"), stands: confirmed},
		"there is no such name":      {before: leads(), stands: "retrying DNS_FAILED, 2 waiting, 0 failed, at 1", wait: 5 * time.Second},
		"nobody listens":             {before: leads("127.0.0.2"), stands: "retrying CONNECTION_FAILED, 2 waiting, 0 failed, at 1", wait: 5 * time.Second},
		"TLS without a certificate":  {before: shows(tls.Certificate{}), stands: "retrying CONNECTION_FAILED, 2 waiting, 0 failed, at 1", wait: 5 * time.Second},
		"the connection breaks":      {does: breaks, stands: "retrying CONNECTION_LOST, 2 waiting, 0 failed, at 1", wait: 5 * time.Second},
		"no answer in 10 s":          {does: never, stands: "retrying TIMEOUT, 2 waiting, 0 failed, at 1", wait: 5 * time.Second},
		"429 with seconds":           {does: says(429, "Retry-After: 7"), stands: "retrying HTTP_429, 2 waiting, 0 failed, at 1", wait: 7 * time.Second},
		"429 with an hour":           {does: says(429, "Retry-After: 3600"), stands: "retrying HTTP_429, 2 waiting, 0 failed, at 1", wait: time.Hour},
		"429 with more":              {does: says(429, "Retry-After: 3601"), stands: "retrying HTTP_429, 2 waiting, 0 failed, at 1", wait: 5 * time.Second},
		"429 with nought":            {does: says(429, "Retry-After: 0"), stands: "retrying HTTP_429, 2 waiting, 0 failed, at 1", wait: 5 * time.Second},
		"429 with words":             {does: says(429, "Retry-After: soon"), stands: "retrying HTTP_429, 2 waiting, 0 failed, at 1", wait: 5 * time.Second},
		"429 with nothing":           {does: says(429), stands: "retrying HTTP_429, 2 waiting, 0 failed, at 1", wait: 5 * time.Second},
		"429 with a date":            {before: later, stands: "retrying HTTP_429, 2 waiting, 0 failed, at 1", wait: -time.Minute},
		"a certificate of yesterday": {before: shows(certificate(authority(), &x509.Certificate{DNSNames: []string{"*.example.test"}, NotAfter: time.Now().Add(-time.Hour)})), stands: "paused TLS_CERTIFICATE_ERROR, 2 waiting, 0 failed, at 1", says: "expired"},
		"another's certificate":      {before: shows(certificate(authority(), &x509.Certificate{DNSNames: []string{"other.test"}, NotAfter: good})), stands: "paused TLS_CERTIFICATE_ERROR, 2 waiting, 0 failed, at 1", says: "name"},
		"its own certificate":        {before: shows(certificate(tls.Certificate{}, &x509.Certificate{DNSNames: []string{"*.example.test"}, NotAfter: good})), stands: "paused TLS_CERTIFICATE_ERROR, 2 waiting, 0 failed, at 1", says: "issuer"},
	}
	for _, status := range []int{200, 201, 202, 204, 206, 299} {
		rows[strconv.Itoa(status)] = answerRow{does: says(status), stands: confirmed}
	}
	for _, status := range []int{400, 413, 422} {
		code := "HTTP_" + strconv.Itoa(status)
		rows[strconv.Itoa(status)] = answerRow{does: says(status), stands: "active " + code + ", 0 waiting, 1 failed, at 3", failed: "1 " + code + " 1"}
	}
	for _, status := range []int{401, 403, 404, 410, 402, 405, 406, 409, 415, 418, 425, 451, 499, 600, 999} {
		rows[strconv.Itoa(status)] = answerRow{does: says(status, "Retry-After: 1"), stands: "paused HTTP_" + strconv.Itoa(status) + ", 2 waiting, 0 failed, at 1"}
	}
	for _, status := range []int{300, 301, 302, 303, 304, 307, 308} {
		rows[strconv.Itoa(status)] = answerRow{does: says(status, "Location: "+elsewhere.url), stands: "paused REDIRECT_NOT_FOLLOWED, 2 waiting, 0 failed, at 1"}
	}
	for _, status := range []int{408, 500, 501, 502, 503, 504, 599} {
		rows[strconv.Itoa(status)] = answerRow{does: says(status, "Retry-After: 1"), stands: "retrying HTTP_" + strconv.Itoa(status) + ", 2 waiting, 0 failed, at 1", wait: 5 * time.Second}
	}

	t.Run("all", func(t *testing.T) { // returns when all rows are done
		for name, c := range rows {
			t.Run("W-09 W-14 "+name, func(t *testing.T) {
				t.Parallel()
				c.run(t, e, s, o)
			})
		}
	})
	if n := elsewhere.total(); n > 0 {
		t.Errorf("W-04 %d requests followed a redirect", n)
	}
}

func (c answerRow) run(t *testing.T, e *site, s *server, o *owner) {
	h := o.hooked(t, e)
	if c.does != nil {
		h.queue(c.does)
	}
	if c.before != nil {
		c.before(h)
	}
	s.sends(t, h.bot, 2)
	if strings.Contains(c.stands, "TIMEOUT") { // 10 s of real time
		h.gets(t, "1", 1)
		eventually(t, 13*time.Second, "the request ends", func() bool { return s.hookInfo(t, h.bot).LastError != nil })
	}
	i := s.stands(t, h.bot, c.stands)
	state, _, _ := strings.Cut(c.stands, " ")
	if e := i.LastError; e != nil && (e.Message == "" || !strings.Contains(e.Message, c.says)) || strings.HasPrefix(state, "active,") && e != nil {
		t.Errorf("got last_error %+v, want words with %q", e, c.says)
	}
	switch wait := c.wait; {
	case wait == 0 && i.NextAttempt != nil:
		t.Errorf("got next_attempt_date %v, want none", i.NextAttempt)
	case wait < 0: // a date says so, in whole seconds
		if got := i.NextAttempt.Sub(i.LastError.Date); got > -wait || got < -wait-6*time.Second {
			t.Errorf("got the next attempt after %v, want %v less what went by", got, -wait)
		}
	case wait > 0 && (i.NextAttempt == nil || i.NextAttempt.Sub(i.LastError.Date) != wait):
		t.Errorf("got next_attempt_date %v after %v, want %v later", i.NextAttempt, i.LastError.Date, wait)
	}
	if c.failed != "" {
		if got := strings.Join(o.reasons(t, h.bot), ";"); got != c.failed {
			t.Errorf("the Failed page: got %q, want %q", got, c.failed)
		}
	}
	if state == "paused" {
		resumes(t, e, s, o, h)
	}
	h.check(t)
}

// resumes checks that a paused delivery goes on with what waits, once the owner
// says so and not before (W-11).
func resumes(t *testing.T, e *site, s *server, o *owner, h *hooked) {
	t.Helper()
	sent := h.total() // 1, or none where no connection came about
	e.names.lead(h.host, "127.0.0.1")
	e.mended(h.sink)
	s.sends(t, h.bot, 1)
	for range sent {
		h.visited(t, dueTime)
	}
	h.quiet(t, 100*time.Millisecond)
	o.act(t, h.bot, "connection/resume")
	h.gets(t, "1", 2)
	h.gets(t, "2", 1)
	h.gets(t, "3", 1)
	if i := s.stands(t, h.bot, "active "+s.hookInfo(t, h.bot).LastError.Code+", 0 waiting, 0 failed, at 4"); i.NextAttempt != nil {
		t.Errorf("W-11 after Resume got %+v", i)
	}
}
