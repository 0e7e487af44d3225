package queue

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"mybots/delivery/pg"
)

// bloatedSQL finds the queues' indexes that are large for the rows they hold. A
// queue moves through ids that only grow, so the pages of its old ids become
// empty; VACUUM lets them be used again, but the file keeps its size. A row's
// entry takes some 40 bytes; only what a rebuild is quick for counts.
const bloatedSQL = `
SELECT i.relname
  FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid
 WHERE t.relname IN ('updates', 'skips', 'failed_updates') AND t.relnamespace = 'public'::regnamespace
   AND t.reltuples BETWEEN 0 AND 50000
   AND pg_relation_size(t.oid) < 64 << 20
   AND pg_relation_size(i.oid) > 256 << 10
   AND pg_relation_size(i.oid) > 4 * (t.reltuples * 40 + 8192)`

// Shrink rebuilds the indexes of the queues that are nearly empty and gives
// their storage back. It returns their names. A rebuild holds up the
// queues for some milliseconds; where it would have to wait for a long
// transaction it gives up, until the next time.
func (q *Queue) Shrink(ctx context.Context) ([]string, error) {
	var names []string
	if err := q.db.SelectContext(ctx, &names, bloatedSQL); err != nil {
		return nil, pg.Mark(fmt.Errorf("look for indexes to shrink: %w", err))
	}
	for i, name := range names {
		err := pg.InTx(ctx, q.db, func(tx *sqlx.Tx) error {
			if _, err := tx.ExecContext(ctx, `SET LOCAL lock_timeout = '500ms'`); err != nil {
				return err
			}
			_, err := tx.ExecContext(ctx, `REINDEX INDEX `+pq.QuoteIdentifier(name))
			return err
		})
		if pg.State(err) == pg.LockNotAvailable {
			return names[:i], nil
		}
		if err != nil {
			return names[:i], fmt.Errorf("rebuild %s: %w", name, err)
		}
	}
	return names, nil
}
