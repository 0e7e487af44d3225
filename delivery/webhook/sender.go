package webhook

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"mybots/delivery"
)

// Sender sends webhook requests, and keeps a bot's connection between them.
type Sender struct {
	guard *Guard
	clock delivery.Clock
	dial  dialFunc
	kept  *kept

	// The network's own limits (W-08), in real time; tests shorten them.
	connectTime, requestTime time.Duration
}

// NewSender makes a sender that asks guard at every connection. clock is the
// product's: it signs, and says how old a connection is. Close ends it.
func NewSender(guard *Guard, clock delivery.Clock) *Sender {
	return &Sender{
		guard: guard, clock: clock, dial: guard.dial, kept: newKept(clock, maxKept),
		connectTime: delivery.ConnectTime, requestTime: delivery.RequestTime,
	}
}

// Request is one request to a bot's endpoint.
type Request struct {
	BotID   int64
	Version int64  // of the settings: a connection made under others isn't used (W-13)
	URL     string // as Check returned it; it is checked again
	Secret  delivery.Secret
	Update  delivery.Update
	Attempt int // X-SMeet-Attempt
}

// Send makes one request and tells what came of it. It returns within 10 s, or soon
// after ctx has ended: then the answer is Cut, unless a final status line came first.
func (s *Sender) Send(ctx context.Context, r Request) delivery.Answer {
	t, err := s.guard.parse(r.URL)
	if err != nil { // saved under other rules
		return delivery.Answer{Kind: delivery.Forbidden}
	}
	body := r.Update.AppendJSON(nil)
	limited, cancel := context.WithTimeout(ctx, s.requestTime)
	defer cancel()

	if l := s.kept.take(r.BotID, r.Version, t.authority()); l != nil {
		got := s.exchange(limited, l, t, r, body)
		if got.final || got.read > 0 || limited.Err() != nil {
			return s.answer(ctx, limited, got)
		}
		// It turned out closed, which is no attempt (W-08): once more on a new one.
	}
	l := &link{botID: r.BotID, version: r.Version, host: t.authority(), made: s.clock.Now()}
	connecting, cancelConnecting := context.WithTimeout(limited, s.connectTime)
	defer cancelConnecting()
	if l.conn, err = s.connect(connecting, t); err != nil {
		if ctx.Err() != nil {
			return delivery.Answer{Kind: delivery.Cut}
		}
		return connectAnswer(err)
	}
	return s.answer(ctx, limited, s.exchange(limited, l, t, r, body))
}

// exchange signs and sends the request on l, and keeps l if it can.
func (s *Sender) exchange(ctx context.Context, l *link, t target, r Request, body []byte) reply {
	got := l.exchange(ctx, r.bytes(t, body, s.clock.Now()))
	if got.clean {
		s.kept.put(l)
	}
	return got
}

// answer judges a reply on a connection that stood: ctx is the caller's, limited the
// one that ends at 10 s. Whether a byte of the request was sent isn't asked: once
// the connection stands, the next thing is to send it, and how far that came before
// it broke nobody knows.
func (s *Sender) answer(ctx, limited context.Context, got reply) delivery.Answer {
	switch {
	case got.final:
		a := delivery.Answer{Kind: delivery.Answered, Status: got.status}
		if got.status == http.StatusTooManyRequests {
			a.RetryAfter = delivery.RetryAfter(got.retryAfter, http.ParseTime, s.clock.Now())
		}
		return a
	case ctx.Err() != nil:
		return delivery.Answer{Kind: delivery.Cut}
	case limited.Err() != nil:
		return delivery.Answer{Kind: delivery.TimedOut}
	}
	return delivery.Answer{Kind: delivery.Lost}
}

// Forget closes the bot's kept connection.
func (s *Sender) Forget(botID int64) {
	if l := s.kept.remove(botID, nil); l != nil {
		l.leave()
	}
}

// Close closes all kept connections; from now on none is kept. Requests under way
// are ended by their own ctx.
func (s *Sender) Close() { s.kept.close() }

// bytes writes the request, head and body, signed at now (W-06, W-07).
func (r Request) bytes(t target, body []byte, now time.Time) []byte {
	b := make([]byte, 0, len(body)+len(t.path)+1024)
	header := func(name, value string) {
		b = append(b, name...)
		b = append(b, ": "...)
		b = append(b, value...)
		b = append(b, "\r\n"...)
	}
	b = append(b, "POST "...)
	b = append(b, t.requestURI()...)
	b = append(b, " HTTP/1.1\r\n"...)
	header("Host", t.authority())
	header("User-Agent", "SMeet-Webhook/1")
	header("Content-Type", "application/json; charset=utf-8")
	header("Content-Length", strconv.Itoa(len(body)))
	header("X-SMeet-Update-Id", strconv.FormatInt(r.Update.UpdateID, 10))
	header("X-SMeet-Event-Id", r.Update.EventID)
	header("X-SMeet-Attempt", strconv.Itoa(r.Attempt))
	header("X-SMeet-Signature", Sign(r.Secret, now.Unix(), body))
	b = append(b, "\r\n"...)
	return append(b, body...)
}
