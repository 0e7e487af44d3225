package webhook

import (
	"container/list"
	"sync"

	"mybots/delivery"
)

// maxKept connections are kept in all, one for a bot; the one that was used least
// recently goes.
const maxKept = 2000

// kept holds the connections between requests.
type kept struct {
	clock delivery.Clock
	limit int

	mu     sync.Mutex
	closed bool
	byBot  map[int64]*list.Element // of order
	order  *list.List              // of *link, the last used first
}

func newKept(clock delivery.Clock, limit int) *kept {
	return &kept{clock: clock, limit: limit, byBot: map[int64]*list.Element{}, order: list.New()}
}

// take returns the bot's connection if it is good for a request under these
// settings, else nil. Whatever it was, it is kept no longer.
func (k *kept) take(botID, version int64, host string) *link {
	l := k.remove(botID, nil)
	switch {
	case l == nil:
		return nil
	case l.version != version || l.host != host || !k.clock.Now().Before(l.end()):
		l.leave()
		return nil
	case !l.claim():
		return nil
	}
	return l
}

// put keeps a connection until it is 60 s old (W-02), in the place of any other of
// the bot.
func (k *kept) put(l *link) {
	old := k.remove(l.botID, nil)

	k.mu.Lock()
	closed := k.closed
	var oldest *link
	if !closed {
		k.keep(l)
		if k.order.Len() > k.limit {
			oldest = k.order.Back().Value.(*link)
		}
	}
	k.mu.Unlock()

	if closed {
		l.drop()
	}
	if old != nil {
		old.leave()
	}
	if oldest != nil {
		k.expire(oldest)
	}
}

// keep books a link, watches it and its age. The lock is held, so that nobody takes
// the link before all of that runs.
func (k *kept) keep(l *link) {
	over := make(chan struct{})
	l.over = over
	k.byBot[l.botID] = k.order.PushFront(l)
	l.watch(func() {
		if k.remove(l.botID, l) != nil {
			close(over)
		}
	})
	due, giveUp := k.clock.At(l.end())
	go func() { // ends when the link is 60 s old, or with the keeping
		defer giveUp()
		select {
		case <-due:
			k.expire(l)
		case <-over:
		}
	}()
}

// expire closes a connection unless someone else has taken it.
func (k *kept) expire(l *link) {
	if k.remove(l.botID, l) != nil {
		l.leave()
	}
}

// remove takes the bot's connection out of the books and returns it, for the caller
// to end its watch. With only set, it must be that one. nil: there is none.
func (k *kept) remove(botID int64, only *link) *link {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.byBot[botID]
	if e == nil || only != nil && e.Value.(*link) != only {
		return nil
	}
	delete(k.byBot, botID)
	return k.order.Remove(e).(*link)
}

// close closes all connections, and every one that comes later.
func (k *kept) close() {
	k.mu.Lock()
	k.closed = true
	var all []*link
	for e := k.order.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(*link))
	}
	k.mu.Unlock()
	for _, l := range all {
		k.expire(l)
	}
}
