package main

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"
	"unicode/utf8"
)

const maxBody = 512 << 10 // the largest update is about half of that

// types are the types of updates that this bot knows; it ignores later ones.
var types = map[string]bool{
	"message": true, "message_edited": true, "message_deleted": true,
	"callback_query": true, "chat_access_changed": true, "file_status_changed": true,
}

// receiver takes SMeet's requests. The answer decides what becomes of an update,
// so each has one meaning here:
//
//	200  stored and synced, or stored before, or of a type that this bot doesn't know
//	400  signed by SMeet, but no update: it can never be handled (SMeet moves it to FAILED)
//	401  the signature doesn't match (SMeet pauses, nothing is lost)
//	413  longer than any update
//	503  the store failed (SMeet sends it again)
type receiver struct {
	secret []byte
	inbox  *inbox
	stored func() // called after each new update
	log    *slog.Logger
}

func (rc *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	case err != nil:
		rc.log.Info("a connection broke")
		panic(http.ErrAbortHandler) // the sender hung up: nobody waits for an answer
	default:
		w.WriteHeader(rc.take(r.Header.Get("X-SMeet-Signature"), body))
	}
}

// take returns the status for one request.
func (rc *receiver) take(header string, body []byte) int {
	if !VerifySignature(rc.secret, header, body, time.Now()) {
		rc.log.Warn("a request with a wrong signature was refused")
		return http.StatusUnauthorized
	}
	eventID, updateID, kind, ok := envelope(body)
	if !ok {
		rc.log.Error("a signed request that is no update was refused for good")
		return http.StatusBadRequest
	}
	if !types[kind] {
		rc.log.Info("an unknown type is ignored", "update_id", updateID, "type", kind)
		return http.StatusOK
	}
	isNew, err := rc.inbox.store(eventID, body, time.Now())
	if err != nil {
		rc.log.Error("an update can't be stored", "update_id", updateID, "error", err)
		return http.StatusServiceUnavailable
	}
	rc.log.Info("update taken", "update_id", updateID, "new", isNew)
	if isNew {
		rc.stored()
	}
	return http.StatusOK
}

// envelope reads what every update has. A map, since encoding/json would take a
// struct's fields in any case.
func envelope(body []byte) (eventID, updateID, kind string, ok bool) {
	var fields map[string]json.RawMessage
	if !utf8.Valid(body) || json.Unmarshal(body, &fields) != nil {
		return "", "", "", false
	}
	for name, value := range map[string]*string{"event_id": &eventID, "update_id": &updateID, "type": &kind} {
		if json.Unmarshal(fields[name], value) != nil || !printable(*value) {
			return "", "", "", false
		}
	}
	return eventID, updateID, kind, true
}

func printable(s string) bool {
	for _, c := range []byte(s) {
		if c < '!' || c > '~' {
			return false
		}
	}
	return s != "" && len(s) <= 255
}
