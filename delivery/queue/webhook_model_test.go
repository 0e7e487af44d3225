package queue_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"mybots/delivery"
	"mybots/delivery/queue"
)

// hookModel is what a webhook's queue must come to: a list of ids, and which
// claim counts.
type hookModel struct {
	fate    []string // of id i+1: waiting, confirmed, failed, cancelled, expired, replayed
	written []time.Time
	counts  bool // the last claim's answer counts
	held    bool // its request may be under way still: no other begins
	issued  int64
	mode    delivery.Mode
	paused  bool // by its owner
}

// head is the first update that waits; with none the next id.
func (m *hookModel) head() int64 {
	for i, fate := range m.fate {
		if fate == "waiting" {
			return int64(i) + 1
		}
	}
	return int64(len(m.fate)) + 1
}

func (m *hookModel) count(fate string) (n int) {
	for _, f := range m.fate {
		if f == fate {
			n++
		}
	}
	return n
}

// hookHistory plays one random history of a bot with a webhook.
type hookHistory struct {
	*rig
	model hookModel
	claim *queue.Claim // the last one that was given
}

func (h *hookHistory) must(t *rapid.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (h *hookHistory) appendSome(t *rapid.T) {
	n := rapid.IntRange(1, 3).Draw(t, "events")
	for range n {
		got, err := h.Append(t.Context(), []delivery.Event{event(h.bot, "x")})
		h.must(t, err)
		if h.model.paused {
			if got[0].Refusal == nil {
				t.Fatal("M-07 a paused bot took an event")
			}
			continue
		}
		h.model.fate = append(h.model.fate, "waiting")
		h.model.written = append(h.model.written, h.clock.Now())
		if got[0].UpdateID != int64(len(h.model.fate)) {
			t.Fatalf("U-02 got id %d, want %d", got[0].UpdateID, len(h.model.fate))
		}
	}
}

// try asks for a claim; one may be given only for the head, and never beside another.
func (h *hookHistory) try(t *rapid.T) {
	got, err := h.Claim(t.Context(), []int64{h.bot}, 1)
	h.must(t, err)
	if len(got.Expired) > 0 {
		n, err := h.ExpireOf(t.Context(), h.bot)
		h.must(t, err)
		h.expired(t, n)
		return
	}
	if len(got.Claims) == 0 {
		return
	}
	c := got.Claims[0]
	switch {
	case h.model.held:
		t.Fatalf("W-05 claimed update %d while a request may be under way", c.Update.UpdateID)
	case h.model.mode != delivery.Webhook || h.model.paused:
		t.Fatal("claimed although nothing may be sent")
	case c.Update.UpdateID != h.model.head():
		t.Fatalf("W-05 claimed update %d, the first that waits is %d", c.Update.UpdateID, h.model.head())
	}
	h.take(c)
}

func (h *hookHistory) take(c queue.Claim) {
	h.claim, h.model.held, h.model.counts = &c, true, true
	h.model.issued = max(h.model.issued, c.Update.UpdateID)
}

// answer lets the last claim's answer come, in time or late, once or again.
func (h *hookHistory) answer(t *rapid.T) {
	if h.claim == nil {
		return
	}
	c := *h.claim
	a := rapid.SampledFrom([]delivery.Answer{status(200), status(200), status(200), status(422), status(500), status(401), {Kind: delivery.NotConnected}}).Draw(t, "answer")
	var err error
	var next *queue.Claim
	fate := delivery.FateConfirmed
	if a.Status == 200 {
		next, err = h.Confirm(t.Context(), c, 200, 0, rapid.Bool().Draw(t, "next"))
	} else {
		_, fate, err = h.Settle(t.Context(), c, a, 0)
	}
	if !h.model.counts {
		if !errors.Is(err, queue.ErrLost) {
			t.Fatalf("W-13 a late answer: %v, want ErrLost", err)
		}
		return
	}
	h.must(t, err)
	id := c.Update.UpdateID
	waiting := h.model.fate[id-1] == "waiting" // it may have expired meanwhile
	if waiting && fate != delivery.FateStays {
		h.model.fate[id-1] = string(fate)
	}
	h.model.held, h.model.counts = false, false
	if fate == delivery.FateConfirmed {
		h.model.counts = true // asked again, the confirmation changes nothing
	}
	if next != nil {
		if next.Update.UpdateID != h.model.head() {
			t.Fatalf("W-05 after %d comes %d, the first that waits is %d", id, next.Update.UpdateID, h.model.head())
		}
		h.take(*next)
		return
	}
	h.claim, h.model.counts = nil, false
}

// giveUp ends a request that came to nothing, fenced or not.
func (h *hookHistory) giveUp(t *rapid.T) {
	if h.claim == nil {
		return
	}
	h.must(t, h.Release(t.Context(), *h.claim, rapid.Bool().Draw(t, "sent")))
	// Its late answer still has a generation that nobody took since: it would count.
	h.claim, h.model.held, h.model.counts = nil, false, false
}

// runOut lets the claim run out, as after a crash.
func (h *hookHistory) runOut(t *rapid.T) {
	_, err := h.db.ExecContext(t.Context(), `UPDATE queues SET claim_until = clock_timestamp() - interval '1 second' WHERE bot_id = $1 AND claim_until IS NOT NULL`, h.bot)
	h.must(t, err)
	old := h.claim
	h.model.held = false
	h.try(t)
	if old != nil && h.claim != old { // taken over: the old one's answer counts for nothing
		if _, err := h.Confirm(t.Context(), *old, 200, 0, true); !errors.Is(err, queue.ErrLost) {
			t.Fatalf("W-13 the answer to a lost claim: %v, want ErrLost", err)
		}
	}
}

func (h *hookHistory) save(t *rapid.T) {
	drop := rapid.Bool().Draw(t, "drop")
	mode := rapid.SampledFrom([]delivery.Mode{delivery.Webhook, delivery.Webhook, delivery.Polling}).Draw(t, "mode")
	waiting := h.model.count("waiting")
	s := queue.Settings{Mode: mode, URL: "https://hooks.example.com/", Seal: func(int64) []byte { return []byte("sealed") }, Drop: drop}
	n, err := h.Save(t.Context(), h.bot, h.state(h.bot).SettingsVersion, s, anybody)
	h.must(t, err)
	h.model.mode, h.model.counts = mode, false
	if !drop {
		waiting = 0
	}
	if n != waiting {
		t.Fatalf("M-02 %d were cancelled, want %d", n, waiting)
	}
	for i, fate := range h.model.fate {
		if drop && fate == "waiting" {
			h.model.fate[i] = "cancelled"
		}
	}
}

func (h *hookHistory) steer(t *rapid.T) {
	switch rapid.SampledFrom([]string{"resume", "probe", "reset", "pause"}).Draw(t, "deed") {
	case "resume":
		h.must(t, h.ResumeWebhook(t.Context(), h.bot, anybody))
	case "probe":
		h.must(t, h.ProbeWebhook(t.Context(), h.bot, anybody))
	case "reset":
		h.must(t, h.Reset(t.Context(), h.bot, anybody))
		h.model.counts = false
	case "pause":
		h.model.paused = !h.model.paused
		h.must(t, h.Pause(t.Context(), h.bot, h.model.paused, anybody))
	}
}

func (h *hookHistory) replay(t *rapid.T) {
	var failed []int64
	for i, fate := range h.model.fate {
		if fate == "failed" {
			failed = append(failed, int64(i)+1)
		}
	}
	if len(failed) == 0 {
		return
	}
	id := rapid.SampledFrom(failed).Draw(t, "failed")
	got, err := h.Replay(t.Context(), h.bot, []int64{id}, anybody)
	h.must(t, err)
	if got[0].Result == delivery.Replayed {
		h.model.fate[id-1] = "replayed"
		h.model.fate = append(h.model.fate, "waiting")
		h.model.written = append(h.model.written, h.model.written[id-1])
	}
}

func (h *hookHistory) wait(t *rapid.T) {
	h.clock.advance(time.Duration(rapid.SampledFrom([]int{1, 10, 60, 600, 3600, 50 * 3600}).Draw(t, "seconds")) * time.Second)
	n, err := h.ExpireOf(t.Context(), h.bot)
	h.must(t, err)
	h.expired(t, n)
}

func (h *hookHistory) expired(t *rapid.T, n int) {
	for i, fate := range h.model.fate {
		if h.clock.Now().Sub(h.model.written[i]) < delivery.Retention {
			continue
		}
		switch fate {
		case "waiting":
			h.model.fate[i] = "expired"
			n--
		case "failed":
			h.model.fate[i] = "gone"
		}
	}
	if n != 0 {
		t.Fatalf("Q-01 expired %d more or fewer than were due", n)
	}
}

func (h *hookHistory) counters(t *rapid.T) {
	s := h.state(h.bot)
	got := fmt.Sprintf("waiting %d failed %d issued %d next %d", s.Waiting, s.Failed, s.MaxIssued, s.NextUpdateID)
	want := fmt.Sprintf("waiting %d failed %d issued %d next %d", h.model.count("waiting"), h.model.count("failed"), h.model.issued, len(h.model.fate)+1)
	if got != want {
		t.Fatalf("F-05 got %s, want %s", got, want)
	}
	if s.Mode == delivery.Webhook && s.Confirmed != h.model.head() {
		t.Fatalf("W-15 confirmed_offset %d, want %d", s.Confirmed, h.model.head())
	}
	if (s.Waiting == 0) != (s.WaitingBytes == 0) {
		t.Fatalf("Q-02 %d wait with %d bytes", s.Waiting, s.WaitingBytes)
	}
}

func TestHookQueueHistories(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	t.Run("W-05 W-13 random histories: only the head, never two at once, late answers count for nothing", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			r.bot = r.addBot("b" + uuid.NewString()[:8])
			r.toWebhook(r.bot, false)
			h := &hookHistory{rig: r, model: hookModel{mode: delivery.Webhook}}
			t.Repeat(map[string]func(*rapid.T){
				"append": h.appendSome, "claim": h.try, "claim again": h.try, "answer": h.answer, "answer again": h.answer, "give up": h.giveUp, "run out": h.runOut,
				"save": h.save, "steer": h.steer, "replay": h.replay, "wait": h.wait, "": h.counters,
			})
		})
	})
}
