package webhook

import (
	"strconv"
	"testing"
	"time"

	"mybots/delivery"
)

// conns says on which connection each request came.
func conns(e *endpoint) string {
	s := ""
	for _, r := range e.requests() {
		s += strconv.Itoa(r.conn)
	}
	return s
}

func TestKeptConnections(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		between func(r *rig, q *Request)
		conns   string
		lookups int
	}{
		"W-02 a connection is kept":                           {func(*rig, *Request) {}, "11", 1},
		"W-02 a connection of less than 60 s is used":         {func(r *rig, _ *Request) { r.time.SetShift(50 * time.Second) }, "11", 1},
		"W-02 at 60 s of the product's clock it is made anew": {func(r *rig, _ *Request) { r.time.SetShift(60 * time.Second) }, "12", 2},
		"W-13 under other settings it is made anew":           {func(_ *rig, q *Request) { q.Version++ }, "12", 2},
		"W-13 one forgotten is made anew":                     {func(r *rig, q *Request) { r.Forget(q.BotID) }, "12", 2},
		"W-02 another bot has its own":                        {func(_ *rig, q *Request) { q.BotID++ }, "12", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := serve(t, goodTLS(), always("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes"))
			r := newRig(t, e)
			q := request(e)
			want(t, r.send(t, q), answered(200))
			test.between(r, &q)
			want(t, r.send(t, q), answered(200))
			if got := conns(e); got != test.conns {
				t.Errorf("got requests on connections %s, want %s", got, test.conns)
			}
			if got := r.names.lookups(hookHost); got != test.lookups {
				t.Errorf("got %d look-ups, want %d", got, test.lookups)
			}
		})
	}
	t.Run("W-02 another host makes a new one, and a change of the name shows within 60 s", func(t *testing.T) {
		t.Parallel()
		e := serve(t, goodTLS(), always(ok200))
		r := newRig(t, e)
		q := request(e)
		want(t, r.send(t, q), answered(200))
		r.names.set(hookHost, record{a: []string{"10.0.0.1"}})
		want(t, r.send(t, q), answered(200))
		r.time.SetShift(61 * time.Second)
		want(t, r.send(t, q), only(delivery.Forbidden))

		r.names.set("other.example.test", record{a: []string{"127.0.0.1"}})
		q.URL = "https://other.example.test:" + strconv.Itoa(int(e.port)) + "/"
		want(t, r.send(t, q), answered(200))
		if got := conns(e); got != "112" {
			t.Errorf("got requests on connections %s, want 112", got)
		}
	})
	for name, answer := range map[string]string{
		"one that says that it closes":     "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
		"one that speaks HTTP/1.0":         "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
		"one that says more than its body": "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 500 No\r\n\r\n",
		"one with two lengths":             "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
	} {
		t.Run("W-08 "+name+" isn't kept", func(t *testing.T) {
			t.Parallel()
			e := serve(t, goodTLS(), always(answer))
			r := newRig(t, e)
			for range 2 {
				want(t, r.send(t, request(e)), answered(200))
			}
			if got := conns(e); got != "12" {
				t.Errorf("got requests on connections %s, want 12", got)
			}
		})
	}
	t.Run("W-08 an endpoint that closes after every answer costs nothing", func(t *testing.T) {
		t.Parallel()
		e := serve(t, goodTLS(), func(c *call) {
			c.request()
			c.say(ok200)
		})
		r := newRig(t, e)
		for range 20 {
			want(t, r.send(t, request(e)), answered(200))
		}
		if got := e.requests(); len(got) != 20 {
			t.Errorf("got %d requests, want 20", len(got))
		}
	})
	t.Run("W-08 a kept connection that breaks with the next request: it goes once more, freshly signed", func(t *testing.T) {
		t.Parallel()
		e := serve(t, goodTLS(), func(c *call) {
			if c.request() == nil || !c.say(ok200) || c.n > 1 && c.request() == nil {
				return
			}
			c.request() // and closes without an answer
		})
		r := newRig(t, e)
		clock := &ticking{at: time.Unix(1_900_000_000, 0)}
		r.clock = clock
		want(t, r.send(t, request(e)), answered(200))
		want(t, r.send(t, request(e)), answered(200))
		got := e.requests()
		if conns(e) != "112" {
			t.Fatalf("got requests on connections %s, want 112", conns(e))
		}
		if a, b := got[1].header("X-SMeet-Signature"), got[2].header("X-SMeet-Signature"); a == b {
			t.Errorf("got signature %s twice, want a fresh one", a)
		}
		if got[1].header("X-SMeet-Attempt") != got[2].header("X-SMeet-Attempt") || string(got[1].body) != string(got[2].body) {
			t.Error("got another attempt or body, want the same")
		}
	})
	t.Run("W-08 a second time is lost, and never a third", func(t *testing.T) {
		t.Parallel()
		e := serve(t, goodTLS(), func(c *call) {
			if c.request() != nil && c.n == 1 && c.say(ok200) {
				c.request()
			}
		})
		r := newRig(t, e)
		want(t, r.send(t, request(e)), answered(200))
		want(t, r.send(t, request(e)), only(delivery.Lost))
		if got := conns(e); got != "112" {
			t.Errorf("got requests on connections %s, want 112", got)
		}
	})
	t.Run("W-08 a kept connection that breaks within an answer is lost", func(t *testing.T) {
		t.Parallel()
		e := serve(t, goodTLS(), func(c *call) {
			if c.request() != nil && c.say(ok200) && c.request() != nil {
				c.say("H")
			}
		})
		r := newRig(t, e)
		want(t, r.send(t, request(e)), answered(200))
		want(t, r.send(t, request(e)), only(delivery.Lost))
		if got := conns(e); got != "11" {
			t.Errorf("got requests on connections %s, want 11", got)
		}
	})
	t.Run("W-08 a kept connection on which nothing comes times out, and nothing is sent again", func(t *testing.T) {
		t.Parallel()
		e := serve(t, goodTLS(), func(c *call) {
			if c.request() != nil && c.say(ok200) && c.request() != nil {
				c.wait()
			}
		})
		r := newRig(t, e)
		want(t, r.send(t, request(e)), answered(200))
		r.hurry(10*time.Second, time.Second)
		want(t, r.send(t, request(e)), only(delivery.TimedOut))
		if got := conns(e); got != "11" {
			t.Errorf("got requests on connections %s, want 11", got)
		}
	})
	t.Run("W-08 a connection that speaks out of turn is closed", func(t *testing.T) {
		t.Parallel()
		closed := make(chan struct{})
		e := serve(t, goodTLS(), func(c *call) {
			c.request()
			c.say(ok200)
			if c.n == 1 {
				// Behind the answer, in a record of its own: sooner or later it is read
				// between the requests.
				c.say("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")
				c.wait()
				close(closed)
			}
		})
		r := newRig(t, e)
		want(t, r.send(t, request(e)), answered(200))
		<-closed
		want(t, r.send(t, request(e)), answered(200))
		if got := conns(e); got != "12" {
			t.Errorf("got requests on connections %s, want 12", got)
		}
	})
	t.Run("W-02 the one used least recently goes when there are too many", func(t *testing.T) {
		t.Parallel()
		e := serve(t, goodTLS(), always(ok200))
		r := newRig(t, e)
		r.kept.limit = 2
		for _, bot := range []int64{1, 2, 1, 3, 1, 2} {
			q := request(e)
			q.BotID = bot
			want(t, r.send(t, q), answered(200))
		}
		if got := conns(e); got != "121314" {
			t.Errorf("got requests on connections %s, want 121314", got)
		}
		r.Close()
		q := request(e)
		q.BotID = 1
		want(t, r.send(t, q), answered(200))
		want(t, r.send(t, q), answered(200))
		if got := conns(e); got != "12131456" {
			t.Errorf("after the end: got requests on connections %s, want 12131456", got)
		}
	})
	t.Run("W-02 G-05 a kept connection ends by itself at 60 s of the product's clock", func(t *testing.T) {
		t.Parallel()
		closed := make(chan struct{})
		e := serve(t, goodTLS(), func(c *call) {
			always(ok200)(c)
			close(closed)
		})
		r := newRig(t, e)
		want(t, r.send(t, request(e)), answered(200))
		r.time.SetShift(time.Minute)
		select {
		case <-closed:
		case <-time.After(10 * time.Second):
			t.Error("got it open, want it closed when it is 60 s old")
		}
	})
}

// ticking is a product clock that goes on with every look.
type ticking struct {
	delivery.Clock
	at time.Time
}

func (c *ticking) Now() time.Time {
	c.at = c.at.Add(time.Second)
	return c.at
}
