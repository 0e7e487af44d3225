package webhook

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"mybots/delivery"
)

func TestCheckName(t *testing.T) {
	t.Parallel()
	names := newNameServer(t, map[string]record{
		"public.example.test":  {a: []string{"93.184.215.14"}, aaaa: []string{"2606:4700::1"}},
		"v6.example.test":      {aaaa: []string{"2606:4700::1"}},
		"allowed.example.test": {a: []string{"127.0.0.1"}},
		"mixed.example.test":   {a: []string{"93.184.215.14", "10.0.0.1"}},
		"mixed6.example.test":  {a: []string{"93.184.215.14"}, aaaa: []string{"fd00::1"}},
		"inside.example.test":  {a: []string{"169.254.169.254"}},
		"mapped.example.test":  {aaaa: []string{"::ffff:127.0.0.1"}},
		"alias.example.test":   {cname: "public.example.test"},
		"door.example.test":    {cname: "inside.example.test"},
		"dead.example.test":    {cname: "nothing.example.test"},
		"empty.example.test":   {},
		"failing.example.test": {code: dnsmessage.RCodeServerFailure},
		"refused.example.test": {code: dnsmessage.RCodeRefused},
		"silent.example.test":  {silent: true},
	})
	g := NewGuard(GuardOptions{AllowCIDRs: []netip.Prefix{loopback}, Resolver: names.address})
	g.limit = time.Second
	for name, test := range map[string]struct {
		host string
		want Rule
	}{
		"W-01 public addresses":                            {"public.example.test", ""},
		"W-01 only IPv6":                                   {"v6.example.test", ""},
		"G-06 an allowed prefix":                           {"allowed.example.test", ""},
		"W-01 an alias of a public name":                   {"alias.example.test", ""},
		"W-01 one forbidden address among public ones":     {"mixed.example.test", RuleAddress},
		"W-01 a forbidden IPv6 address beside a public v4": {"mixed6.example.test", RuleAddress},
		"W-01 a forbidden address":                         {"inside.example.test", RuleAddress},
		"W-01 an alias of a name inside":                   {"door.example.test", RuleAddress},
		"W-01 no such name":                                {"nothing.example.test", RuleUnresolved},
		"W-01 an alias of no such name":                    {"dead.example.test", RuleUnresolved},
		"W-01 a name without addresses":                    {"empty.example.test", RuleUnresolved},
		"W-01 a name server that fails":                    {"failing.example.test", RuleUnresolved},
		"W-01 a name server that refuses":                  {"refused.example.test", RuleUnresolved},
		"W-01 a name server that is silent":                {"silent.example.test", RuleUnresolved},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw := "https://" + test.host + "/hook"
			got, err := g.CheckName(t.Context(), raw)
			if rule := ruleOf(t, err); rule != test.want {
				t.Fatalf("got rule %q, want %q", rule, test.want)
			}
			if err == nil && got != raw {
				t.Errorf("got %q, want %q", got, raw)
			}
		})
	}
	t.Run("W-01 an IPv4 address in IPv6 clothes is refused although its prefix is allowed", func(t *testing.T) {
		t.Parallel()
		_, err := g.CheckName(t.Context(), "https://mapped.example.test/")
		if rule := ruleOf(t, err); rule != RuleAddress && rule != RuleUnresolved {
			t.Errorf("got rule %q, want a refusal", rule)
		}
	})
	t.Run("W-01 what needs no look-up is judged without one", func(t *testing.T) {
		t.Parallel()
		if _, err := g.CheckName(t.Context(), "http://never.example.test/"); ruleOf(t, err) != RuleScheme {
			t.Errorf("got %v, want the rule %q", err, RuleScheme)
		}
		if n := names.lookups("never.example.test"); n != 0 {
			t.Errorf("got %d look-ups, want none", n)
		}
		if _, err := g.CheckName(t.Context(), "https://93.184.215.14/"); err != nil {
			t.Errorf("a public address: %v", err)
		}
	})
	t.Run("W-01 a save that is given up is no refusal", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := g.CheckName(ctx, "https://silent.example.test/"); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
	})
}

