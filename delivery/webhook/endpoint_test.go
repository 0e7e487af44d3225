package webhook

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const hookHost = "hooks.example.test"

// authority is a certificate authority of the tests.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

var testCA = sync.OnceValue(func() authority { return newAuthority(nil) })

// newAuthority makes an authority, under another one or by itself.
func newAuthority(parent *authority) authority {
	key := newKey()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "Test " + rand.Text()},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	if parent == nil {
		parent = &authority{template, key}
	}
	return authority{sign(template, key, *parent), key}
}

func newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}

func sign(template *x509.Certificate, key *ecdsa.PrivateKey, by authority) *x509.Certificate {
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, &key.PublicKey, by.key)
	if err != nil {
		panic(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return cert
}

// certificate makes one for hookHost and 127.0.0.1; change can make it a bad one.
func certificate(by authority, change func(*x509.Certificate)) tls.Certificate {
	key := newKey()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: hookHost},
		DNSNames: []string{hookHost, "*.example.test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if change != nil {
		change(template)
	}
	return tls.Certificate{Certificate: [][]byte{sign(template, key, by).Raw}, PrivateKey: key}
}

var goodCertificate = sync.OnceValue(func() tls.Certificate { return certificate(testCA(), nil) })

// received is one request as it came over the wire.
type received struct {
	line    string
	headers []string // as they were written
	body    []byte
	conn    int // which connection, from 1
}

// header returns the value of a header in exactly this spelling.
func (r received) header(name string) string {
	for _, h := range r.headers {
		if v, ok := strings.CutPrefix(h, name+": "); ok {
			return v
		}
	}
	return ""
}

// call is one connection to an endpoint.
type call struct {
	net.Conn
	r  *bufio.Reader
	n  int // from 1
	to *endpoint
}

// request reads a request and books it; nil at the end of the connection.
func (c *call) request() *received {
	r := received{conn: c.n}
	text := textproto.NewReader(c.r)
	var err error
	if r.line, err = text.ReadLine(); err != nil {
		return nil
	}
	for {
		h, err := text.ReadLine()
		if err != nil {
			return nil
		}
		if h == "" {
			break
		}
		r.headers = append(r.headers, h)
	}
	size, err := strconv.Atoi(r.header("Content-Length"))
	if err != nil {
		return nil
	}
	r.body = make([]byte, size)
	if _, err := io.ReadFull(c.r, r.body); err != nil {
		return nil
	}
	c.to.book(r)
	return &r
}

func (c *call) say(s string) bool {
	_, err := io.WriteString(c, s)
	return err == nil
}

// wait returns when the other side has closed.
func (c *call) wait() { io.Copy(io.Discard, c.r) }

// drip says s again and again, slowly, until the other side has closed.
func (c *call) drip(s string) {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for c.say(s) {
		<-ticker.C
	}
}

// reset closes with everything unread thrown away.
func (c *call) reset() {
	if t, ok := c.Conn.(*tls.Conn); ok {
		t.NetConn().(*net.TCPConn).SetLinger(0)
		t.NetConn().Close()
	}
}

// endpoint is a server on the loopback that does as its script says.
type endpoint struct {
	port uint16

	mu    sync.Mutex
	calls int
	got   []received
}

// serve runs script for every connection; config nil: without TLS. A script gets
// connections whose handshake has failed as well, and reads nothing from them.
func serve(t *testing.T, config *tls.Config, script func(*call)) *endpoint {
	t.Helper()
	return serveAt(t, "127.0.0.1:0", config, script)
}

func serveAt(t *testing.T, address string, config *tls.Config, script func(*call)) *endpoint {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	e := &endpoint{port: uint16(l.Addr().(*net.TCPAddr).Port)}
	var wg sync.WaitGroup
	open := map[net.Conn]bool{}
	wg.Go(func() { // ends with the listener
		for {
			raw, err := l.Accept()
			if err != nil {
				return
			}
			e.mu.Lock()
			e.calls++
			c := &call{Conn: raw, n: e.calls, to: e}
			open[raw] = true
			e.mu.Unlock()
			wg.Go(func() { // ends with the script, which ends with the connection
				defer raw.Close()
				if config != nil {
					c.Conn = tls.Server(raw, config)
				}
				c.r = bufio.NewReader(c.Conn)
				script(c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		e.mu.Lock()
		for c := range open {
			c.Close()
		}
		e.mu.Unlock()
		wg.Wait()
	})
	return e
}

func (e *endpoint) book(r received) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.got = append(e.got, r)
}

func (e *endpoint) requests() []received {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]received(nil), e.got...)
}

func (e *endpoint) connections() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.calls
}

func goodTLS() *tls.Config { return &tls.Config{Certificates: []tls.Certificate{goodCertificate()}} }

// always answers every request with the same bytes.
func always(answer string) func(*call) {
	return func(c *call) {
		for c.request() != nil && c.say(answer) {
		}
	}
}

const ok200 = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
