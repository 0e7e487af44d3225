package botapi

import (
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"mybots/delivery"
	"mybots/delivery/queue"
	"mybots/delivery/wake"
	"mybots/web"
)

// getUpdates is long polling (contract, part 3).
func (h *Handler) getUpdates(c call) (answer, error) {
	poll, err := pollOf(c.fields)
	if err != nil {
		return answer{}, err
	}
	c.fields = nil                // thousands wait: none keeps what it has read
	wait := h.bell.Wait(c.bot.ID) // before the first look
	defer wait.Stop()
	ctx, cancel := c.work()
	received, err := h.queues.Receive(ctx, c.bot.ID, poll, h.address(c.Request))
	cancel()
	if err == nil && received.Waiting {
		received, err = h.wait(c, wait, received, poll.Limit)
	}
	if err != nil {
		return answer{}, err
	}
	web.Note(c.Context(), "consumer_id", poll.ConsumerID, "epoch", received.Batch.Lease.Epoch, "updates", len(received.Batch.Updates))
	return answer{result: batchJSON(received.Batch)}, nil
}

// pollOf checks the fields of P-01.
func pollOf(f *fields) (delivery.Poll, error) {
	var p delivery.Poll
	p.ConsumerID = f.consumer()
	p.Epoch, p.HasEpoch = f.id("epoch")
	p.Offset, p.HasOffset = f.id("offset")
	p.Timeout = time.Duration(f.number("timeout", 0, delivery.MaxPollTimeout, delivery.MaxPollTimeout)) * time.Second
	p.Limit = f.number("limit", 1, delivery.MaxBatch, delivery.MaxBatch)
	return p, f.err
}

// lookAgain is how soon a waiting poll looks again when it couldn't reach the
// database, in real time.
const lookAgain = time.Second

// wait holds the call until there is something to give, its time is over, the
// server stops, or its caller hangs up: then the poll counts as waiting until
// its timeout ends (P-09). It holds no connection to the database meanwhile, and
// outlasts one that can't be reached: its caller, sent away, would only meet its
// own wait.
func (h *Handler) wait(c call, bell *wake.Wait, received queue.Received, limit int) (queue.Received, error) {
	h.metrics.waiting.Inc()
	defer h.metrics.waiting.Dec()
	due, stop := h.clock.At(received.Ticket.Until)
	defer stop()
	var again <-chan time.Time
	for {
		last := false
		select {
		case <-bell.C:
		case <-again:
		case <-due:
			last = true
		case <-h.bell.Closing():
			last = true // G-04: an empty batch
		case <-c.Context().Done():
			return queue.Received{}, errGone
		}
		ctx, cancel := c.work()
		next, err := h.queues.Resume(ctx, c.bot.ID, received.Ticket, limit, last)
		cancel()
		if errors.Is(err, delivery.ErrUnavailable) && !last {
			again = time.After(lookAgain)
			continue
		}
		if err != nil || !next.Waiting {
			return next, err
		}
	}
}

// batchJSON writes the result of getUpdates around the updates' own bytes.
func batchJSON(b delivery.Batch) []byte {
	size := 512
	for _, u := range b.Updates {
		size += len(u.Payload) + 256
	}
	out := make([]byte, 0, size)
	out = append(out, `{"updates":[`...)
	for i, u := range b.Updates {
		if i > 0 {
			out = append(out, ',')
		}
		out = u.AppendJSON(out)
	}
	out = append(out, `],"confirmed_offset":"`...)
	out = strconv.AppendInt(out, b.Confirmed, 10)
	out = append(out, `","next_offset":"`...)
	out = strconv.AppendInt(out, b.NextOffset, 10)
	out = append(out, `","skipped":[`...)
	for i, r := range b.Skipped {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, `{"from_update_id":"`...)
		out = strconv.AppendInt(out, r.From, 10)
		out = append(out, `","to_update_id":"`...)
		out = strconv.AppendInt(out, r.To, 10)
		out = append(out, `","reason":"`...)
		out = append(out, r.Reason...)
		out = append(out, `"}`...)
	}
	out = append(out, `],"lease":`...)
	lease, err := json.Marshal(leaseJSON{ConsumerID: b.Lease.ConsumerID, Epoch: strconv.FormatInt(b.Lease.Epoch, 10), ExpiresAt: delivery.FormatTime(b.Lease.ExpiresAt)})
	if err != nil {
		panic("encode a lease: " + err.Error()) // strings always encode
	}
	out = append(out, lease...)
	return append(out, '}')
}

type leaseJSON struct {
	ConsumerID string `json:"consumer_id"`
	Epoch      string `json:"epoch"`
	ExpiresAt  string `json:"expires_at"`
}
