package webhook

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"mybots/delivery"
)

// hostile are endpoints that do what they shouldn't, and what each comes to.
var hostile = map[string]struct {
	script func(*call)
	want   delivery.Answer
	slow   bool // ends with the time for the whole request
}{
	"W-09 closes before it reads": {script: func(c *call) {
		handshake(c)
		c.reset()
	}, want: only(delivery.Lost)},
	"W-09 closes after the request": {script: func(c *call) { c.request() }, want: only(delivery.Lost)},
	"W-09 resets after the request": {script: func(c *call) {
		c.request()
		c.reset()
	}, want: only(delivery.Lost)},
	"W-09 is silent": {script: func(c *call) {
		c.request()
		c.wait()
	}, want: only(delivery.TimedOut), slow: true},
	"W-09 reads nothing and is silent": {script: func(c *call) {
		handshake(c)
		io.Copy(io.Discard, c.Conn)
	}, want: only(delivery.TimedOut), slow: true},
	"W-08 half a status line":                            once("HTTP/1.1 200", only(delivery.Lost)),
	"W-08 a status line without its end":                 once("HTTP/1.1 200 OK\r", only(delivery.Lost)),
	"W-08 an endless status line":                        {script: endless("HTTP/1.1 200 ", "x"), want: only(delivery.Lost)},
	"W-08 garbage":                                       once("\x00\x16\x03 hello\r\n\r\n", only(delivery.Lost)),
	"W-08 a page without a head":                         once("<html>200</html>\n", only(delivery.Lost)),
	"W-08 a status of two digits":                        once("HTTP/1.1 20 OK\r\n\r\n", only(delivery.Lost)),
	"W-08 a status with a sign":                          once("HTTP/1.1 +20 OK\r\n\r\n", only(delivery.Lost)),
	"W-08 a status of four digits":                       once("HTTP/1.1 2000 OK\r\n\r\n", only(delivery.Lost)),
	"W-08 another protocol":                              once("HTTP/2.0 200 OK\r\n\r\n", only(delivery.Lost)),
	"W-08 a status line and the end":                     once("HTTP/1.1 200 OK\r\n", answered(200)),
	"W-08 a status line that ends in a bare line feed":   once("HTTP/1.1 204\n", answered(204)),
	"W-08 HTTP/1.0":                                      once("HTTP/1.0 200 OK\r\n\r\nyes", answered(200)),
	"W-08 a head that breaks off":                        once("HTTP/1.1 500 No\r\nContent-Le", answered(500)),
	"W-08 a body that is shorter than it says":           once("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort", answered(200)),
	"W-08 two lengths":                                   once("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", answered(200)),
	"W-08 broken chunks":                                 once("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", answered(200)),
	"W-08 NUL and no UTF-8 in the words":                 once("HTTP/1.1 200 \x00\xff\xfe\r\nContent-Length: 0\r\n\r\n", answered(200)),
	"W-08 NUL and no UTF-8 in the head":                  once("HTTP/1.1 422 No\r\nX\x00\xff: \x00\xff\r\nContent-Length: 0\r\n\r\n", answered(422)),
	"W-09 status 000":                                    once("HTTP/1.1 000 Zero\r\n\r\n", answered(0)),
	"W-09 status 999":                                    once("HTTP/1.1 999 Many\r\n\r\n", answered(999)),
	"W-09 status 101":                                    once("HTTP/1.1 101 Switch\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", answered(101)),
	"W-08 103 and then 200":                              once("HTTP/1.1 103 Hints\r\nLink: </x>\r\n\r\n"+ok200, answered(200)),
	"W-08 103 and nothing more":                          once("HTTP/1.1 103 Hints\r\n\r\n", only(delivery.Lost)),
	"W-08 a flood of 1xx":                                {script: endless("", "HTTP/1.1 103 Hints\r\n\r\n"), want: only(delivery.Lost)},
	"W-08 a flood of 1xx with heads":                     {script: endless("HTTP/1.1 100 Go\r\n", "X-A: b\r\n"), want: only(delivery.Lost)},
	"W-08 dripping 1xx":                                  {script: dripping("", "HTTP/1.1 103 Hints\r\n\r\n"), want: only(delivery.TimedOut), slow: true},
	"W-08 a dripping status line":                        {script: dripping("HTTP/1.1 200 ", "x"), want: only(delivery.TimedOut), slow: true},
	"W-08 a status line and a dripping head":             {script: dripping("HTTP/1.1 200 OK\r\n", "X-A: b\r\n"), want: answered(200), slow: true},
	"W-08 a status line and silence":                     {script: silent("HTTP/1.1 503 No\r\n"), want: answered(503), slow: true},
	"W-08 429, its Retry-After, and a dripping body":     {script: dripping("HTTP/1.1 429 No\r\nRetry-After: 9\r\nContent-Length: 100000\r\n\r\n", "x"), want: delivery.Answer{Kind: delivery.Answered, Status: 429, RetryAfter: 9 * time.Second}, slow: true},
	"W-08 a dripping body":                               {script: dripping("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", "x"), want: answered(200), slow: true},
	"W-08 a huge head":                                   {script: endless("HTTP/1.1 200 OK\r\n", "X-A: b\r\n"), want: answered(200)},
	"W-08 a huge header":                                 {script: endless("HTTP/1.1 400 No\r\nX-A: ", "bbbbbbbb"), want: answered(400)},
	"W-08 an endless body":                               {script: endless("HTTP/1.1 200 OK\r\n\r\n", "x"), want: answered(200)},
	"W-08 an endless body in chunks":                     {script: endless("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n"), want: answered(200)},
	"W-08 endless trailers":                              {script: endless("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "X: y\r\n"), want: answered(200)},
	"W-08 a body of 1 GiB":                               {script: endless(fmt.Sprintf("HTTP/1.1 500 No\r\nContent-Length: %d\r\n\r\n", 1<<30), "x"), want: answered(500)},
	"W-08 a gzip bomb":                                   {script: endless("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08\x00", "\x00"), want: answered(200)},
	"W-08 answers before it reads, and is believed":      {script: func(c *call) { c.say("HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n"); c.wait() }, want: answered(410)},
	"W-09 wants a certificate of the client, in TLS 1.3": {script: func(c *call) { c.request() }, want: only(delivery.Lost)},
}

func handshake(c *call) { c.Read(nil) }

func once(answer string, want delivery.Answer) (h struct {
	script func(*call)
	want   delivery.Answer
	slow   bool
}) {
	h.script = func(c *call) {
		c.request()
		c.say(answer)
	}
	h.want = want
	return h
}

func silent(head string) func(*call) {
	return func(c *call) {
		c.request()
		c.say(head)
		c.wait()
	}
}

func dripping(head, drop string) func(*call) {
	return func(c *call) {
		c.request()
		c.say(head)
		c.drip(drop)
	}
}

// endless says more until the other side has enough, which must be before 8 MiB
// have left: the buffers in between are far smaller.
func endless(head, more string) func(*call) {
	return func(c *call) {
		c.request()
		c.say(head)
		more := strings.Repeat(more, 16<<10/len(more)+1)
		for n := 0; c.say(more); n += len(more) {
			if n > 8<<20 {
				panic("8 MiB of the answer were taken, want 64 KiB")
			}
		}
	}
}

func TestHostileEndpoints(t *testing.T) {
	t.Parallel()
	for name, test := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runHostile(t, test.script, test.want, test.slow, strings.Contains(name, "certificate"))
		})
	}
	t.Run("W-08 an early 413 to a large body counts", func(t *testing.T) {
		t.Parallel()
		e := serve(t, goodTLS(), func(c *call) {
			c.r.ReadString('\n')
			c.say("HTTP/1.1 413 Large\r\nContent-Length: 0\r\n\r\n")
			c.wait()
		})
		quick := serve(t, goodTLS(), func(c *call) {
			c.r.ReadString('\n')
			c.say("HTTP/1.1 413 Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n") // and unread bytes are reset
		})
		r := newRig(t, e, quick)
		for _, e := range []*endpoint{e, quick} {
			q := request(e)
			q.Update.Payload = []byte(`{"text":"` + strings.Repeat("x", 256<<10) + `"}`)
			want(t, r.send(t, q), answered(413))
		}
	})
	t.Run("W-08 at most 64 KiB of an answer are read", func(t *testing.T) {
		t.Parallel()
		in := &tap{from: io.MultiReader(strings.NewReader("HTTP/1.1 200 OK\r\n\r\n"), neverending{}), left: maxHead}
		if got := in.reply(); got.status != 200 || got.clean || got.read != delivery.MaxAnswer {
			t.Errorf("got %+v, want status 200 after %d bytes", got, delivery.MaxAnswer)
		}
		in = &tap{from: neverending{}, left: maxHead}
		if got := in.reply(); got.final || got.read != maxHead {
			t.Errorf("got %+v, want none after %d bytes", got, maxHead)
		}
	})
	t.Run("W-08 all the time counts that the request takes, the connection included", func(t *testing.T) {
		t.Parallel()
		e := serve(t, goodTLS(), silent(""))
		r := newRig(t, e)
		r.hurry(10*time.Second, time.Second)
		dial := r.dial
		dialEnd := make(chan time.Time, 1)
		r.dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			end, _ := ctx.Deadline()
			dialEnd <- end
			return dial(ctx, to)
		}
		start := time.Now()
		want(t, r.send(t, request(e)), only(delivery.TimedOut))
		if end := <-dialEnd; end.After(start.Add(2 * time.Second)) {
			t.Errorf("got %v for the connection, want no more than the whole request has", end.Sub(start))
		}
	})
}

