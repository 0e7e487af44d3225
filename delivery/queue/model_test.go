package queue_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"mybots/delivery"
	"mybots/delivery/queue"
)

// model is the contract's part 3 in its plainest form: a list of ids, and who
// may do what.
type model struct {
	fate      []string // of id i+1: "waiting", or the reason it was skipped with
	about     []int64  // the message that id i+1 is about
	position  int64
	issued    int64 // the highest id that any answer held
	lastEpoch int64
	foreign   bool // the last epoch was taken away
	holder    string
	leaseEnds time.Time
	pollEnds  time.Time
	leaseMax  int64 // the highest id issued to the present lease
	leaseNext int64 // the next_offset last returned for it
}

func (m *model) next() int64 { return int64(len(m.fate)) + 1 }

func (m *model) skip(from, to int64, reason string) {
	for id := from; id <= to; id++ {
		if m.fate[id-1] == "waiting" {
			m.fate[id-1] = reason
		}
	}
}

// mayConfirm says whether an offset confirms, and which error it is if not.
func (m *model) mayConfirm(offset int64, holds bool) delivery.Code {
	switch {
	case offset < m.position:
		return delivery.CursorBehind
	case offset == m.position, offset <= m.issued+1, holds && offset == m.leaseNext:
		return ""
	}
	return delivery.OffsetNotIssued
}

// poll is what a call comes to: an error's code, or "" and the confirmed position.
func (m *model) poll(p delivery.Poll, now time.Time) delivery.Code {
	active := now.Before(m.leaseEnds)
	right := p.HasEpoch && p.Epoch == m.lastEpoch && !m.foreign
	holds := active && right && p.ConsumerID == m.holder
	if active && (!holds || now.Before(m.pollEnds)) {
		return delivery.ConsumerConflict
	}
	if p.HasOffset && right {
		if code := m.mayConfirm(p.Offset, holds); code != "" {
			if holds {
				m.leaseEnds = now.Add(time.Minute)
			}
			return code
		}
		m.position = p.Offset
	}
	if !holds {
		m.lastEpoch++
		m.foreign, m.holder = false, p.ConsumerID
		m.leaseMax, m.leaseNext = 0, 0
	}
	return ""
}

// batch is what an answer must hold, and what it does to the lease.
func (m *model) batch(limit int, now time.Time) (ids []int64, skipped []string, next int64) {
	next = m.position
	var run []string
	for id := m.position; id < m.next() && len(ids) < limit; id++ {
		if m.fate[id-1] == "waiting" {
			ids, next = append(ids, id), id+1
			skipped, run = append(skipped, run...), nil
			continue
		}
		reason, _, _ := strings.Cut(m.fate[id-1], ",")
		run = append(run, fmt.Sprintf("%d %s", id, reason))
	}
	if len(ids) == 0 {
		skipped, next = run, m.next()
	}
	m.pollEnds, m.leaseEnds = time.Time{}, now.Add(time.Minute)
	m.leaseNext = next
	if len(ids) > 0 {
		m.issued, m.leaseMax = max(m.issued, next-1), max(m.leaseMax, next-1)
	}
	return ids, skipped, next
}

func (m *model) takeAway() {
	m.foreign, m.holder, m.leaseEnds, m.pollEnds, m.leaseMax, m.leaseNext = true, "", time.Time{}, time.Time{}, 0, 0
}

// consumer is a bot's program that remembers epoch and offset, as far as
// answers reach it.
type consumer struct {
	name          string
	epoch, offset int64
	hasEpoch      bool
	hasOffset     bool
	waits         *delivery.Ticket
}

// history plays one random history.
type history struct {
	*rapid.T
	*rig
	model     model
	consumers []*consumer
	version   int64
	keys      int
}

func codeOf(err error) delivery.Code {
	var refusal *delivery.Refusal
	if errors.As(err, &refusal) {
		return refusal.Code
	}
	return ""
}

func (h *history) check(err error) {
	h.Helper()
	if err != nil && codeOf(err) == "" {
		h.Fatalf("got an error that is no answer: %v", err)
	}
}

