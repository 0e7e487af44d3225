package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// sink is the endpoint of many bots: it reads a request, books it and answers 204.
type sink struct {
	scheme string
	port   string
	roots  *x509.CertPool // that sign for it; nil without TLS
	pem    []byte         // the same
	server *http.Server

	boxes  sync.Map // bot → *box
	events atomic.Pointer[map[string]*hookEvent]
	left   atomic.Int64
	full   atomic.Pointer[chan struct{}] // closed when left is down to zero
}

// box is what came for one bot.
type box struct {
	mu       sync.Mutex
	last     int64 // the highest update_id
	inverted int   // came after a higher one
	repeated int   // the highest one came again
	underway int   // are being answered
	overlaps int   // came while another was being answered
}

// newSink starts a sink on the loopback.
func newSink(secure bool) (*sink, error) {
	s := &sink{scheme: "http"}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	_, s.port, _ = net.SplitHostPort(listener.Addr().String())
	if secure {
		certificate, authority, err := newCertificate()
		if err != nil {
			return nil, errors.Join(err, listener.Close())
		}
		s.scheme, s.roots = "https", x509.NewCertPool()
		s.roots.AddCert(authority)
		s.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Raw})
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{certificate}})
	}
	s.server = &http.Server{Handler: s, ErrorLog: log.New(io.Discard, "", 0)} // a connection that its bot leaves is no news
	go func() { _ = s.server.Serve(listener) }()                              // ends with close; what goes wrong before shows in the deliveries
	return s, nil
}

func (s *sink) close() error { return s.server.Close() }

// address is the webhook of a bot.
func (s *sink) address(bot int64) string {
	return s.scheme + "://127.0.0.1:" + s.port + "/" + strconv.FormatInt(bot, 10)
}

// ServeHTTP takes a request.
func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	bot, err := strconv.ParseInt(strings.TrimPrefix(r.URL.Path, "/"), 10, 64)
	id, errID := strconv.ParseInt(r.Header.Get("X-SMeet-Update-Id"), 10, 64)
	if err != nil || errID != nil {
		http.Error(w, "what is this?", http.StatusBadRequest)
		return
	}
	found, _ := s.boxes.LoadOrStore(bot, &box{})
	b := found.(*box)
	b.begin(id)
	defer b.end()
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return // the client is gone
	}
	if events := s.events.Load(); events != nil {
		if e := (*events)[r.Header.Get("X-SMeet-Event-Id")]; e != nil {
			e.arrive()
		}
	}
	if s.left.Add(-1) == 0 {
		close(*s.full.Load())
	}
	w.WriteHeader(http.StatusNoContent)
}

func (b *box) begin(id int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.underway++; b.underway > 1 {
		b.overlaps++
	}
	switch {
	case id < b.last:
		b.inverted++
	case id == b.last:
		b.repeated++
	}
	b.last = max(b.last, id)
}

func (b *box) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.underway--
}

// expect forgets what came before; the channel closes with the n-th request
// from now on. events, if any, learn when they arrive.
func (s *sink) expect(n int, events map[string]*hookEvent) <-chan struct{} {
	s.boxes.Clear()
	full := make(chan struct{})
	s.full.Store(&full)
	s.left.Store(int64(n))
	if events == nil {
		s.events.Store(nil)
	} else {
		s.events.Store(&events)
	}
	return full
}

// faults are what must not happen (W-05).
type faults struct {
	Inverted int `json:"inversions"` // an update after a later one of its bot
	Repeated int `json:"repeats"`    // an update a second time
	Overlaps int `json:"overlaps"`   // two requests of a bot at a time
	Lost     int `json:"lost"`       // never came
	Refused  int `json:"refused"`    // calls of intake that got 503 and were repeated
}

func (f faults) sum() int { return f.Inverted + f.Repeated + f.Overlaps + f.Lost + f.Refused }

func (f *faults) add(g faults) {
	f.Inverted, f.Repeated, f.Overlaps = f.Inverted+g.Inverted, f.Repeated+g.Repeated, f.Overlaps+g.Overlaps
	f.Lost, f.Refused = f.Lost+g.Lost, f.Refused+g.Refused
}

func (s *sink) faults() (f faults) {
	s.boxes.Range(func(_, v any) bool {
		b := v.(*box)
		b.mu.Lock()
		defer b.mu.Unlock()
		f.add(faults{Inverted: b.inverted, Repeated: b.repeated, Overlaps: b.overlaps})
		return true
	})
	return f
}

// awaitFull waits until a sink has all that it expects.
func awaitFull(ctx context.Context, full <-chan struct{}) error {
	select {
	case <-full:
		return nil
	case <-time.After(lostAfter):
		return fmt.Errorf("not all updates came to their webhooks within %v", lostAfter)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// newCertificate makes a certificate for 127.0.0.1 and the authority that signs it.
func newCertificate() (tls.Certificate, *x509.Certificate, error) {
	var keys [2]*ecdsa.PrivateKey
	for i := range keys {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return tls.Certificate{}, nil, err
		}
		keys[i] = key
	}
	now := time.Now()
	root := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	rootDER, err := x509.CreateCertificate(rand.Reader, root, root, keys[0].Public(), keys[0])
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, root, keys[1].Public(), keys[0])
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	authority, err := x509.ParseCertificate(rootDER)
	return tls.Certificate{Certificate: [][]byte{leafDER}, PrivateKey: keys[1]}, authority, err
}
