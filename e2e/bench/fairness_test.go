package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/e2e/framework"
)

const (
	// greedyReads is how many lists one user has under way at a time. It is as many as
	// the server takes of all users together.
	greedyReads = 400
	// fairnessRounds is how often each load's turn comes, and fairnessWindow how long
	// it is: what else the computer does changes by the minute.
	fairnessRounds, fairnessWindow = 3, 8 * time.Second
	// fairnessAim is the multiple of a quiet server's p99 that another user's slow
	// reads may cost.
	fairnessAim = 2
)

// TestFairness prints how long a read of a user takes while another keeps 400 lists
// of all clusters under way: lists that are read slowly, so that they last, and lists
// that are read as fast as the server gives them, so that they need all of its time.
// FAIRNESS_CLUSTERS says how many clusters there are.
func TestFairness(t *testing.T) {
	clusters, err := strconv.Atoi(cmp.Or(os.Getenv("FAIRNESS_CLUSTERS"), "5000"))
	if err != nil || clusters < 1 {
		t.Fatal("FAIRNESS_CLUSTERS: give a number")
	}
	etcd, clients := framework.StartEtcd(t, 1), framework.NewAuthority(t, "clients")
	// Its watch cache is asked how much there is to list once a minute.
	registry := framework.StartRegistry(t, append(etcd.Flags(), "--mode=independent", "--client-ca-file="+clients.File, "--etcd-count-metric-poll-period=1s")...)
	registry.WaitReady(t)
	as := func(name string) *rest.Config {
		return registry.Config(clients.Issue(name, []string{"clusterregistry:admins"}))
	}
	s := &sized{process: newProcess(t, "registry", registry.PID(), as("root")), config: as("root")}
	s.populate(t, clusters, 2000)
	time.Sleep(2 * time.Second)
	other, greedy := newConnection(t, as("other")), as("greedy")
	loads := []*load{{name: "none"}, {name: slowly, aim: fairnessAim}, {name: atOnce, aim: fairnessAim}}
	for range fairnessRounds {
		for _, l := range loads {
			end := l.begin(t, greedy)
			time.Sleep(3 * time.Second)
			l.took = append(l.took, gets(t, other, s.url, fairnessWindow)...)
			end()
		}
	}
	fmt.Printf("%d clusters of 2 kB, %d turns of %s each\n| another user's %d lists at a time | p50, ms | p99, ms | p99, multiple | aim | lists | refused |\n|---|---|---|---|---|---|---|\n",
		clusters, fairnessRounds, fairnessWindow, greedyReads)
	for _, l := range loads {
		l.print(quantile(loads[0].took, 0.99))
	}
}

// The loads: how lists are read.
const slowly, atOnce = "read slowly", "read at once"

// load is what one user does while another reads.
type load struct {
	name string
	aim  float64 // 0: none
	// done is what became of the lists.
	done tally
	// took is how long the reads of the other user took.
	took []time.Duration
}

// tally counts lists that were begun and those that were refused.
type tally struct{ Lists, Refused int64 }

// loadVariable has the settings of the process that is the load.
const loadVariable = "FAIRNESS_LOAD"

type loadSettings struct {
	Name, Host string
	TLS        rest.TLSClientConfig
}

// begin keeps lists under way until the function that it returns is called. A process
// of its own does so, which gets no processor that the server or the other user needs:
// clients are elsewhere.
func (l *load) begin(t *testing.T, greedy *rest.Config) (end func()) {
	t.Helper()
	if l.name != slowly && l.name != atOnce {
		return func() {}
	}
	settings, err := json.Marshal(loadSettings{l.name, greedy.Host, greedy.TLSClientConfig})
	if err != nil {
		t.Fatal(err)
	}
	process := exec.Command("nice", "-n", "19", os.Args[0], "-test.run=^TestFairnessLoad$") //nolint:noctx // it ends with its standard input
	process.Env = append(os.Environ(), loadVariable+"="+string(settings))
	process.Stderr = os.Stderr
	input, err := process.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	return func() {
		_ = input.Close()
		var done tally
		if err := json.NewDecoder(output).Decode(&done); err != nil {
			t.Errorf("the load %q: %v", l.name, err)
		}
		_, _ = io.Copy(io.Discard, output)
		if err := process.Wait(); err != nil {
			t.Errorf("the load %q: %v", l.name, err)
		}
		l.done.Lists += done.Lists
		l.done.Refused += done.Refused
	}
}

