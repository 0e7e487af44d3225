package web

import (
	"container/list"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// How many attempts to sign in there are at once, and how fast they come back.
const (
	accountTries = 10
	accountEvery = 30 * time.Second
	addressTries = 15
	addressEvery = 15 * time.Second
	// throttleRoom is how many accounts, and how many addresses, are remembered.
	throttleRoom = 10_000
)

// throttle slows guessing down: per account and per address. Nobody is locked
// out for good: tries come back with time.
type throttle struct {
	mu       sync.Mutex
	clock    Clock
	accounts *buckets
	sources  *buckets
}

func newThrottle(clock Clock) *throttle {
	return &throttle{
		clock:    clock,
		accounts: newBuckets(accountTries, accountEvery),
		sources:  newBuckets(addressTries, addressEvery),
	}
}

// try takes one attempt of the account and of the address. It returns 0, or how
// long to wait until there is one.
func (t *throttle) try(email string, from netip.Addr) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	account, source := t.accounts.of(email, now), t.sources.of(sourceKey(from), now)
	if wait := max(t.accounts.wait(account, now), t.sources.wait(source, now)); wait > 0 {
		return wait
	}
	account.left--
	source.left--
	return 0
}

// succeed gives the account all its attempts back, the address the one that it
// took: signing in to an account of one's own buys no guesses at others'.
func (t *throttle) succeed(email string, from netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.accounts.drop(email)
	source := t.sources.of(sourceKey(from), t.clock.Now())
	source.left = min(addressTries, source.left+1)
}

// sourceKey counts an IPv6 network of 64 bits as one: it has one owner.
func sourceKey(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.String()
		}
	}
	return a.String()
}

// buckets are token buckets by key, the longest unused going first when there
// is no room.
type buckets struct {
	size  int
	every time.Duration
	byKey map[string]*list.Element
	used  *list.List // of *bucket, the last used in front
}

type bucket struct {
	key    string
	left   int
	filled time.Time // until when the refill is counted in left
}

func newBuckets(size int, every time.Duration) *buckets {
	return &buckets{size: size, every: every, byKey: map[string]*list.Element{}, used: list.New()}
}

// of returns the bucket of key as it is at now.
func (b *buckets) of(key string, now time.Time) *bucket {
	if e, ok := b.byKey[key]; ok {
		b.used.MoveToFront(e)
		k := e.Value.(*bucket)
		if n := int(now.Sub(k.filled) / b.every); n > 0 {
			k.left, k.filled = min(b.size, k.left+n), k.filled.Add(time.Duration(n)*b.every)
		}
		if k.left == b.size {
			k.filled = now
		}
		return k
	}
	if b.used.Len() >= throttleRoom {
		oldest := b.used.Back()
		delete(b.byKey, oldest.Value.(*bucket).key)
		b.used.Remove(oldest)
	}
	k := &bucket{key: key, left: b.size, filled: now}
	b.byKey[key] = b.used.PushFront(k)
	return k
}

func (b *buckets) wait(k *bucket, now time.Time) time.Duration {
	if k.left > 0 {
		return 0
	}
	return k.filled.Add(b.every).Sub(now)
}

func (b *buckets) drop(key string) {
	if e, ok := b.byKey[key]; ok {
		delete(b.byKey, key)
		b.used.Remove(e)
	}
}

// ClientAddress returns who asks: the peer, or, where the peer is one of the
// trusted proxies, the right-most address in X-Forwarded-For that isn't. What
// stands further left was written by the client and is nobody's word.
func ClientAddress(r *http.Request, trusted []netip.Prefix) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	address := peer.Addr().Unmap()
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && inside(address, trusted); i-- {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break // no address: believe no more of it
		}
		address = hop.Unmap()
	}
	return address
}

func inside(a netip.Addr, networks []netip.Prefix) bool {
	for _, n := range networks {
		if n.Contains(a) {
			return true
		}
	}
	return false
}
