package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// metric reads one of the process' metrics that have no labels.
func (s *server) metric(t testing.TB, name string) float64 {
	t.Helper()
	address := ""
	for line := range strings.Lines(s.log.String()) {
		var said struct{ Msg, Addr string }
		if json.Unmarshal([]byte(line), &said) == nil && said.Msg == "metrics and profiles" {
			address = said.Addr
		}
	}
	_, body := page(t, "http://"+address+"/metrics")
	m := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(body)
	if m == nil {
		t.Fatalf("/metrics of %q lacks %s", address, name)
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// hole makes a bot whose endpoint takes every request and never answers. Its
// settings have version 2 then.
func (o *owner) hole(t testing.TB, e *site) *hooked {
	t.Helper()
	h := &hooked{bot: &bot{w: o.s.w, name: fmt.Sprintf("test_%d_bot", botNumber.Add(1))}, sink: e.sink()}
	h.does(never)
	status, location, _ := o.post(t, "/bots/new", url.Values{"username": {h.name}, "name": {"Hole"}})
	m := madeBot.FindStringSubmatch(location)
	if status != http.StatusSeeOther || m == nil {
		t.Fatalf("make a bot: got %d to %q", status, location)
	}
	h.id = m[1]
	o.act(t, h.bot, "connection", "mode", "webhook", "url", h.sink.url, "pending", "keep", "version", "1")
	return h
}

// installation is a server with bots whose endpoints answer.
type installation struct {
	s    *server
	o    *owner
	e    *site
	bots []*hooked
}

func newInstallation(t *testing.T) *installation {
	t.Helper()
	w, e := newHookWorld(t)
	s := w.serve(t, "MYBOTS_ADMIN_ADDR=127.0.0.1:0")
	return &installation{s: s, o: s.signIn(t), e: e, bots: make([]*hooked, 50)}
}

// latency writes events to 20 bots of each installation every 100 ms, in turn, and
// returns for each the 99th of 100 times from the start of intake to the endpoint.
// What else goes on on the machine meets all of them alike.
func latency(t *testing.T, during time.Duration, list ...*installation) []time.Duration {
	t.Helper()
	began := map[string]time.Time{}
	first, sent := map[*hooked]int{}, map[*hooked]int{}
	for _, in := range list {
		for _, h := range in.bots {
			first[h] = h.total()
		}
	}
	over := time.NewTimer(during)
	defer over.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for turn, running := 0, true; running; turn++ {
		for n := range list {
			in := list[(turn+n)%len(list)]
			var events []event
			for i := range 20 {
				h := in.bots[(turn*20+i)%len(in.bots)]
				events = append(events, event{bot: h.bot}.filled())
				sent[h]++
			}
			at := time.Now()
			for _, e := range events {
				began[e.id] = at
			}
			in.s.write(t, events...)
		}
		select {
		case <-tick.C:
		case <-over.C:
			running = false
		}
	}
	var worst []time.Duration
	for _, in := range list {
		var took []time.Duration
		for _, h := range in.bots {
			eventually(t, 20*time.Second, "a healthy bot has all its updates", func() bool { return h.total() >= first[h]+sent[h] })
			h.mu.Lock()
			for _, v := range h.visits[first[h]:] {
				took = append(took, v.at.Sub(began[v.update.EventID]))
			}
			h.mu.Unlock()
		}
		slices.Sort(took)
		worst = append(worst, took[len(took)*99/100])
	}
	return worst
}

func TestWebhookBlackHoles(t *testing.T) {
	t.Parallel()
	beside, alone := newInstallation(t), newInstallation(t)
	s, o := beside.s, beside.o
	holes := make([]*hooked, 200)
	var adding sync.WaitGroup
	for i := range 5 {
		adding.Go(func() {
			for k := i; k < len(beside.bots); k += 5 {
				beside.bots[k], alone.bots[k] = o.hooked(t, beside.e), alone.o.hooked(t, alone.e)
			}
			for k := i; k < len(holes); k += 5 {
				holes[k] = o.hole(t, beside.e)
			}
		})
	}
	if adding.Wait(); t.Failed() {
		return
	}
	latency(t, 500*time.Millisecond, beside, alone) // connections are made
	goroutines, files := s.metric(t, "go_goroutines"), s.metric(t, "process_open_fds")

	t.Run("W-05 200 endpoints that never answer don't slow 50 healthy ones", func(t *testing.T) {
		var events []event
		for _, h := range holes {
			events = append(events, event{bot: h.bot}, event{bot: h.bot})
		}
		s.write(t, events...)
		for _, h := range holes {
			h.visited(t, 15*time.Second) // 200 handshakes on a busy machine
		}
		if n := s.metric(t, "mybots_webhook_requests_in_flight"); n < 150 { // the first may be over by now
			t.Fatalf("got %v requests under way, want 200 at once", n)
		}
		took := latency(t, 3*time.Second, beside, alone)
		t.Logf("99 of 100 within %v beside the holes, %v without any", took[0], took[1])
		if limit := 2 * max(took[1], 50*time.Millisecond); took[0] > limit {
			t.Errorf("99 of 100 updates came within %v, of an installation without holes within %v; want %v at the most", took[0], took[1], limit)
		}
		for _, h := range beside.bots {
			h.check(t)
		}
	})
	t.Run("W-13 M-03 switched to long polling, they leave neither connections nor goroutines", func(t *testing.T) {
		for _, h := range holes {
			o.act(t, h.bot, "connection", "mode", "polling", "pending", "keep", "version", "2")
		}
		eventually(t, 15*time.Second, fmt.Sprintf("goroutines and open files come back to %v and %v", goroutines, files), func() bool {
			return s.metric(t, "go_goroutines") < goroutines+30 && s.metric(t, "process_open_fds") < files+30
		})
		for _, h := range holes {
			h.check(t)
		}
	})
}
