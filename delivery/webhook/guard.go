package webhook

import (
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"time"

	"mybots/delivery"
)

// GuardOptions are the installation's settings (G-06). The lists add to what is
// allowed anyway and lift no rule about names.
type GuardOptions struct {
	AllowCIDRs []netip.Prefix // MYBOTS_WEBHOOK_ALLOW_CIDRS
	AllowPorts []uint16       // MYBOTS_WEBHOOK_ALLOW_PORTS; 443 and 8443 are allowed always
	Resolver   string         // MYBOTS_WEBHOOK_RESOLVER, host:port of a DNS server; "": the system's
	Roots      *x509.CertPool // of LoadRoots, for MYBOTS_WEBHOOK_CA_FILE; nil: the system's
}

// Guard says which addresses webhooks may go to. It is asked when an address is
// saved and again at every connection.
type Guard struct {
	cidrs    []netip.Prefix
	ports    []string // as they stand in an address
	resolver *net.Resolver
	roots    *x509.CertPool
	limit    time.Duration // of a look-up on save; tests shorten it
}

// NewGuard makes a guard. It opens nothing.
func NewGuard(o GuardOptions) *Guard {
	g := &Guard{
		cidrs:    slices.Clone(o.AllowCIDRs),
		ports:    []string{"443", "8443"},
		resolver: newResolver(o.Resolver),
		roots:    o.Roots,
		limit:    delivery.ConnectTime,
	}
	for _, p := range o.AllowPorts {
		g.ports = append(g.ports, strconv.Itoa(int(p)))
	}
	return g
}

// LoadRoots returns the system's certificate authorities and those of the PEM file
// at path. An unreadable file and one without a certificate are errors.
func LoadRoots(path string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read certificate authorities: %w", err)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("the system's certificate authorities: %w", err)
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read certificate authorities: no certificate in %s", path)
	}
	return roots, nil
}

// Rule names the rule that an address breaks (W-01).
type Rule string

// The rules, in the order in which they are looked at.
const (
	RuleTooLong    Rule = "too_long"        // over 2048 characters
	RuleCharacters Rule = "characters"      // a space, a control or invisible character, a backslash, no UTF-8
	RuleFragment   Rule = "fragment"        // a #
	RuleScheme     Rule = "scheme"          // doesn't begin with https://
	RuleUser       Rule = "user"            // a user name or password
	RuleNoHost     Rule = "no_host"         // nothing where the host belongs
	RulePort       Rule = "port"            // not 443 or 8443
	RuleMalformed  Rule = "malformed"       // no address otherwise, as with a broken %-escape
	RuleIDN        Rule = "idn"             // letters that no host name can have, or that look like others
	RuleNumber     Rule = "number"          // a number as a host that is no IPv4 address in its usual form
	RuleLiteral    Rule = "address_literal" // an IP address that isn't public
	RuleName       Rule = "name"            // no host name
	RuleOneLabel   Rule = "one_label"       // a name without a dot
	RuleLocalName  Rule = "local_name"      // localhost, *.localhost, *.local, *.internal and the like
	RuleUnresolved Rule = "unresolved"      // the look-up of the name gave no address now
	RuleAddress    Rule = "address"         // the name leads to an address that isn't public
)

var ruleWords = []struct {
	rule  Rule
	words string
}{
	{RuleTooLong, "the address has more than 2048 characters"},
	{RuleCharacters, "the address has a space, an invisible character or a backslash"},
	{RuleFragment, "the address has a #"},
	{RuleScheme, "the address doesn't begin with https://"},
	{RuleUser, "the address has a user name or password"},
	{RuleNoHost, "the address has no host"},
	{RulePort, "the address's port isn't allowed"},
	{RuleMalformed, "the address is malformed"},
	{RuleIDN, "the host name has characters that host names can't have"},
	{RuleNumber, "the host is a number that is no IP address in its usual form"},
	{RuleLiteral, "the host is an IP address that isn't public"},
	{RuleName, "the host is no valid name"},
	{RuleOneLabel, "the host name has no dot"},
	{RuleLocalName, "the host name is a local one"},
	{RuleUnresolved, "the host name can't be resolved now"},
	{RuleAddress, "the host name leads to an address that isn't public"},
}

// Rules returns all rules.
func Rules() []Rule {
	rules := make([]Rule, len(ruleWords))
	for i, r := range ruleWords {
		rules[i] = r.rule
	}
	return rules
}

// ForbiddenError says that an address breaks a rule. It carries nothing of the
// address and nothing of what the look-up said.
type ForbiddenError struct{ Rule Rule }

// Error says in English which rule it is.
func (e *ForbiddenError) Error() string {
	for _, r := range ruleWords {
		if r.rule == e.Rule {
			return r.words
		}
	}
	return "the address breaks the rule " + string(e.Rule)
}

func breaks(r Rule) error { return &ForbiddenError{Rule: r} }
