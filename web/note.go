package web

import (
	"context"
	"sync"
)

type notesKey struct{}

// notes are what handlers add to the request's log line.
type notes struct {
	mu   sync.Mutex
	args []any
}

// Note adds keys and values to the request's log line, as slog's methods take
// them. Outside of Observe it does nothing. Never a token, a payload or an address
// with credentials.
func Note(ctx context.Context, args ...any) {
	if n, ok := ctx.Value(notesKey{}).(*notes); ok {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.args = append(n.args, args...)
	}
}

func (n *notes) all() []any {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.args
}
