package delivery

import (
	"sync"
	"time"
)

// Clock is the product's time (G-05). Everything that decides anything, timers
// included, asks it and nothing else; spans for logs are measured with
// time.Since.
type Clock interface {
	// Now returns the time in UTC, in whole microseconds: PostgreSQL keeps no more.
	Now() time.Time
	// At returns a channel that is closed once the clock has reached t, and a
	// function that gives the timer up. Calling it twice is harmless.
	At(t time.Time) (<-chan struct{}, func())
}

// ShiftedClock is the real clock plus a shift that can only grow. With a shift
// of zero it is the real clock. The zero value is ready.
type ShiftedClock struct {
	mu     sync.Mutex
	shift  time.Duration
	timers map[*timer]struct{}
}

type timer struct {
	at   time.Time // on the shifted clock
	done chan struct{}
	real *time.Timer
}

// NewClock returns a clock that runs ahead of the real one by shift.
func NewClock(shift time.Duration) *ShiftedClock { return &ShiftedClock{shift: shift} }

// Now implements Clock.
func (c *ShiftedClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

func (c *ShiftedClock) now() time.Time {
	return time.Now().Add(c.shift).UTC().Truncate(time.Microsecond)
}

// Shift returns how far the clock runs ahead.
func (c *ShiftedClock) Shift() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shift
}

// SetShift moves the clock ahead and fires what has come due. A smaller shift
// than the present one is ignored: time doesn't go back.
func (c *ShiftedClock) SetShift(shift time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if shift <= c.shift {
		return
	}
	c.shift = shift
	for t := range c.timers {
		c.look(t)
	}
}

// At implements Clock.
func (c *ShiftedClock) At(at time.Time) (<-chan struct{}, func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &timer{at: at, done: make(chan struct{})}
	left := at.Sub(c.now())
	if left <= 0 {
		close(t.done)
		return t.done, func() {}
	}
	if c.timers == nil {
		c.timers = map[*timer]struct{}{}
	}
	c.timers[t] = struct{}{}
	t.real = time.AfterFunc(left, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.look(t)
	})
	return t.done, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		t.real.Stop()
		delete(c.timers, t)
	}
}

// look fires a timer that has come due and sets any other going again: the
// shift may have moved, and now() is rounded down, so it can be early by less
// than a microsecond. The lock is held.
func (c *ShiftedClock) look(t *timer) {
	if _, running := c.timers[t]; !running {
		return
	}
	if left := t.at.Sub(c.now()); left > 0 {
		t.real.Reset(left)
		return
	}
	delete(c.timers, t)
	t.real.Stop()
	close(t.done)
}
