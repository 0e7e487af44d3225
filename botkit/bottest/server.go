// Package bottest is a Bot API server in the test's own process, to try a bot
// against: it keeps the rules of leases, offsets and keys, and it breaks what
// the network and people break.
//
//	s := bottest.New(t)
//	bot, err := botkit.New(s.Client(), handler, botkit.Options{ConsumerID: "test"})
//	…
//	s.Message("550", "/start")
//	go bot.Poll(ctx)
//	s.WaitSent(1)
//
// Client's calls don't touch the network, so they work inside testing/synctest;
// URL gives an address for everything else.
package bottest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mybots/botkit"
)

// Token and Secret are what the server's one bot has; they are nobody's.
const (
	Token  botkit.Secret = "sbt1_atestsownbotandnobodyelses"
	Secret botkit.Secret = "swh1_atestsownbotandnobodyelses"
)

// Server is a fake of the Bot API for one bot. Its methods may be called from
// any goroutine.
type Server struct {
	t testing.TB

	mu       sync.Mutex
	changed  chan struct{} // closed and made anew with every change
	queue    []*entry      // in the order of their ids
	nextID   int64
	position int64
	issued   int64 // the highest id that was ever handed over
	lease    lease
	epoch    int64 // the last one; 0 once it was made foreign
	epochs   int64 // how many there were
	webhook  bool
	halted   *refusal // paused, in maintenance, or disabled
	revoked  bool
	tokens   float64 // of the rate limit
	refilled time.Time
	limited  bool
	faults   map[string][]Fault
	once     map[string]stored
	sent     []Sent
	answered []Answered
	rejected []Rejected
	calls    []Call

	start sync.Once
	web   *httptest.Server
}

// Fault is what happens to one call instead of what should.
type Fault struct {
	Do          func()      // called first, for example to steal the lease
	LoseRequest bool        // the connection breaks, nothing was done
	LoseAnswer  bool        // it is done, and then the connection breaks
	Code        botkit.Code // this error instead
	Status      int         // of Code, or of Page; 0: the usual one of Code
	RetryAfter  int         // seconds, with Code or Page; 0: none
	Page        string      // a body that isn't the Bot API's, with Status
}

// Call is one request that came, in the order of their coming.
type Call struct {
	Method string
	Key    string // its Idempotency-Key
	Fields map[string]any
	At     time.Time
	Code   string // of the answer; "OK", or "" while there is none
}

// Sent is a message that the bot sent.
type Sent struct {
	Key string
	botkit.Outgoing
}

// Answered is the press of a button that the bot answered.
type Answered struct{ Key, CallbackQueryID, Text string }

// Rejected is an update that the bot rejected, by a call or an answer to a webhook.
type Rejected struct {
	UpdateID botkit.ID
	EventID  string
	Reason   string
}

type stored struct{ method, fields, result string }

// refusal is an error as the API gives it.
type refusal struct {
	status  int
	code    botkit.Code
	message string
	after   time.Duration
	more    map[string]string
}

// New returns a server with an empty queue, in polling mode. It ends with the test.
func New(t testing.TB) *Server {
	s := &Server{
		t: t, changed: make(chan struct{}), nextID: 1, position: 1, tokens: 5, refilled: time.Now(), limited: true,
		faults: map[string][]Fault{}, once: map[string]stored{},
	}
	t.Cleanup(func() {
		if s.web != nil {
			s.web.CloseClientConnections()
			s.web.Close()
		}
	})
	return s
}

// Client returns a client of this server, with its token.
func (s *Server) Client() *botkit.Client {
	c, err := botkit.NewClient("http://bottest.invalid", Token, botkit.WithTransport(s))
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// URL returns an address of the server on this machine.
func (s *Server) URL() string {
	s.start.Do(func() { s.web = httptest.NewServer(s) })
	return s.web.URL
}

// Fault makes the next call of a method go wrong; several wait for one call each.
func (s *Server) Fault(method string, faults ...Fault) {
	s.change(func() { s.faults[method] = append(s.faults[method], faults...) })
}

// Unlimited ends the limit of 5 getUpdates a second.
func (s *Server) Unlimited() { s.change(func() { s.limited = false }) }

// change changes the state and tells those who wait for that.
func (s *Server) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	s.tell()
}

