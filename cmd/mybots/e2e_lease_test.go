package main_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testClock)
	s, other := w.serve(t), w.serve(t)
	// held adds a bot with n updates, of which issued were handed to consumer a.
	held := func(t *testing.T, n, issued int) (*bot, string) {
		t.Helper()
		b := w.bot(t)
		s.write(t, some(b, n)...)
		got := s.poll(t, b, at("a", "", "", fmt.Sprintf(`,"timeout":0,"limit":%d`, issued)))
		if !about(got.Lease.ExpiresAt, w.now().Add(time.Minute)) || got.Lease.ConsumerID != "a" {
			t.Fatalf("P-04 got the lease %+v, want 60 s for a", got.Lease)
		}
		return b, got.Lease.Epoch
	}
	// Without patience, but for a replica's clock that follows.
	conflict := func(t *testing.T, s *server, b *bot, body string, least, most int) {
		t.Helper()
		eventually(t, 5*time.Second, fmt.Sprintf("P-05 a conflict with retry_after %d to %d (a replica's clock follows): %s", least, most, body), func() bool {
			a := s.pollFails(t, "CONSUMER_CONFLICT", b, body)
			return a.retry >= least && a.retry <= most
		})
	}
	// The tests move one clock: they run one after another.
	t.Run("P-05 P-04 a conflict for the others, for the rest of the lease, and it changes nothing", func(t *testing.T) {
		b, epoch := held(t, 3, 2)
		s.advance(t, 20*time.Second)
		for _, r := range []*server{s, other} {
			conflict(t, r, b, at("b", "", "", now), 35, 41)
			conflict(t, r, b, at("b", epoch, "3", now), 35, 41)
			conflict(t, r, b, at("a", "", "", now), 35, 41)
			conflict(t, r, b, at("a", "99", "3", now), 35, 41)
			conflict(t, r, b, at("a", "", "3", now), 35, 41)
		}
		if i := s.info(t, b); i.ConfirmedOffset != "1" || i.Lease == nil || i.Lease.ConsumerID != "a" || !about(i.Lease.ExpiresAt, w.now().Add(40*time.Second)) {
			t.Errorf("got %+v after conflicts, want the lease as it was", i)
		}
		got := other.poll(t, b, at("a", epoch, "3", now))
		if got.outline() != "3 | | 3..4" || got.Lease.Epoch != epoch || !about(got.Lease.ExpiresAt, w.now().Add(time.Minute)) {
			t.Errorf("P-04 got %s with %+v, want the lease extended by its holder", got.outline(), got.Lease)
		}
	})
	t.Run("P-05 (c) while a poll waits even the right epoch waits for its end", func(t *testing.T) {
		b, epoch := held(t, 1, 1)
		done := s.waiting(t, b, at("a", epoch, "2", `,"timeout":20`))
		for _, r := range []*server{s, other} {
			conflict(t, r, b, at("a", epoch, "2", now), 15, 20)
			conflict(t, r, b, at("b", "", "", now), 75, 80)
		}
		still(t, "the poll that conflicts met", done)
		other.write(t, event{bot: b})
		receive(t, 3*time.Second, "the waiting poll ends", done).gave(t, "2 | | 2..3")
	})
	t.Run("P-05 P-03 of 20 polls at once one waits and the others end at once", func(t *testing.T) {
		b, epoch := held(t, 1, 1)
		other.follows(t)
		polls := make(chan ended, 20)
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() { polls <- <-[]*server{s, other}[i%2].pollBeside(b, at("a", epoch, "2", `,"timeout":20`)) })
		}
		for range 19 {
			e := receive(t, 5*time.Second, "a poll that may not wait ends", polls)
			if e.err != nil || e.code != "CONSUMER_CONFLICT" && e.code != "RATE_LIMITED" {
				t.Errorf("got %q %q %v, want CONSUMER_CONFLICT or RATE_LIMITED", e.code, e.batch.outline(), e.err)
			}
		}
		still(t, "the one poll", polls)
		s.write(t, event{bot: b})
		receive(t, 3*time.Second, "the waiting poll ends", polls).gave(t, "2 | | 2..3")
		wg.Wait()
	})
	t.Run("P-06 after expiry the last epoch's offset still confirms, whoever sends it", func(t *testing.T) {
		b, epoch := held(t, 4, 3)
		s.advance(t, 61*time.Second)
		got := s.poll(t, b, at("b", epoch, "3", now))
		if got.outline() != "3 4 | | 3..5" || got.Lease.Epoch == epoch || got.Lease.ConsumerID != "b" {
			t.Errorf("got %s with %+v, want a new lease for b and 3 4", got.outline(), got.Lease)
		}
	})
	t.Run("P-04 the lease holds until its last second", func(t *testing.T) {
		b, epoch := held(t, 1, 1)
		s.advance(t, 57*time.Second)
		conflict(t, s, b, at("b", "", "", now), 1, 3)
		if got := s.poll(t, b, at("a", epoch, "", now)); got.Lease.Epoch != epoch {
			t.Errorf("got epoch %s, want %s", got.Lease.Epoch, epoch)
		}
	})
	t.Run("P-07 a foreign epoch and none confirm nothing and raise no offset error", func(t *testing.T) {
		for _, epoch := range []string{"", "0", "999", "9223372036854775807"} {
			for _, offset := range []string{"3", "0", "9223372036854775807"} {
				b, _ := held(t, 3, 2)
				s.advance(t, 61*time.Second)
				if got := s.poll(t, b, at("a", epoch, offset, now)); got.outline() != "1 2 3 | | 1..4" {
					t.Errorf("epoch %q, offset %s: got %s, want all again", epoch, offset, got.outline())
				}
			}
		}
	})
	t.Run("P-07 an epoch is foreign once somebody took the lease since", func(t *testing.T) {
		b, first := held(t, 3, 2)
		s.advance(t, 61*time.Second)
		second := s.poll(t, b, at("b", "", "", `,"timeout":0,"limit":1`)).Lease.Epoch
		s.advance(t, 61*time.Second)
		got := s.poll(t, b, at("a", first, "3", now))
		if got.outline() != "1 2 3 | | 1..4" || got.Lease.Epoch == first || got.Lease.Epoch == second {
			t.Errorf("got %s in epoch %s, want all again in a new one", got.outline(), got.Lease.Epoch)
		}
		if got := s.poll(t, b, at("a", got.Lease.Epoch, "4", now)); got.outline() != "| | 4..4" {
			t.Errorf("got %s", got.outline())
		}
	})
	t.Run("P-11 an offset error grants no lease and leaves the last epoch the last", func(t *testing.T) {
		b, epoch := held(t, 3, 2)
		s.poll(t, b, at("a", epoch, "2", `,"timeout":0,"limit":1`))
		s.advance(t, 61*time.Second)
		for _, c := range []struct{ offset, code string }{{"1", "CURSOR_BEHIND"}, {"4", "OFFSET_NOT_ISSUED"}} {
			s.pollFails(t, c.code, b, at("b", epoch, c.offset, now))
			if lease := s.info(t, b).Lease; lease != nil {
				t.Errorf("%s granted a lease: %+v", c.code, lease)
			}
		}
		if got := s.poll(t, b, at("c", epoch, "3", now)); got.outline() != "3 | | 3..4" {
			t.Errorf("got %s, want the last epoch to confirm", got.outline())
		}
	})
	t.Run("P-11 for the holder it extends the lease", func(t *testing.T) {
		b, epoch := held(t, 2, 2)
		s.poll(t, b, at("a", epoch, "2", now))
		for _, c := range []struct{ offset, code string }{{"1", "CURSOR_BEHIND"}, {"9", "OFFSET_NOT_ISSUED"}} {
			s.advance(t, 30*time.Second)
			s.pollFails(t, c.code, b, at("a", epoch, c.offset, now))
			if lease := s.info(t, b).Lease; lease == nil || !about(lease.ExpiresAt, w.now().Add(time.Minute)) {
				t.Errorf("after %s got the lease %+v, want 60 s", c.code, lease)
			}
		}
	})
	t.Run("P-09 a poll whose client has gone still counts as waiting", func(t *testing.T) {
		b, epoch := held(t, 1, 1)
		leave(t, s, b, at("a", epoch, "2", `,"timeout":20`))
		written := s.write(t, event{bot: b})
		conflict(t, other, b, at("a", epoch, "3", now), 15, 20)
		conflict(t, s, b, at("a", epoch, "2", now), 15, 20)
		if i := s.info(t, b); i.Pending != 1 || i.ConfirmedOffset != "2" || i.Lease == nil || !i.Lease.Waiting {
			t.Errorf("got %+v, want the update waiting and the poll too", i)
		}
		s.advance(t, 20*time.Second)
		var got batch
		eventually(t, 5*time.Second, "the dead poll's time is over", func() bool {
			a := s.polite(t, b, at("a", epoch, "2", now))
			if a.code != "" {
				return false
			}
			var err error
			if got, err = readBatch(a.result); err != nil {
				t.Fatal(err)
			}
			return true
		})
		if got.outline() != "2 | | 2..3" || got.Lease.Epoch != epoch || got.Updates[0].EventID != written[0].id {
			t.Errorf("got %s in epoch %s, want 2 in epoch %s", got.outline(), got.Lease.Epoch, epoch)
		}
	})
}

