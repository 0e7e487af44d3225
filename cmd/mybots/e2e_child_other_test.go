//go:build !linux

package main_test

import "syscall"

func childAttr() *syscall.SysProcAttr { return nil }
