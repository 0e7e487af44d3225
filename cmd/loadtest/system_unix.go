//go:build unix

package main

import (
	"fmt"
	"syscall"
)

// raiseFiles lifts the limit of open files to what the system allows, for this
// process and those that it starts, and returns it.
func raiseFiles() (int, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("read the limit of open files: %w", err)
	}
	limit.Cur = limit.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("raise the limit of open files: %w", err)
	}
	return int(min(uint64(limit.Cur), 1<<30)), nil
}
