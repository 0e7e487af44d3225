package queue

import (
	"context"
	"errors"
	"sync"

	"mybots/delivery"
)

// Writes of concurrent callers are committed in groups: a group is what arrived
// while the last commit ran. Nobody waits on purpose, so a lone caller pays one
// commit, and many callers share one. Appends and confirmations go this way.

// errClosed is what writes get while the process stops.
var errClosed = errors.New("the queue is closing")

// entry is what one caller brings.
type entry interface {
	weight() (items, bytes int)
	turn() *turn
}

// turn is an entry's way through a group: done is closed once err holds.
type turn struct {
	err  error
	done chan struct{}
}

func newTurn() turn { return turn{done: make(chan struct{})} }

// wait waits until the entry's commit is durable, or failed. When ctx ends first
// it may still be written.
func (t *turn) wait(ctx context.Context) error {
	select {
	case <-t.done:
		return t.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// group collects entries and hands them to its writer.
type group[E entry] struct {
	write              func(context.Context, []E)
	maxItems, maxBytes int // of one group
	mu                 sync.Mutex
	more               *sync.Cond
	waiting            []E
	closed             bool
	writer             sync.WaitGroup
}

// newGroup starts the writer; it ends with close.
func newGroup[E entry](maxItems, maxBytes int, write func(context.Context, []E)) *group[E] {
	g := &group[E]{write: write, maxItems: maxItems, maxBytes: maxBytes}
	g.more = sync.NewCond(&g.mu)
	g.writer.Go(g.run)
	return g
}

// add puts the entry into the next group.
func (g *group[E]) add(e E) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return errors.Join(delivery.ErrUnavailable, errClosed)
	}
	g.waiting = append(g.waiting, e)
	g.more.Signal()
	return nil
}

func (g *group[E]) run() {
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
			close(e.turn().done)
		}
	}
}

// next takes entries off the front up to a group's limits. The lock is held.
func (g *group[E]) next() []E {
	n, items, bytes := 0, 0, 0
	for n < len(g.waiting) {
		i, b := g.waiting[n].weight()
		if n > 0 && (items+i > g.maxItems || bytes+b > g.maxBytes) {
			break
		}
		items, bytes, n = items+i, bytes+b, n+1
	}
	batch := g.waiting[:n:n]
	g.waiting = g.waiting[n:]
	if len(g.waiting) == 0 {
		g.waiting = nil // let go of the array
	}
	return batch
}

func (g *group[E]) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.more.Broadcast()
	g.writer.Wait()
}
