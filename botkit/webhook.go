package botkit

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"time"
)

// MaxWebhookBody is the longest webhook request that is read; an update is about
// half of that at most.
const MaxWebhookBody = 512 << 10

// Webhook returns the handler of the bot's webhook address. A request signed
// with any of the secrets is taken; give it the old one and the new one while
// the webhook is being saved anew. It panics without a secret, since anybody
// could send updates then.
//
// Without an Inbox the update is handled first, within the 10 s that SMeet
// waits; with one it is stored first, and Work handles it afterwards. The answer
// decides what becomes of the update (W-09):
//
//	200  done with: a good outcome, stored in the inbox, or skipped by the policy
//	400  signed, but no update: SMeet moves it to FAILED
//	401  the signature doesn't match: SMeet pauses, nothing is lost
//	413  longer than MaxWebhookBody: SMeet moves it to FAILED
//	422  Reject: SMeet moves it to FAILED
//	429  the inbox is full: SMeet waits, and charges nothing
//	500  not handled, or the policy says Stop: SMeet sends it again
//	503  the inbox can't store it, or the policy says Retry: SMeet sends it again
func (b *Bot) Webhook(secrets ...Secret) http.Handler {
	if len(secrets) == 0 || slices.Contains(secrets, "") {
		panic("botkit: a webhook needs its secret")
	}
	secrets = slices.Clone(secrets)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxWebhookBody))
		if _, tooLong := errors.AsType[*http.MaxBytesError](err); tooLong {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler) // the sender hung up: nobody waits for an answer
		}
		status := b.take(r, secrets, body)
		if status == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "5")
		}
		w.WriteHeader(status)
	})
}

// take returns the answer to one request.
func (b *Bot) take(r *http.Request, secrets []Secret, body []byte) int {
	if !VerifySignature(secrets, r.Header.Get(SignatureHeader), body, time.Now()) {
		b.log.Warn("a webhook request with a wrong signature was refused")
		b.health.count(func(s *Status) { s.BadSignatures++ })
		return http.StatusUnauthorized
	}
	u, err := ParseUpdate(body)
	if errors.Is(err, ErrNotUpdate) {
		b.log.Error("a signed webhook request that is no update was refused for good")
		return http.StatusBadRequest
	}
	b.health.count(func(s *Status) { s.Received++ })
	if bad, ok := errors.AsType[*DecodeError](err); ok {
		err := b.decide(r.Context(), bad)
		if stop, ok := errors.AsType[stopError](err); ok {
			b.health.refused(stop.Error())
		}
		return b.status(err)
	}
	b.health.refused("")
	if b.inbox != nil {
		return b.keep(r, u)
	}
	return b.status(b.handle(r.Context(), u))
}

// keep stores an update in the inbox before it is answered.
func (b *Bot) keep(r *http.Request, u *Update) int {
	log := b.log.With("update_id", u.UpdateID, "event_id", u.EventID, "type", u.Type)
	counts, err := b.inbox.Counts(r.Context())
	added := 0
	if err == nil {
		if b.full(counts) {
			log.Warn("the inbox is full: the update has to wait")
			return http.StatusTooManyRequests
		}
		added, err = b.inbox.Put(r.Context(), []Item{b.item(u)}, nil)
	}
	if r.Context().Err() == nil {
		b.health.stored(err)
	}
	if err != nil {
		log.Error("the update can't be stored", "error", err)
		return http.StatusServiceUnavailable
	}
	log.Info("update stored", "new", added == 1)
	b.health.count(func(s *Status) { s.Duplicates += int64(1 - added) })
	ring(b.stored)
	return http.StatusOK
}

// full tells whether the inbox takes no more, and keeps that for the health.
func (b *Bot) full(c InboxCounts) bool {
	full := c.Waiting >= b.o.InboxLimit
	b.health.full(full)
	return full
}

// status is the answer for an outcome.
func (b *Bot) status(err error) int {
	_, isRejected := rejected(err)
	_, retry := errors.AsType[retryError](err)
	switch {
	case err == nil:
		return http.StatusOK
	case isRejected:
		b.health.count(func(s *Status) { s.Rejected++ })
		return http.StatusUnprocessableEntity
	case retry:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
