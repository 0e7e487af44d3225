//go:build unix && !linux

package localpg

import "os"

// testFolder is where the tests put their clusters.
func testFolder() string { return os.TempDir() }
