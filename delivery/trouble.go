package delivery

import "time"

// TroubleKind is a kind of trouble that a bot's owner is told of (N-01).
type TroubleKind string

// The kinds.
const (
	TroublePaused TroubleKind = "paused" // webhook delivery is paused until the owner ends it (W-11)
	TroubleFailed TroubleKind = "failed" // an update moved to FAILED: 400, 413, 422 or a used-up budget (W-09, W-10)
)

// Trouble is what happened to a bot that its owner should know.
type Trouble struct {
	Kind     TroubleKind
	BotID    int64
	Code     string // of the pause, or the reason of the FAILED update
	UpdateID int64  // the update that the attempt was made for
	At       time.Time
}

// TroubleOf is what an attempt's answer means to the owner: after is the state
// that Hook.Settle returned for it, with the update's fate and the reason. ok is
// false when there is nothing to tell.
func TroubleOf(after Hook, fate Fate, reason string) (kind TroubleKind, code string, ok bool) {
	switch {
	case fate == FateFailed:
		return TroubleFailed, reason, true
	case fate == FateStays && after.Paused != "":
		return TroublePaused, after.Paused, true
	}
	return "", "", false
}
