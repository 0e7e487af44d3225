package queue

import "sync"

type chat struct{ botID, chatID int64 }

// seen remembers chats that are in the database, to spare looking for them
// with every event. It holds at most twice its size; a chat that it forgot is
// only looked for once more.
type seen struct {
	mu         sync.Mutex
	size       int
	young, old map[chat]struct{}
}

func newSeen(size int) *seen { return &seen{size: size, young: map[chat]struct{}{}} }

func (s *seen) has(c chat) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.young[c]; ok {
		return true
	}
	if _, ok := s.old[c]; ok {
		s.put(c)
		return true
	}
	return false
}

func (s *seen) add(c chat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(c)
}

// put adds to the young half, which becomes the old one when it is full.
func (s *seen) put(c chat) {
	if len(s.young) >= s.size {
		s.young, s.old = map[chat]struct{}{}, s.young
	}
	s.young[c] = struct{}{}
}

// held remembers the bots whose queues somebody held for long when they were
// last written to.
type held struct {
	mu   sync.Mutex
	bots map[int64]struct{}
}

func (h *held) has(botID int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.bots[botID]
	return ok
}

func (h *held) set(botID int64, is bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !is {
		delete(h.bots, botID)
		return
	}
	if h.bots == nil {
		h.bots = map[int64]struct{}{}
	}
	h.bots[botID] = struct{}{}
}
