package main_test

import (
	"net"
	"net/url"
	"sync"
	"testing"
	"time"
)

// proxy stands between a server and PostgreSQL and fails as networks do.
type proxy struct {
	listener net.Listener
	target   string // PostgreSQL's socket

	mu     sync.Mutex
	broken failure
	conns  map[net.Conn]struct{}
	turned chan struct{} // closed and made anew when broken changes
}

type failure int

const (
	works   failure = iota
	refuses         // new connections are closed at once, old ones are cut
	silent          // nothing comes through any more, nothing is closed
)

// behindProxy is a world whose servers reach their database through a proxy.
func behindProxy(t testing.TB, settings ...string) (*world, *proxy) {
	t.Helper()
	w := newWorld(t, settings...)
	u, err := url.Parse(w.dsn)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	p := &proxy{target: q.Get("host") + "/.s.PGSQL." + q.Get("port"), conns: map[net.Conn]struct{}{}, turned: make(chan struct{})}
	if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(p.serve) // ends with the listener
	t.Cleanup(func() {
		if err := p.listener.Close(); err != nil {
			t.Errorf("close the proxy: %v", err)
		}
		p.turn(refuses)
		serving.Wait()
	})
	u.Host = p.listener.Addr().String()
	q.Del("host")
	q.Del("port")
	u.RawQuery = q.Encode()
	w.settings = append([]string{}, w.settings...)
	w.settings[0] = "MYBOTS_DATABASE_URL=" + u.String()
	return w, p
}

// turn makes the proxy fail, or work again.
func (p *proxy) turn(f failure) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = f
	close(p.turned)
	p.turned = make(chan struct{})
	if f == refuses {
		for c := range p.conns {
			c.Close()
		}
	}
}

func (p *proxy) state() (failure, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.broken, p.turned
}

func (p *proxy) serve() {
	var pairs sync.WaitGroup
	defer pairs.Wait()
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		if f, _ := p.state(); f == refuses {
			c.Close()
			continue
		}
		pairs.Go(func() { p.pair(c) }) // ends when either side closes
	}
}

func (p *proxy) pair(client net.Conn) {
	p.keep(client)
	defer p.drop(client)
	server, err := net.DialTimeout("unix", p.target, 5*time.Second)
	if err != nil {
		return
	}
	p.keep(server)
	defer p.drop(server)
	var both sync.WaitGroup
	both.Go(func() { p.copy(server, client) })
	both.Go(func() { p.copy(client, server) })
	both.Wait()
}

func (p *proxy) keep(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[c] = struct{}{}
}

func (p *proxy) drop(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	c.Close()
}

// copy carries bytes one way until a side closes; it holds them while the proxy
// is silent. One that was silenced isn't revived: its other side has given up.
func (p *proxy) copy(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		for n > 0 {
			f, turned := p.state()
			if f != silent {
				break
			}
			<-turned
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return // closed, by whomever
		}
	}
}
