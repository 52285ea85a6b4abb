package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// pressure is how long something on the computer has waited for a processor, and is
// negative where the kernel does not say.
type pressure time.Duration

func readPressure() pressure {
	content, err := os.ReadFile("/proc/pressure/cpu")
	if err != nil {
		return -1
	}
	some, _, _ := strings.Cut(string(content), "\n")
	var microseconds int64
	if _, total, found := strings.Cut(some, "total="); !found {
		return -1
	} else if _, err := fmt.Sscan(total, &microseconds); err != nil {
		return -1
	}
	return pressure(time.Duration(microseconds) * time.Microsecond)
}

// since returns the share of the time since start in which something waited or, where
// there is none, the load average.
func (p pressure) since(start time.Time) string {
	if now := readPressure(); p >= 0 && now >= 0 {
		return fmt.Sprintf("%.0f%%", 100*float64(now-p)/float64(time.Since(start)))
	}
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	load, _, _ := strings.Cut(string(content), " ")
	return "load " + load
}
