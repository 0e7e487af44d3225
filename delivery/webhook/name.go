package webhook

import (
	"net/netip"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

const (
	maxName  = 253 // octets of a host name
	maxLabel = 63
)

// hostProfile maps names as they are mapped for a look-up. Underscores are left to
// checkLabels.
var hostProfile = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.Transitional(false), idna.StrictDomainName(false))

// localLabels are last labels of names that never lead to the internet.
var localLabels = []string{"localhost", "local", "internal", "localdomain", "svc"}

// hostName judges a host that stands in no brackets, and returns it in the form
// that is looked up, or as an IPv4 address.
func (g *Guard) hostName(typed string) (host string, ip netip.Addr, err error) {
	if !utf8.ValidString(typed) {
		return "", ip, breaks(RuleIDN)
	}
	name, dotted := strings.CutSuffix(strings.ToLower(typed), ".")
	if name, err = ascii(name); err != nil {
		return "", ip, err
	}
	labels := strings.Split(name, ".")
	last := labels[len(labels)-1]
	if numeric(last) {
		ip, err := netip.ParseAddr(name)
		if err != nil || !ip.Is4() || dotted {
			return "", netip.Addr{}, breaks(RuleNumber)
		}
		if !g.addressAllowed(ip) {
			return "", netip.Addr{}, breaks(RuleLiteral)
		}
		return name, ip, nil
	}
	if len(name) > maxName {
		return "", ip, breaks(RuleName)
	}
	for _, l := range labels {
		if !validLabel(l) {
			return "", ip, breaks(RuleName)
		}
	}
	switch {
	case slices.Contains(localLabels, last) || name == "home.arpa" || strings.HasSuffix(name, ".home.arpa"):
		return "", ip, breaks(RuleLocalName)
	case len(labels) < 2:
		return "", ip, breaks(RuleOneLabel)
	}
	return name, ip, nil
}

// ascii returns a name's ASCII form. A name with other characters, or with such in
// the encoded form, must come back from it as it was typed: then no character is
// mapped to another one behind the owner's back.
func ascii(name string) (string, error) {
	if isASCII(name) && !strings.Contains(name, "xn--") {
		return name, nil
	}
	if len(name) > 4*maxName {
		return "", breaks(RuleName)
	}
	encoded, err := hostProfile.ToASCII(name)
	if err != nil {
		return "", breaks(RuleIDN)
	}
	shown, err := hostProfile.ToUnicode(encoded)
	if err != nil {
		return "", breaks(RuleIDN)
	}
	again, err := hostProfile.ToASCII(shown)
	if err != nil || again != encoded {
		return "", breaks(RuleIDN)
	}
	typed, short, long := strings.Split(name, "."), strings.Split(encoded, "."), strings.Split(shown, ".")
	if len(typed) != len(short) || len(typed) != len(long) {
		return "", breaks(RuleIDN)
	}
	for i := range typed {
		if typed[i] != short[i] && typed[i] != long[i] {
			return "", breaks(RuleIDN)
		}
	}
	for _, r := range shown {
		if r >= utf8.RuneSelf && !unicode.In(r, unicode.L, unicode.M, unicode.Nd) { // RFC 5892: no symbols
			return "", breaks(RuleIDN)
		}
	}
	return encoded, nil
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// numeric tells whether a last label makes a host a number for some resolver.
func numeric(label string) bool {
	digits := "0123456789"
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		label, digits = hex, "0123456789abcdef"
	} else if label == "" {
		return false
	}
	return strings.Trim(label, digits) == ""
}

// validLabel allows letters, digits, hyphens inside, and underscores, which are no
// part of a host name but are looked up and certified all the same.
func validLabel(l string) bool {
	if l == "" || len(l) > maxLabel || l[0] == '-' || l[len(l)-1] == '-' {
		return false
	}
	return strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}
