package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/netip"
	"testing"
	"time"

	"mybots/delivery"
)

func TestTLS(t *testing.T) {
	t.Parallel()
	stranger := newAuthority(nil)
	root := testCA()
	between := newAuthority(&root)
	bad := func(detail string) delivery.Answer {
		return delivery.Answer{Kind: delivery.BadCertificate, Detail: detail}
	}
	with := func(c tls.Certificate) *tls.Config { return &tls.Config{Certificates: []tls.Certificate{c}} }
	chain := certificate(between, nil)
	chain.Certificate = append(chain.Certificate, between.cert.Raw)
	for name, test := range map[string]struct {
		config *tls.Config
		want   delivery.Answer
	}{
		"W-04 a good certificate":                 {goodTLS(), answered(200)},
		"W-04 an intermediate that is sent along": {with(chain), answered(200)},
		"W-09 an expired certificate": {with(certificate(root, func(c *x509.Certificate) {
			c.NotAfter = time.Now().Add(-time.Minute)
		})), bad(delivery.CertificateExpired)},
		"W-09 a certificate that isn't valid yet": {with(certificate(root, func(c *x509.Certificate) {
			c.NotBefore = time.Now().Add(time.Minute)
		})), bad(delivery.CertificateExpired)},
		"W-09 a certificate for another name": {with(certificate(root, func(c *x509.Certificate) {
			c.DNSNames = []string{"example.test", "*.other.test"}
		})), bad(delivery.CertificateName)},
		"W-09 a certificate with its name where it no longer counts": {with(certificate(root, func(c *x509.Certificate) {
			c.DNSNames, c.IPAddresses = nil, nil
		})), bad(delivery.CertificateName)},
		"W-09 an unknown issuer":      {with(certificate(stranger, nil)), bad(delivery.CertificateIssuer)},
		"W-09 a missing intermediate": {with(certificate(between, nil)), bad(delivery.CertificateIssuer)},
		"W-09 a certificate for clients": {with(certificate(root, func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		})), bad("")},
		"W-04 TLS 1.1 at most": {&tls.Config{
			Certificates: []tls.Certificate{goodCertificate()}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11,
		}, only(delivery.NotConnected)},
		"W-04 TLS 1.2": {&tls.Config{
			Certificates: []tls.Certificate{goodCertificate()}, MaxVersion: tls.VersionTLS12,
		}, answered(200)},
		"W-04 only HTTP/2": {&tls.Config{
			Certificates: []tls.Certificate{goodCertificate()}, NextProtos: []string{"h3"},
		}, only(delivery.NotConnected)},
		"W-04 HTTP/2 and HTTP/1.1": {&tls.Config{
			Certificates: []tls.Certificate{goodCertificate()}, NextProtos: []string{"h2", "http/1.1"},
		}, answered(200)},
		"W-09 plain HTTP on the port": {nil, only(delivery.NotConnected)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := serve(t, test.config, func(c *call) {
				if test.config == nil {
					c.say("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
					c.wait()
					return
				}
				always(ok200)(c)
			})
			r := newRig(t, e)
			for range 2 { // TLS 1.2 and 1.3 both live through the watch between
				want(t, r.send(t, request(e)), test.want)
			}
			if got, want := len(e.requests()), map[bool]int{true: 2}[test.want == answered(200)]; got != want {
				t.Errorf("got %d requests, want %d", got, want)
			}
		})
	}
	t.Run("W-09 a certificate for a name isn't one for the address", func(t *testing.T) {
		t.Parallel()
		e := serve(t, with(certificate(root, func(c *x509.Certificate) { c.IPAddresses = nil })), always(ok200))
		r := newRig(t, e)
		q := request(e)
		q.URL = "https://" + netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), e.port).String() + "/"
		want(t, r.send(t, q), bad(delivery.CertificateName))
	})
	t.Run("W-08 a handshake that is never answered ends at 5 s", func(t *testing.T) {
		t.Parallel()
		e := serve(t, nil, func(c *call) { c.wait() })
		r := newRig(t, e)
		r.hurry(500*time.Millisecond, 10*time.Second)
		start := time.Now()
		want(t, r.send(t, request(e)), only(delivery.NotConnected))
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("got an answer after %v, want it at the limit for connecting", took)
		}
	})
	t.Run("W-09 a connection refused", func(t *testing.T) {
		t.Parallel()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		e := &endpoint{port: uint16(l.Addr().(*net.TCPAddr).Port)}
		l.Close()
		want(t, newRig(t, e).send(t, request(e)), only(delivery.NotConnected))
	})
	t.Run("W-09 a connection that is reset within the handshake", func(t *testing.T) {
		t.Parallel()
		e := serve(t, nil, func(c *call) {
			c.r.ReadByte()
			c.Conn.(*net.TCPConn).SetLinger(0)
		})
		want(t, newRig(t, e).send(t, request(e)), only(delivery.NotConnected))
	})
}
