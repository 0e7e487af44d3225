package bottest

import (
	"context"
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"

	"mybots/botkit"
)

const leaseTime = 60 * time.Second

type lease struct {
	consumer string
	until    time.Time
	waiting  time.Time // a poll counts as waiting until then
	jump     int64     // the next_offset last returned
	number   int       // of the poll that waits
	ended    *refusal  // what ends it
}

// entry is an update in the queue.
type entry struct {
	id      int64
	eventID string
	raw     []byte
	skipped string // why it left the queue before it was confirmed
	failed  bool
	issued  bool // to the current lease
}

func (s *Server) getUpdates(ctx context.Context, fields map[string]any) (string, *refusal) {
	consumer, _ := fields["consumer_id"].(string)
	epoch, epochGood := number(fields["epoch"])
	offset, offsetGood := number(fields["offset"])
	timeout, timeoutGood := integer(fields["timeout"], 0, 25, 25)
	limit, limitGood := integer(fields["limit"], 1, 100, 100)
	if consumer == "" || len(consumer) > 64 || !epochGood || !offsetGood || !timeoutGood || !limitGood {
		return "", invalid("consumer_id, epoch and offset are texts, timeout is 0 to 25, limit is 1 to 100")
	}
	now := time.Now()
	if !s.spend(now) {
		return "", refuse(botkit.RateLimited, "at most 5 calls a second", time.Second)
	}
	if refused := s.closed(); refused != nil {
		return "", refused
	}
	held, last := now.Before(s.lease.until), epoch != 0 && epoch == s.epoch
	switch { // P-05
	case held && consumer != s.lease.consumer, held && !last:
		return "", refuse(botkit.ConsumerConflict, "another lease is active", s.lease.until.Sub(now))
	case held && now.Before(s.lease.waiting):
		return "", refuse(botkit.ConsumerConflict, "a poll of this bot still waits", s.lease.waiting.Sub(now))
	}
	if last && offset != 0 { // P-07: any other epoch confirms nothing
		if refused := s.confirm(offset, held, now); refused != nil {
			return "", refused
		}
	}
	if !held {
		s.epochs++
		s.epoch, s.lease = s.epochs, lease{consumer: consumer}
		for _, e := range s.queue {
			e.issued = false
		}
	}
	s.lease.number++
	s.lease.ended = nil
	s.lease.waiting = now.Add(time.Duration(timeout) * time.Second)
	s.lease.until = s.lease.waiting.Add(leaseTime)
	return s.wait(ctx, limit)
}

// wait holds the call until there is something to give; the caller holds the lock.
func (s *Server) wait(ctx context.Context, limit int) (string, *refusal) {
	me, epoch := s.lease.number, s.epochs
	timer := time.NewTimer(time.Until(s.lease.waiting))
	defer timer.Stop()
	over := false
	for {
		if s.epochs != epoch || s.lease.number != me || s.lease.ended != nil {
			if s.lease.ended != nil {
				return "", s.lease.ended
			}
			return "", refuse(botkit.ConsumerConflict, "the lease was taken away", time.Second)
		}
		if batch, some := s.batch(limit); some || over || !time.Now().Before(s.lease.waiting) {
			s.lease.waiting, s.lease.until = time.Time{}, time.Now().Add(leaseTime)
			batch.Lease.ExpiresAt = s.lease.until.UTC()
			return encode(batch), nil
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-timer.C:
			over = true
		case <-ctx.Done():
			s.mu.Lock() // the poll still counts as waiting (P-09)
			return "", refuse(botkit.Unavailable, "nobody reads this", time.Second)
		}
		s.mu.Lock()
	}
}

// confirm moves the position (P-10, P-11).
func (s *Server) confirm(offset int64, held bool, now time.Time) *refusal {
	extend := func() {
		if held {
			s.lease.until = now.Add(leaseTime)
		}
	}
	switch {
	case offset < s.position:
		extend()
		r := refuse(botkit.CursorBehind, "offset is below the confirmed position", 0)
		r.more = map[string]string{"confirmed_offset": string(id(s.position))}
		return r
	case offset > s.issued+1 && offset != s.position && (!held || offset != s.lease.jump):
		extend()
		return refuse(botkit.OffsetNotIssued, "offset was never issued", 0)
	}
	s.position = offset
	s.tell()
	return nil
}

