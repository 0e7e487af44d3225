package main_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// update is one update as a bot gets it.
type update struct {
	raw      string // the bytes of the whole
	id       int64
	UpdateID string `json:"update_id"`
	EventID  string `json:"event_id"`
	Type     string `json:"type"`
	Date     string `json:"date"`
	ReplayOf string `json:"replay_of_update_id"`
	payload  string // the bytes of the payload
}

func (u *update) UnmarshalJSON(b []byte) error {
	type plain update
	if err := json.Unmarshal(b, (*plain)(u)); err != nil {
		return err
	}
	u.raw = string(b)
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil {
		return err
	}
	if len(fields) != 5 && (len(fields) != 6 || u.ReplayOf == "") {
		return fmt.Errorf("U-01: an update with other fields than its own: %s", b)
	}
	u.payload = string(fields[u.Type])
	var err error
	u.id, err = number(u.UpdateID)
	return err
}

// span is a skipped range.
type span struct {
	From   string `json:"from_update_id"`
	To     string `json:"to_update_id"`
	Reason string `json:"reason"`
}

func (s span) String() string { return s.From + "-" + s.To + " " + s.Reason }

// batch is a result of getUpdates.
type batch struct {
	Updates         []update `json:"updates"`
	ConfirmedOffset string   `json:"confirmed_offset"`
	NextOffset      string   `json:"next_offset"`
	Skipped         []span   `json:"skipped"`
	Lease           struct {
		ConsumerID string    `json:"consumer_id"`
		Epoch      string    `json:"epoch"`
		ExpiresAt  time.Time `json:"expires_at"`
	} `json:"lease"`
}

// number reads an id as A-02 writes it.
func number(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != s || n < 0 {
		return 0, fmt.Errorf("A-02: %q is no id", s)
	}
	return n, nil
}

// readBatch reads a batch, which must cover its range exactly (P-13, P-14).
func readBatch(raw json.RawMessage) (batch, error) {
	var b batch
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.DisallowUnknownFields()
	if err := d.Decode(&b); err != nil {
		return b, fmt.Errorf("a batch: %w", err)
	}
	if b.Updates == nil || b.Skipped == nil {
		return b, fmt.Errorf("updates and skipped must be arrays, even empty")
	}
	if _, err := number(b.Lease.Epoch); err != nil {
		return b, err
	}
	return b, b.whole()
}

// whole checks that every id of [confirmed_offset, next_offset) is in one of
// updates and skipped, that both ascend, and that ranges are as long as they can be.
func (b batch) whole() error {
	at, err := number(b.ConfirmedOffset)
	if err != nil {
		return err
	}
	next, err := number(b.NextOffset)
	if err != nil {
		return err
	}
	updates, skipped := b.Updates, b.Skipped
	last := ""
	for at < next {
		if len(updates) > 0 && updates[0].id == at {
			updates, last, at = updates[1:], "", at+1
			continue
		}
		if len(skipped) == 0 || skipped[0].From != strconv.FormatInt(at, 10) {
			return fmt.Errorf("P-13: %d is neither an update nor skipped, or out of order: %s", at, b.outline())
		}
		to, err := number(skipped[0].To)
		if err != nil || to < at {
			return fmt.Errorf("P-13: a range that ends before it begins: %v", skipped[0])
		}
		if skipped[0].Reason == last {
			return fmt.Errorf("P-13: two ranges of one reason side by side: %s", b.outline())
		}
		last, at, skipped = skipped[0].Reason, to+1, skipped[1:]
	}
	if at != next || len(updates) > 0 || len(skipped) > 0 {
		return fmt.Errorf("P-13: the batch holds more than [%s, %s): %s", b.ConfirmedOffset, b.NextOffset, b.outline())
	}
	if n := len(b.Updates); n > 0 && b.Updates[n-1].id != next-1 {
		return fmt.Errorf("P-14: the batch doesn't end after its last update: %s", b.outline())
	}
	return nil
}