// appendSome takes events in; half of them name a message that may be deleted later.
func (h *history) appendSome(t *rapid.T) {
	n := rapid.IntRange(1, 5).Draw(t, "events")
	events := make([]delivery.Event, n)
	for i := range events {
		events[i] = event(h.bot, fmt.Sprint(h.model.next()+int64(i)))
		events[i].MessageID = h.model.next() + int64(i)
	}
	results, err := h.Append(h.Context(), events)
	h.check(err)
	for i, res := range results {
		if want := h.model.next() + int64(i); res.UpdateID != want || res.Refusal != nil {
			t.Fatalf("event %d got %+v, want id %d", i, res, want)
		}
	}
	for _, e := range events {
		h.model.fate, h.model.about = append(h.model.fate, "waiting"), append(h.model.about, e.MessageID)
	}
}

// deleteMessage takes in a message_deleted about an earlier event's message (F-04).
func (h *history) deleteMessage(t *rapid.T) {
	if len(h.model.fate) == 0 {
		t.Skip("no event yet")
	}
	about := rapid.Int64Range(1, int64(len(h.model.fate))).Draw(t, "message")
	e := event(h.bot, "deleted")
	e.Type, e.MessageID = "message_deleted", about
	_, err := h.Append(h.Context(), []delivery.Event{e})
	h.check(err)
	for i, message := range h.model.about {
		if id := int64(i) + 1; message == about && id > h.model.issued && id >= h.model.position {
			h.model.skip(id, id, "cancelled")
		}
		if message == about && h.model.fate[i] == "failed" {
			h.model.fate[i] = "failed, then cancelled" // P-13: reported as failed all the same
		}
	}
	h.model.fate, h.model.about = append(h.model.fate, "waiting"), append(h.model.about, about)
}

func (h *history) poll(t *rapid.T) {
	h.clock.advance(time.Second) // the rate limit has its own tests
	c := rapid.SampledFrom(h.consumers).Draw(t, "consumer")
	p := delivery.Poll{ConsumerID: c.name, Limit: rapid.SampledFrom([]int{1, 2, 3, 100}).Draw(t, "limit")}
	p.HasEpoch, p.Epoch, p.HasOffset, p.Offset = c.hasEpoch, c.epoch, c.hasOffset, c.offset
	switch rapid.IntRange(0, 9).Draw(t, "how") {
	case 0:
		p.HasEpoch = false // a restart without its state
	case 1:
		p.HasOffset = false
	case 2:
		p.HasEpoch, p.Epoch = true, rapid.Int64Range(0, h.model.lastEpoch+1).Draw(t, "epoch")
	case 3:
		p.HasOffset, p.Offset = true, rapid.Int64Range(0, h.model.next()+2).Draw(t, "offset")
	case 4, 5:
		p.Timeout = 25 * time.Second
	}
	now := h.clock.Now()
	position := h.model.position
	want := h.model.poll(p, now)
	got, err := h.Receive(h.Context(), h.bot, p, "192.0.2.1")
	h.check(err)
	if codeOf(err) != want {
		t.Fatalf("poll %+v from position %d got %v, want code %q", p, position, err, want)
	}
	if want != "" {
		return
	}
	if got.Waiting {
		if h.model.position != h.model.next() || p.Timeout == 0 {
			t.Fatalf("the poll waits at %d although ids up to %d are there, timeout %v", h.model.position, h.model.next(), p.Timeout)
		}
		h.model.pollEnds = now.Add(p.Timeout)
		h.model.leaseEnds = h.model.pollEnds.Add(time.Minute)
		c.waits = &got.Ticket
		return
	}
	h.answered(t, c, got, p.Limit, now)
}

