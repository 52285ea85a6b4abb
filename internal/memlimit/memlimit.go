// Package memlimit keeps a program within the memory of its container: Go's
// garbage collector knows nothing of that limit, and lets a program that lives
// well below it grow until the kernel kills it.
package memlimit

import (
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// part is how much of a container's memory Go may use, in percent. The rest is
// for what Go doesn't count: the program's own pages, threads, the kernel's buffers.
const part = 90

// Variable is the environment variable that tells Go's runtime of a limit.
const Variable = "GOMEMLIMIT"

// Apply tells Go's runtime of the limit on the memory of the container that the
// program runs in, and returns what it told it: 0 when there is no such limit, or
// when the environment's GOMEMLIMIT says what holds.
func Apply() int64 {
	if os.Getenv(Variable) != "" {
		return 0
	}
	limit := Share(part)
	if limit > 0 {
		debug.SetMemoryLimit(limit)
	}
	return limit
}

// Share returns so many percent of the limit on the memory of the container that the
// program runs in, 0 when there is no such limit.
func Share(percent int64) int64 { return container(os.DirFS("/")) / 100 * percent }

// unlimited is where the first version of control groups has "no limit": the
// highest number of whole pages.
const unlimited = math.MaxInt64 &^ 0xffff

// container returns the limit of the control group that the program is in, as
// seen in the given root directory; 0 means that there is none.
func container(root fs.FS) int64 {
	membership, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0
	}
	var lowest int64
	for line := range strings.Lines(string(membership)) {
		// ID:CONTROLLERS:PATH, without controllers in the second version.
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		mount, file := "sys/fs/cgroup", "memory.max"
		if fields[1] == "memory" {
			mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		} else if fields[1] != "" {
			continue
		}
		// Each group above limits it, too. A container sees its own group as the
		// root, though its path may be told as it is outside.
		for dir := path.Join(mount, path.Clean("/"+fields[2])); ; dir = path.Dir(dir) {
			if limit := read(root, path.Join(dir, file)); limit > 0 && (lowest == 0 || limit < lowest) {
				lowest = limit
			}
			if dir == mount || !strings.HasPrefix(dir, mount) {
				break
			}
		}
	}
	return lowest
}

// read returns the limit in a file, and 0 for what is none.
func read(root fs.FS, name string) int64 {
	content, err := fs.ReadFile(root, name)
	if err != nil {
		return 0
	}
	limit, err := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64)
	if err != nil || limit < 0 || limit >= unlimited {
		return 0
	}
	return limit
}
