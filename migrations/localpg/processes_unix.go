//go:build unix && !linux

package localpg

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// processes returns the server that postmaster.pid names, if that number is PostgreSQL's. Children
// that lost their server end by themselves; PostgreSQL waits for them by its shared memory.
func (p place) processes(main int) ([]int, error) {
	if main <= 0 || syscall.Kill(main, 0) != nil {
		return nil, nil
	}
	out, err := exec.Command("ps", "-o", "stat=,comm=", "-p", strconv.Itoa(main)).Output()
	if err != nil {
		return nil, nil // ps says so when there is no such process
	}
	fields := strings.Fields(string(out))
	if len(fields) < 2 || strings.HasPrefix(fields[0], "Z") || !strings.HasPrefix(filepath.Base(fields[1]), "post") {
		return nil, nil
	}
	return []int{main}, nil
}
