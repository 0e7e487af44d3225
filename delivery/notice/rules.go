package notice

import (
	"net/http"
	"time"

	"mybots/delivery"
)

// The limits of a notice (N-04, N-05).
const (
	MaxTries = 8
	MaxAge   = 24 * time.Hour
)

// pauses are those between tries (N-04).
var pauses = [MaxTries - 1]time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, 2 * time.Hour, 6 * time.Hour,
}

// Class is what a route's answer means (N-04).
type Class string

// The classes.
const (
	ClassSent          Class = "sent"
	ClassTemporary     Class = "temporary"     // tried again
	ClassPermanent     Class = "permanent"     // to the manual list
	ClassAuthorisation Class = "authorisation" // the route stops
	ClassUnknown       Class = "unknown"       // it may have arrived: never sent again by itself
)

// Result is what came of one try.
type Result struct {
	Class      Class
	Code       int           // the HTTP status; 0: there was none
	MessageID  string        // that the route gave it
	Reason     string        // why it wasn't sent: some of Whys
	RetryAfter time.Duration // that the route asked for; 0: none
}

// classOf reads the status of an answer to a notice.
func classOf(status int) Class {
	switch {
	case status/100 == 2:
		return ClassSent
	case status == http.StatusUnauthorized:
		return ClassAuthorisation
	case status == http.StatusTooManyRequests, status/100 == 5:
		return ClassTemporary
	}
	return ClassPermanent
}

// outcome is what a Result makes of a notice.
type outcome struct {
	state  State
	due    time.Time // of Retrying
	reason string
}

// judge says what r makes of a notice that has left more tries and whose age
// counts from since (N-04).
func judge(r Result, left int, since, now time.Time) outcome {
	switch r.Class {
	case ClassSent:
		return outcome{state: Sent}
	case ClassPermanent:
		return outcome{state: Dead, reason: r.Reason}
	case ClassAuthorisation:
		return outcome{state: Blocked, reason: r.Reason}
	case ClassUnknown:
		return outcome{state: Uncertain, reason: r.Reason}
	}
	if left <= 0 {
		return outcome{state: Dead, reason: r.Reason + " " + WhyLastTry}
	}
	due := now.Add(max(pauses[MaxTries-1-left], min(r.RetryAfter, time.Hour)))
	if due.Sub(since) >= MaxAge {
		return outcome{state: Dead, reason: r.Reason + " " + WhyNoTime}
	}
	return outcome{state: Retrying, due: due, reason: r.Reason}
}

// situation is what a notice's freshness depends on.
type situation struct {
	Gone     bool // the bot is deleted
	Paused   bool // webhook delivery is paused
	Failed   int  // FAILED updates of the bot
	Unlinked bool // the owner's account at MAX isn't the recipient any more
	Age      time.Duration
}

// stale tells why a notice of this kind is closed instead of sent; "" for one
// that is fresh (N-05).
func (s situation) stale(k delivery.TroubleKind) string {
	switch {
	case s.Gone:
		return WhyBotDeleted
	case s.Unlinked:
		return WhyUnlinked
	case s.Age >= MaxAge:
		return WhyOld
	case k == delivery.TroublePaused && !s.Paused:
		return WhyResumed
	case k == delivery.TroubleFailed && s.Failed == 0:
		return WhyNoneFailed
	}
	return ""
}
