// Package webhook judges webhook addresses, connects to them and sends the
// requests (W-01 to W-09, G-06).
package webhook

import "net/netip"

// registryDate is the day up to which the tables below follow IANA's special-purpose
// registries and lists of assigned blocks. They are read again at each release.
const registryDate = "2025-10-09"

// A block is a run of addresses that no webhook is sent to, and why.
type block struct {
	prefix netip.Prefix
	why    string
}

// forbidden4 is what isn't public among the IPv4 addresses, in ascending order.
var forbidden4 = []block{
	{netip.MustParsePrefix("0.0.0.0/8"), "this network, RFC 791"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private, RFC 1918"},
	{netip.MustParsePrefix("100.64.0.0/10"), "shared address space, RFC 6598"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback, RFC 1122"},
	{netip.MustParsePrefix("168.63.129.16/32"), "answers only inside of one cloud"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local, RFC 3927"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private, RFC 1918"},
	{netip.MustParsePrefix("192.0.0.0/24"), "protocol assignments, RFC 6890"},
	{netip.MustParsePrefix("192.0.2.0/24"), "documentation, RFC 5737"},
	{netip.MustParsePrefix("192.31.196.0/24"), "AS112, RFC 7535"},
	{netip.MustParsePrefix("192.52.193.0/24"), "multicast tunnels, RFC 7450"},
	{netip.MustParsePrefix("192.88.99.0/24"), "6to4 relays, RFC 7526"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private, RFC 1918"},
	{netip.MustParsePrefix("192.175.48.0/24"), "AS112, RFC 7534"},
	{netip.MustParsePrefix("198.18.0.0/15"), "benchmarks, RFC 2544"},
	{netip.MustParsePrefix("198.51.100.0/24"), "documentation, RFC 5737"},
	{netip.MustParsePrefix("203.0.113.0/24"), "documentation, RFC 5737"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast, RFC 5771"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved, RFC 1112, and broadcast, RFC 919"},
}

// global6 is where all public IPv6 addresses are. Whatever is outside is refused
// without a list, so that a new special prefix there is refused from its first day.
var global6 = netip.MustParsePrefix("2000::/3")

// forbidden6 is what isn't public inside of global6, in ascending order.
var forbidden6 = []block{
	{netip.MustParsePrefix("2000::/16"), "never assigned"},
	{netip.MustParsePrefix("2001::/23"), "protocol assignments, RFC 2928"},
	{netip.MustParsePrefix("2001:db8::/32"), "documentation, RFC 3849"},
	{netip.MustParsePrefix("2002::/16"), "6to4, carries an IPv4 address, RFC 3056"},
	{netip.MustParsePrefix("2620:4f:8000::/48"), "AS112, RFC 7534"},
	{netip.MustParsePrefix("3000::/4"), "not assigned, and documentation, RFC 9637"},
}

// Public tells whether an address belongs to a host that everyone on the internet
// reaches under it. An address that can't be judged (none, with a zone, or one that
// carries an IPv4 address) isn't public.
func Public(a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" {
		return false
	}
	if a.Is4() {
		return !inBlocks(forbidden4, a)
	}
	return global6.Contains(a) && !inBlocks(forbidden6, a) && !isatap(a)
}

// inBlocks looks through all blocks: there are few, and a mistake in their order
// must not let anything through.
func inBlocks(blocks []block, a netip.Addr) bool {
	for _, b := range blocks {
		if b.prefix.Contains(a) {
			return true
		}
	}
	return false
}

// isatap tells whether the interface id carries an IPv4 address as RFC 5214 writes
// it, which is possible under any prefix.
func isatap(a netip.Addr) bool {
	b := a.As16()
	return (b[8] == 0 || b[8] == 2) && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}

// addressAllowed is Public and what the installation adds (G-06). An IPv4 address
// in IPv6 clothes stays refused: it reaches the same host as the bare one, so no
// list has a use for it.
func (g *Guard) addressAllowed(a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" || a.Is4In6() {
		return false
	}
	for _, p := range g.cidrs {
		if p.Contains(a) {
			return true
		}
	}
	return Public(a)
}
