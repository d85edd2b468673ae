//go:build !linux

package main

import "syscall"

// sysProcAttr keeps a Ctrl-C from children.
func sysProcAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
