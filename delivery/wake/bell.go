// Package wake tells those who wait for a bot's updates that it is time to
// look: a bell in the process, and between the replicas by NOTIFY.
package wake

import (
	"maps"
	"slices"
	"sync"
)

// Bell wakes those who wait for a bot. Ringing says only «look again»: who is
// woken looks at the queue itself.
type Bell struct {
	mu      sync.Mutex
	waiting map[int64]map[*Wait]struct{}
	each    func(botID int64) // hears every ring; nil: nobody
	all     func()
	closing chan struct{}
	once    sync.Once
}

// NewBell returns a bell that nobody waits for yet.
func NewBell() *Bell {
	return &Bell{waiting: map[int64]map[*Wait]struct{}{}, closing: make(chan struct{})}
}

// Wait is one who waits. Rings that come while nobody reads are kept, as one.
type Wait struct {
	C     <-chan struct{} // a ring
	c     chan struct{}
	bell  *Bell
	botID int64
}

// Wait registers a waiter for a bot; it must Stop. Register before looking at
// the queue, so that nothing falls between the look and the wait.
func (b *Bell) Wait(botID int64) *Wait {
	c := make(chan struct{}, 1)
	w := &Wait{C: c, c: c, bell: b, botID: botID}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting[botID] == nil {
		b.waiting[botID] = map[*Wait]struct{}{}
	}
	b.waiting[botID][w] = struct{}{}
	return w
}

// Stop ends the wait. Calling it twice is harmless.
func (w *Wait) Stop() {
	w.bell.mu.Lock()
	defer w.bell.mu.Unlock()
	waiters := w.bell.waiting[w.botID]
	delete(waiters, w)
	if len(waiters) == 0 {
		delete(w.bell.waiting, w.botID)
	}
}

// Observe sets who hears every ring, each for a bot and all for everybody's.
// They are called on the ringer's time and must be quick.
func (b *Bell) Observe(each func(botID int64), all func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.each, b.all = each, all
}

// Ring wakes all who wait for the bot in this process.
func (b *Bell) Ring(botID int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for w := range b.waiting[botID] {
		w.ring()
	}
	if b.each != nil {
		b.each(botID)
	}
}

// RingAll wakes everybody: when it isn't known who has a reason to look.
func (b *Bell) RingAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, waiters := range b.waiting {
		for w := range waiters {
			w.ring()
		}
	}
	if b.all != nil {
		b.all()
	}
}

func (w *Wait) ring() {
	select {
	case w.c <- struct{}{}:
	default: // one ring is waiting already
	}
}

// Waiting returns the bots that somebody waits for.
func (b *Bell) Waiting() []int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.waiting))
}

// Close ends all waits, now and later: the process stops (G-04). Calling it
// twice is harmless.
func (b *Bell) Close() { b.once.Do(func() { close(b.closing) }) }

// Closing is closed by Close.
func (b *Bell) Closing() <-chan struct{} { return b.closing }