// leave starts a long poll and hangs up once it waits.
func leave(t *testing.T, s *server, b *bot, body string) {
	t.Helper()
	ctx, hangUp := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() { // ends with ctx
		_, err := s.send(s.request(http.MethodPost, "/bot-api/v1/getUpdates", b.token, body).WithContext(ctx))
		gone <- err
	}()
	eventually(t, 5*time.Second, "the poll waits", func() bool {
		i := s.info(t, b)
		return i.Lease != nil && i.Lease.Waiting
	})
	finished := func() int {
		n := 0
		for line := range strings.Lines(s.log.String()) {
			if strings.Contains(line, `"bot_id":`+b.id+`,`) && strings.Contains(line, `"api_method":"getUpdates"`) {
				n++
			}
		}
		return n
	}
	before := finished()
	hangUp()
	if err := receive(t, 5*time.Second, "the client is gone", gone); !errors.Is(err, context.Canceled) {
		t.Fatalf("the poll ended before its client left: %v", err)
	}
	// Until the server has noticed, it may still answer into the void.
	eventually(t, 5*time.Second, "the server has noticed", func() bool { return finished() > before })
}

func TestLeaseOfDeadServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testClock)
	dying, s := w.serve(t), w.serve(t)
	b := w.bot(t)
	t.Run("P-09 G-03 a poll whose server was killed still counts as waiting", func(t *testing.T) {
		s.write(t, event{bot: b})
		epoch := s.poll(t, b, at("a", "", "", now)).Lease.Epoch
		done := dying.waiting(t, b, at("a", epoch, "2", `,"timeout":20`))
		dying.kill()
		if e := receive(t, 5*time.Second, "the poll of the killed server breaks", done); e.err == nil {
			t.Fatalf("the killed server answered %s", e.body)
		}
		s.write(t, event{bot: b})
		if a := s.pollFails(t, "CONSUMER_CONFLICT", b, at("a", epoch, "2", now)); a.retry < 15 || a.retry > 20 {
			t.Errorf("got retry_after %d, want what is left of 20 s", a.retry)
		}
		s.advance(t, 20*time.Second)
		if got := s.poll(t, b, at("a", epoch, "2", now)); got.outline() != "2 | | 2..3" || got.Lease.Epoch != epoch {
			t.Errorf("got %s in epoch %s, want 2 in %s", got.outline(), got.Lease.Epoch, epoch)
		}
	})
}
