package webhook

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxAddress = 2048     // characters (W-01)
	maxTyped   = 64 << 10 // bytes; whatever is longer isn't looked at
)

// target is an address that broke no rule, in the parts that a request needs.
type target struct {
	host string // ASCII in lower case without a final dot, or an IP address without brackets
	ip   netip.Addr
	port string // as typed, "" for none
	path string // path and query as they were typed, but for what can't stand in a request line
}

// authority is what Host says.
func (t target) authority() string {
	host := t.host
	if t.ip.Is6() {
		host = "[" + host + "]"
	}
	if t.port != "" {
		host += ":" + t.port
	}
	return host
}

func (t target) String() string { return "https://" + t.authority() + t.path }

// requestURI is what the request line says.
func (t target) requestURI() string {
	if !strings.HasPrefix(t.path, "/") {
		return "/" + t.path
	}
	return t.path
}

// Check judges an address by all that needs no look-up (W-01) and returns its
// canonical form: the host in ASCII, everything else percent-encoded that isn't.
// The canonical form passes and is its own, although it can be longer than what
// was typed: characters count as they are read, not as they are encoded. The
// error is a *ForbiddenError.
func (g *Guard) Check(raw string) (canonical string, err error) {
	t, err := g.parse(raw)
	if err != nil {
		return "", err
	}
	return t.String(), nil
}

func (g *Guard) parse(raw string) (target, error) {
	if len(raw) > maxTyped || tooLong(raw) {
		return target{}, breaks(RuleTooLong)
	}
	if err := checkCharacters(raw); err != nil {
		return target{}, err
	}
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok || !strings.EqualFold(scheme, "https") {
		return target{}, breaks(RuleScheme)
	}
	authority, path := splitPath(rest)
	if strings.Contains(authority, "@") {
		return target{}, breaks(RuleUser)
	}
	host, port := splitPort(authority)
	if host == "" {
		return target{}, breaks(RuleNoHost)
	}
	if port != "" && !slices.Contains(g.ports, port[1:]) {
		return target{}, breaks(RulePort)
	}
	// The parser of the standard library has the last word on what is an address at
	// all: no two programs may disagree on where the request goes.
	u, err := url.Parse("https://" + host + path)
	if err != nil || u.Scheme != "https" || u.Opaque != "" || u.User != nil || u.Host == "" {
		return target{}, breaks(RuleMalformed)
	}
	t := target{path: escapePath(path), port: strings.TrimPrefix(port, ":")}
	if strings.HasPrefix(u.Host, "[") {
		t.ip, err = g.literal6(u.Host)
		t.host = t.ip.String()
	} else {
		t.host, t.ip, err = g.hostName(u.Host)
	}
	if err != nil {
		return target{}, err
	}
	return t, nil
}

// checkCharacters refuses what can't be read on a screen, or is read differently
// by different programs. It looks at the address as it was typed: a parser shows
// no empty fragment.
func checkCharacters(raw string) error {
	if !utf8.ValidString(raw) {
		return breaks(RuleCharacters)
	}
	for _, r := range raw {
		switch {
		case r == '#':
			return breaks(RuleFragment)
		case r <= ' ' || r == 0x7f || r == '\\' || unicode.In(r, unicode.C, unicode.Z):
			return breaks(RuleCharacters)
		}
	}
	return nil
}

// splitPath ends the host's part at the first / or ?.
func splitPath(rest string) (authority, path string) {
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		return rest[:i], rest[i:]
	}
	return rest, ""
}

// splitPort ends the host at the first colon outside of brackets. The port keeps
// its colon, so that an empty one can be told from none.
func splitPort(authority string) (host, port string) {
	from := strings.LastIndexByte(authority, ']') + 1
	if i := strings.IndexByte(authority[from:], ':'); i >= 0 {
		return authority[:from+i], authority[from+i:]
	}
	return authority, ""
}

func (g *Guard) literal6(host string) (netip.Addr, error) {
	a, err := netip.ParseAddr(strings.TrimSuffix(host[1:], "]"))
	if err != nil || !a.Is6() || !g.addressAllowed(a) {
		return netip.Addr{}, breaks(RuleLiteral)
	}
	return a, nil
}

// unsafe are the printable ASCII characters that a URI can't have.
const unsafe = "\"<>^`{|}"

// escapePath writes path and query as a request line can carry them. What was typed
// encoded stays as it is, so that an encoded slash arrives as one.
func escapePath(s string) string {
	if strings.IndexFunc(s, mustEscape) < 0 {
		return s
	}
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for _, c := range []byte(s) {
		if mustEscape(rune(c)) {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

func mustEscape(r rune) bool { return r >= utf8.RuneSelf || strings.ContainsRune(unsafe, r) }

// tooLong counts the characters. Those that escapePath has encoded, and those of a name
// in its ASCII form, count as what they stand for; else an address near the limit
// could be saved once and never again.
func tooLong(raw string) bool {
	if utf8.RuneCountInString(raw) <= maxAddress {
		return false
	}
	scheme, rest, _ := strings.Cut(raw, "://")
	authority, path := splitPath(rest)
	host, port := splitPort(authority)
	if shown, err := hostProfile.ToUnicode(host); err == nil && len(host) <= 2*maxName {
		host = shown
	}
	return utf8.RuneCountInString(scheme+"://"+host+port+unescapePath(path)) > maxAddress
}

// unescapePath takes back what escapePath does, and nothing else.
func unescapePath(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		if n, c := encoded(s); n > 0 {
			b.WriteString(c)
			s = s[n:]
			continue
		}
		b.WriteByte(s[0])
		s = s[1:]
	}
	return b.String()
}

// encoded returns the character that s begins with in encoded form, and the length
// of that form; 0 if s doesn't begin so.
func encoded(s string) (n int, c string) {
	var raw []byte
	for len(raw) < utf8.UTFMax && len(s) >= n+3 && s[n] == '%' {
		high, low := hexDigit(s[n+1]), hexDigit(s[n+2])
		if high < 0 || low < 0 {
			break
		}
		raw = append(raw, byte(high<<4|low))
		n += 3
		if r, size := utf8.DecodeRune(raw); size == len(raw) && (r != utf8.RuneError || size > 1) {
			if mustEscape(r) {
				return n, string(raw)
			}
			break
		}
	}
	return 0, ""
}

// hexDigit is the value of a digit as escapePath writes it, -1 for any other.
func hexDigit(c byte) int { return strings.IndexByte("0123456789ABCDEF", c) }
