package memlimit

import (
	"math"
	"runtime/debug"
	"testing"
	"testing/fstest"
)

func TestContainer(t *testing.T) {
	for _, test := range []struct {
		reason string
		files  map[string]string
		want   int64
	}{
		{"no control groups", nil, 0},
		{"a container", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1073741824\n"}, 1 << 30},
		{"a container without a limit", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, 0},
		{"the root of the host, which has no such file", map[string]string{"proc/self/cgroup": "0::/\n"}, 0},
		{"a group below one with a lower limit", map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "3000\n", "sys/fs/cgroup/a/memory.max": "2000\n", "sys/fs/cgroup/memory.max": "max\n"}, 2000},
		{"a path of outside", map[string]string{"proc/self/cgroup": "0::/../../pod/x\n", "sys/fs/cgroup/memory.max": "4000\n"}, 4000},
		{"the first version", map[string]string{"proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/docker/x\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "5000\n"}, 5000},
		{"the first version without a limit", map[string]string{"proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0},
		{"nonsense", map[string]string{"proc/self/cgroup": "x\n0::/\n", "sys/fs/cgroup/memory.max": "-1\n"}, 0},
	} {
		root := fstest.MapFS{}
		for name, content := range test.files {
			root[name] = &fstest.MapFile{Data: []byte(content)}
		}
		if got := container(root); got != test.want {
			t.Errorf("%s: %d, want %d", test.reason, got, test.want)
		}
	}
}

func TestApplyLeavesTheEnvironmentsWord(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "off")
	before := debug.SetMemoryLimit(-1)
	if got := Apply(); got != 0 || debug.SetMemoryLimit(-1) != before {
		t.Errorf("set to %d", got)
	}
}

// TestApply is in whatever container the tests run in, if any.
func TestApply(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "")
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	got, now := Apply(), debug.SetMemoryLimit(-1)
	if got != 0 && now != got || got == 0 && now != before || got < 0 || got == math.MaxInt64 {
		t.Errorf("told %d, and it is %d", got, now)
	}
}
