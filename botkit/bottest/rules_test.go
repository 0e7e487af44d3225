package bottest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mybots/botkit"
	"mybots/botkit/bottest"
)

// The rules of the real server, kept by this one.
func TestRules(t *testing.T) {
	t.Parallel()
	type poll = botkit.Poll
	// get polls and returns the batch in short, or the code of the error.
	get := func(t *testing.T, s *bottest.Server, p poll) string {
		t.Helper()
		b, err := s.Client().GetUpdates(t.Context(), p)
		if e, ok := errors.AsType[*botkit.Error](err); ok {
			return fmt.Sprintf("%s after %s", e.Code, e.RetryAfter)
		}
		var parts []string
		for _, raw := range b.Updates {
			u, err := botkit.ParseUpdate(raw)
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, string(u.UpdateID))
		}
		for _, r := range b.Skipped {
			parts = append(parts, fmt.Sprintf("%s-%s:%s", r.From, r.To, r.Reason))
		}
		return fmt.Sprintf("%s | %s..%s epoch %s", strings.Join(parts, " "), b.ConfirmedOffset, b.NextOffset, b.Lease.Epoch)
	}
	hour := func(*bottest.Server) { time.Sleep(time.Hour) } // of the bubble
	messages := func(n int) func(*bottest.Server) {
		return func(s *bottest.Server) {
			for range n {
				s.Message("550", "hello")
			}
		}
	}
	type step struct {
		do   func(*bottest.Server)
		poll poll
		want string
	}
	none := func(*bottest.Server) {}
	tests := map[string][]step{
		"P-04 P-12 a lease, and unconfirmed updates again": {
			{messages(2), poll{ConsumerID: "a"}, "1 2 | 1..3 epoch 1"},
			{none, poll{ConsumerID: "a", Epoch: "1"}, "1 2 | 1..3 epoch 1"},
			{none, poll{ConsumerID: "a", Epoch: "1", Offset: "2"}, "2 | 2..3 epoch 1"},
			{none, poll{ConsumerID: "a", Epoch: "1", Offset: "3"}, " | 3..3 epoch 1"},
		},
		"P-05 conflicts": {
			{none, poll{ConsumerID: "a"}, " | 1..1 epoch 1"},
			{none, poll{ConsumerID: "b"}, "CONSUMER_CONFLICT after 1m0s"},
			{none, poll{ConsumerID: "a"}, "CONSUMER_CONFLICT after 1m0s"},
			{none, poll{ConsumerID: "a", Epoch: "7"}, "CONSUMER_CONFLICT after 1m0s"},
		},
		"P-06 the last epoch still confirms after its lease": {
			{messages(2), poll{ConsumerID: "a"}, "1 2 | 1..3 epoch 1"},
			{hour, poll{ConsumerID: "b", Epoch: "1", Offset: "2"}, "2 | 2..3 epoch 2"},
		},
		"P-07 a foreign epoch, and none, confirm nothing": {
			{messages(2), poll{ConsumerID: "a"}, "1 2 | 1..3 epoch 1"},
			{(*bottest.Server).Reset, poll{ConsumerID: "a", Epoch: "1", Offset: "3"}, "1 2 | 1..3 epoch 2"},
			{hour, poll{ConsumerID: "a", Offset: "3"}, "1 2 | 1..3 epoch 3"},
			{hour, poll{ConsumerID: "a", Epoch: "1", Offset: "99"}, "1 2 | 1..3 epoch 4"},
		},
		"P-10 offsets": {
			{messages(3), poll{ConsumerID: "a", Limit: 2}, "1 2 | 1..3 epoch 1"},
			{none, poll{ConsumerID: "a", Epoch: "1", Offset: "4"}, "OFFSET_NOT_ISSUED after 0s"},
			{none, poll{ConsumerID: "a", Epoch: "1", Offset: "3"}, "3 | 3..4 epoch 1"},
			{none, poll{ConsumerID: "a", Epoch: "1", Offset: "1"}, "CURSOR_BEHIND after 0s"},
			{none, poll{ConsumerID: "a", Epoch: "1", Offset: "4"}, " | 4..4 epoch 1"},
		},
		"P-13 P-14 ranges": {
			{func(s *bottest.Server) {
				messages(8)(s)
				s.Skip("cancelled", "1", "2")
				s.Skip("expired", "3", "5")
				s.Skip("cancelled", "7", "8")
			}, poll{ConsumerID: "a"}, "4 6 1-2:cancelled 3-3:expired 5-5:expired | 1..7 epoch 1"},
			{none, poll{ConsumerID: "a", Epoch: "1", Offset: "7"}, "7-8:cancelled | 7..9 epoch 1"},
			{none, poll{ConsumerID: "a", Epoch: "1", Offset: "9"}, " | 9..9 epoch 1"},
		},
		"P-15 a jump is its lease's": {
			{func(s *bottest.Server) {
				messages(2)(s)
				s.Skip("cancelled", "1", "2")
			}, poll{ConsumerID: "a"}, "1-2:cancelled | 1..3 epoch 1"},
			{hour, poll{ConsumerID: "a", Epoch: "1", Offset: "3"}, "OFFSET_NOT_ISSUED after 0s"},
			{none, poll{ConsumerID: "a", Epoch: "1"}, "1-2:cancelled | 1..3 epoch 2"},
		},
		"P-16 other modes and states": {
			{func(s *bottest.Server) { s.Webhook(true) }, poll{ConsumerID: "a"}, "DELIVERY_MODE_CONFLICT after 0s"},
			{func(s *bottest.Server) { s.Halt(botkit.BotPaused) }, poll{ConsumerID: "a"}, "BOT_PAUSED after 0s"},
			{func(s *bottest.Server) { s.Halt(botkit.Maintenance) }, poll{ConsumerID: "a"}, "MAINTENANCE after 2s"},
			{func(s *bottest.Server) { s.Halt(""); s.Webhook(false); messages(1)(s) }, poll{ConsumerID: "a"}, "1 | 1..2 epoch 1"},
			{(*bottest.Server).Revoke, poll{ConsumerID: "a"}, "UNAUTHORIZED after 0s"},
		},
		"P-01 the fields": {
			{none, poll{}, "INVALID_REQUEST after 0s"},
			{none, poll{ConsumerID: "a", Timeout: 26 * time.Second}, "INVALID_REQUEST after 0s"},
			{none, poll{ConsumerID: "a", Limit: 101}, "INVALID_REQUEST after 0s"},
			{none, poll{ConsumerID: "a", Offset: "x"}, "INVALID_REQUEST after 0s"},
		},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := bottest.New(t)
				for n, c := range steps {
					c.do(s)
					if got := get(t, s, c.poll); got != c.want {
						t.Errorf("step %d: got %q, want %q", n+1, got, c.want)
					}
				}
			})
		})
	}
	t.Run("P-03 five calls a second", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := bottest.New(t)
			for n := range 7 {
				_, err := s.Client().GetUpdates(t.Context(), poll{ConsumerID: "a", Epoch: "1"})
				if got := errors.Is(err, botkit.RateLimited); got != (n >= 5) {
					t.Errorf("call %d: got %v", n+1, err)
				}
			}
		})
	})
	t.Run("P-05 P-09 a poll whose client has gone still waits", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := bottest.New(t)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			if _, err := s.Client().GetUpdates(ctx, poll{ConsumerID: "a", Timeout: 25 * time.Second}); err == nil {
				t.Error("got no error")
			}
			if got := get(t, s, poll{ConsumerID: "a", Epoch: "1"}); got != "CONSUMER_CONFLICT after 20s" {
				t.Errorf("got %s, want the rest of the poll", got)
			}
			time.Sleep(20 * time.Second)
			if got := get(t, s, poll{ConsumerID: "a", Epoch: "1"}); got != " | 1..1 epoch 1" {
				t.Errorf("got %s, want the lease to go on", got)
			}
		})
	})
}

