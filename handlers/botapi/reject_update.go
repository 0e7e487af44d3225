package botapi

import (
	"unicode/utf8"

	"mybots/delivery"
	"mybots/delivery/queue"
)

// rejectUpdate moves aside an update that the program can never handle
// (contract, part 4).
func (h *Handler) rejectUpdate(c call) (answer, error) {
	f := c.fields
	r := delivery.Rejection{UpdateID: f.required("update_id"), ConsumerID: "", Epoch: 0}
	r.Reason, _ = f.text("reason")
	if l := utf8.RuneCountInString(r.Reason); l < 1 || l > delivery.MaxReason || delivery.HasControl(r.Reason) {
		f.fail("reason", "is required: 1 to 256 characters, no control characters")
	}
	r.ConsumerID = f.consumer()
	r.Epoch = f.required("epoch")
	if f.err != nil {
		return answer{}, f.err
	}
	once, err := c.once(r)
	if err != nil {
		return answer{}, err
	}
	ctx, cancel := c.work()
	defer cancel()
	result, replayed, err := h.queues.Reject(ctx, once, r)
	return answer{result, replayed}, err
}

// once names the call for what must happen once only; values are the method's
// own fields.
func (c call) once(values any) (queue.Once, error) {
	key, err := c.key()
	if err != nil {
		return queue.Once{}, err
	}
	fingerprint, err := queue.Fingerprint(c.method, values)
	return queue.Once{BotID: c.bot.ID, Key: key, Fingerprint: fingerprint}, err
}
