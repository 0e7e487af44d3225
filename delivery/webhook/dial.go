package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"syscall"
	"time"

	"mybots/delivery"
)

// minShare is the least time that one of several addresses gets before the next.
const minShare = 2 * time.Second

// errNotAllowed is the second lock's. It isn't errForbidden, which speaks of all
// addresses of a name.
var errNotAllowed = errors.New("the address isn't allowed")

// A dialFunc connects to one address; tests watch it.
type dialFunc func(context.Context, netip.AddrPort) (net.Conn, error)

// dial connects to one address that was found allowed, and looks at it once more
// in the last moment before the system connects (W-02).
func (g *Guard) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	d := net.Dialer{ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil || !g.addressAllowed(at.Addr()) || !slices.Contains(g.ports, strconv.Itoa(int(at.Port()))) {
			return errNotAllowed
		}
		return nil
	}}
	return d.DialContext(ctx, "tcp", to.String())
}

// connect resolves a target, dials its allowed addresses one after another and
// shakes hands; ctx bounds all of it. On the way out there is a connection or an
// error for connectAnswer.
func (s *Sender) connect(ctx context.Context, t target) (*tls.Conn, error) {
	addresses, err := s.guard.allowed(ctx, t)
	if err != nil {
		return nil, err
	}
	raw, err := s.dialOne(ctx, addresses, t.dialPort())
	if err != nil {
		return nil, err
	}
	conn := tls.Client(raw, &tls.Config{
		ServerName: t.host, // an IP address is verified as one, and sent to nobody
		RootCAs:    s.guard.roots,
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},
	})
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return conn, nil
}

func (t target) dialPort() uint16 {
	p, err := strconv.ParseUint(t.port, 10, 16)
	if err != nil { // none, for parse lets only the guard's ports through
		return 443
	}
	return uint16(p)
}

// dialOne returns the first connection that succeeds. Each address gets its share of
// the time that is left, so that a dead one doesn't use up that of the others.
func (s *Sender) dialOne(ctx context.Context, addresses []netip.Addr, port uint16) (net.Conn, error) {
	var errs []error
	for i, a := range addresses {
		share, cancel := ctx, context.CancelFunc(func() {})
		if end, ok := ctx.Deadline(); ok {
			left := time.Until(end)
			share, cancel = context.WithTimeout(ctx, min(left, max(minShare, left/time.Duration(len(addresses)-i))))
		}
		conn, err := s.dial(share, netip.AddrPortFrom(a, port))
		cancel()
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// connectAnswer says what a failed connect is (W-09). The error itself stays here:
// it can name addresses.
func connectAnswer(err error) delivery.Answer {
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, errUnresolved):
		return delivery.Answer{Kind: delivery.NameNotFound}
	case errors.Is(err, errForbidden):
		return delivery.Answer{Kind: delivery.Forbidden}
	case errors.As(err, &certificate):
		return delivery.Answer{Kind: delivery.BadCertificate, Detail: certificateDetail(certificate.Err)}
	}
	return delivery.Answer{Kind: delivery.NotConnected}
}

func certificateDetail(err error) string {
	var (
		invalid x509.CertificateInvalidError
		name    x509.HostnameError
		issuer  x509.UnknownAuthorityError
	)
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return delivery.CertificateExpired
	case errors.As(err, &name):
		return delivery.CertificateName
	case errors.As(err, &issuer):
		return delivery.CertificateIssuer
	}
	return ""
}
