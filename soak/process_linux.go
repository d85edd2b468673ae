package main

import "syscall"

// sysProcAttr keeps a Ctrl-C from children, and has the kernel kill them when this
// program dies.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
