package main_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
)

// envMillion makes the test of storage carry a million updates, as Q-04 says,
// instead of as many as take some seconds.
const envMillion = "MYBOTS_TEST_MILLION"

// carry brings n updates through one bot's queue: written, received, confirmed.
func carry(t *testing.T, s *server, b *bot, n int) {
	t.Helper()
	c := newConsumer(b)
	for n > 0 {
		for range min(n/500, 10) {
			s.write(t, some(b, 500)...)
			n -= 500
		}
		c.drain(t, s)
		clear(c.got)
	}
}

// sizes are the bytes that a database's tables take after vacuum, indexes and
// TOAST included: those of the queues, and all.
func sizes(t *testing.T, db *sqlx.DB) (queues, all int64) {
	t.Helper()
	if _, err := db.Exec(`VACUUM`); err != nil {
		t.Fatalf("vacuum: %v", err)
	}
	err := db.QueryRow(`
SELECT coalesce(sum(pg_total_relation_size(oid)) FILTER (WHERE relname IN ('queues', 'updates', 'skips', 'failed_updates')), 0)::bigint,
       sum(pg_total_relation_size(oid))::bigint
  FROM pg_class WHERE relkind IN ('r', 'm') AND relnamespace = 'public'::regnamespace`).Scan(&queues, &all)
	if err != nil {
		t.Fatalf("sizes: %v", err)
	}
	return queues, all
}

func TestStorage(t *testing.T) {
	t.Parallel()
	many := 50_000
	if os.Getenv(envMillion) != "" {
		many = 1_000_000
	}
	t.Run(fmt.Sprintf("Q-04 a queue that has carried %d updates and is empty takes no more than twice what one takes that carried 1000", many), func(t *testing.T) {
		t.Parallel()
		var queues, all int64 // of the one that carried 1000
		for _, n := range []int{1000, many} {
			w := newWorld(t, testClock)
			s, db := w.serve(t), w.db(t)
			b := w.bot(t)
			began := time.Now()
			carry(t, s, b, n)
			t.Logf("%d updates went through in %v", n, time.Since(began))
			if n == 1000 {
				queues, all = sizes(t, db)
				continue
			}
			// Vacuum, and what upkeep there is.
			var got int64
			defer func() { t.Logf("the queues take %d bytes, those of 1000 updates took %d", got, queues) }()
			eventually(t, 20*time.Second, "the queues give their storage back", func() bool {
				s.advance(t, time.Minute)
				got, _ = sizes(t, db)
				return got <= 2*queues
			})
			// What 7 days of de-duplication keep (I-03) goes with the weeks.
			var whole int64
			defer func() { t.Logf("all tables take %d bytes, those of 1000 updates took %d", whole, all) }()
			eventually(t, 20*time.Second, "everything gives its storage back", func() bool {
				s.advance(t, week)
				_, whole = sizes(t, db)
				return whole <= 2*all
			})
		}
	})
}
