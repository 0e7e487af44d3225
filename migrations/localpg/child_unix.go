//go:build unix && !linux

package localpg

import "syscall"

// childAttr: a process group of its own, so that Ctrl-C reaches us alone. Nothing here ends the child
// when we are killed: the next start finds it.
func childAttr(as account, _ syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: as.credential()}
}