// tell wakes up who waits for a change; the caller holds the lock.
func (s *Server) tell() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// RoundTrip implements http.RoundTripper without a network.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	type outcome struct {
		answer *http.Response
		err    error
	}
	ended := make(chan outcome, 1)
	go func() { // ends with the call, at the latest when the caller gives up
		defer func() {
			if v := recover(); v == http.ErrAbortHandler {
				ended <- outcome{nil, io.ErrUnexpectedEOF}
			} else if v != nil {
				panic(v)
			}
		}()
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		ended <- outcome{w.Result(), nil}
	}()
	select {
	case o := <-ended:
		return o.answer, o.err
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	method := strings.TrimPrefix(r.URL.Path, "/bot-api/v1/")
	var fields map[string]any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	broken := len(body) > 0 && decoder.Decode(&fields) != nil
	fault, number := s.arrived(method, r.Header.Get("Idempotency-Key"), fields)
	if fault.Do != nil {
		fault.Do()
	}
	if fault.LoseRequest || r.Context().Err() != nil {
		panic(http.ErrAbortHandler)
	}
	if fault.Page != "" {
		w.Header().Set("Content-Type", "text/html")
		if fault.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(fault.RetryAfter))
		}
		w.WriteHeader(fault.Status)
		_, _ = io.WriteString(w, fault.Page)
		return
	}
	var result string
	refused := fault.refusal()
	if refused == nil && broken {
		refused = invalid("the body isn't a JSON object")
	}
	if refused == nil {
		result, refused = s.call(r, method, fields)
	}
	s.change(func() {
		s.calls[number].Code = "OK"
		if refused != nil {
			s.calls[number].Code = string(refused.code)
		}
	})
	if fault.LoseAnswer {
		panic(http.ErrAbortHandler)
	}
	respond(w, result, refused)
}

// arrived writes the call down and takes its fault.
func (s *Server) arrived(method, key string, fields map[string]any) (Fault, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, Call{Method: method, Key: key, Fields: fields, At: time.Now()})
	s.tell()
	var fault Fault
	if waiting := s.faults[method]; len(waiting) > 0 {
		fault, s.faults[method] = waiting[0], waiting[1:]
	}
	return fault, len(s.calls) - 1
}

func (f Fault) refusal() *refusal {
	if f.Code == "" {
		return nil
	}
	return &refusal{status: cmp.Or(f.Status, usual[f.Code], 400), code: f.Code, message: "the test asked for it", after: time.Duration(f.RetryAfter) * time.Second}
}

var usual = map[botkit.Code]int{
	botkit.Unauthorized: 401, botkit.BotDisabled: 403, botkit.MethodNotFound: 404, botkit.UpdateNotFound: 404, botkit.ChatNotFound: 404,
	botkit.MethodNotAllowed: 405, botkit.ConsumerConflict: 409, botkit.CursorBehind: 409, botkit.DeliveryModeConflict: 409,
	botkit.IdempotencyKeyReused: 409, botkit.BotPaused: 409, botkit.RequestTooLarge: 413, botkit.UnsupportedMediaType: 415,
	botkit.RateLimited: 429, botkit.Internal: 500, botkit.Maintenance: 503, botkit.Unavailable: 503,
}

func refuse(code botkit.Code, message string, after time.Duration) *refusal {
	return &refusal{status: cmp.Or(usual[code], 400), code: code, message: message, after: after}
}

func invalid(message string) *refusal { return refuse(botkit.InvalidRequest, message, 0) }

// respond writes the envelope of A-01.
func respond(w http.ResponseWriter, result string, refused *refusal) {
	const requestID = "0b4d2c1e-5a7f-4e3b-8c9d-6f1a2b3c4d5e"
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("X-Request-Id", requestID)
	if refused == nil {
		_, _ = io.WriteString(w, `{"ok":true,"result":`+result+"}\n")
		return
	}
	e := map[string]any{"code": refused.code, "message": refused.message}
	for name, value := range refused.more {
		e[name] = value
	}
	if refused.after > 0 {
		whole := int((refused.after + time.Second - 1) / time.Second)
		e["retry_after"] = whole
		w.Header().Set("Retry-After", strconv.Itoa(whole))
	}
	w.WriteHeader(refused.status)
	_ = json.NewEncoder(w).Encode(map[string]any{"ok": false, "error": e, "request_id": requestID})
}
