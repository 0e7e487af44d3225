package localpg

import (
	"os"
	"syscall"
)

// roomInMemory is how much must be free in shared memory for the tests' clusters.
const roomInMemory = 2 << 30

// testFolder is where the tests put their clusters: memory if there is plenty, since making and
// copying databases on a disk takes ten times as long.
func testFolder() string {
	const dir = "/dev/shm"
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err == nil && st.Bavail*uint64(st.Bsize) >= roomInMemory && syscall.Access(dir, 2) == nil {
		return dir
	}
	return os.TempDir()
}
