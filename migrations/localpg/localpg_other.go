//go:build !unix

package localpg

import (
	"context"
	"errors"
)

// errUnsupported: the server is run through Unix sockets, file locks and users.
var errUnsupported = errors.New("a private PostgreSQL is not run on this system: set MYBOTS_DATABASE_URL")

// Server is a running private PostgreSQL; there is none on this system.
type Server struct{}

// Start refuses.
func Start(context.Context, Config) (*Server, error) { return nil, errUnsupported }

// Find finds nothing.
func Find(string) (string, bool) { return "", false }

// Use refuses.
func Use(context.Context, Config) (string, func() error, error) { return "", nil, errUnsupported }

// URL is empty.
func (*Server) URL() string { return "" }

// Dir is empty.
func (*Server) Dir() string { return "" }

// PID is 0.
func (*Server) PID() int { return 0 }

// Done never closes.
func (*Server) Done() <-chan struct{} { return nil }

// Stop has nothing to stop.
func (*Server) Stop(context.Context) error { return nil }