// answered compares an answer with the model and lets it reach its consumer, or not.
func (h *history) answered(t *rapid.T, c *consumer, got queue.Received, limit int, now time.Time) {
	ids, skipped, next := h.model.batch(limit, now)
	b := got.Batch
	var gotIDs []int64
	for _, u := range b.Updates {
		gotIDs = append(gotIDs, u.UpdateID)
	}
	var gotSkipped []string
	for i, r := range b.Skipped {
		for id := r.From; id <= r.To; id++ {
			gotSkipped = append(gotSkipped, fmt.Sprintf("%d %s", id, r.Reason))
		}
		if i > 0 && b.Skipped[i-1].To+1 == r.From && b.Skipped[i-1].Reason == r.Reason {
			t.Fatalf("P-13: ranges %+v aren't as long as they can be", b.Skipped)
		}
	}
	if !slices.Equal(gotIDs, ids) || !slices.Equal(gotSkipped, skipped) || b.NextOffset != next || b.Confirmed != h.model.position {
		t.Fatalf("got  updates %v skipped %v [%d, %d)\nwant updates %v skipped %v [%d, %d)",
			gotIDs, gotSkipped, b.Confirmed, b.NextOffset, ids, skipped, h.model.position, next)
	}
	if int64(len(gotIDs)+len(gotSkipped)) != b.NextOffset-b.Confirmed {
		t.Fatalf("P-13: %d updates and %d skipped don't cover [%d, %d)", len(gotIDs), len(gotSkipped), b.Confirmed, b.NextOffset)
	}
	if b.Lease.Epoch != h.model.lastEpoch || b.Lease.ConsumerID != h.model.holder || !b.Lease.ExpiresAt.Equal(h.model.leaseEnds) {
		t.Fatalf("got lease %+v, want epoch %d of %s until %v", b.Lease, h.model.lastEpoch, h.model.holder, h.model.leaseEnds)
	}
	if rapid.IntRange(0, 3).Draw(t, "lost") == 0 {
		return // the answer is lost on its way
	}
	c.epoch, c.hasEpoch = b.Lease.Epoch, true
	c.offset, c.hasOffset = b.NextOffset, true
}

// resume lets a waiting poll look again, as a ring or its timer would.
func (h *history) resume(t *rapid.T) {
	i := slices.IndexFunc(h.consumers, func(c *consumer) bool { return c.waits != nil })
	if i < 0 {
		t.Skip("nobody waits")
	}
	c := h.consumers[i]
	now := h.clock.Now()
	got, err := h.Resume(h.Context(), h.bot, *c.waits, 100, false)
	h.check(err)
	taken := h.model.foreign || h.model.lastEpoch != c.waits.Epoch
	superseded := !taken && !h.model.pollEnds.Equal(c.waits.Until)
	switch {
	case taken || superseded:
		if codeOf(err) != delivery.ConsumerConflict {
			t.Fatalf("P-08: got %v for a poll whose lease was taken away, want CONSUMER_CONFLICT", err)
		}
	case err != nil:
		t.Fatalf("got %v for the poll that waits", err)
	case got.Waiting:
		if h.model.position != h.model.next() || !now.Before(c.waits.Until) {
			t.Fatalf("the poll waits on although [%d, %d) is there, at %v until %v", h.model.position, h.model.next(), now, c.waits.Until)
		}
		return
	default:
		h.answered(t, c, got, 100, now)
	}
	c.waits = nil
}

func (h *history) hangUp(t *rapid.T) {
	for _, c := range h.consumers {
		if c.waits != nil {
			c.waits = nil // P-09: nobody tells the server
			return
		}
	}
	t.Skip("nobody waits")
}

func (h *history) reject(t *rapid.T) {
	if len(h.model.fate) == 0 {
		t.Skip("no event yet")
	}
	c := rapid.SampledFrom(h.consumers).Draw(t, "consumer")
	id := rapid.Int64Range(max(1, h.model.position-1), h.model.next()).Draw(t, "update")
	now := h.clock.Now()
	h.keys++
	_, _, err := h.Reject(h.Context(), queue.Once{BotID: h.bot, Key: fmt.Sprint(h.keys), Fingerprint: []byte{1}},
		delivery.Rejection{UpdateID: id, Reason: "no", ConsumerID: c.name, Epoch: c.epoch})
	h.check(err)
	want := delivery.Code("")
	switch {
	case !now.Before(h.model.leaseEnds) || h.model.foreign || c.name != h.model.holder || c.epoch != h.model.lastEpoch:
		want = delivery.ConsumerConflict
	case id < h.model.position || id > h.model.leaseMax || h.model.fate[id-1] != "waiting":
		want = delivery.UpdateNotFound
	}
	if codeOf(err) != want {
		t.Fatalf("reject %d by %s epoch %d got %v, want %q", id, c.name, c.epoch, err, want)
	}
	if want == "" {
		h.model.skip(id, id, "failed")
		if until := now.Add(time.Minute); until.After(h.model.leaseEnds) {
			h.model.leaseEnds = until
		}
	}
}

