package localpg

import "syscall"

// childAttr: a process group of its own, so that Ctrl-C reaches us alone, and a signal when the thread
// that started it dies, which it does with us at the latest.
func childAttr(as account, onDeath syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: as.credential(), Pdeathsig: onDeath}
}
