package main_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// chaosTime is how long processes are killed.
const chaosTime = 16 * time.Second

// special tells whether the endpoints treat an event badly: one in eight.
func special(eventID string) bool { return eventID[0] < '2' }

// slowly answers 200 after a while, unless the other side gives up before.
func slowly(v *visit) {
	wait := time.NewTimer(time.Duration(20+rand.IntN(200)) * time.Millisecond)
	defer wait.Stop()
	select {
	case <-wait.C:
		says(200)(v)
	case <-v.gone():
		breaks(v)
	}
}

// one in n does the one thing, the others the other.
func oneIn(n int, this, that script) script {
	return func(v *visit) {
		if rand.IntN(n) == 0 {
			this(v)
			return
		}
		that(v)
	}
}

// badly does something to special events alone.
func badly(do script) script {
	return func(v *visit) {
		if special(v.update.EventID) {
			do(v)
			return
		}
		says(200)(v)
	}
}

// chaos is an installation whose processes come and go.
type chaos struct {
	w *world
	f *flood

	mu      sync.Mutex
	servers []*server
}

func (c *chaos) any() *server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.servers[rand.IntN(len(c.servers))]
}

// write writes two events for each bot, again and again until it is taken, and
// lets the clock run, until stop is closed.
func (c *chaos) write(t *testing.T, stop <-chan struct{}) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		events := c.f.batch(2 * len(c.f.bots))
		for retry := true; retry; {
			select {
			case <-stop: // the last ones may be in no ledger
				return
			case <-tick.C:
			}
			var err error
			s := c.any()
			if retry, err = c.f.write(s, events); err != nil {
				t.Errorf("intake: %v", err)
				return
			}
			// An error is that of a process that was killed: the next takes it on.
			_, _ = s.send(s.request("POST", "/internal/v1/clock/advance", c.w.key, `{"seconds":30}`))
		}
	}
}

// end ends a process, by kill -9 or SIGTERM, and waits in the background until it is out.
func (c *chaos) end(t *testing.T, s *server, gone *sync.WaitGroup) {
	t.Helper()
	if rand.IntN(3) > 0 {
		s.kill()
		return
	}
	signalTo(t, s.cmd.Process.Pid, syscall.SIGTERM)
	gone.Go(func() { // ends with the process
		late := time.NewTimer(15 * time.Second)
		defer late.Stop()
		select {
		case <-s.exited:
		case <-late.C:
			t.Error("G-04 a process isn't out 15 s after SIGTERM")
			s.kill()
		}
	})
}