// batch reads what comes next and marks it as issued.
func (s *Server) batch(limit int) (b botkit.Batch, some bool) {
	b = botkit.Batch{Updates: []json.RawMessage{}, Skipped: []botkit.SkippedRange{}, ConfirmedOffset: id(s.position)}
	next := s.position
	var behind []botkit.SkippedRange // the ranges since the last update
	for _, e := range s.queue {
		if e.id < s.position {
			continue
		}
		if e.skipped != "" {
			if n := len(behind); n > 0 && behind[n-1].Reason == e.skipped {
				behind[n-1].To = id(e.id)
			} else {
				behind = append(behind, botkit.SkippedRange{From: id(e.id), To: id(e.id), Reason: e.skipped})
			}
			if len(b.Updates) == 0 {
				next = e.id + 1
			}
			continue
		}
		if len(b.Updates) == limit {
			break
		}
		b.Skipped, behind = append(b.Skipped, behind...), nil
		b.Updates = append(b.Updates, e.raw)
		e.issued, s.issued, next = true, max(s.issued, e.id), e.id+1
	}
	if len(b.Updates) == 0 {
		b.Skipped = append(b.Skipped, behind...)
	}
	b.NextOffset = id(next)
	b.Lease = botkit.Lease{ConsumerID: s.lease.consumer, Epoch: id(s.epoch)}
	s.lease.jump = next
	return b, len(b.Updates)+len(b.Skipped) > 0
}

func (s *Server) rejectUpdate(_ string, fields map[string]any) (string, *refusal) {
	var r botkit.Rejection
	if !into(fields, &r) || r.Reason == "" || utf8.RuneCountInString(r.Reason) > 256 {
		return "", invalid("update_id, reason, consumer_id and epoch are required, as texts")
	}
	if s.webhook {
		return "", refuse(botkit.DeliveryModeConflict, "the bot receives by webhook", 0)
	}
	now := time.Now()
	if !now.Before(s.lease.until) || r.ConsumerID != s.lease.consumer || r.Epoch != id(s.epoch) {
		return "", refuse(botkit.ConsumerConflict, "this isn't the active lease", max(time.Second, s.lease.until.Sub(now)))
	}
	for _, e := range s.queue {
		if id(e.id) == r.UpdateID && e.id >= s.position && e.issued && e.skipped == "" {
			e.skipped, e.failed = "failed", true
			s.rejected = append(s.rejected, Rejected{r.UpdateID, e.eventID, r.Reason})
			s.lease.until = now.Add(leaseTime)
			return encode(map[string]any{"update_id": r.UpdateID, "event_id": e.eventID, "state": "failed"}), nil
		}
	}
	return "", refuse(botkit.UpdateNotFound, "no such update was issued to this lease and waits", 0)
}

// closed says why the bot takes no poll now.
func (s *Server) closed() *refusal {
	if s.halted != nil {
		return s.halted
	}
	if s.webhook {
		return refuse(botkit.DeliveryModeConflict, "the bot receives by webhook", 0)
	}
	return nil
}

// spend takes a token of the rate limit (P-03).
func (s *Server) spend(now time.Time) bool {
	s.tokens = min(5, s.tokens+5*now.Sub(s.refilled).Seconds())
	s.refilled = now
	if s.limited && s.tokens < 1 {
		return false
	}
	s.tokens--
	return true
}

// number reads an id; 0: there is none.
func number(v any) (n int64, good bool) {
	text, isText := v.(string)
	if v == nil || !isText {
		return 0, v == nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n > 0
}

func integer(v any, least, most, otherwise int) (n int, good bool) {
	if v == nil {
		return otherwise, true
	}
	text, isNumber := v.(json.Number)
	if !isNumber {
		return 0, false
	}
	n, err := strconv.Atoi(text.String())
	return n, err == nil && n >= least && n <= most
}
