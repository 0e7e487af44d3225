package delivery

import "time"

// Result is what became of a FAILED update that its owner retried or skipped (F-01).
type Result string

// The results; each stands as data-result on the page (UI-11).
const (
	Replayed Result = "replayed"
	Skipped  Result = "skipped"
	Refused  Result = "refused"
)

// RefusedFor says why a replay was refused (F-02).
type RefusedFor string

// The reasons of F-02; each stands as data-reason on the page. A bot that is
// paused, a space that runs no bots, maintenance and a full queue have the codes
// that intake has for them.
const (
	ChatStopped RefusedFor = "CHAT_STOPPED"
	ChatBlocked RefusedFor = "CHAT_BLOCKED"
	ChatLeft    RefusedFor = "CHAT_LEFT"
	Expired     RefusedFor = "EXPIRED"
	NotFailed   RefusedFor = "NOT_FAILED" // it isn't FAILED any more, or never was
)

// Outcome is what became of one update that was retried or skipped.
type Outcome struct {
	UpdateID int64
	Result   Result
	Reason   RefusedFor // with Refused
	NewID    int64      // with Replayed: its id at the tail
}

// Room is what a queue holds while updates are added to it.
type Room struct {
	Waiting int
	Bytes   int64
}

// Replay judges one FAILED update by F-02: "" when it may be appended, and then
// room has it. access is what its chat allows: allowed, stopped, blocked or left.
func (c Connection) Replay(expiresAt time.Time, access string, size int64, room *Room, now time.Time) RefusedFor {
	if refusal := c.Stopped(); refusal != nil {
		return RefusedFor(refusal.Code)
	}
	switch access {
	case "stopped":
		return ChatStopped
	case "blocked":
		return ChatBlocked
	case "left":
		return ChatLeft
	}
	if !now.Before(expiresAt) {
		return Expired
	}
	if room.Waiting >= MaxWaiting || room.Bytes+size > MaxWaitingBytes {
		return RefusedFor(QueueFull)
	}
	room.Waiting++
	room.Bytes += size
	return ""
}
