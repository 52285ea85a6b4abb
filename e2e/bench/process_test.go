package bench

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

const (
	megabyte = 1 << 20
	// tick is the unit of CPU time in /proc.
	tick = 10 * time.Millisecond
)

// The names of processes.
const (
	hostServer     = "kube-apiserver"
	registryServer = "server"
	nullServer     = "null"
	store          = "etcd"
)

// processes are their names in the order in which a request meets them.
var processes = []string{hostServer, registryServer, nullServer, store}

// process is a server, or a member of its etcd, whose costs are measured.
type process struct {
	name string
	pid  int
	// idle is its resident memory in bytes before there are objects.
	idle float64

	// client asks for its profile; without one, allocations are not counted.
	client *http.Client
	url    string
}

// cost is what a process spent.
type cost struct {
	cpu time.Duration
	// peak is the most resident memory, allocated the sum of all allocations,
	// in bytes.
	peak, allocated float64
}

// newProcess returns the process with the given id. The administrator's config
// leads to it, for its profile, or is nil.
func newProcess(t *testing.T, name string, pid int, config *rest.Config) *process {
	t.Helper()
	p := &process{name: name, pid: pid}
	if config != nil {
		p.client, p.url = newConnection(t, config), address(config)
	}
	p.allocated(t, "&gc=1")
	p.idle = p.status(t, "VmRSS")
	return p
}

// begin starts to account; the function it returns ends that. Garbage of the
// turn before is collected first, so that nobody pays for another's.
func (p *process) begin(t *testing.T) func() cost {
	t.Helper()
	allocated := p.allocated(t, "&gc=1")
	if err := os.WriteFile(p.file("clear_refs"), []byte("5"), 0); err != nil {
		t.Fatalf("reset the peak of memory: %v", err)
	}
	cpu := p.cpu(t)
	return func() cost {
		t.Helper()
		c := cost{cpu: p.cpu(t) - cpu, peak: p.status(t, "VmHWM")}
		c.allocated = p.allocated(t, "") - allocated
		return c
	}
}

func (p *process) file(name string) string { return fmt.Sprintf("/proc/%d/%s", p.pid, name) }

func (p *process) read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(p.file(name))
	if err != nil {
		t.Fatalf("the %s: %v", p.name, err)
	}
	return string(content)
}

// cpu returns the time that the process has run, in user and kernel mode.
func (p *process) cpu(t *testing.T) time.Duration {
	t.Helper()
	stat := p.read(t, "stat")
	// The program's name, in parentheses, may contain anything.
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	var sum time.Duration
	for _, field := range fields[11:13] {
		ticks, err := strconv.Atoi(field)
		if err != nil {
			t.Fatalf("%s: %v", p.file("stat"), err)
		}
		sum += time.Duration(ticks) * tick
	}
	return sum
}

// status returns a size in bytes from the process's status.
func (p *process) status(t *testing.T, key string) float64 {
	t.Helper()
	var kilobytes float64
	_, rest, _ := strings.Cut(p.read(t, "status"), key+":")
	if _, err := fmt.Sscan(rest, &kilobytes); err != nil {
		t.Fatalf("%s has no %s: %v", p.file("status"), key, err)
	}
	return kilobytes * 1024
}

// allocated returns how many bytes the process has allocated in its life. With
// the option "&gc=1" it collects its garbage. Who can't be asked tells 0.
func (p *process) allocated(t *testing.T, option string) float64 {
	t.Helper()
	if p.client == nil {
		return 0
	}
	return p.heap(t, "TotalAlloc", option)
}

// live returns how many bytes the process has in use once its garbage is collected.
func (p *process) live(t *testing.T) float64 {
	t.Helper()
	p.heap(t, "HeapAlloc", "&gc=1")
	return p.heap(t, "HeapAlloc", "&gc=1") // what the first collection found to be unused is gone
}

// heap returns a value of the process's heap profile.
func (p *process) heap(t *testing.T, value, option string) float64 {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"/debug/pprof/heap?debug=1"+option, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := p.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	profile, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := bytes.Cut(profile, []byte("# "+value+" = "))
	var out float64
	if _, err := fmt.Fscan(bytes.NewReader(rest), &out); !found || err != nil {
		t.Fatalf("the %s's heap profile: status %s, no %s: %.200s", p.name, response.Status, value, profile)
	}
	return out
}