func TestLookUpAtDelivery(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		record record
		want   delivery.AnswerKind
	}{
		"W-02 all forbidden":                         {record{a: []string{"10.0.0.1", "169.254.169.254"}}, delivery.Forbidden},
		"W-02 forbidden IPv6":                        {record{aaaa: []string{"fd00::1"}}, delivery.Forbidden},
		"W-02 an alias of a name inside":             {record{cname: "inside.example.test"}, delivery.Forbidden},
		"W-09 no address":                            {record{}, delivery.NameNotFound},
		"W-09 no such name":                          {record{code: dnsmessage.RCodeNameError}, delivery.NameNotFound},
		"W-09 an alias of no such name":              {record{cname: "nothing.example.test"}, delivery.NameNotFound},
		"W-09 the name server fails":                 {record{code: dnsmessage.RCodeServerFailure}, delivery.NameNotFound},
		"W-09 the name server refuses":               {record{code: dnsmessage.RCodeRefused}, delivery.NameNotFound},
		"W-08 the name server is silent, up to 5 s":  {record{silent: true}, delivery.NameNotFound},
		"W-02 an IPv4 address in IPv6 clothes, also": {record{aaaa: []string{"::ffff:127.0.0.1"}}, delivery.Forbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := serve(t, goodTLS(), always(ok200))
			r := newRig(t, e)
			r.hurry(time.Second, 10*time.Second)
			q := request(e)
			if _, err := r.guard.CheckName(t.Context(), q.URL); err != nil {
				t.Fatalf("on save: %v", err)
			}
			r.names.set("inside.example.test", record{a: []string{"192.168.0.1"}})
			r.names.set(hookHost, test.record) // after the save
			want(t, r.send(t, q), only(test.want))
			if got := r.dials(); len(got) != 0 || e.connections() != 0 {
				t.Errorf("got %v dialled and %d connections, want none", got, e.connections())
			}
		})
	}
	t.Run("W-02 the public ones of mixed addresses are dialled", func(t *testing.T) {
		t.Parallel()
		e := serve(t, goodTLS(), always(ok200))
		r := newRig(t, e)
		r.names.set(hookHost, record{a: []string{"10.0.0.1", "127.0.0.1", "169.254.169.254"}, aaaa: []string{"fd00::1"}})
		want(t, r.send(t, request(e)), answered(200))
		for _, to := range r.dials() {
			if !loopback.Contains(to.Addr()) {
				t.Errorf("got %v dialled, want only what is allowed", to)
			}
		}
	})
	t.Run("W-09 mixed addresses whose public one is closed are a failed connection", func(t *testing.T) {
		t.Parallel()
		e := serve(t, goodTLS(), always(ok200))
		r := newRig(t, e)
		r.names.set(hookHost, record{a: []string{"10.0.0.1", "127.9.9.9"}}) // nothing listens there
		want(t, r.send(t, request(e)), only(delivery.NotConnected))
	})
	t.Run("W-02 a dead address doesn't keep the next from being tried", func(t *testing.T) {
		t.Parallel()
		e := serve(t, goodTLS(), always(ok200))
		r := newRig(t, e)
		r.names.set(hookHost, record{a: []string{"127.9.9.9", "127.0.0.1", "127.9.9.8"}})
		want(t, r.send(t, request(e)), answered(200))
	})
	t.Run("W-02 an address is looked at again in the last moment", func(t *testing.T) {
		t.Parallel()
		e := serve(t, goodTLS(), always(ok200))
		r := newRig(t, e)
		for _, to := range []netip.AddrPort{
			netip.MustParseAddrPort("169.254.169.254:443"), netip.MustParseAddrPort("10.0.0.1:8443"), netip.MustParseAddrPort("127.0.0.1:22"),
		} {
			if c, err := r.guard.dial(t.Context(), to); err == nil {
				c.Close()
				t.Errorf("%v: got a connection, want none", to)
			} else if !errors.Is(err, errNotAllowed) {
				t.Errorf("%v: got %v, want %v", to, err, errNotAllowed)
			}
		}
	})
	t.Run("W-02 only IPv6 addresses work where the machine has IPv6", func(t *testing.T) {
		t.Parallel()
		e := serveAt(t, "[::1]:0", goodTLS(), always(ok200))
		r := newRig(t, e)
		r.names.set(hookHost, record{aaaa: []string{"::1"}})
		want(t, r.send(t, request(e)), answered(200))
	})
	t.Run("W-01 an address saved under other rules isn't sent to", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		for _, raw := range []string{"https://localhost/", "http://" + hookHost + "/", "https://10.0.0.1/", "https://127.1/", ""} {
			want(t, r.send(t, Request{BotID: 1, URL: raw, Secret: testSecret}), only(delivery.Forbidden))
		}
	})
	t.Run("G-06 an address literal in an allowed prefix", func(t *testing.T) {
		t.Parallel()
		e := serve(t, goodTLS(), always(ok200))
		r := newRig(t, e)
		q := request(e)
		q.URL = "https://" + netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), e.port).String() + "/"
		want(t, r.send(t, q), answered(200))
	})
}
