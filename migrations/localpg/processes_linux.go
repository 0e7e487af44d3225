package localpg

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// processes lists the processes that run on the cluster: those of PostgreSQL whose working directory
// it is. A zombie has none, and a stranger with a number that was given out again has another.
func (p place) processes(int) ([]int, error) {
	data, err := os.Stat(p.pgdata())
	if err != nil {
		return nil, fmt.Errorf("look at the cluster: %w", err)
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("look for processes of the cluster: %w", err)
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		dir := filepath.Join("/proc", e.Name())
		// What cannot be read is gone or somebody else's, and the cluster's processes are ours.
		comm, err := os.ReadFile(filepath.Join(dir, "comm"))
		if err != nil || !strings.HasPrefix(string(comm), "postgres") && !strings.HasPrefix(string(comm), "postmaster") {
			continue
		}
		if cwd, err := os.Stat(filepath.Join(dir, "cwd")); err == nil && os.SameFile(cwd, data) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
