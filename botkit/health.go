package botkit

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"
)

const (
	healthSlack = 30 * time.Second // over a poll's own time, for an answer
	stuckTries  = 5                // failures of one update in a row that show in the health
)

// Status is what a bot is doing. The counters run from its start.
type Status struct {
	Healthy  bool     `json:"healthy"`
	Problems []string `json:"problems"` // why not; hold nothing of an update but its id

	LastPoll      time.Time        `json:"last_poll,omitzero"` // the last batch's
	Position      Position         `json:"position"`
	LeaseExpires  time.Time        `json:"lease_expires,omitzero"` // by the server's clock
	LastBatch     int              `json:"last_batch"`             // updates in it
	SkippedRanges map[string]int64 `json:"skipped_ranges"`         // by reason
	Received      int64            `json:"received"`
	Duplicates    int64            `json:"duplicates"` // came again, and were in the inbox already
	Handled       int64            `json:"handled"`
	Failed        int64            `json:"failed"` // tries
	Rejected      int64            `json:"rejected"`
	Quarantined   int64            `json:"quarantined"`         // skipped by the policy
	BadSignatures int64            `json:"bad_signatures"`      // webhook requests refused with 401
	InboxWaiting  int              `json:"inbox_waiting"`       // with an inbox
	InboxParked   int              `json:"inbox_parked"`        // with an inbox
	AnswerDue     time.Time        `json:"answer_due,omitzero"` // the next one from the server
}

// health keeps a bot's Status.
type health struct {
	patience time.Duration // a poll's time and some slack

	mu        sync.Mutex
	s         Status
	due       time.Time // an answer to a poll is due by then; zero: none is
	stopped   string    // why Poll has ended by itself; "": it hasn't
	unread    string    // why the last webhook update was refused; "": it wasn't
	store     error     // what the store's or inbox's last call failed with
	failing   ID        // an update that keeps failing
	failures  int
	inboxFull bool
}

func newHealth(patience time.Duration) *health {
	return &health{patience: patience, s: Status{SkippedRanges: map[string]int64{}}}
}

func (h *health) count(change func(*Status)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(&h.s)
}

// answered says that the server has answered, or work goes on, and that the next
// call is due after wait.
func (h *health) answered(wait time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.due = time.Now().Add(wait + h.patience)
}

func (h *health) received(batch Batch, p Position) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.s.LastPoll, h.s.LastBatch, h.s.LeaseExpires, h.s.Position = time.Now(), len(batch.Updates), batch.Lease.ExpiresAt, p
	h.s.Received += int64(len(batch.Updates))
	for _, r := range batch.Skipped {
		h.s.SkippedRanges[r.Reason]++
	}
	h.due = time.Now().Add(h.patience)
}

// stop says why Poll has ended; "" that it begins.
func (h *health) stop(why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopped = why
}

// refused says why the policy stopped a webhook's update; "" that one was taken.
func (h *health) refused(why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unread = why
}

// ended says that nothing polls any more.
func (h *health) ended() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.due = time.Time{}
}

// stored says how the last call of the store or inbox ended.
func (h *health) stored(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.store = err
}

// stuck counts the failures of one update in a row; "": none fails.
func (h *health) stuck(id ID) (failures int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if id != h.failing {
		h.failing, h.failures = id, 0
	}
	if id != "" {
		h.failures++
	}
	return h.failures
}

func (h *health) full(full bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.inboxFull = full
}

func (h *health) status() Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.s
	s.SkippedRanges, s.AnswerDue = maps.Clone(s.SkippedRanges), h.due
	s.Problems = []string{}
	for _, why := range []string{h.stopped, h.unread} {
		if why != "" {
			s.Problems = append(s.Problems, why)
		}
	}
	if !h.due.IsZero() && time.Now().After(h.due) {
		s.Problems = append(s.Problems, "the server hasn't answered in time")
	}
	if h.store != nil {
		s.Problems = append(s.Problems, "the store fails: "+h.store.Error())
	}
	if h.failures >= stuckTries {
		s.Problems = append(s.Problems, fmt.Sprintf("update %s has failed %d times in a row", h.failing, h.failures))
	}
	if h.inboxFull {
		s.Problems = append(s.Problems, "the inbox is full")
	}
	return s
}

// Status tells what the bot is doing, and whether it is well.
func (b *Bot) Status() Status {
	s := b.health.status()
	if b.inbox != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		counts, err := b.inbox.Counts(ctx)
		if err != nil {
			s.Problems = append(s.Problems, "the inbox fails: "+err.Error())
		}
		s.InboxWaiting, s.InboxParked = counts.Waiting, counts.Parked
		if counts.Parked > 0 {
			s.Problems = append(s.Problems, fmt.Sprintf("parked in the inbox, for a person to look at: %d", counts.Parked))
		}
	}
	s.Healthy = len(s.Problems) == 0
	return s
}

// Healthy tells whether the bot is well. It isn't when the server hasn't answered
// for the time of a poll and 30 s, when it has stopped, when one update keeps
// failing or some are parked, or when the store fails.
func (b *Bot) Healthy() bool { return b.Status().Healthy }

// HealthHandler answers with the Status as JSON: 200 if the bot is well, else
// 503. It is for /healthz, and not for strangers.
func (b *Bot) HealthHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s := b.Status()
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		if !s.Healthy {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(s) // the asker may be gone
	})
}
