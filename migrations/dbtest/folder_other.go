//go:build !linux

package dbtest

import "os"

// parentFolder is where private servers put their folders.
func parentFolder() string { return os.TempDir() }
