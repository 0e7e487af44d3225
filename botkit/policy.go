package botkit

import "context"

// Verdict is what a DecodePolicy decides about an update that can't be read.
type Verdict int

// The verdicts. The fourth is the error that Reject returns.
const (
	// Stop doesn't process the update: Poll returns, and a webhook answers 500.
	// Reading the same bytes again would fail again: a newer bot is needed.
	Stop Verdict = iota
	// Retry lets the update come again after a pause; a webhook answers 503.
	Retry
	// Skip confirms the update unprocessed. Return it only after the raw bytes
	// are stored durably, as Quarantine.Policy does: nobody has them any more.
	Skip
)

// DecodePolicy decides about an update that doesn't have the shape that this
// version of the kit knows (K-03). An error, or a panic, is a failed policy: the
// update isn't confirmed. It may be asked about one update many times.
type DecodePolicy func(ctx context.Context, e *DecodeError) (Verdict, error)

// StopOnDecodeError is the default policy.
func StopOnDecodeError(context.Context, *DecodeError) (Verdict, error) { return Stop, nil }

// RejectOnDecodeError moves the update to the owner's FAILED list, with the name
// of the field that can't be read.
func RejectOnDecodeError(_ context.Context, e *DecodeError) (Verdict, error) {
	return Stop, Reject("the bot can't read this update: " + e.Path + " " + e.Problem)
}
