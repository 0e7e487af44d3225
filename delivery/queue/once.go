package queue

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/pg"
)

// Once names a call that must do its work once only.
type Once struct {
	BotID       int64
	Key         string // the Idempotency-Key
	Fingerprint []byte // of the method and the field values, see Fingerprint
}

// Fingerprint is the same for two calls exactly when their method and their
// field values are the same. fields must be a struct of the method's own fields.
func Fingerprint(method string, fields any) ([]byte, error) {
	b, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("encode the fields of %s: %w", method, err)
	}
	sum := sha256.Sum256(append([]byte(method+"\n"), b...))
	return sum[:], nil
}

// Zero rows: no answer is stored for the key.
const storedSQL = `
SELECT fingerprint, answer FROM idempotency_keys
 WHERE week IN ($1 - 1, $1, $1 + 1) AND bot_id = $2 AND key = $3 AND stored_at > $4 LIMIT 1`

const keepSQL = `
INSERT INTO idempotency_keys (week, bot_id, key, fingerprint, answer, stored_at) VALUES ($1, $2, $3, $4, $5, $6)`

// Once runs do in a transaction and stores the answer that it returns with it,
// or gives the answer that is stored already, with replayed set, and runs
// nothing. Calls with one key wait for each other, so that none does the work
// twice. A key that was used for another call is the refusal
// IDEMPOTENCY_KEY_REUSED. An error of do stores nothing.
func (q *Queue) Once(ctx context.Context, call Once, do func(*sqlx.Tx) ([]byte, error)) (answer []byte, replayed bool, err error) {
	run := func(tx *sqlx.Tx) error {
		// One lock a key, over all partitions: a unique index reaches over one only.
		if _, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock(hashtextextended($2, $1))`, call.BotID, call.Key); err != nil {
			return fmt.Errorf("lock an idempotency key: %w", err)
		}
		now := q.clock.Now()
		var stored struct{ Fingerprint, Answer []byte }
		err := tx.GetContext(ctx, &stored, storedSQL, Week(now), call.BotID, call.Key, now.Add(-delivery.KeyRetention))
		switch {
		case err == nil && string(stored.Fingerprint) != string(call.Fingerprint):
			return delivery.Refuse(delivery.IdempotencyKeyReused, "this Idempotency-Key was used for another call within 7 days; use a new key for each action")
		case err == nil:
			answer, replayed = stored.Answer, true
			return nil
		case !errors.Is(err, sql.ErrNoRows):
			return fmt.Errorf("look for an idempotency key: %w", err)
		}
		if answer, err = do(tx); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, keepSQL, Week(now), call.BotID, call.Key, call.Fingerprint, answer, now); err != nil {
			return fmt.Errorf("store an idempotency key: %w", err)
		}
		return nil
	}
	err = q.tx(ctx, run)
	if pg.State(err) == pg.CheckViolation { // no partition takes this week's keys
		if err = q.MakeWeeks(ctx); err == nil {
			err = q.tx(ctx, run)
		}
	}
	if err != nil {
		return nil, false, err
	}
	return answer, replayed, nil
}