// print says how much longer reads took than they do on a quiet server.
func (l *load) print(quiet time.Duration) {
	p99 := quantile(l.took, 0.99)
	multiple, verdict := p99.Seconds()/quiet.Seconds(), ""
	switch {
	case l.aim == 0:
	case multiple <= l.aim:
		verdict = fmt.Sprintf("<= %.3g: met", l.aim)
	default:
		verdict = fmt.Sprintf("<= %.3g: missed", l.aim)
	}
	fmt.Printf("| %s | %s | %s | %.2f | %s | %d | %d |\n", l.name, milliseconds(quantile(l.took, 0.5)), milliseconds(p99), multiple, verdict, l.done.Lists, l.done.Refused)
}

// TestFairnessLoad is the process that keeps lists under way, until its standard input
// ends.
func TestFairnessLoad(t *testing.T) {
	given := os.Getenv(loadVariable)
	if given == "" {
		t.Skip("it is a part of TestFairness")
	}
	var settings loadSettings
	if err := json.Unmarshal([]byte(given), &settings); err != nil {
		t.Fatal(err)
	}
	config := &rest.Config{Host: settings.Host, TLSClientConfig: settings.TLS}
	read := readAtOnce
	if settings.Name == slowly {
		read = readSlowly
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	var lists, refused atomic.Int64
	var readers sync.WaitGroup
	for range greedyReads {
		client := slowConnection(t, config)
		readers.Go(func() {
			for ctx.Err() == nil {
				switch retryAfter, err := list(ctx, config, client, read); {
				case err != nil:
				case retryAfter > 0:
					refused.Add(1)
					select {
					case <-ctx.Done():
					case <-time.After(retryAfter + rand.N(time.Second)):
					}
				default:
					lists.Add(1)
				}
			}
		})
	}
	readers.Wait()
	if err := json.NewEncoder(os.Stdout).Encode(tally{lists.Load(), refused.Load()}); err != nil {
		t.Fatal(err)
	}
}

// gets reads one cluster again and again, and returns how long each time took.
func gets(t *testing.T, client *http.Client, url string, window time.Duration) []time.Duration {
	t.Helper()
	var took []time.Duration
	for end := time.Now().Add(window); time.Now().Before(end); {
		begin := time.Now()
		response, err := client.Get(url + "/apis/clusterregistry.k8s.io/v1beta1/clusters/c-1") //nolint:noctx // it ends with the test's server
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("a read of another user: %s, %v", response.Status, err)
		}
		took = append(took, time.Since(begin))
		time.Sleep(5 * time.Millisecond)
	}
	return took
}

// readSlowly begins to read a list and goes no further until ctx ends.
func readSlowly(ctx context.Context, _ io.Reader) { <-ctx.Done() }

// readAtOnce reads a list.
func readAtOnce(_ context.Context, body io.Reader) { _, _ = io.Copy(io.Discard, body) }

// list returns after which time a list that was refused may be tried again.
func list(ctx context.Context, config *rest.Config, client *http.Client, read func(context.Context, io.Reader)) (time.Duration, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address(config)+"/apis/clusterregistry.k8s.io/v1beta1/clusters", nil)
	if err != nil {
		return 0, err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusOK {
		read(ctx, response.Body)
		return 0, nil
	}
	seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
	return time.Duration(seconds) * time.Second, err
}

// slowConnection returns a client for which the system takes no more than a little
// that it doesn't read.
func slowConnection(t *testing.T, config *rest.Config) *http.Client {
	t.Helper()
	client := newConnection(t, config)
	dialer := &net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 64<<10) })
	}}
	client.Transport.(*http.Transport).DialContext = dialer.DialContext
	return client
}
