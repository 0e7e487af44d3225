package webhook

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// record is what the name server says about one name.
type record struct {
	a, aaaa []string
	cname   string
	code    dnsmessage.RCode
	silent  bool
}

// nameServer is a DNS server on the loopback with a zone that tests write.
type nameServer struct {
	address string

	mu    sync.Mutex
	zone  map[string]record
	asked map[string]int // look-ups by name: its A questions
}

func newNameServer(t *testing.T, zone map[string]record) *nameServer {
	t.Helper()
	s := &nameServer{zone: zone, asked: map[string]int{}}
	var stream net.Listener
	var packets net.PacketConn
	var err error
	for range 20 { // both kinds of socket need the same port
		if stream, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		if packets, err = net.ListenPacket("udp", stream.Addr().String()); err == nil {
			break
		}
		stream.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	s.address = stream.Addr().String()
	var wg sync.WaitGroup
	wg.Go(func() { s.servePackets(packets) }) // both end with their socket
	wg.Go(func() { s.serveStream(stream) })
	t.Cleanup(func() {
		packets.Close()
		stream.Close()
		wg.Wait()
	})
	return s
}

func (s *nameServer) set(name string, r record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.zone[name] = r
}

func (s *nameServer) lookups(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[name]
}

func (s *nameServer) servePackets(c net.PacketConn) {
	b := make([]byte, 4096)
	for {
		n, from, err := c.ReadFrom(b)
		if err != nil {
			return
		}
		if answer := s.answer(b[:n]); answer != nil {
			if _, err := c.WriteTo(answer, from); err != nil {
				return
			}
		}
	}
}

func (s *nameServer) serveStream(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err == nil {
			b := make([]byte, binary.BigEndian.Uint16(size[:]))
			if _, err := io.ReadFull(c, b); err == nil {
				if answer := s.answer(b); answer != nil {
					c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...))
				}
			}
		}
		c.Close()
	}
}

func (s *nameServer) answer(query []byte) []byte {
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
	s.mu.Lock()
	if q.Type == dnsmessage.TypeA {
		s.asked[name]++
	}
	r, known := s.zone[name]
	target := s.zone[r.cname]
	s.mu.Unlock()
	if r.silent {
		return nil
	}
	if !known {
		r.code = dnsmessage.RCodeNameError
	}
	m := dnsmessage.Message{
		Header: dnsmessage.Header{
			ID: head.ID, Response: true, Authoritative: true,
			RecursionDesired: head.RecursionDesired, RecursionAvailable: true, RCode: r.code,
		},
		Questions: []dnsmessage.Question{q},
	}
	owner := q.Name
	if r.cname != "" {
		owner = dnsmessage.MustNewName(r.cname + ".")
		m.Answers = append(m.Answers, dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 1},
			Body:   &dnsmessage.CNAMEResource{CNAME: owner},
		})
		r = target
	}
	add := func(body dnsmessage.ResourceBody) {
		m.Answers = append(m.Answers, dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{Name: owner, Class: q.Class, TTL: 1}, Body: body,
		})
	}
	switch q.Type {
	case dnsmessage.TypeA:
		for _, a := range r.a {
			add(&dnsmessage.AResource{A: netip.MustParseAddr(a).As4()})
		}
	case dnsmessage.TypeAAAA:
		for _, a := range r.aaaa {
			add(&dnsmessage.AAAAResource{AAAA: netip.MustParseAddr(a).As16()})
		}
	}
	b, err := m.Pack()
	if err != nil {
		return nil
	}
	return b
}