func TestRejecting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := bottest.New(t)
		c, ctx := s.Client(), t.Context()
		id := s.Message("550", "hello")
		r := botkit.Rejection{UpdateID: id, Reason: "why", ConsumerID: "a", Epoch: "1"}
		reject := func(key string, r botkit.Rejection, want botkit.Code) {
			t.Helper()
			err := c.RejectUpdate(ctx, key, r)
			if want == "" && err != nil || want != "" && !errors.Is(err, want) {
				t.Errorf("R-02: got %v, want %q", err, want)
			}
		}
		reject("k1", r, botkit.ConsumerConflict)
		if _, err := c.GetUpdates(ctx, botkit.Poll{ConsumerID: "a"}); err != nil {
			t.Fatal(err)
		}
		reject("", r, botkit.IdempotencyKeyRequired)
		reject("k1", botkit.Rejection{UpdateID: "9", Reason: "why", ConsumerID: "a", Epoch: "1"}, botkit.UpdateNotFound)
		reject("k1", botkit.Rejection{UpdateID: id, Reason: "why", ConsumerID: "b", Epoch: "1"}, botkit.ConsumerConflict)
		reject("k1", r, "")
		reject("k1", r, "") // the stored answer
		reject("k2", r, botkit.UpdateNotFound)
		reject("k1", botkit.Rejection{UpdateID: id, Reason: "other", ConsumerID: "a", Epoch: "1"}, botkit.IdempotencyKeyReused)
		batch, err := c.GetUpdates(ctx, botkit.Poll{ConsumerID: "a", Epoch: "1"})
		if err != nil || len(batch.Skipped) != 1 || batch.Skipped[0].Reason != "failed" {
			t.Errorf("R-03: got %+v, %v; want the range failed", batch, err)
		}
		var replayed struct {
			ReplayOf botkit.ID `json:"replay_of_update_id"`
		}
		if err := json.Unmarshal(s.Raw(s.Replay(id)), &replayed); err != nil || replayed.ReplayOf != id {
			t.Errorf("U-04: got %+v, %v; want a replay of %s", replayed, err, id)
		}
	})
}

func TestDeliver(t *testing.T) {
	t.Parallel()
	s := bottest.New(t)
	says := func(status int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	}
	s.Message("550", "one")
	s.Message("550", "two")
	for n, c := range []struct {
		status   int
		position botkit.ID
		rejected int
	}{{500, "1", 0}, {401, "1", 0}, {204, "2", 0}, {422, "2", 1}} {
		if got := s.Deliver(says(c.status)); got != c.status || s.Position() != c.position || len(s.Rejected()) != c.rejected {
			t.Errorf("W-09 step %d: got %d, position %s, rejected %v", n+1, got, s.Position(), s.Rejected())
		}
	}
	if got := s.Deliver(says(200)); got != 0 {
		t.Errorf("nothing waits: got %d, want 0", got)
	}
	s.Message("550", "three")
	if got := s.Deliver(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })); got != 599 {
		t.Errorf("a broken connection: got %d, want 599", got)
	}
}
