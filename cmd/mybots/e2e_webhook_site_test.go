package main_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// authority is the certificate authority of all tests (MYBOTS_WEBHOOK_CA_FILE).
var authority = sync.OnceValue(func() tls.Certificate {
	return certificate(tls.Certificate{}, &x509.Certificate{
		Subject: pkix.Name{CommonName: "Test authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotAfter: time.Now().Add(time.Hour),
	})
})

var goodCertificate = sync.OnceValue(func() tls.Certificate {
	return certificate(authority(), &x509.Certificate{DNSNames: []string{"*.example.test"}, NotAfter: time.Now().Add(time.Hour)})
})

// certificate makes one that by signs; with none it signs itself.
func certificate(by tls.Certificate, template *x509.Certificate) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore = time.Now().Add(-2 * time.Hour)
	parent, signer := template, any(key)
	if by.PrivateKey != nil {
		parent, signer = by.Leaf, by.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		panic(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// site is where the owners' endpoints are: one TLS server on the loopback, where
// each endpoint has a name of its own.
type site struct {
	names *nameServer
	port  string

	mu          sync.Mutex
	sinks       map[string]*sink           // by name
	certs       map[string]tls.Certificate // of names that have another one than goodCertificate
	connections atomic.Int64
}

func newSite(t testing.TB) *site {
	t.Helper()
	e := &site{names: newNameServer(t), sinks: map[string]*sink{}, certs: map[string]tls.Certificate{}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, e.port, _ = net.SplitHostPort(l.Addr().String())
	web := &http.Server{
		Handler:      http.HandlerFunc(e.serve),
		ErrorLog:     log.New(io.Discard, "", 0),                                                   // broken connections are what these tests make
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},                     // HTTP/1.1 alone
		TLSConfig:    &tls.Config{GetCertificate: e.certificate, NextProtos: []string{"http/1.1"}}, // by name
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, connNumber{}, e.connections.Add(1))
		},
	}
	served := make(chan error, 1)
	go func() { served <- web.ServeTLS(l, "", "") }() // ends with Close
	t.Cleanup(func() {
		if err := web.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return e
}

// connNumber is the key of a connection's number in a request's context.
type connNumber struct{}

func (e *site) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c, ok := e.certs[hello.ServerName]; ok {
		return &c, nil
	}
	c := goodCertificate()
	return &c, nil
}

// present lets the endpoint show another certificate than the good one.
func (e *site) present(k *sink, c tls.Certificate) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.certs[k.host] = c
}

// mended lets the endpoint show the good certificate again.
func (e *site) mended(k *sink) { e.present(k, goodCertificate()) }

func (e *site) serve(w http.ResponseWriter, r *http.Request) {
	host, _, _ := strings.Cut(r.Host, ":")
	e.mu.Lock()
	k := e.sinks[host]
	e.mu.Unlock()
	if k == nil || r.URL.Path != "/hook" || r.URL.RawQuery != k.query {
		http.NotFound(w, r)
		return
	}
	k.serve(w, r)
}

// settings are those that let a world's processes reach the site.
func (e *site) settings(t testing.TB) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "authority.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority().Certificate[0]})
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return []string{
		"MYBOTS_WEBHOOK_CA_FILE=" + file, "MYBOTS_WEBHOOK_ALLOW_CIDRS=127.0.0.0/8",
		"MYBOTS_WEBHOOK_ALLOW_PORTS=" + e.port, "MYBOTS_WEBHOOK_RESOLVER=" + e.names.address,
	}
}

var sinkNumber atomic.Int64

// sink adds an endpoint that answers 200 until a test gives it something else to do.
func (e *site) sink() *sink {
	k := &sink{host: fmt.Sprintf("hook-%d.example.test", sinkNumber.Add(1)), query: "token=" + rand.Text(), bell: make(chan struct{}, 1), otherwise: says(200)}
	k.url = "https://" + k.host + ":" + e.port + "/hook?" + k.query
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sinks[k.host] = k
	return k
}
