package delivery

import (
	"encoding/json"
	"strconv"
	"time"
)

// Update is one event in one bot's queue, as it is handed over (U-01).
type Update struct {
	UpdateID int64
	EventID  string // a UUID in lower case
	Type     string // names the payload's field
	Date     time.Time
	Payload  []byte // the JSON object as it was written, without insignificant white space (U-03)
	ReplayOf int64  // the old position of a replay, 0 for the first delivery (U-04)
}

// Event is one thing that happened, as the messenger writes it (I-01).
type Event struct {
	BotID     int64
	EventID   string
	Type      string
	Date      time.Time
	ChatID    int64 // 0: none named
	MessageID int64 // 0: none named
	Payload   []byte
}

// FormatTime writes a date as updates carry it: RFC 3339, UTC with Z, fractions
// to the microsecond (I-01).
func FormatTime(t time.Time) string {
	return t.UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano)
}

// AppendJSON appends the update's JSON to b. It is the only place that writes
// one, so that polls and webhooks carry the same bytes (U-03).
func (u Update) AppendJSON(b []byte) []byte {
	b = append(b, `{"update_id":"`...)
	b = strconv.AppendInt(b, u.UpdateID, 10)
	b = append(b, `","event_id":"`...)
	b = append(b, u.EventID...)
	b = append(b, `","type":`...)
	name := quote(u.Type)
	b = append(b, name...)
	b = append(b, `,"date":"`...)
	b = append(b, FormatTime(u.Date)...)
	b = append(b, '"')
	if u.ReplayOf != 0 {
		b = append(b, `,"replay_of_update_id":"`...)
		b = strconv.AppendInt(b, u.ReplayOf, 10)
		b = append(b, '"')
	}
	b = append(b, ',')
	b = append(b, name...)
	b = append(b, ':')
	b = append(b, u.Payload...)
	return append(b, '}')
}

// quote writes s as a JSON string. A string always has an encoding.
func quote(s string) []byte {
	q, err := json.Marshal(s)
	if err != nil {
		panic("encode a string: " + err.Error())
	}
	return q
}

// The fields of an update itself, which no type may be named like (I-01).
var updateFields = map[string]bool{
	"update_id": true, "event_id": true, "type": true, "date": true, "replay_of_update_id": true,
}

// ReservedType tells whether a type is named like a field of the update itself.
func ReservedType(name string) bool { return updateFields[name] }

// Reason says why an id that was never handed over, or only in vain, is
// reported as skipped (P-13).
type Reason string

// The reasons of P-13.
const (
	SkipCancelled Reason = "cancelled"
	SkipByOwner   Reason = "skipped_by_owner"
	SkipExpired   Reason = "expired"
	SkipFailed    Reason = "failed"
)

// Range is a run of ids that left the queue before they were confirmed, both
// ends included.
type Range struct {
	From, To int64
	Reason   Reason
}

// Batch is what one getUpdates call gets: Updates and Skipped together cover
// [Confirmed, NextOffset) exactly (P-13).
type Batch struct {
	Updates    []Update
	Skipped    []Range
	Confirmed  int64
	NextOffset int64
	Lease      Lease
}

// Empty tells whether there is neither an update nor a range to give (P-02).
func (b Batch) Empty() bool { return b.NextOffset == b.Confirmed }

// Lease is the lease as an answer names it.
type Lease struct {
	ConsumerID string
	Epoch      int64
	Since      time.Time
	ExpiresAt  time.Time
	Waiting    bool
}

// NewBatch puts together what a poll gets from the position on: the updates
// that were read in order from there, and the ranges that were skipped among
// [confirmed, next), in ascending order. With updates the batch ends after the last
// one (P-14), without any at next. Ranges are cut to the batch and joined to
// be as long as they can be for one reason (P-13).
func NewBatch(updates []Update, skipped []Range, confirmed, next int64) Batch {
	b := Batch{Updates: updates, Confirmed: confirmed, NextOffset: next}
	if n := len(updates); n > 0 {
		b.NextOffset = updates[n-1].UpdateID + 1
	}
	for _, r := range skipped {
		r.From, r.To = max(r.From, confirmed), min(r.To, b.NextOffset-1)
		if r.From > r.To {
			continue
		}
		if n := len(b.Skipped); n > 0 && b.Skipped[n-1].Reason == r.Reason && b.Skipped[n-1].To+1 == r.From {
			b.Skipped[n-1].To = r.To
			continue
		}
		b.Skipped = append(b.Skipped, r)
	}
	return b
}

// Whole tells whether the updates alone cover the batch, so that no range needs
// to be looked for.
func Whole(updates []Update, confirmed int64) bool {
	n := len(updates)
	return n > 0 && updates[0].UpdateID == confirmed && updates[n-1].UpdateID == confirmed+int64(n)-1
}
