package webhook

import (
	"context"
	"crypto/x509"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"time"

	"mybots/delivery"
)

var loopback = netip.MustParsePrefix("127.0.0.0/8")

const testSecret = delivery.Secret("swh1_a-secret-of-the-tests")

// rig is a sender whose guard lets it reach endpoints on the loopback by names.
type rig struct {
	*Sender
	names *nameServer
	time  *delivery.ShiftedClock

	mu      sync.Mutex
	dialled []netip.AddrPort
}

// newRig makes a sender that may use the ports of the endpoints. hookHost leads
// to 127.0.0.1.
func newRig(t *testing.T, endpoints ...*endpoint) *rig {
	t.Helper()
	names := newNameServer(t, map[string]record{hookHost: {a: []string{"127.0.0.1"}}})
	roots := x509.NewCertPool()
	roots.AddCert(testCA().cert)
	o := GuardOptions{
		AllowCIDRs: []netip.Prefix{loopback, netip.MustParsePrefix("::1/128")},
		Resolver:   names.address, Roots: roots,
	}
	for _, e := range endpoints {
		o.AllowPorts = append(o.AllowPorts, e.port)
	}
	r := &rig{names: names, time: delivery.NewClock(0)}
	r.Sender = NewSender(NewGuard(o), r.time)
	dial := r.dial
	r.dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
		r.mu.Lock()
		r.dialled = append(r.dialled, to)
		r.mu.Unlock()
		return dial(ctx, to)
	}
	t.Cleanup(r.Close)
	return r
}

// hurry shortens the network's limits.
func (r *rig) hurry(connect, whole time.Duration) {
	r.connectTime, r.requestTime, r.guard.limit = connect, whole, connect
}

func (r *rig) dials() []netip.AddrPort {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]netip.AddrPort(nil), r.dialled...)
}

// request is one for hookHost at the endpoint.
func request(e *endpoint) Request {
	return Request{
		BotID: 7, Version: 1, URL: "https://" + hookHost + ":" + strconv.Itoa(int(e.port)) + "/hook?token=t",
		Secret: testSecret, Attempt: 1,
		Update: delivery.Update{
			UpdateID: 41, EventID: "0198c5a2-0000-7000-8000-000000000001", Type: "message",
			Date: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Payload: []byte(`{"text":"привет \u2028 😀"}`),
		},
	}
}

func (r *rig) send(t *testing.T, q Request) delivery.Answer {
	t.Helper()
	return r.Send(t.Context(), q)
}

// want fails unless the answer is exactly this one.
func want(t *testing.T, got, want delivery.Answer) {
	t.Helper()
	if got != want {
		t.Errorf("got answer %+v, want %+v", got, want)
	}
}

func answered(status int) delivery.Answer {
	return delivery.Answer{Kind: delivery.Answered, Status: status}
}

func only(kind delivery.AnswerKind) delivery.Answer { return delivery.Answer{Kind: kind} }
