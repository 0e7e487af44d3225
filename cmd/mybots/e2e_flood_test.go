package main_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// flood is many writers at once, and a ledger of what intake promised them.
type flood struct {
	bots []*bot

	mu       sync.Mutex
	promised map[*bot]map[int64]string // update_id → event_id, of every 200
	open     map[string]*bot           // events whose writer got no answer
	requests int
}

func newFlood(bots []*bot) *flood {
	f := &flood{bots: bots, promised: map[*bot]map[int64]string{}, open: map[string]*bot{}}
	for _, b := range bots {
		f.promised[b] = map[int64]string{}
	}
	return f
}

// record enters one answer of intake into the ledger.
func (f *flood) record(events []event, results []written) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests++
	last := map[*bot]int64{}
	for i, r := range results {
		e := events[i]
		if r.Error != nil {
			return fmt.Errorf("intake refused an event: %s (%s)", r.Error.Code, r.Error.Message)
		}
		id, err := number(r.UpdateID)
		if err != nil {
			return err
		}
		if id <= last[e.bot] {
			return fmt.Errorf("I-04 bot %s: update %d after %d in one request", e.bot.id, id, last[e.bot])
		}
		last[e.bot] = id
		if before, taken := f.promised[e.bot][id]; taken && before != e.id {
			return fmt.Errorf("I-02 bot %s: position %d was promised to event %s and to %s", e.bot.id, id, before, e.id)
		}
		f.promised[e.bot][id] = e.id
		delete(f.open, e.id)
	}
	return nil
}

// batch makes n events for all bots in turn and notes them as open.
func (f *flood) batch(n int) []event {
	f.mu.Lock()
	defer f.mu.Unlock()
	events := make([]event, n)
	for i := range events {
		events[i] = event{bot: f.bots[i%len(f.bots)]}.filled()
		f.open[events[i].id] = events[i].bot
	}
	return events
}

// write sends a batch once. retry: no answer came, or one that says to repeat.
func (f *flood) write(s *server, events []event) (retry bool, err error) {
	raw := make([]string, len(events))
	for i, e := range events {
		raw[i] = e.json()
	}
	a, err := s.tryEvents(eventsBody(raw...))
	if a.status != 0 && err != nil {
		return false, err // an answer that breaks the contract
	}
	if err != nil || a.code == "UNAVAILABLE" {
		return true, nil
	}
	results, err := a.results(len(events))
	if err != nil {
		return false, err
	}
	return false, f.record(events, results)
}

// accepted is how many requests were answered 200.
func (f *flood) accepted() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.requests
}

// run starts writers that send batches of 20 events until stop is closed. Where
// again is set they repeat what got no answer until it is taken, through the next
// server, else they end with it.
func (f *flood) run(writers int, again bool, stop <-chan struct{}, servers ...*server) (wait func() error) {
	var wg sync.WaitGroup
	errs := make(chan error, writers)
	for n := range writers {
		wg.Go(func() { // ends with stop or with an error
			pause := time.NewTicker(50 * time.Millisecond) // between repeats
			defer pause.Stop()
			for turn := n; ; turn++ {
				select {
				case <-stop:
					return
				default:
				}
				events := f.batch(20)
				for try, began := 0, time.Now(); ; try++ {
					retry, err := f.write(servers[(turn+try)%len(servers)], events)
					if err == nil && retry && time.Since(began) > 60*time.Second {
						err = fmt.Errorf("A-07 intake still takes nothing after 60 s")
					}
					if err != nil {
						errs <- err
						return
					}
					if !retry {
						break
					}
					if !again {
						return
					}
					<-pause.C
				}
			}
		})
	}
	return func() error {
		wg.Wait()
		close(errs)
		return <-errs
	}
}

// consumer takes a bot's updates by long polling and confirms them, as a program does.
type consumer struct {
	b                   *bot
	name, epoch, offset string
	last                int64
	got                 map[int64]string // what it received: update_id → event_id
}

func newConsumer(b *bot) *consumer { return &consumer{b: b, name: "model", got: map[int64]string{}} }

// take checks a batch against what was received before, and enters it.
func (c *consumer) take(b batch) error {
	c.epoch, c.offset = b.Lease.Epoch, b.NextOffset
	if len(b.Skipped) > 0 {
		return fmt.Errorf("bot %s: nothing was ever skipped, but got %s", c.b.id, b.outline())
	}
	for _, u := range b.Updates {
		switch before, again := c.got[u.id]; {
		case again && before != u.EventID:
			return fmt.Errorf("bot %s: update %d was event %s and is %s now", c.b.id, u.id, before, u.EventID)
		case !again && u.id != c.last+1:
			return fmt.Errorf("U-02 bot %s: update %d after %d", c.b.id, u.id, c.last)
		case !again:
			c.got[u.id], c.last = u.EventID, u.id
		}
	}
	return nil
}

// drain takes all that waits. On a world with a test clock the rate limit costs no time.
func (c *consumer) drain(t testing.TB, s *server) {
	t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for {
		a := s.call(t, c.b, "getUpdates", at(c.name, c.epoch, c.offset, now))
		switch a.code {
		case "":
		case "RATE_LIMITED":
			s.advance(t, time.Second)
			continue
		case "CONSUMER_CONFLICT": // a poll that died still waits
			s.advance(t, time.Duration(a.retry)*time.Second)
			continue
		default:
			t.Fatalf("drain bot %s: %s (%s)", c.b.id, a.code, a.message)
		}
		b, err := readBatch(a.result)
		if err == nil {
			err = c.take(b)
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(b.Updates) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("bot %s isn't drained after 60 s", c.b.id)
		}
	}
}

// check compares what the consumers got with the ledger: everything that intake
// promised, at its position, once; and of the rest nothing twice.
func (f *flood) check(t testing.TB, consumers []*consumer) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	total := 0
	for _, c := range consumers {
		total += len(c.got)
		for _, id := range slices.Sorted(maps.Keys(f.promised[c.b])) {
			if want, got := f.promised[c.b][id], c.got[id]; got != want {
				t.Errorf("I-02 bot %s: update %d was promised to event %s, delivered was %q", c.b.id, id, want, got)
			}
		}
		at := map[string]int64{}
		for id, event := range c.got {
			if before, twice := at[event]; twice {
				t.Errorf("I-03 bot %s: event %s is update %d and %d", c.b.id, event, before, id)
			}
			at[event] = id
			if _, promised := f.promised[c.b][id]; !promised && f.open[event] != c.b {
				t.Errorf("bot %s: update %d is event %s, which nobody wrote", c.b.id, id, event)
			}
		}
	}
	t.Logf("%d requests of 20 events answered, %d events never answered, %d updates delivered", f.requests, len(f.open), total)
}

// drainAll drains every bot and checks the ledger.
func (f *flood) drainAll(t testing.TB, s *server) []*consumer {
	t.Helper()
	consumers := make([]*consumer, len(f.bots))
	for i, b := range f.bots {
		consumers[i] = newConsumer(b)
		consumers[i].drain(t, s)
		want := strconv.FormatInt(consumers[i].last+1, 10)
		if got := s.info(t, b); got.Pending != 0 || got.PendingBytes != 0 || got.ConfirmedOffset != want {
			t.Errorf("W-15 bot %s: got %+v after all was confirmed, want the position %s", b.id, got, want)
		}
	}
	f.check(t, consumers)
	return consumers
}
