package bottest

import (
	"fmt"
	"slices"
	"time"

	"mybots/botkit"
)

// Raw returns an update as the server hands it over.
func (s *Server) Raw(update botkit.ID) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.find(update).raw)
}

// Position returns confirmed_offset: all updates below it are confirmed.
func (s *Server) Position() botkit.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return id(s.position)
}

// Sent returns the messages that the bot sent.
func (s *Server) Sent() []Sent { return look(s, &s.sent) }

// Answered returns the presses that the bot answered.
func (s *Server) Answered() []Answered { return look(s, &s.answered) }

// Rejected returns the updates that the bot rejected.
func (s *Server) Rejected() []Rejected { return look(s, &s.rejected) }

// Calls returns the requests that came.
func (s *Server) Calls() []Call { return look(s, &s.calls) }

func look[T any](s *Server, list *[]T) []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(*list)
}

// WaitSent waits until the bot has sent n messages, at most 10 s.
func (s *Server) WaitSent(n int) {
	s.t.Helper()
	s.waitFor(fmt.Sprintf("%d messages sent", n), func() bool { return len(s.sent) >= n })
}

// WaitConfirmed waits until all updates below offset are confirmed, at most 10 s.
func (s *Server) WaitConfirmed(offset botkit.ID) {
	s.t.Helper()
	s.waitFor("offset "+string(offset)+" confirmed", func() bool { return id(s.position).Compare(offset) >= 0 })
}

// WaitCalls waits until n calls of a method have come, at most 10 s.
func (s *Server) WaitCalls(method string, n int) {
	s.t.Helper()
	s.waitFor(fmt.Sprintf("%d calls of %s", n, method), func() bool {
		came := 0
		for _, c := range s.calls {
			if c.Method == method {
				came++
			}
		}
		return came >= n
	})
}

func (s *Server) waitFor(what string, there func() bool) {
	s.t.Helper()
	late := time.NewTimer(10 * time.Second)
	defer late.Stop()
	for {
		s.mu.Lock()
		changed, ok := s.changed, there()
		s.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-late.C:
			s.t.Fatalf("bottest: waited 10 s in vain for: %s", what)
		}
	}
}
