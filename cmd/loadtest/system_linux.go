package main

import (
	"os"
	"strings"
	"syscall"
)

// childAttr: a process group of its own, so that Ctrl-C reaches us alone, and an
// end with us, however we end.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// The kinds of file systems that live in memory, from Linux' magic.h.
const (
	tmpfsMagic = 0x01021994
	ramfsMagic = 0x858458f6
)

// inMemory tells whether a folder lies in memory, where syncing costs nothing.
func inMemory(folder string) bool {
	var st syscall.Statfs_t
	if syscall.Statfs(folder, &st) != nil {
		return false // who can't be asked isn't suspected
	}
	kind := uint32(st.Type)
	return kind == tmpfsMagic || kind == ramfsMagic
}

// loadAverage is the system's, of the last minute; "" where it isn't known.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
