package command

import (
	"fmt"
	"io"
	"syscall"
	"time"
)

// Usage prints what the program has taken since it was begun, and what the programs did that it
// ran and waited for: time on the CPU, and the most memory that one of them had at a time.
func Usage(to io.Writer, begun time.Time) {
	var self, others syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &self) != nil || syscall.Getrusage(syscall.RUSAGE_CHILDREN, &others) != nil {
		return // it is said for information only
	}
	fmt.Fprintf(to, "it took %.1f s, %s; the programs that it ran, %s\n", time.Since(begun).Seconds(), used(self), used(others))
}

func used(u syscall.Rusage) string {
	cpu := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	return fmt.Sprintf("%.1f s of CPU and %d MiB", cpu.Seconds(), u.Maxrss>>10)
}