type neverending struct{}

func (neverending) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func runHostile(t *testing.T, script func(*call), wanted delivery.Answer, slow, clientCertificate bool) {
	t.Helper()
	config := goodTLS()
	if clientCertificate {
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	e := serve(t, config, script)
	r := newRig(t, e)
	limit := 10 * time.Second
	if slow {
		limit = time.Second
	}
	r.hurry(10*time.Second, limit)
	start := time.Now()
	want(t, r.send(t, request(e)), wanted)
	if took := time.Since(start); slow && took < limit || took > limit+5*time.Second {
		t.Errorf("got an answer after %v, want it at %v", took, limit)
	}
	if n := e.connections(); n != 1 {
		t.Errorf("got %d connections, want 1", n)
	}
}

// Not parallel: it counts what the process has open.
func TestNothingIsLeftOpen(t *testing.T) {
	before := sockets(t)
	for name, test := range hostile {
		if !test.slow {
			t.Run(name, func(t *testing.T) {
				runHostile(t, test.script, test.want, false, strings.Contains(name, "certificate"))
			})
		}
	}
	t.Run("W-08 kept connections and silent ones", func(t *testing.T) {
		e := serve(t, goodTLS(), always(ok200))
		mute := serve(t, goodTLS(), silent(""))
		r := newRig(t, e, mute)
		for id := range int64(20) {
			q := request(e)
			q.BotID = id
			want(t, r.send(t, q), answered(200))
		}
		r.hurry(time.Second, 100*time.Millisecond)
		q := request(mute)
		q.BotID = 99
		r.send(t, q)
	})
	t.Run("W-08 no goroutine and no socket is left", func(t *testing.T) {
		deadline := time.Now().Add(5 * time.Second)
		for {
			left, after := ours(), sockets(t)
			if len(left) == 0 && after <= before {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("got %d sockets, want %d; goroutines: %s", after, before, strings.Join(left, "\n\n"))
			}
			runtime.Gosched()
		}
	})
}

// sockets counts the sockets of this process.
func sockets(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc on this system")
	}
	n := 0
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

// ours are the goroutines that run code of this package, but for tests.
func ours() (left []string) {
	b := make([]byte, 8<<20)
	for g := range strings.SplitSeq(string(b[:runtime.Stack(b, true)]), "\n\n") {
		if strings.Contains(g, "webhook.(*link)") || strings.Contains(g, "webhook.(*Sender)") || strings.Contains(g, "webhook.(*kept)") || strings.Contains(g, "webhook.(*Guard)") {
			left = append(left, g)
		}
	}
	return left
}
