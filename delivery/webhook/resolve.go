package webhook

import (
	"context"
	"errors"
	"net"
	"net/netip"
)

// maxAddresses are dialled at most; a name with more has chosen to be slow.
const maxAddresses = 16

// errForbidden: the name leads only to forbidden addresses (W-02).
var errForbidden = errors.New("every address of the name is forbidden")

// errUnresolved: the look-up gave no address. What the look-up said isn't in it.
var errUnresolved = errors.New("the name can't be resolved")

// newResolver returns a resolver that asks server, or the system's servers. It is
// Go's own in any case: the C library's takes numbers and short forms for addresses.
func newResolver(server string) *net.Resolver {
	r := &net.Resolver{PreferGo: true}
	if server != "" {
		var d net.Dialer
		r.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return d.DialContext(ctx, network, server)
		}
	}
	return r
}

// resolve returns all addresses of a target; errUnresolved if there are none.
func (g *Guard) resolve(ctx context.Context, t target) ([]netip.Addr, error) {
	if t.ip.IsValid() {
		return []netip.Addr{t.ip}, nil
	}
	// The final dot keeps the system's search list out: with it, a public name can
	// lead into the cluster that this server runs in.
	found, err := g.resolver.LookupNetIP(ctx, "ip", t.host+".")
	if err != nil || len(found) == 0 {
		return nil, errUnresolved
	}
	return found, nil
}

// allowed returns those of a target's addresses that may be dialled, at least one;
// errForbidden if all are forbidden (W-02).
func (g *Guard) allowed(ctx context.Context, t target) ([]netip.Addr, error) {
	found, err := g.resolve(ctx, t)
	if err != nil {
		return nil, err
	}
	var ok []netip.Addr
	for _, a := range found {
		if g.addressAllowed(a) && len(ok) < maxAddresses {
			ok = append(ok, a)
		}
	}
	if len(ok) == 0 {
		return nil, errForbidden
	}
	return ok, nil
}

// CheckName is Check and the look-up of the name, for a save: all its addresses must
// be public, and one that can't be resolved now is refused (W-01). The error is a
// *ForbiddenError, or that of a ctx that ended.
func (g *Guard) CheckName(ctx context.Context, raw string) (canonical string, err error) {
	t, err := g.parse(raw)
	if err != nil {
		return "", err
	}
	limited, cancel := context.WithTimeout(ctx, g.limit)
	defer cancel()
	found, err := g.resolve(limited, t)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return "", breaks(RuleUnresolved)
	}
	for _, a := range found {
		if !g.addressAllowed(a) {
			return "", breaks(RuleAddress)
		}
	}
	return t.String(), nil
}
