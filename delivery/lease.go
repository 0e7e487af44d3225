package delivery

import (
	"strconv"
	"time"
)

// Mode is how a bot receives its updates.
type Mode string

// The two modes (contract, parts 3 and 5).
const (
	Polling Mode = "polling"
	Webhook Mode = "webhook"
)

// Connection is what a bot's queue row says about who may receive. The rules
// below decide from it and return it changed; the row's lock makes the decision
// and the write one.
type Connection struct {
	Mode        Mode
	Deleted     bool // its token is dead (M-09)
	Paused      bool // by the owner (M-07)
	Disabled    bool // its space runs no bots (P-16)
	Maintenance bool // the platform's (P-16)

	NextUpdateID int64 // the id that the next update will get (U-02)
	Confirmed    int64 // the position (P-10)
	MaxIssued    int64 // the highest update_id that any answer ever held

	Epoch      int64  // the last one given; 0 before the first lease
	EpochLost  bool   // true: the last epoch is foreign too (P-08), and before the first lease
	ConsumerID string // who was given Epoch
	LeaseSince time.Time
	LeaseUntil time.Time // the lease is active before this moment (P-04)
	PollUntil  time.Time // a poll waits before this moment; zero: none (P-05, P-09)
	Ticket     int64     // counts the polls that waited, so that each knows its own wait

	LeaseMaxIssued  int64 // the highest update_id issued to the current lease
	LeaseNextOffset int64 // the next_offset last returned for it (P-10, P-15)

	Tokens   float64   // what the rate limit's bucket held at TokensAt (P-03)
	TokensAt time.Time // zero: the bucket is full
}

// Poll is one getUpdates call, its fields checked (P-01).
type Poll struct {
	ConsumerID string
	HasEpoch   bool
	Epoch      int64
	HasOffset  bool
	Offset     int64
	Timeout    time.Duration
	Limit      int
}

// Active tells whether somebody holds the lease at now.
func (c Connection) Active(now time.Time) bool { return now.Before(c.LeaseUntil) }

// Waiting tells whether a poll still counts as waiting at now (P-09).
func (c Connection) Waiting(now time.Time) bool { return now.Before(c.PollUntil) }

// Receive judges one getUpdates call by the rules of part 3, in the order of
// rate, the bot's state, the lease, the offset. It returns the connection
// to be written whatever the verdict, and the refusal, nil when the call may go
// on. When it may, Confirmed is the position it confirmed up to, and the caller
// is the holder of the lease; Wait or Answer must follow.
func (c Connection) Receive(call Poll, now time.Time) (Connection, *Refusal) {
	c, refusal := c.charge(now)
	if refusal != nil {
		return c, refusal
	}
	if refusal := c.closed(); refusal != nil {
		return c, refusal
	}

	holder := c.Active(now) && call.ConsumerID == c.ConsumerID && c.current(call)
	switch {
	case c.Active(now) && !holder:
		return c, conflict("another getUpdates call holds the lease of this bot", c.LeaseUntil.Sub(now))
	case c.Waiting(now):
		return c, conflict("a getUpdates call of this bot is still waiting", c.PollUntil.Sub(now))
	}

	// P-06: nobody took the expired lease since, so its epoch still proves what
	// was received. P-07: any other call confirms nothing.
	if call.HasOffset && (holder || c.current(call)) {
		if refusal := c.confirm(call.Offset, holder); refusal != nil {
			if holder { // P-11
				c.LeaseUntil = now.Add(LeaseTime)
			}
			return c, refusal
		}
		c.Confirmed = call.Offset
	}

	if !holder {
		c.Epoch++
		c.EpochLost = false
		c.ConsumerID = call.ConsumerID
		c.LeaseSince = now
		c.LeaseMaxIssued, c.LeaseNextOffset = 0, 0
	}
	return c, nil
}

// current tells whether the call carries the last epoch and that one still counts.
func (c Connection) current(call Poll) bool {
	return call.HasEpoch && call.Epoch == c.Epoch && !c.EpochLost
}

// confirm is the table of P-10.
func (c Connection) confirm(offset int64, holder bool) *Refusal {
	switch {
	case offset == c.Confirmed:
		return nil
	case offset < c.Confirmed:
		return &Refusal{
			Code:            CursorBehind,
			Message:         "offset is below the confirmed position " + id(c.Confirmed) + "; nothing is sent again, go on from confirmed_offset",
			ConfirmedOffset: c.Confirmed,
		}
	case offset-1 <= c.MaxIssued:
		return nil
	case holder && offset == c.LeaseNextOffset: // P-15: a jump belongs to its lease
		return nil
	}
	return Refuse(OffsetNotIssued, "offset is above what has been issued (max_issued_update_id is "+id(c.MaxIssued)+
		") and is no next_offset of this lease; call getUpdates without offset to go on from the confirmed position")
}

// closed says why the bot receives nothing by long polling now, nil if it may (P-16).
func (c Connection) closed() *Refusal {
	if refusal := c.Stopped(); refusal != nil {
		return refusal
	}
	if c.Mode != Polling {
		return Refuse(DeliveryModeConflict, "this bot receives by webhook; its owner can switch to long polling on the Connection screen")
	}
	return nil
}

// Stopped says why the bot may do nothing now, whatever its mode; nil if it may.
func (c Connection) Stopped() *Refusal {
	switch {
	case c.Deleted:
		return Refuse(Unauthorized, UnauthorizedMessage)
	case c.Maintenance:
		return &Refusal{Code: Maintenance, Message: "the platform is in maintenance; updates keep waiting in the queue", RetryAfter: maintenanceWait}
	case c.Disabled:
		return Refuse(BotDisabled, "the space of this bot runs no bots at present; its administrator can switch them on")
	case c.Paused:
		return Refuse(BotPaused, "the owner has paused this bot; it goes on after Resume in My bots")
	}
	return nil
}