// outline writes a batch for error texts and comparisons: "1 2 | 3-4 failed | 1..5".
func (b batch) outline() string {
	var parts []string
	for _, u := range b.Updates {
		parts = append(parts, u.UpdateID)
	}
	parts = append(parts, "|")
	for _, s := range b.Skipped {
		parts = append(parts, s.String())
	}
	return strings.Join(append(parts, "|", b.ConfirmedOffset+".."+b.NextOffset), " ")
}

// patience is how long a test bears with the rate limit.
const patience = 20 * time.Second

// polite calls getUpdates again while the rate limit alone refuses it.
func (s *server) polite(t testing.TB, b *bot, body string) answer {
	t.Helper()
	var a answer
	eventually(t, patience, "the rate limit lets a call through", func() bool {
		a = s.call(t, b, "getUpdates", body)
		return a.code != "RATE_LIMITED"
	})
	return a
}

// poll calls getUpdates, which must succeed.
func (s *server) poll(t testing.TB, b *bot, body string) batch {
	t.Helper()
	a := s.polite(t, b, body)
	if a.code != "" {
		t.Fatalf("getUpdates %s: got %s (%s), want a batch", body, a.code, a.message)
	}
	got, err := readBatch(a.result)
	if err != nil {
		t.Fatalf("getUpdates %s: %v", body, err)
	}
	return got
}

// pollFails calls getUpdates, which must fail with the code.
func (s *server) pollFails(t testing.TB, code string, b *bot, body string) answer {
	t.Helper()
	a := s.polite(t, b, body)
	if a.code != code {
		t.Fatalf("getUpdates %s: got %q (%.300s), want %s", body, a.code, a.body, code)
	}
	return a
}

// ended is how a poll that ran beside the test ended.
type ended struct {
	answer
	batch batch
	err   error
	took  time.Duration
}

// waiting starts a long poll and returns once the server counts it as waiting.
func (s *server) waiting(t testing.TB, b *bot, body string) <-chan ended {
	t.Helper()
	done := s.pollBeside(b, body)
	eventually(t, 10*time.Second, "the poll waits", func() bool {
		info := s.info(t, b)
		return info.Lease != nil && info.Lease.Waiting
	})
	still(t, "the poll", done)
	return done
}

// pollBeside starts a poll and returns at once.
func (s *server) pollBeside(b *bot, body string) <-chan ended {
	done := make(chan ended, 1)
	go func() { // ends with the answer
		began := time.Now()
		var e ended
		if e.answer, e.err = s.try(b, "getUpdates", body); e.err == nil && e.code == "" {
			e.batch, e.err = readBatch(e.result)
		}
		e.took = time.Since(began)
		done <- e
	}()
	return done
}

// gave checks that the poll that ran beside the test ended with the batch.
func (e ended) gave(t testing.TB, outline string) batch {
	t.Helper()
	if e.err != nil || e.code != "" || e.batch.outline() != outline {
		t.Fatalf("the waiting poll ended with %q %q %v, want %q", e.batch.outline(), e.code, e.err, outline)
	}
	return e.batch
}

// info is what getDeliveryInfo tells.
type info struct {
	Mode              string     `json:"mode"`
	Pending           int        `json:"pending_update_count"`
	PendingBytes      int64      `json:"pending_bytes"`
	OldestPendingDate *time.Time `json:"oldest_pending_date"`
	Failed            int        `json:"failed_update_count"`
	ConfirmedOffset   string     `json:"confirmed_offset"`
	MaxIssued         string     `json:"max_issued_update_id"`
	Lease             *struct {
		ConsumerID string    `json:"consumer_id"`
		ExpiresAt  time.Time `json:"expires_at"`
		Waiting    bool      `json:"waiting"`
	} `json:"lease"`
	Limits struct {
		Updates int   `json:"updates"`
		Bytes   int64 `json:"bytes"`
	} `json:"limits"`
}

func (s *server) info(t testing.TB, b *bot) info {
	t.Helper()
	return decode[info](t, s.ok(t, b, "getDeliveryInfo", "{}"))
}

// about tells whether two moments are as close as a busy machine lets them be.
func about(got, want time.Time) bool { return got.Sub(want).Abs() < 5*time.Second }
