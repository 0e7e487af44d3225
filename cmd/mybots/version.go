package main

import (
	"context"
	"fmt"
	"runtime"
)

// release is the version that CHANGELOG.md tells about.
const release = "0.3.0"

// version prints the release, the commit and what built it.
func version(_ context.Context, w world, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("version: what is %q?", args[0])
	}
	_, err := fmt.Fprintf(w.stdout, "mybots %s %s %s %s/%s\n", release, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// commit is the commit that the binary was built from; the build sets it.
var commit = "unknown"