// replay retries or skips a FAILED update (F-02, F-03).
func (h *history) replay(t *rapid.T) {
	if len(h.model.fate) == 0 {
		t.Skip("no event yet")
	}
	id := rapid.Int64Range(1, int64(len(h.model.fate))).Draw(t, "update")
	retry := rapid.Bool().Draw(t, "retry")
	do, want := h.Queue.Skip, delivery.Skipped
	if retry {
		do, want = h.Queue.Replay, delivery.Replayed
	}
	got, err := do(h.Context(), h.bot, []int64{id}, anybody)
	h.check(err)
	if h.model.fate[id-1] != "failed" {
		want = delivery.Refused
	}
	if got[0].Result != want {
		t.Fatalf("%d, %s: got %+v, want %s", id, h.model.fate[id-1], got[0], want)
	}
	switch {
	case want == delivery.Replayed:
		h.model.fate[id-1] = "failed, then replayed"
		h.model.fate, h.model.about = append(h.model.fate, "waiting"), append(h.model.about, h.model.about[id-1])
	case want == delivery.Skipped:
		h.model.fate[id-1] = "skipped_by_owner"
	}
}

func (h *history) save(t *rapid.T) {
	drop := rapid.Bool().Draw(t, "drop")
	if _, err := h.Save(h.Context(), h.bot, h.version+1, queue.Settings{Mode: delivery.Polling, Drop: drop}, anybody); !errors.Is(err, delivery.ErrStale) {
		t.Fatalf("M-05: got %v for a version that isn't the present one, want ErrStale", err)
	}
	n, err := h.Save(h.Context(), h.bot, h.version, queue.Settings{Mode: delivery.Polling, Drop: drop}, anybody)
	h.check(err)
	h.version++
	h.model.takeAway()
	if drop {
		waiting := 0
		for id := h.model.position; id < h.model.next(); id++ {
			if h.model.fate[id-1] == "waiting" {
				waiting++
			}
		}
		if n != waiting {
			t.Fatalf("M-02: got %d cancelled, want %d", n, waiting)
		}
		h.model.skip(h.model.position, h.model.next()-1, "cancelled")
	}
}

func (h *history) reset(*rapid.T) {
	h.check(h.Reset(h.Context(), h.bot, anybody))
	h.model.takeAway()
}

func (h *history) wait(t *rapid.T) {
	h.clock.advance(rapid.SampledFrom([]time.Duration{10 * time.Second, 26 * time.Second, 61 * time.Second}).Draw(t, "for"))
}

func (h *history) restart(*rapid.T) {
	h.rig.Close()
	h.Queue = queue.New(h.db, h.clock, func(int64) {})
}

// counters compares what the queue counts with the model (W-15).
func (h *history) counters(t *rapid.T) {
	s, err := h.Status(h.Context(), h.bot)
	h.check(err)
	waiting, failed := 0, 0
	for id, fate := range h.model.fate {
		if fate == "waiting" && int64(id)+1 >= h.model.position {
			waiting++
		}
		if fate == "failed" {
			failed++
		}
	}
	if s.Waiting != waiting || s.Failed != failed || s.Confirmed != h.model.position || s.MaxIssued != h.model.issued || s.NextUpdateID != h.model.next() {
		t.Fatalf("got  waiting %d failed %d position %d issued %d next %d\nwant waiting %d failed %d position %d issued %d next %d",
			s.Waiting, s.Failed, s.Confirmed, s.MaxIssued, s.NextUpdateID, waiting, failed, h.model.position, h.model.issued, h.model.next())
	}
}

// TestHistories proves P-04 to P-15 and R-02 on random histories of several
// consumers: lost answers, expiry, resets, restarts, rejects, cancels, skips.
func TestHistories(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	t.Run("P-13 random histories: updates and skipped cover [confirmed_offset, next_offset) exactly", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			r.bot = r.addBot("b" + uuid.NewString()[:8])
			h := &history{T: t, rig: r, version: 1, model: model{position: 1, foreign: true},
				consumers: []*consumer{{name: "a"}, {name: "b"}, {name: "c"}}}
			t.Repeat(map[string]func(*rapid.T){
				"append": h.appendSome, "delete message": h.deleteMessage, "poll": h.poll, "poll again": h.poll, "poll more": h.poll,
				"resume": h.resume, "hang up": h.hangUp, "reject": h.reject, "replay": h.replay, "save": h.save, "reset": h.reset, "wait": h.wait, "restart": h.restart,
				"reject more": h.reject, "": h.counters,
			})
		})
	})
}
