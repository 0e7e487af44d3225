package webhook

import (
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// rows reads a table of cases: what, verdict, why.
func rows(t testing.TB, file string) (rows [][3]string) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(string(b), "\n"), "\n") {
		cells := strings.Split(line, "\t")
		if len(cells) != 3 {
			t.Fatalf("%s: a row with %d cells: %q", file, len(cells), line)
		}
		if strings.HasPrefix(cells[0], `"`) {
			if cells[0], err = strconv.Unquote(cells[0]); err != nil {
				t.Fatalf("%s: %q: %v", file, line, err)
			}
		}
		rows = append(rows, [3]string(cells))
	}
	return rows
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	t.Run("W-01 only public addresses are allowed", func(t *testing.T) {
		t.Parallel()
		for _, row := range rows(t, "addresses.tsv") {
			a, err := netip.ParseAddr(row[0])
			got := "refuse"
			if err == nil && Public(a) && NewGuard(GuardOptions{}).addressAllowed(a) {
				got = "allow"
			}
			if got != row[1] {
				t.Errorf("%q: got %s, want %s: %s", row[0], got, row[1], row[2])
			}
		}
	})
	t.Run("W-01 an address that isn't one, or has a zone, isn't public", func(t *testing.T) {
		t.Parallel()
		for _, a := range []netip.Addr{{}, netip.MustParseAddr("2606:4700::1111%eth0"), netip.MustParseAddr("::ffff:8.8.8.8")} {
			if Public(a) {
				t.Errorf("%v: got public, want not", a)
			}
		}
	})
	t.Run("W-01 the tables are in order, without overlaps, and dated", func(t *testing.T) {
		t.Parallel()
		for _, table := range [][]block{forbidden4, forbidden6} {
			for i, b := range table {
				if b.prefix != b.prefix.Masked() || b.why == "" {
					t.Errorf("%v: got bits behind the prefix or no reason, want neither", b.prefix)
				}
				if i > 0 && (!table[i-1].prefix.Addr().Less(b.prefix.Addr()) || table[i-1].prefix.Overlaps(b.prefix)) {
					t.Errorf("%v: got it after %v, want ascending order without overlaps", b.prefix, table[i-1].prefix)
				}
				if b.prefix.Addr().Is6() && !global6.Overlaps(b.prefix) {
					t.Errorf("%v: got it outside of %v, want only what is inside", b.prefix, global6)
				}
			}
		}
		if _, err := time.Parse(time.DateOnly, registryDate); err != nil {
			t.Errorf("registry date: %v", err)
		}
	})
	t.Run("G-06 the list of prefixes adds addresses, but none with a zone or in IPv6 clothes", func(t *testing.T) {
		t.Parallel()
		g := NewGuard(GuardOptions{AllowCIDRs: []netip.Prefix{loopback, netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("::/0")}})
		for a, want := range map[string]bool{
			"127.0.0.1": true, "127.255.0.1": true, "10.0.0.1": false, "fd00::1": true, "::1": true, "8.8.8.8": true,
			"::ffff:127.0.0.1": false, "::ffff:8.8.8.8": false, "fe80::1%eth0": false,
		} {
			if got := g.addressAllowed(netip.MustParseAddr(a)); got != want {
				t.Errorf("%s: got %v, want %v", a, got, want)
			}
		}
	})
}
