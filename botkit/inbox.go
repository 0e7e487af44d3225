package botkit

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Item is an update in an Inbox.
type Item struct {
	EventID  string // unique in the inbox
	UpdateID ID
	Key      string // items with one key are handled in order, one at a time
	Raw      []byte // the update as it came
	Received time.Time
	Failures int       // how often handling it has failed
	Due      time.Time // not before
	Note     string    // why it failed last, or is parked
}

// ItemState is what became of an item.
type ItemState int

// The states of an item.
const (
	ItemWaiting ItemState = iota
	ItemHandled           // done; its event id is remembered, its bytes needn't be
	ItemParked            // given up on: a person has to look at it
)

// Settlement says what becomes of an item now.
type Settlement struct {
	State ItemState
	Due   time.Time // with ItemWaiting: when to try again
	Note  string    // with ItemWaiting and ItemParked; holds nothing of the update
}

// InboxCounts is how much an inbox holds.
type InboxCounts struct{ Waiting, Parked int }

// Inbox is durable storage between receiving and handling, of one bot, used by
// one process. It keeps what it took over restarts; a call that returned nil has
// stored everything, one that returned an error nothing. Package sqlitestore has
// one; MemoryInbox is for tests.
type Inbox interface {
	// Load returns the position that Put stored last, the zero one if none.
	Load(ctx context.Context) (Position, error)
	// Put stores, in one transaction, the items whose event ids are new, in this
	// order, and the position if it isn't nil. added is how many were new.
	Put(ctx context.Context, items []Item, p *Position) (added int, err error)
	// Heads returns the oldest waiting item of each key, at most limit: first those
	// that are due at now, oldest first, then the others, soonest due first.
	Heads(ctx context.Context, now time.Time, limit int) ([]Item, error)
	// Settle says what became of a waiting item; ItemWaiting adds one to Failures.
	Settle(ctx context.Context, eventID string, s Settlement) error
	// Counts tells how much waits and is parked.
	Counts(ctx context.Context) (InboxCounts, error)
	// Purge forgets the handled items that were received before a time.
	Purge(ctx context.Context, before time.Time) error
}

// MemoryInbox is an Inbox that forgets when the process ends, for tests.
type MemoryInbox struct {
	mu    sync.Mutex
	p     Position
	items []*memoryItem
	known map[string]*memoryItem
}

type memoryItem struct {
	Item
	state ItemState
}

// NewMemoryInbox returns an empty inbox.
func NewMemoryInbox() *MemoryInbox { return &MemoryInbox{known: map[string]*memoryItem{}} }

// Load implements Inbox.
func (m *MemoryInbox) Load(context.Context) (Position, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.p, nil
}

// Put implements Inbox.
func (m *MemoryInbox) Put(_ context.Context, items []Item, p *Position) (added int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, i := range items {
		if m.known[i.EventID] != nil {
			continue
		}
		kept := &memoryItem{Item: i}
		m.known[i.EventID], m.items = kept, append(m.items, kept)
		added++
	}
	if p != nil {
		m.p = *p
	}
	return added, nil
}

// Heads implements Inbox.
func (m *MemoryInbox) Heads(_ context.Context, now time.Time, limit int) ([]Item, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var heads []Item
	seen := map[string]bool{}
	for _, i := range m.items {
		if i.state == ItemWaiting && !seen[i.Key] {
			seen[i.Key] = true
			heads = append(heads, i.Item)
		}
	}
	slices.SortStableFunc(heads, func(a, b Item) int {
		if !a.Due.After(now) && !b.Due.After(now) {
			return 0
		}
		return a.Due.Compare(b.Due)
	})
	return heads[:min(limit, len(heads))], nil
}

// Settle implements Inbox.
func (m *MemoryInbox) Settle(_ context.Context, eventID string, s Settlement) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.known[eventID]
	if i == nil || i.state != ItemWaiting {
		return fmt.Errorf("event %s doesn't wait in the inbox", eventID)
	}
	i.state, i.Due, i.Note = s.State, s.Due, s.Note
	switch s.State {
	case ItemWaiting:
		i.Failures++
	case ItemHandled:
		i.Raw = nil
	}
	return nil
}

// Counts implements Inbox.
func (m *MemoryInbox) Counts(context.Context) (InboxCounts, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var c InboxCounts
	for _, i := range m.items {
		switch i.state {
		case ItemWaiting:
			c.Waiting++
		case ItemParked:
			c.Parked++
		}
	}
	return c, nil
}

// Purge implements Inbox.
func (m *MemoryInbox) Purge(_ context.Context, before time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.items = slices.DeleteFunc(m.items, func(i *memoryItem) bool {
		old := i.state == ItemHandled && i.Received.Before(before)
		if old {
			delete(m.known, i.EventID)
		}
		return old
	})
	return nil
}
