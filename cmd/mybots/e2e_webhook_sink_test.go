package main_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// script is what an endpoint does with a request.
type script func(*visit)

// sink is one owner's endpoint. It books every request, and whether any two came
// at once.
type sink struct {
	host, query, url string
	secret           string // of the last save
	bell             chan struct{}

	mu        sync.Mutex
	next      []script // for the next requests, one each
	otherwise script
	visits    []*visit
	seen      int      // how many a test has taken
	highest   int64    // update_id that came; M-08's is 0
	open      []*visit // those under way
	wrong     []string // what may never happen
}

// visit is one request to an endpoint.
type visit struct {
	request *http.Request
	body    string
	update  update
	attempt int
	at      time.Time // real time when it was there
	conn    int64     // on which connection
	let     chan script
	ended   chan struct{}
	cut     bool // the other side closed before an answer; to be read once it has ended

	w        http.ResponseWriter
	answered bool
	passed   time.Time // when the next request came while this one was under way
}

// gone is closed when the other side has closed the connection.
func (v *visit) gone() <-chan struct{} { return v.request.Context().Done() }

func (k *sink) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	number, _ := r.Context().Value(connNumber{}).(int64)
	v := &visit{request: r, body: string(body), at: time.Now(), conn: number, let: make(chan script, 1), ended: make(chan struct{}), w: w}
	do := k.begin(v)
	defer k.end(v)
	do(v)
}

// begin books a request and returns what is done with it.
func (k *sink) begin(v *visit) script {
	k.mu.Lock()
	defer k.mu.Unlock()
	var err error
	if v.attempt, err = strconv.Atoi(v.request.Header.Get("X-SMeet-Attempt")); err != nil {
		k.wrong = append(k.wrong, fmt.Sprintf("W-06 attempt: %v", err))
	}
	if err := json.Unmarshal([]byte(v.body), &v.update); err != nil {
		k.wrong = append(k.wrong, fmt.Sprintf("U-01 the body: %v", err))
	}
	for _, old := range k.open {
		old.passed = v.at
	}
	if v.update.id > 0 && v.update.id < k.highest {
		k.wrong = append(k.wrong, fmt.Sprintf("W-05 update %d came after update %d", v.update.id, k.highest))
	}
	k.highest = max(k.highest, v.update.id)
	k.open = append(k.open, v)
	k.visits = append(k.visits, v)
	select {
	case k.bell <- struct{}{}:
	default: // it rings already
	}
	if len(k.next) > 0 {
		do := k.next[0]
		k.next = k.next[1:]
		return do
	}
	return k.otherwise
}

// overlapTime is how long this side may take to see that a connection was closed.
const overlapTime = 500 * time.Millisecond

// end books how a request ended. One that was passed by the next must have been
// cut off: it may not have been answered, nor have stood on.
func (k *sink) end(v *visit) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, o := range k.open {
		if o == v {
			k.open = append(k.open[:i], k.open[i+1:]...)
			break
		}
	}
	select {
	case <-v.gone():
		v.cut = !v.answered
	default:
	}
	if !v.passed.IsZero() && (v.answered || time.Since(v.passed) > overlapTime) {
		k.wrong = append(k.wrong, fmt.Sprintf("W-05 update %s: the next request came %v before this one had ended", v.update.UpdateID, time.Since(v.passed)))
	}
	close(v.ended)
}

// does sets what the endpoint does from now on.
func (k *sink) does(do script) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.next, k.otherwise = nil, do
}

// queue sets what the endpoint does with the next requests, one each.
func (k *sink) queue(do ...script) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.next = append(k.next, do...)
}

// says answers with a status; headers are "Name: value".
func says(status int, headers ...string) script {
	return func(v *visit) {
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			v.w.Header().Set(name, value)
		}
		v.answered = true
		v.w.WriteHeader(status)
	}
}

// breaks closes the connection without an answer.
func breaks(v *visit) {
	v.answered = true
	panic(http.ErrAbortHandler)
}

// never answers: it stands until the other side gives up.
func never(v *visit) {
	<-v.gone()
	panic(http.ErrAbortHandler)
}

// waits does what the test lets it do, and nothing if the other side gives up.
func waits(v *visit) {
	select {
	case do := <-v.let:
		do(v)
	case <-v.gone():
		panic(http.ErrAbortHandler)
	}
}

// take returns the first request that no test has taken yet, nil for none.
func (k *sink) take() *visit {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.seen == len(k.visits) {
		return nil
	}
	k.seen++
	return k.visits[k.seen-1]
}

// visited returns the next request, which must come within the time.
func (k *sink) visited(t testing.TB, within time.Duration) *visit {
	t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	for {
		if v := k.take(); v != nil {
			return v
		}
		select {
		case <-k.bell:
		case <-deadline.C:
			t.Fatalf("no request came to %s within %v", k.host, within)
		}
	}
}

// gets returns the next request, which must be for that update and attempt.
func (k *sink) gets(t testing.TB, updateID string, attempt int) *visit {
	t.Helper()
	v := k.visited(t, dueTime)
	if v.update.UpdateID != updateID || v.attempt != attempt {
		t.Fatalf("got update %s attempt %d, want update %s attempt %d", v.update.UpdateID, v.attempt, updateID, attempt)
	}
	return v
}

// quiet fails the test when a request comes within the time.
func (k *sink) quiet(t testing.TB, during time.Duration) {
	t.Helper()
	over := time.NewTimer(during)
	defer over.Stop()
	for {
		if v := k.take(); v != nil {
			t.Fatalf("a request came that may not: update %s attempt %d", v.update.UpdateID, v.attempt)
		}
		select {
		case <-k.bell:
		case <-over.C:
			return
		}
	}
}

// total is how many requests came so far.
func (k *sink) total() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.visits)
}

// check fails the test when something happened that may never happen.
func (k *sink) check(t testing.TB) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, what := range k.wrong {
		t.Errorf("%s: %s", k.host, what)
	}
}

// signed checks the signature over the raw bytes, as a bot's program does, and
// returns when it was made (W-07).
func (v *visit) signed(t testing.TB, secret string) time.Time {
	t.Helper()
	header := v.request.Header.Get("X-SMeet-Signature")
	stamp, digest, ok := strings.Cut(strings.TrimPrefix(header, "t="), ",v1=")
	at, err := strconv.ParseInt(stamp, 10, 64)
	if !ok || err != nil {
		t.Fatalf("W-07 got the signature %q, want t=…,v1=…", header)
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(stamp + "." + v.body))
	if want := hex.EncodeToString(mac.Sum(nil)); digest != want {
		t.Fatalf("W-07 update %s attempt %d: got v1=%s, want %s", v.update.UpdateID, v.attempt, digest, want)
	}
	return time.Unix(at, 0)
}