// UnauthorizedMessage is the one text of every 401.
const UnauthorizedMessage = "the Authorization header must carry this bot's valid token: Bearer " + BotTokenPrefix + "…"

func conflict(message string, retry time.Duration) *Refusal {
	return &Refusal{Code: ConsumerConflict, Message: message, RetryAfter: max(retry, time.Second)}
}

// charge takes one call from the bucket of P-03. A refused call takes nothing.
func (c Connection) charge(now time.Time) (Connection, *Refusal) {
	tokens := float64(PollsPerSecond)
	if !c.TokensAt.IsZero() {
		tokens = min(tokens, c.Tokens+max(0, now.Sub(c.TokensAt).Seconds())*PollsPerSecond)
	}
	if tokens < 1 {
		wait := time.Duration((1 - tokens) / PollsPerSecond * float64(time.Second))
		return c, &Refusal{
			Code:       RateLimited,
			Message:    "getUpdates may be called " + strconv.Itoa(PollsPerSecond) + " times a second; use timeout to wait for updates",
			RetryAfter: max(wait, time.Millisecond),
		}
	}
	c.Tokens, c.TokensAt = tokens-1, now
	return c, nil
}

// Wait makes the call a waiting poll until its timeout, and names the ticket
// by which it finds its wait again (P-02, P-04).
func (c Connection) Wait(timeout time.Duration, now time.Time) (Connection, Ticket) {
	c.PollUntil = now.Add(timeout)
	c.LeaseUntil = c.PollUntil.Add(LeaseTime)
	c.Ticket++
	return c, Ticket{Number: c.Ticket, Epoch: c.Epoch, Until: c.PollUntil}
}

// Answer ends the call with a batch, empty or not: the lease runs from now, and
// what was issued is remembered (P-04, P-10).
func (c Connection) Answer(b Batch, now time.Time) Connection {
	c.PollUntil = time.Time{}
	c.LeaseUntil = now.Add(LeaseTime)
	c.LeaseNextOffset = b.NextOffset
	if n := len(b.Updates); n > 0 {
		last := b.Updates[n-1].UpdateID
		c.MaxIssued = max(c.MaxIssued, last)
		c.LeaseMaxIssued = max(c.LeaseMaxIssued, last)
	}
	return c
}

// Ticket is what a waiting poll remembers of its wait.
type Ticket struct {
	Number int64
	Epoch  int64
	Until  time.Time
}

// Resume judges a waiting poll that looks again. A nil refusal: it is still the
// one that waits, and may take what is there. Otherwise the poll ends with the
// refusal, and the connection returned is to be written.
func (c Connection) Resume(t Ticket, now time.Time) (Connection, *Refusal) {
	switch {
	case c.Deleted:
		return c, c.closed()
	case c.EpochLost || c.Epoch != t.Epoch:
		if c.Mode != Polling {
			return c, c.closed()
		}
		return c, conflict("the lease was taken away while this call waited", time.Second) // P-08
	case c.Ticket != t.Number:
		return c, conflict("a later getUpdates call of this bot took over", time.Second)
	}
	if refusal := c.closed(); refusal != nil { // P-16: the epoch stays the last
		return c.endPoll(now), refusal
	}
	return c, nil
}

// endPoll ends a wait without an answer of its own: the lease runs out 60 s from now (P-16).
func (c Connection) endPoll(now time.Time) Connection {
	c.PollUntil = time.Time{}
	c.LeaseUntil = now.Add(LeaseTime)
	return c
}

// TakeAway ends the lease and makes the last epoch foreign, whether the lease
// was active or not (P-08).
func (c Connection) TakeAway() Connection {
	c.EpochLost = true
	c.ConsumerID = ""
	c.LeaseSince, c.LeaseUntil, c.PollUntil = time.Time{}, time.Time{}, time.Time{}
	c.LeaseMaxIssued, c.LeaseNextOffset = 0, 0
	return c
}

// Pause sets whether the owner has paused the bot. A poll that waits ends then,
// its lease 60 s later (M-07, P-16).
func (c Connection) Pause(paused bool, now time.Time) Connection {
	if paused && c.Waiting(now) {
		c = c.endPoll(now)
	}
	c.Paused = paused
	return c
}

// Rejection is one rejectUpdate call, its fields checked.
type Rejection struct {
	UpdateID   int64
	Reason     string
	ConsumerID string
	Epoch      int64
}

// Reject judges a rejectUpdate call by R-02. A nil refusal: the update may be
// rejected if it is waiting still; the lease is kept (P-04).
func (c Connection) Reject(r Rejection, now time.Time) (Connection, *Refusal) {
	if refusal := c.closed(); refusal != nil {
		return c, refusal
	}
	switch {
	case !c.Active(now):
		return c, conflict("no lease is active; call getUpdates first", time.Second)
	case r.ConsumerID != c.ConsumerID || c.EpochLost || r.Epoch != c.Epoch:
		return c, conflict("consumer_id and epoch are not those of the active lease", c.LeaseUntil.Sub(now))
	}
	if until := now.Add(LeaseTime); until.After(c.LeaseUntil) {
		c.LeaseUntil = until
	}
	if r.UpdateID < c.Confirmed || r.UpdateID > c.LeaseMaxIssued {
		return c, Refuse(UpdateNotFound, "update "+id(r.UpdateID)+" is not issued to this lease and unconfirmed; only such updates can be rejected")
	}
	return c, nil
}

func id(n int64) string { return strconv.FormatInt(n, 10) }
