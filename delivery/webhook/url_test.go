package webhook

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

func ruleOf(t testing.TB, err error) Rule {
	t.Helper()
	if err == nil {
		return ""
	}
	var f *ForbiddenError
	if !errors.As(err, &f) {
		t.Fatalf("got error %v, want a *ForbiddenError", err)
	}
	return f.Rule
}

func TestCheck(t *testing.T) {
	t.Parallel()
	g := NewGuard(GuardOptions{})
	t.Run("W-01 every case comes out right", func(t *testing.T) {
		t.Parallel()
		for _, row := range rows(t, "urls.tsv") {
			_, err := g.Check(row[0])
			got := "accept"
			if rule := ruleOf(t, err); rule != "" {
				got = "refuse"
			}
			if got != row[1] {
				t.Errorf("%.200q: got %s (%v), want %s: %s", row[0], got, err, row[1], row[2])
			}
		}
	})
	t.Run("W-01 each refusal names its rule", func(t *testing.T) {
		t.Parallel()
		for raw, want := range map[string]Rule{
			"https://example.com/" + strings.Repeat("a", 2048): RuleTooLong,
			"https://example.com/ ":                            RuleCharacters,
			"https://example.com/\xff":                         RuleCharacters,
			"https://example.com/\\x":                          RuleCharacters,
			"https://example.com/#":                            RuleFragment,
			"http://example.com/":                              RuleScheme,
			"https:example.com":                                RuleScheme,
			"":                                                 RuleScheme,
			"https://@example.com/":                            RuleUser,
			"https:///x":                                       RuleNoHost,
			"https://:443/":                                    RuleNoHost,
			"https://example.com:80/":                          RulePort,
			"https://example.com:/":                            RulePort,
			"https://example.com:0443/":                        RulePort,
			"https://example.com/%zz":                          RuleMalformed,
			"https://ⓛocalhost/":                               RuleIDN,
			"https://☃.example/":                               RuleIDN,
			"https://xn--n3h.example/":                         RuleIDN,
			"https://127.1/":                                   RuleNumber,
			"https://8.8.8.8./":                                RuleNumber,
			"https://x.0x/":                                    RuleNumber,
			"https://10.0.0.1/":                                RuleLiteral,
			"https://[::1]/":                                   RuleLiteral,
			"https://[8.8.8.8]/":                               RuleMalformed,
			"https://a..example.com/":                          RuleName,
			"https://-a.example.com/":                          RuleName,
			"https://db/":                                      RuleOneLabel,
			"https://a.LOCALHOST./":                            RuleLocalName,
			"https://kubernetes.default.svc/":                  RuleLocalName,
			"https://x.home.arpa/":                             RuleLocalName,
		} {
			if _, err := g.Check(raw); ruleOf(t, err) != want {
				t.Errorf("%.100q: got rule %q, want %q", raw, ruleOf(t, err), want)
			}
		}
	})
	t.Run("W-01 the canonical form", func(t *testing.T) {
		t.Parallel()
		for raw, want := range map[string]string{
			"HTTPS://Example.COM.":                      "https://example.com",
			"https://example.com:443/A%2fb/путь?q=тест": "https://example.com:443/A%2fb/%D0%BF%D1%83%D1%82%D1%8C?q=%D1%82%D0%B5%D1%81%D1%82",
			"https://Пример.РФ:8443/?a={b}&c=%zz":       "https://xn--e1afmkfd.xn--p1ai:8443/?a=%7Bb%7D&c=%zz",
			"https://[2606:4700:4700:0::AAAA]?":         "https://[2606:4700:4700::aaaa]?",
			"https://example.com//a/../b;v=1":           "https://example.com//a/../b;v=1",
		} {
			if got, err := g.Check(raw); err != nil || got != want {
				t.Errorf("%q: got %q, %v, want %q", raw, got, err, want)
			}
		}
	})
	t.Run("W-01 an address near the limit can be saved again in its canonical form", func(t *testing.T) {
		t.Parallel()
		for _, raw := range []string{
			"https://example.com/" + strings.Repeat("я", 2028),
			"https://пример.рф/" + strings.Repeat("😀", 2030),
			"https://example.com/?" + strings.Repeat("{", 2027),
		} {
			canonical, err := g.Check(raw)
			if err != nil {
				t.Fatalf("%.50q: %v", raw, err)
			}
			if again, err := g.Check(canonical); err != nil || again != canonical {
				t.Errorf("%.50q: got %.50q, %v from its canonical form, want it unchanged", raw, again, err)
			}
			if _, err := g.Check(canonical + "a"); ruleOf(t, err) != RuleTooLong {
				t.Errorf("%.50q and one more: got rule %q, want %q", raw, ruleOf(t, err), RuleTooLong)
			}
		}
		for _, filler := range []string{"%41", "%d1%8f", "%D1%41", "%ED%A0%80", "%"} {
			raw := "https://example.com/?" + strings.Repeat(filler, 2028)
			if _, err := g.Check(raw); ruleOf(t, err) != RuleTooLong {
				t.Errorf("%s over and over: got rule %q, want %q", filler, ruleOf(t, err), RuleTooLong)
			}
		}
	})
	t.Run("G-06 ports and prefixes are added, and no rule about names is lifted", func(t *testing.T) {
		t.Parallel()
		g := NewGuard(GuardOptions{AllowCIDRs: []netip.Prefix{loopback}, AllowPorts: []uint16{9443}})
		for raw, want := range map[string]Rule{
			"https://127.0.0.1:9443/": "", "https://example.com:443/": "", "https://example.com:8443/": "", "https://example.com:9443/": "",
			"https://localhost:9443/": RuleLocalName, "https://127.1:9443/": RuleNumber, "https://[::ffff:127.0.0.1]/": RuleLiteral,
			"https://10.0.0.1/": RuleLiteral, "https://example.com:9444/": RulePort, "http://127.0.0.1:9443/": RuleScheme,
			"https://hook/": RuleOneLabel,
		} {
			if _, err := g.Check(raw); ruleOf(t, err) != want {
				t.Errorf("%s: got rule %q, want %q", raw, ruleOf(t, err), want)
			}
		}
	})
	t.Run("W-01 every rule has words, and errors repeat nothing of the address", func(t *testing.T) {
		t.Parallel()
		seen := map[Rule]bool{}
		for _, r := range Rules() {
			words := (&ForbiddenError{Rule: r}).Error()
			if seen[r] || words == "" || strings.Contains(words, "the rule "+string(r)) {
				t.Errorf("%s: got words %q or the rule twice", r, words)
			}
			seen[r] = true
		}
		for _, row := range rows(t, "urls.tsv") {
			if _, err := g.Check(row[0]); err != nil && !seen[ruleOf(t, err)] {
				t.Errorf("%.100q: got rule %q, which isn't among the rules", row[0], ruleOf(t, err))
			}
		}
	})
}

