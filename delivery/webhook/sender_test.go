package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mybots/delivery"
)

// verify checks a signature as W-07 says, without the code that made it.
func verify(t *testing.T, r received, at int64) {
	t.Helper()
	mac := hmac.New(sha256.New, []byte(string(testSecret)))
	fmt.Fprintf(mac, "%d.%s", at, r.body)
	want := fmt.Sprintf("t=%d,v1=%s", at, hex.EncodeToString(mac.Sum(nil)))
	if got := r.header("X-SMeet-Signature"); got != want {
		t.Errorf("got signature %q, want %q", got, want)
	}
}

// frozen is a product clock that stands until a test moves it.
type frozen struct {
	delivery.Clock
	at time.Time
}

func (f *frozen) Now() time.Time { return f.at }

func TestRequest(t *testing.T) {
	t.Parallel()
	t.Run("W-06 W-07 the request, byte for byte", func(t *testing.T) {
		t.Parallel()
		e := serve(t, goodTLS(), always(ok200))
		r := newRig(t, e)
		clock := &frozen{at: time.Date(2031, 5, 6, 7, 8, 9, 999999000, time.UTC)}
		r.clock = clock
		q := request(e)
		q.Attempt = 3
		want(t, r.send(t, q), answered(200))
		got := e.requests()
		if len(got) != 1 {
			t.Fatalf("got %d requests, want 1", len(got))
		}
		body := q.Update.AppendJSON(nil)
		if !bytes.Equal(got[0].body, body) {
			t.Errorf("got body %s, want %s", got[0].body, body)
		}
		if line := "POST /hook?token=t HTTP/1.1"; got[0].line != line {
			t.Errorf("got line %q, want %q", got[0].line, line)
		}
		wantHeaders := []string{
			"Content-Length: " + strconv.Itoa(len(body)),
			"Content-Type: application/json; charset=utf-8",
			"Host: " + hookHost + ":" + strconv.Itoa(int(e.port)),
			"User-Agent: SMeet-Webhook/1",
			"X-SMeet-Attempt: 3",
			"X-SMeet-Event-Id: " + q.Update.EventID,
			"X-SMeet-Signature: " + got[0].header("X-SMeet-Signature"),
			"X-SMeet-Update-Id: 41",
		}
		headers := slices.Sorted(slices.Values(got[0].headers))
		if !slices.Equal(headers, wantHeaders) {
			t.Errorf("got headers %q, want %q", headers, wantHeaders)
		}
		verify(t, got[0], clock.at.Unix())
		whole := got[0].line + strings.Join(got[0].headers, "\n") + string(got[0].body)
		for _, never := range []string{delivery.BotTokenPrefix, string(testSecret), "Idempotency", "Cookie", "Accept-Encoding"} {
			if strings.Contains(whole, never) {
				t.Errorf("got %q in the request, want it nowhere", never)
			}
		}
	})
	t.Run("W-07 every attempt has a fresh t", func(t *testing.T) {
		t.Parallel()
		e := serve(t, goodTLS(), always(ok200))
		r := newRig(t, e)
		clock := &frozen{at: time.Unix(1_800_000_000, 0)}
		r.clock = clock
		for i := range int64(3) {
			clock.at = time.Unix(1_800_000_000+i, 0)
			want(t, r.send(t, request(e)), answered(200))
			got := e.requests()
			verify(t, got[len(got)-1], 1_800_000_000+i)
		}
	})
	t.Run("W-06 a path and query arrive as they were typed, encoded where they must be", func(t *testing.T) {
		t.Parallel()
		e := serve(t, goodTLS(), always(ok200))
		r := newRig(t, e)
		base := "https://" + hookHost + ":" + strconv.Itoa(int(e.port))
		for typed, line := range map[string]string{
			"":                    "/",
			"?x=1":                "/?x=1",
			"/a%2Fb/путь":         "/a%2Fb/%D0%BF%D1%83%D1%82%D1%8C",
			"//a/../b;v=1?q=тест": "//a/../b;v=1?q=%D1%82%D0%B5%D1%81%D1%82",
			"/%0d%0aX-Evil:1":     "/%0d%0aX-Evil:1",
		} {
			q := request(e)
			var err error
			if q.URL, err = r.guard.Check(base + typed); err != nil {
				t.Fatalf("%q: %v", typed, err)
			}
			want(t, r.send(t, q), answered(200))
			got := e.requests()
			if got, want := got[len(got)-1].line, "POST "+line+" HTTP/1.1"; got != want {
				t.Errorf("%q: got %q, want %q", typed, got, want)
			}
		}
	})
	t.Run("W-06 a large body goes whole, with its length", func(t *testing.T) {
		t.Parallel()
		e := serve(t, goodTLS(), always(ok200))
		r := newRig(t, e)
		q := request(e)
		q.Update.Payload = []byte(`{"text":"` + strings.Repeat("x", 256<<10) + `"}`)
		want(t, r.send(t, q), answered(200))
		if got := e.requests(); len(got) != 1 || !bytes.Equal(got[0].body, q.Update.AppendJSON(nil)) {
			t.Errorf("got %d requests or another body, want this one", len(got))
		}
	})
	t.Run("W-04 cookies aren't kept", func(t *testing.T) {
		t.Parallel()
		e := serve(t, goodTLS(), always("HTTP/1.1 200 OK\r\nSet-Cookie: a=b; Path=/\r\nContent-Length: 0\r\n\r\n"))
		r := newRig(t, e)
		for range 2 {
			want(t, r.send(t, request(e)), answered(200))
		}
		for _, got := range e.requests() {
			if slices.ContainsFunc(got.headers, func(h string) bool { return strings.HasPrefix(strings.ToLower(h), "cookie") }) {
				t.Errorf("got headers %q, want no cookie", got.headers)
			}
		}
	})
	t.Run("W-04 redirects aren't followed", func(t *testing.T) {
		t.Parallel()
		other := serve(t, goodTLS(), always(ok200))
		for _, status := range []int{300, 301, 302, 303, 304, 307, 308} {
			location := fmt.Sprintf("https://%s:%d/", hookHost, other.port)
			e := serve(t, goodTLS(), always(fmt.Sprintf("HTTP/1.1 %d Go\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n", status, location)))
			r := newRig(t, e, other)
			got := r.send(t, request(e))
			want(t, got, answered(status))
			if got.Verdict() != delivery.VerdictPause || got.Code() != delivery.CodeRedirect {
				t.Errorf("W-09 %d: got %s %s, want a pause with %s", status, got.Verdict(), got.Code(), delivery.CodeRedirect)
			}
			if n := len(e.requests()); n != 1 {
				t.Errorf("%d: got %d requests, want 1", status, n)
			}
		}
		if n := other.connections(); n != 0 {
			t.Errorf("got %d connections where the redirects lead, want none", n)
		}
	})
	t.Run("W-13 a request whose ctx ends first is cut", func(t *testing.T) {
		t.Parallel()
		arrived := make(chan struct{})
		e := serve(t, goodTLS(), func(c *call) {
			c.request()
			close(arrived)
			c.wait()
		})
		r := newRig(t, e)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { // ends with the request's arrival
			<-arrived
			cancel()
		}()
		want(t, r.Send(ctx, request(e)), only(delivery.Cut))

		r.names.set(hookHost, record{silent: true})
		ctx, cancel = context.WithCancel(t.Context())
		cancel()
		want(t, r.Send(ctx, request(e)), only(delivery.Cut))
	})
	t.Run("G-06 the file of certificate authorities adds to the system's", func(t *testing.T) {
		t.Parallel()
		file := t.TempDir() + "/ca.pem"
		block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: testCA().cert.Raw})
		if err := os.WriteFile(file, block, 0o600); err != nil {
			t.Fatal(err)
		}
		roots, err := LoadRoots(file)
		if err != nil {
			t.Fatal(err)
		}
		e := serve(t, goodTLS(), always(ok200))
		r := newRig(t, e)
		r.guard.roots = roots
		want(t, r.send(t, request(e)), answered(200))

		if err := os.WriteFile(file, []byte("nothing"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{file, file + ".none"} {
			if _, err := LoadRoots(path); err == nil {
				t.Errorf("%s: got no error, want one", path)
			}
		}
	})
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC)
	for header, wait := range map[string]time.Duration{
		"Retry-After: 7\r\n":   7 * time.Second,
		"retry-after:  60\r\n": time.Minute,
		"Retry-After: " + now.Add(90*time.Second).Format(http.TimeFormat) + "\r\n": 90 * time.Second,
		"Retry-After: " + now.Add(-time.Minute).Format(http.TimeFormat) + "\r\n":   0,
		"Retry-After: 3600\r\n":                time.Hour,
		"Retry-After: 3601\r\n":                0,
		"Retry-After: 1000000000000000000\r\n": 0,
		"Retry-After: 0\r\n":                   0,
		"Retry-After: -5\r\n":                  0,
		"Retry-After: soon\r\n":                0,
		"Retry-After: \r\n":                    0,
		"":                                     0,
	} {
		t.Run("W-09 429 with "+strings.TrimSpace(header), func(t *testing.T) {
			t.Parallel()
			e := serve(t, goodTLS(), always("HTTP/1.1 429 Slow\r\n"+header+"Content-Length: 0\r\n\r\n"))
			r := newRig(t, e)
			r.clock = &frozen{at: now}
			want(t, r.send(t, request(e)), delivery.Answer{Kind: delivery.Answered, Status: 429, RetryAfter: wait})
		})
	}
	t.Run("W-09 Retry-After counts with a 429 alone", func(t *testing.T) {
		t.Parallel()
		e := serve(t, goodTLS(), always("HTTP/1.1 503 No\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n"))
		want(t, newRig(t, e).send(t, request(e)), answered(503))
	})
}

// Not parallel: it sets the environment of the process.
func TestProxiesAreIgnored(t *testing.T) {
	heard := make(chan int, 2)
	proxy := serve(t, nil, func(c *call) {
		heard <- c.n
		c.wait()
	})
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(int(proxy.port)))
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"} {
		t.Setenv(name, "http://"+address)
	}
	t.Setenv("NO_PROXY", "")
	t.Run("W-04 proxy variables of the environment are ignored", func(t *testing.T) {
		e := serve(t, goodTLS(), always(ok200))
		r := newRig(t, e)
		want(t, r.send(t, request(e)), answered(200))
		if got := r.dials(); len(got) != 1 || got[0].Port() != e.port {
			t.Errorf("got %v dialled, want the endpoint alone", got)
		}
		mark, err := net.Dial("tcp", address) // the first that the proxy hears of
		if err != nil {
			t.Fatal(err)
		}
		defer mark.Close()
		if n := <-heard; n != 1 || proxy.connections() != 1 {
			t.Errorf("got connection %d of %d from the test, want the only one", n, proxy.connections())
		}
	})
}
