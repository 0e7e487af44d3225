// Package localpg runs a private PostgreSQL from the binaries that the machine has, for trying the
// product out and for small installs (G-02).
//
// The server belongs to one data directory and to one process: a lock file refuses a second one,
// and on Linux the server ends with the process even if that is killed. It listens on a Unix socket
// only, in a directory that nobody but its user (and root) can enter. Started as root, it runs as an
// unprivileged user. It never deletes a cluster.
//
// What lies in the data directory (or in the place that the server's user can reach, see Start):
//
//	lock         held by the process that runs the server
//	users        held, shared, by commands that use the server of another process
//	pgdata       the cluster
//	pgdata.init  a cluster in the making
//	run          the socket
package localpg

import (
	"errors"
	"log/slog"
)

// Config says where the cluster lives and how its server is to run.
type Config struct {
	Dir    string            // the data directory, MYBOTS_DATA_DIR; made if it is missing
	BinDir string            // where initdb and postgres are; empty: look for them
	Params map[string]string // more settings, each given to postgres as -c name=value
	Log    *slog.Logger      // required

	// fallback is where the cluster goes when the server's user cannot reach Dir; empty: fallbackBase.
	fallback string
}

// ErrInUse says that another process runs the server of this data directory.
var ErrInUse = errors.New("the data directory is in use")

// ErrNoBinaries says that PostgreSQL is not installed, or not in the version of the cluster.
var ErrNoBinaries = errors.New("PostgreSQL not found")