func FuzzCheck(f *testing.F) {
	for _, row := range rows(f, "urls.tsv") {
		f.Add(row[0])
	}
	f.Add("https://xn--bcher-kva.example./A%2Fя?{}")
	g := NewGuard(GuardOptions{})
	f.Fuzz(func(t *testing.T, raw string) {
		canonical, err := g.Check(raw)
		if err != nil {
			ruleOf(t, err)
			return
		}
		if again, err := g.Check(canonical); err != nil || again != canonical {
			t.Errorf("W-01 %q: got %q, %v from its canonical form %q", raw, again, err, canonical)
		}
		target, err := g.parse(canonical)
		if err != nil {
			t.Fatalf("W-01 %q: %v", canonical, err)
		}
		u, err := url.Parse(canonical)
		if err != nil {
			t.Fatalf("W-01 %q: %v", canonical, err)
		}
		if u.Hostname() != target.host || u.Port() != target.port || u.User != nil || u.Fragment != "" {
			t.Errorf("W-01 %q: got host %q and port %q, the standard library reads %q and %q",
				canonical, target.host, target.port, u.Hostname(), u.Port())
		}
		for _, c := range []byte(target.requestURI()) {
			if c <= ' ' || c >= 0x7f {
				t.Errorf("W-06 %q: got byte %#x for the request line", canonical, c)
			}
		}
	})
}
