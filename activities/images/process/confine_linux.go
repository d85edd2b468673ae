package process

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"time"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
)

// confine takes all from this process that it does not need: files, network, other processes.
func confine() error {
	// Where memory is short, the kernel ends this process before the worker.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	for _, r := range []struct {
		resource int
		most     uint64
	}{
		{unix.RLIMIT_FSIZE, 0}, // Pipes have no size.
		{unix.RLIMIT_CORE, 0},
		{unix.RLIMIT_NOFILE, 16}, // Three pipes, and what Go's poller has opened.
	} {
		if err := unix.Setrlimit(r.resource, &unix.Rlimit{Cur: r.most, Max: r.most}); err != nil {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	info, err := arch.GetInfo("")
	if err != nil {
		return err
	}
	filter := seccomp.Filter{
		NoNewPrivs: true,
		Flag:       seccomp.FilterFlagTSync, // All threads.
		Policy: seccomp.Policy{
			DefaultAction: seccomp.ActionErrno,
			Syscalls: []seccomp.SyscallGroup{
				{
					Action: seccomp.ActionAllow,
					Names:  slices.DeleteFunc(needed(), func(name string) bool { _, known := info.SyscallNames[name]; return !known }),
					NamesWithCondtions: []seccomp.NameWithConditions{{ // Threads, no processes.
						Name:       "clone",
						Conditions: seccomp.ArgumentConditions{{Argument: 0, Operation: seccomp.BitsSet, Value: unix.CLONE_THREAD}},
					}},
				},
				// The C library then takes clone, whose flags a filter can see.
				{Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS), Names: []string{"clone3"}},
			},
		},
	}
	return seccomp.LoadFilter(filter)
}

// needed are the calls of a Go program that reads and writes pipes: memory, threads, time,
// signals of its own.
func needed() []string {
	return []string{
		"read", "write", "readv", "writev", "close", "fcntl", "fstat", "lseek", "ppoll", "poll",
		"epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "eventfd2", "pipe2",
		"mmap", "munmap", "mremap", "mprotect", "madvise", "mincore", "brk", "membarrier",
		"futex", "set_robust_list", "rseq", "sched_yield", "sched_getaffinity", "gettid", "getpid", "tgkill",
		"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "restart_syscall", "arch_prctl",
		"clock_gettime", "gettimeofday", "nanosleep", "clock_nanosleep", "timer_create", "timer_settime", "timer_delete", "setitimer",
		"getrusage", "prlimit64", "getrlimit", "setrlimit", "getrandom",
		"exit", "exit_group",
	}
}

// limit sets how much memory and processor time a request may take. The system ends a process
// that takes more.
func (r request) limit() error {
	debug.SetMemoryLimit(r.Memory * 3 / 4)
	before, err := used()
	if err != nil {
		return err
	}
	seconds := before/time.Second + time.Duration(r.Seconds) + 1
	err = soft(unix.RLIMIT_CPU, uint64(seconds))
	if !racing {
		err = errors.Join(err, soft(unix.RLIMIT_DATA, uint64(r.Memory)))
	}
	return err
}

// used is the processor time that this process has had.
func used() (time.Duration, error) {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return 0, os.NewSyscallError("getrusage", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}

// soft sets the limit that holds for now.
func soft(resource int, most uint64) error {
	if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: unix.RLIM_INFINITY}); err != nil {
		return fmt.Errorf("limit %d: %w", resource, os.NewSyscallError("setrlimit", err))
	}
	return nil
}
