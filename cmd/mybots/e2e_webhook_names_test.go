package main_test

import (
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// nameServer is the DNS server of a world's webhooks (MYBOTS_WEBHOOK_RESOLVER).
// Every name of example.test leads to 127.0.0.1, but for those that a test lets
// lead elsewhere.
type nameServer struct {
	address string

	mu    sync.Mutex
	zone  map[string][]string
	asked map[string]int // questions for A records
}

func newNameServer(t testing.TB) *nameServer {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &nameServer{address: c.LocalAddr().String(), zone: map[string][]string{}, asked: map[string]int{}}
	var wg sync.WaitGroup
	wg.Go(func() { // ends with the socket
		b := make([]byte, 4096)
		for {
			size, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			if answer := n.answer(b[:size]); answer != nil {
				if _, err := c.WriteTo(answer, from); err != nil {
					return
				}
			}
		}
	})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
	return n
}

// lead lets a name lead to these addresses; to none: there is no such name.
func (n *nameServer) lead(name string, to ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.zone[name] = to
}

// lookups is how often the name was looked up.
func (n *nameServer) lookups(name string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asked[name]
}

func (n *nameServer) answer(query []byte) []byte {
	var p dnsmessage.Parser
	head, err := p.Start(query)
	if err != nil {
		return nil
	}
	q, err := p.Question()
	if err != nil {
		return nil
	}
	name := strings.TrimSuffix(strings.ToLower(q.Name.String()), ".")
	n.mu.Lock()
	if q.Type == dnsmessage.TypeA {
		n.asked[name]++
	}
	addresses, set := n.zone[name]
	n.mu.Unlock()
	if !set && strings.HasSuffix(name, ".example.test") {
		addresses = []string{"127.0.0.1"}
	}
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: head.ID, Response: true, Authoritative: true, RecursionDesired: head.RecursionDesired, RecursionAvailable: true},
		Questions: []dnsmessage.Question{q},
	}
	if len(addresses) == 0 {
		m.RCode = dnsmessage.RCodeNameError
	}
	if q.Type == dnsmessage.TypeA {
		for _, a := range addresses {
			m.Answers = append(m.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 1},
				Body:   &dnsmessage.AResource{A: netip.MustParseAddr(a).As4()},
			})
		}
	}
	b, err := m.Pack()
	if err != nil {
		return nil
	}
	return b
}
