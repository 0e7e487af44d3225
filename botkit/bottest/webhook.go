package bottest

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"

	"mybots/botkit"
)

// Sign signs a webhook's body as SMeet does.
func Sign(secret botkit.Secret, body []byte, at time.Time) (header string) {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%d.%s", at.Unix(), body)
	return fmt.Sprintf("t=%d,v1=%s", at.Unix(), hex.EncodeToString(mac.Sum(nil)))
}

// Deliver sends the first waiting update to a webhook, signed with Secret, and
// does what W-09 says about the answer: 2xx confirms it, 400, 413 and 422 reject
// it, everything else leaves it waiting. It returns the status, 0 if nothing
// waits, and 599 if the handler broke the connection.
func (s *Server) Deliver(webhook http.Handler) (status int) {
	s.mu.Lock()
	var head *entry
	for _, e := range s.queue {
		if e.id >= s.position && e.skipped == "" {
			head = e
			break
		}
	}
	if head != nil {
		s.issued = max(s.issued, head.id)
	}
	s.mu.Unlock()
	if head == nil {
		return 0
	}
	status = Send(webhook, Secret, head.raw)
	s.change(func() {
		switch {
		case status >= 200 && status < 300:
			s.position = max(s.position, head.id+1)
		case status == 400, status == 413, status == 422:
			head.skipped, head.failed = "failed", true
			s.rejected = append(s.rejected, Rejected{id(head.id), head.eventID, "HTTP_" + strconv.Itoa(status)})
		}
	})
	return status
}

// Send sends a body to a webhook as it is, signed now with the secret, and
// returns the status, 599 if the handler broke the connection.
func Send(webhook http.Handler, secret botkit.Secret, body []byte) (status int) {
	r := httptest.NewRequest(http.MethodPost, "/smeet", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	r.Header.Set(botkit.SignatureHeader, Sign(secret, body, time.Now()))
	w := httptest.NewRecorder()
	defer func() {
		if v := recover(); v == http.ErrAbortHandler {
			status = 599
		} else if v != nil {
			panic(v)
		}
	}()
	webhook.ServeHTTP(w, r)
	_, _ = io.Copy(io.Discard, w.Body)
	return w.Code
}
