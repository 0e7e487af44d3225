//go:build !linux

package main

import "syscall"

func childAttr() *syscall.SysProcAttr { return nil }

// inMemory doesn't know.
func inMemory(string) bool { return false }

// loadAverage isn't known.
func loadAverage() string { return "" }
