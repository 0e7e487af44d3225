package pg

import (
	"context"
	"fmt"
	"sync"

	"github.com/jmoiron/sqlx"
)

// Stmt is a statement that is prepared on its first use, so that a database
// that is down at the start does no harm, and kept from then on.
type Stmt struct {
	db    *sqlx.DB
	query string
	mu    sync.Mutex
	stmt  *sqlx.Stmt
}

// NewStmt returns query as a statement of db.
func NewStmt(db *sqlx.DB, query string) *Stmt { return &Stmt{db: db, query: query} }

// Get returns the prepared statement.
func (s *Stmt) Get(ctx context.Context) (*sqlx.Stmt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stmt == nil {
		stmt, err := s.db.PreparexContext(ctx, s.query)
		if err != nil {
			return nil, fmt.Errorf("prepare a statement: %w", err)
		}
		s.stmt = stmt
	}
	return s.stmt, nil
}

// In returns the statement as one of the transaction tx. Get must have
// succeeded before the transaction began: preparing takes a connection of its
// own, and transactions that wait for one while they hold one can wait forever.
func (s *Stmt) In(ctx context.Context, tx *sqlx.Tx) *sqlx.Stmt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return tx.StmtxContext(ctx, s.stmt)
}

// Prepare makes statements ready for In. Once they are, it costs next to nothing.
func Prepare(ctx context.Context, stmts ...*Stmt) error {
	for _, s := range stmts {
		if _, err := s.Get(ctx); err != nil {
			return Mark(err)
		}
	}
	return nil
}