func TestWebhookChaos(t *testing.T) {
	t.Parallel()
	w, e := newHookWorld(t)
	c := &chaos{w: w, servers: []*server{w.serve(t), w.serve(t), w.serve(t)}}
	o := c.servers[0].signIn(t)
	kinds := []struct {
		name  string
		does  script
		fails string // which events may be FAILED, and which must: none, special, some
	}{
		{"fast", says(200), "none"}, {"fast, too", says(204, "Connection: close"), "none"}, {"slow", slowly, "none"}, {"slow, too", slowly, "none"},
		{"500 sometimes", oneIn(10, says(500), says(200)), "some"}, {"closes sometimes", oneIn(10, breaks, slowly), "some"},
		{"503, then fine", badly(func(v *visit) { says(map[bool]int{true: 503, false: 200}[v.attempt <= 2])(v) }), "some"},
		{"422 for some", badly(says(422)), "special"}, {"400 for some, slow", badly(oneIn(1, says(400), slowly)), "special"},
		{"429 sometimes", oneIn(8, says(429, "Retry-After: 2"), says(200)), "none"},
		{"500 for some, always", badly(says(500)), "special"}, {"busy at first", oneIn(3, says(503), slowly), "some"},
	}
	var hooks []*hooked
	var bots []*bot
	for _, k := range kinds {
		h := o.hooked(t, e)
		h.does(k.does)
		hooks, bots = append(hooks, h), append(bots, h.bot)
	}
	c.f = newFlood(bots)

	t.Run("W-05 G-03 G-04 while processes are killed", func(t *testing.T) {
		stop := make(chan struct{})
		var writing, gone sync.WaitGroup
		writing.Go(func() { c.write(t, stop) }) // ends with stop
		over := time.NewTimer(chaosTime)
		defer over.Stop()
		ends := 0
		for running := true; running; {
			pause := time.NewTimer(time.Duration(300+rand.IntN(1200)) * time.Millisecond)
			select {
			case <-pause.C:
			case <-over.C:
				running = false
				continue
			}
			i := rand.IntN(len(c.servers))
			next := w.start(c.servers[i].t, []string{"serve"}) // ends with the whole test
			next.awaitListening()
			c.mu.Lock()
			old := c.servers[i]
			c.servers[i] = next
			c.mu.Unlock()
			c.end(t, old, &gone)
			ends++
		}
		close(stop)
		writing.Wait()
		gone.Wait()
		t.Logf("%d processes ended, %d requests of intake were answered", ends, c.f.accepted())
	})
	t.Run("W-05 W-09 W-10 U-02 in the end everything is delivered, in order, or FAILED as the table says", func(t *testing.T) {
		s := c.any()
		open := maps.Clone(c.f.open) // a writer without an answer asks again (I-03)
		for id, b := range open {
			if retry, err := c.f.write(s, []event{event{bot: b, id: id}.filled()}); retry || err != nil {
				t.Fatalf("event %s: repeat %v, %v", id, retry, err)
			}
		}
		s.drained(t, hooks, 45*time.Second)
		db := w.db(t)
		for i, k := range kinds {
			h := hooks[i]
			h.check(t) // never two at once, never backwards
			var failed []struct {
				UpdateID int64  `db:"update_id"`
				Reason   string `db:"reason"`
				Attempts int    `db:"attempts"`
			}
			if err := db.Select(&failed, `SELECT update_id, reason, attempts FROM failed_updates WHERE bot_id = $1`, h.id); err != nil {
				t.Fatal(err)
			}
			fates := map[int64]string{}
			for _, f := range failed {
				fates[f.UpdateID] = fmt.Sprint(f.Reason, " ", f.Attempts)
			}
			if n := s.info(t, h.bot).Failed; n != len(failed) {
				t.Errorf("F-05 %s: got failed_update_count %d, want %d", k.name, n, len(failed))
			}
			h.judge(t, k.name, k.fails, c.f.promised[h.bot], fates)
		}
	})
}

// drained lets the clock run from one attempt to the next until no bot has
// anything that waits.
func (s *server) drained(t testing.TB, hooks []*hooked, within time.Duration) {
	t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		var left []string
		var due time.Time
		for _, h := range hooks {
			i := s.hookInfo(t, h.bot)
			if i.Pending == 0 {
				continue
			}
			left = append(left, fmt.Sprintf("bot %s: %s, %d waiting, next %v, last error %+v", h.id, i.State, i.Pending, i.NextAttempt, i.LastError))
			if n := i.NextAttempt; n != nil && (due.IsZero() || n.Before(due)) {
				due = *n
			}
		}
		if len(left) == 0 {
			return
		}
		if !due.IsZero() {
			s.reach(t, due, 0)
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("W-05 not delivered within %v, at %v:\n%s", within, s.w.now(), strings.Join(left, "\n"))
		}
	}
}

// judge compares what intake promised with what came and what is FAILED.
func (k *sink) judge(t *testing.T, name, fails string, promised map[int64]string, failed map[int64]string) {
	t.Helper()
	came := map[int64]string{}
	for _, v := range k.visits {
		if before, ok := came[v.update.id]; ok && before != v.update.EventID {
			t.Errorf("U-02 %s: update %d was event %s and is %s", name, v.update.id, before, v.update.EventID)
		}
		came[v.update.id] = v.update.EventID
	}
	t.Logf("%s: %d events, %d requests, %d FAILED", name, len(promised), len(k.visits), len(failed))
	for id, event := range promised {
		if came[id] != event {
			t.Errorf("W-05 %s: update %d of event %s never came, but %q", name, id, event, came[id])
		}
		fate, isFailed := failed[id]
		if fails == "none" && isFailed || fails == "special" && isFailed != special(event) {
			t.Errorf("W-09 %s: update %d of event %s: FAILED %q", name, id, event, fate)
		}
	}
	for id := range failed {
		if promised[id] == "" {
			t.Errorf("%s: update %d is FAILED and was never written", name, id)
		}
	}
	if len(came) != len(promised) {
		t.Errorf("%s: %d updates came, %d were written", name, len(came), len(promised))
	}
}
