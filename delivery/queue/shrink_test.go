package queue_test

import (
	"slices"
	"testing"

	"mybots/delivery"
)

func TestShrink(t *testing.T) {
	t.Parallel()
	t.Run("Q-04 storage after confirmation is given back: 30,000 updates leave what 1,000 leave, within a factor of 2", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		size := func(carried int) (bytes int64) {
			t.Helper()
			for range carried / 500 {
				events := make([]delivery.Event, 500)
				for i := range events {
					events[i] = event(r.bot, "x")
				}
				if _, err := r.Append(t.Context(), events); err != nil {
					t.Fatal(err)
				}
				r.db.MustExec(`DELETE FROM updates WHERE bot_id = $1`, r.bot) // confirmed, the short way
				r.db.MustExec(`UPDATE queues SET confirmed = next_update_id, waiting = 0, waiting_bytes = 0 WHERE bot_id = $1`, r.bot)
			}
			r.db.MustExec(`VACUUM updates`)
			if _, err := r.Shrink(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := r.db.Get(&bytes, `SELECT pg_total_relation_size('updates')`); err != nil {
				t.Fatal(err)
			}
			return bytes
		}
		few := size(1_000)
		if many := size(30_000); many > 2*few {
			t.Errorf("got %d bytes after 30,000 updates, %d after 1,000", many, few)
		}
	})
	t.Run("Q-04 a long transaction holds up the rebuild, and the rebuild holds up nobody", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.db.MustExec(`INSERT INTO updates SELECT 1, i, gen_random_uuid(), 'x', now(), now(), 0, 0, 0, '{}' FROM generate_series(1, 20000) i`)
		r.db.MustExec(`DELETE FROM updates`)
		r.db.MustExec(`VACUUM (ANALYZE) updates`)
		tx := r.db.MustBegin()
		tx.MustExec(`LOCK TABLE updates IN ROW EXCLUSIVE MODE`)
		if names, err := r.Shrink(t.Context()); err != nil || len(names) != 0 {
			t.Errorf("got %v %v beside a long transaction, want nothing done and no error", names, err)
		}
		r.append(1)
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if names, err := r.Shrink(t.Context()); err != nil || !slices.Contains(names, "updates_pkey") {
			t.Errorf("got %v %v, want updates_pkey rebuilt", names, err)
		}
	})
}
