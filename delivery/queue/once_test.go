package queue_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/queue"
)

func TestOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	call := queue.Once{BotID: r.bot, Key: "key", Fingerprint: []byte("fields")}
	if err := r.MakeWeeks(t.Context()); err != nil { // else the first round ends at the missing partition, undone
		t.Fatal(err)
	}
	did := 0
	do := func(*sqlx.Tx) ([]byte, error) {
		did++
		return fmt.Appendf(nil, `{"did":%d}`, did), nil
	}
	t.Run("A-06 equal calls that race do it once", func(t *testing.T) {
		var wg sync.WaitGroup
		var mu sync.Mutex
		answers := map[string]int{}
		for range 8 {
			wg.Go(func() {
				answer, replayed, err := r.Once(t.Context(), call, do) // do runs under the key's lock
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				answers[fmt.Sprintf("%s %v", answer, replayed)]++
			})
		}
		wg.Wait()
		if did != 1 || answers[`{"did":1} false`] != 1 || answers[`{"did":1} true`] != 7 {
			t.Errorf("did it %d times, answers %v", did, answers)
		}
	})
	t.Run("A-06 the same key for other values is IDEMPOTENCY_KEY_REUSED", func(t *testing.T) {
		other := call
		other.Fingerprint = []byte("other")
		if _, _, err := r.Once(t.Context(), other, do); codeOf(err) != delivery.IdempotencyKeyReused {
			t.Errorf("got %v", err)
		}
	})
	t.Run("A-06 only successes are stored", func(t *testing.T) {
		fails := queue.Once{BotID: r.bot, Key: "fails", Fingerprint: []byte("fields")}
		refusal := delivery.Refuse(delivery.ChatNotFound, "no")
		if _, _, err := r.Once(t.Context(), fails, func(*sqlx.Tx) ([]byte, error) { return nil, refusal }); codeOf(err) != delivery.ChatNotFound {
			t.Fatalf("got %v", err)
		}
		if answer, replayed, err := r.Once(t.Context(), fails, do); err != nil || replayed || string(answer) != `{"did":2}` {
			t.Errorf("got %s %v %v after a failure, want it done", answer, replayed, err)
		}
	})
	t.Run("A-06 kept for 7 days and no longer", func(t *testing.T) {
		r.clock.advance(7*24*time.Hour - time.Second)
		if _, replayed, err := r.Once(t.Context(), call, do); err != nil || !replayed {
			t.Errorf("got replayed %v %v before 7 days are over, want the stored answer", replayed, err)
		}
		r.clock.advance(time.Second)
		if answer, replayed, err := r.Once(t.Context(), call, do); err != nil || replayed || string(answer) != `{"did":3}` {
			t.Errorf("got %s %v %v after 7 days, want it done again", answer, replayed, err)
		}
	})
}
