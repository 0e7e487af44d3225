package queue

import (
	"context"
	"errors"
	"sync"

	"mybots/delivery"
)

// Appends of concurrent callers are committed in groups: a group is what
// arrived while the last commit ran. Nobody waits on purpose, so a lone caller
// pays one commit, and many callers share one.

const (
	// appendWriters is how many write side by side, each for its own bots: two
	// groups with a bot in common would only wait for each other's lock.
	appendWriters = 2
	groupEvents   = 1000    // events of one group at the most
	groupBytes    = 8 << 20 // payload bytes of one group at the most
)

// errClosed is what appends get while the process stops.
var errClosed = errors.New("the queue is closing")

// entry is one caller's events on their way through a group.
type entry struct {
	events  []delivery.Event
	places  []int // of the events among all that the caller brought
	size    int
	results []Appended
	err     error
	done    chan struct{}
}

// group collects entries and hands them to its writer.
type group struct {
	write   func(context.Context, []*entry)
	mu      sync.Mutex
	more    *sync.Cond
	waiting []*entry
	closed  bool
	writer  sync.WaitGroup
}

// newGroup starts the writer; it ends with close.
func newGroup(write func(context.Context, []*entry)) *group {
	g := &group{write: write}
	g.more = sync.NewCond(&g.mu)
	g.writer.Go(g.run)
	return g
}

// add puts the entry into the next group.
func (g *group) add(e *entry) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return errors.Join(delivery.ErrUnavailable, errClosed)
	}
	g.waiting = append(g.waiting, e)
	g.more.Signal()
	return nil
}

// wait waits until the entry's commit is durable, or failed. When ctx ends first
// the events may still be written.
func (e *entry) wait(ctx context.Context) error {
	select {
	case <-e.done:
		return e.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *group) run() {
	for {
		g.mu.Lock()
		for len(g.waiting) == 0 && !g.closed {
			g.more.Wait()
		}
		batch := g.next()
		g.mu.Unlock()
		if len(batch) == 0 {
			return // closed, and all that came before is written
		}
		g.write(context.Background(), batch)
		for _, e := range batch {
			close(e.done)
		}
	}
}

// next takes entries off the front up to a group's limits. The lock is held.
func (g *group) next() []*entry {
	n, events, bytes := 0, 0, 0
	for n < len(g.waiting) {
		e := g.waiting[n]
		if n > 0 && (events+len(e.events) > groupEvents || bytes+e.size > groupBytes) {
			break
		}
		events, bytes, n = events+len(e.events), bytes+e.size, n+1
	}
	batch := g.waiting[:n:n]
	g.waiting = g.waiting[n:]
	if len(g.waiting) == 0 {
		g.waiting = nil // let go of the array
	}
	return batch
}

func (g *group) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.more.Broadcast()
	g.writer.Wait()
}
