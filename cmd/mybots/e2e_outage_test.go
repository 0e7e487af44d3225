package main_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
)

// outageTime is how long a call may take while the database can't be reached.
const outageTime = 15 * time.Second

// everyCall calls all that needs the database, at the same time, and returns
// what came of each.
func (s *server) everyCall(b *bot, n int) map[string]ended {
	calls := map[string]string{
		"getMe": "{}", "getUpdates": `{"consumer_id":"outage","timeout":0}`, "getDeliveryInfo": "{}", "getWebhookInfo": "{}",
		"sendMessage":         `{"chat_id":"550","text":"x"}`,
		"answerCallbackQuery": `{"callback_query_id":"1"}`,
		"rejectUpdate":        `{"update_id":"1","reason":"r","consumer_id":"a","epoch":"1"}`,
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	all := map[string]ended{}
	one := func(name string, do func() (answer, error)) {
		wg.Go(func() {
			began := time.Now()
			a, err := do()
			mu.Lock()
			defer mu.Unlock()
			all[name] = ended{answer: a, err: err, took: time.Since(began)}
		})
	}
	for i := range n {
		for method, body := range calls {
			one(fmt.Sprint(method, " ", i), func() (answer, error) { return s.try(b, method, body, "Idempotency-Key: "+uuid.NewString()) })
		}
		one(fmt.Sprint("events ", i), func() (answer, error) { return s.tryEvents(eventsBody(event{bot: b}.filled().json())) })
	}
	wg.Wait()
	return all
}

// status asks a plain address.
func (s *server) status(t testing.TB, path string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), outageTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatalf("GET %s: %v", path, err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}

// unavailable checks that every call got 503 UNAVAILABLE in time.
func unavailable(t testing.TB, all map[string]ended) {
	t.Helper()
	for name, e := range all {
		if e.err != nil || e.code != "UNAVAILABLE" || e.took > outageTime {
			t.Errorf("%s: got %q %v after %v, want UNAVAILABLE within %v", name, e.code, e.err, e.took, outageTime)
		}
	}
}

// recovered waits until the server works again and checks that every call does.
func (s *server) recovered(t testing.TB, b *bot) {
	t.Helper()
	eventually(t, 30*time.Second, "the server works again", func() bool {
		a, err := s.try(b, "getDeliveryInfo", "{}")
		return err == nil && a.code == ""
	})
	// A call may meet a connection, or a lock, that is dead without knowing it: two tries.
	bad := 1
	for try := 0; try < 2 && bad > 0; try++ {
		bad = 0
		for name, e := range s.everyCall(b, 1) {
			if e.err == nil && e.status < 500 && e.took < 5*time.Second {
				continue
			}
			if bad++; try == 1 {
				t.Errorf("after the outage %s: got %q %v after %v", name, e.code, e.err, e.took)
			}
		}
	}
	if got := s.status(t, "/readyz"); got != http.StatusOK {
		t.Errorf("after the outage /readyz: got %d, want 200", got)
	}
}

func TestOutageFrozen(t *testing.T) {
	t.Parallel()
	w := ownWorld(t)
	s := w.serve(t)
	s.trouble = true
	b, quiet := s.chatting(t), w.bot(t)
	poll := s.waiting(t, quiet, `{"consumer_id":"a","timeout":25}`)
	t.Run("A-07 a frozen PostgreSQL: 503 UNAVAILABLE in time, and on with it by itself", func(t *testing.T) {
		w.signalPostgres(t, syscall.SIGSTOP)
		thawed := false
		defer func() {
			if !thawed {
				w.signalPostgres(t, syscall.SIGCONT)
			}
		}()
		unavailable(t, s.everyCall(b, 4))
		if got := s.status(t, "/healthz"); got != http.StatusOK {
			t.Errorf("G-07 /healthz: got %d, want 200: the process itself is well", got)
		}
		if got := s.status(t, "/readyz"); got != http.StatusServiceUnavailable {
			t.Errorf("G-07 /readyz: got %d, want 503", got)
		}
		w.signalPostgres(t, syscall.SIGCONT)
		thawed = true
		s.recovered(t, b)
	})
	t.Run("A-07 a poll that waited through the outage still gets its update", func(t *testing.T) {
		written := s.write(t, event{bot: quiet})
		got := receive(t, 10*time.Second, "the waiting poll ends", poll).gave(t, "1 | | 1..2")
		if got.Updates[0].EventID != written[0].id {
			t.Errorf("got event %s, want %s", got.Updates[0].EventID, written[0].id)
		}
	})
}

func TestOutageKilled(t *testing.T) {
	t.Parallel()
	w := ownWorld(t)
	s := w.serve(t)
	s.trouble = true
	b, quiet := s.chatting(t), w.bot(t)
	poll := s.waiting(t, quiet, `{"consumer_id":"a","timeout":25}`)
	t.Run("A-07 G-02 kill -9 of PostgreSQL: no answer but a success or 503, and it comes back by itself", func(t *testing.T) {
		before := w.postmaster(t)
		signalTo(t, before, syscall.SIGKILL)
		refused := 0
		eventually(t, 30*time.Second, "PostgreSQL was killed, is back, and every call works", func() bool {
			good := true
			for name, e := range s.everyCall(b, 2) {
				if e.err != nil || e.took > outageTime {
					t.Errorf("%s: %q %v after %v", name, e.code, e.err, e.took)
				}
				if e.code == "UNAVAILABLE" {
					good = false
					refused++
				}
			}
			return good && !t.Failed()
		})
		t.Logf("%d calls were refused meanwhile", refused)
		if now := w.postmaster(t); now == before {
			t.Errorf("the postmaster is still %d", now)
		}
		s.recovered(t, b)
	})
	t.Run("A-07 a poll that waited through it still gets its update", func(t *testing.T) {
		s.write(t, event{bot: quiet})
		receive(t, 10*time.Second, "the waiting poll ends", poll).gave(t, "1 | | 1..2")
	})
	t.Run("G-02 a server whose PostgreSQL was killed stops cleanly", func(t *testing.T) {
		if code, _ := s.term(); code != 0 {
			t.Errorf("got exit code %d, want 0", code)
		}
	})
}
