package main_test

import "syscall"

// childAttr ends the children with the tests, however these end.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
