package main_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"
)

func TestCutConnections(t *testing.T) {
	t.Parallel()
	w, p := behindProxy(t, testClock)
	s, other := w.serve(t), w.serve(t)
	s.trouble, other.trouble = true, true
	f := newFlood(w.bots(t, 3))
	chatting := s.chatting(t)
	before, _ := s.replayed(t, chatting, "sendMessage", `{"chat_id":"550","text":"x"}`, "before")
	first := messageID(t, before)
	t.Run("I-02 I-03 A-06 A-07 P-12 the database's connections are cut again and again under writers, programs and senders", func(t *testing.T) {
		stop := make(chan struct{})
		wait := f.run(6, true, stop, s, other)
		var beside sync.WaitGroup
		errs := make(chan error, len(f.bots)+1)
		consumers := make([]*consumer, len(f.bots))
		for i, b := range f.bots {
			consumers[i] = newConsumer(b)
			beside.Go(func() { // ends with stop or with an error
				if err := consumers[i].follow(stop, s, func() *server { return other }); err != nil {
					errs <- err
				}
			})
		}
		sent := 0
		beside.Go(func() { // ends with stop or with an error
			var err error
			if sent, err = sendOnce(stop, chatting, first, s, other); err != nil {
				errs <- err
			}
		})
		for range 15 {
			before := f.accepted()
			eventually(t, 30*time.Second, "intake goes on", func() bool { return f.accepted() > before+10 })
			p.turn(refuses)
			p.turn(works)
		}
		close(stop)
		if err := wait(); err != nil {
			t.Fatal(err)
		}
		beside.Wait()
		close(errs)
		for err := range errs {
			t.Error(err)
		}
		for _, c := range consumers {
			c.drain(t, s)
		}
		f.check(t, consumers)
		t.Logf("%d messages were sent, each once", sent)
	})
}

// sendOnce sends messages one after another, each under a key of its own until it
// succeeds: after the first's their message ids must have no gap, or one was
// written twice.
func sendOnce(stop <-chan struct{}, b *bot, first int64, servers ...*server) (sent int, err error) {
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	for try := 0; ; try++ {
		a, err := servers[try%len(servers)].try(b, "sendMessage", `{"chat_id":"550","text":"x"}`, fmt.Sprint("Idempotency-Key: once-", sent))
		switch {
		case err != nil:
			return sent, err
		case a.code == "":
			var m struct {
				MessageID string `json:"message_id"`
			}
			if err := json.Unmarshal(a.result, &m); err != nil || m.MessageID != strconv.FormatInt(first+int64(sent)+1, 10) {
				return sent, fmt.Errorf("A-06 message %d after %d came back as %s", sent+1, first, a.result)
			}
			sent++
		case a.code != "UNAVAILABLE":
			return sent, errorOf(a)
		}
		select {
		case <-stop:
			return sent, nil
		case <-pause.C:
		}
	}
}

func TestCrashOfReplica(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testClock)
	s := w.serve(t)
	fresh := func() *server { return w.serve(t) }
	f := newFlood(w.bots(t, 3))
	t.Run("G-03 P-09 P-12 replicas are killed while writers write and programs poll through them", func(t *testing.T) {
		stop := make(chan struct{})
		wait := f.run(3, true, stop, s) // the writers' replica lives
		consumers := make([]*consumer, len(f.bots))
		errs := make(chan error, len(f.bots))
		var polling sync.WaitGroup
		var mu sync.Mutex
		replica := fresh()
		current := func() *server {
			mu.Lock()
			defer mu.Unlock()
			return replica
		}
		for i, b := range f.bots {
			consumers[i] = newConsumer(b)
			polling.Go(func() { // ends with stop or with an error
				if err := consumers[i].follow(stop, s, current); err != nil {
					errs <- err
				}
			})
		}
		for range 3 {
			before := f.accepted()
			eventually(t, 30*time.Second, "all is in full swing", func() bool { return f.accepted() > before+20 })
			next := fresh()
			mu.Lock()
			dying := replica
			replica = next
			mu.Unlock()
			dying.kill()
		}
		close(stop)
		if err := wait(); err != nil {
			t.Fatal(err)
		}
		polling.Wait()
		close(errs)
		for err := range errs {
			t.Error(err)
		}
		for _, c := range consumers {
			c.drain(t, s)
		}
		f.check(t, consumers)
	})
}

// follow polls through two replicas in turn, the second of which may be killed
// and replaced, until stop is closed.
func (c *consumer) follow(stop <-chan struct{}, first *server, second func() *server) error {
	pause := time.NewTicker(100 * time.Millisecond)
	defer pause.Stop()
	for turn := 0; ; turn++ {
		select {
		case <-stop:
			return nil
		default:
		}
		s := first
		if turn%2 == 1 {
			s = second()
		}
		a, err := s.try(c.b, "getUpdates", at(c.name, c.epoch, c.offset, `,"timeout":1,"limit":50`))
		switch {
		case err != nil && a.status == 0: // the replica was killed
		case err != nil:
			return err
		case a.code == "":
			b, err := readBatch(a.result)
			if err == nil {
				err = c.take(b)
			}
			if err != nil {
				return err
			}
		case a.code == "CURSOR_BEHIND": // the answer to a confirmation was lost with its replica
			c.offset = a.confirmed
		case a.code != "CONSUMER_CONFLICT" && a.code != "RATE_LIMITED" && a.code != "UNAVAILABLE":
			return errorOf(a)
		}
		<-pause.C
	}
}
