package bench

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/e2e/framework"
)

// TestSizing prints what memory a server and etcd need for many clusters, with
// and without a limit that Go knows of: GOMEMLIMIT is what the server takes from
// its container's limit by itself. SIZING_CLUSTERS says how many, SIZING_BYTES
// how large each is as it is sent, without the CA bundle that all have, of
// SIZING_CERTIFICATES certificates, and SIZING_LIMITS, in MiB, what is tried.
func TestSizing(t *testing.T) {
	number := func(name, otherwise string, least int) int {
		n, err := strconv.Atoi(cmp.Or(os.Getenv(name), otherwise))
		if err != nil || n < least {
			t.Fatalf("%s: give a number of at least %d", name, least)
		}
		return n
	}
	clusters, size := number("SIZING_CLUSTERS", "100000", 1), number("SIZING_BYTES", "1000", 1)
	bundle := bytes.Repeat(framework.NewAuthority(t, "fleet").PEM, number("SIZING_CERTIFICATES", "0", 0))
	etcd := framework.StartEtcd(t, 1)
	fmt.Printf("%d clusters of %d bytes, with a CA bundle of %d\n| limit for Go, MiB | moment | resident, MiB | peak, MiB | took |\n|---|---|---|---|---|\n", clusters, size, len(bundle))
	populated := false
	for limit := range strings.SplitSeq(cmp.Or(os.Getenv("SIZING_LIMITS"), "922,off"), ",") {
		t.Run(limit, func(t *testing.T) {
			t.Setenv("GOMEMLIMIT", limit)
			if limit != "off" {
				t.Setenv("GOMEMLIMIT", limit+"MiB")
			}
			clients := framework.NewAuthority(t, "clients")
			registry := framework.StartRegistry(t, append(etcd.Flags(), "--mode=independent", "--client-ca-file="+clients.File)...)
			begin := time.Now()
			registry.WaitReady(t)
			config := registry.Config(clients.Issue("root", []string{"clusterregistry:admins"}))
			s := &sized{process: newProcess(t, registryServer, registry.PID(), config), limit: limit, config: config, bundle: bundle}
			s.print(t, "ready", begin)
			if !populated {
				populated = true
				s.measure(t, "created", func() { s.populate(t, clusters, size) })
				s.print(t, fmt.Sprintf("etcd's file of %.0f MiB", fileSize(t, etcd)/megabyte), time.Now())
			}
			s.measure(t, "one full list", func() { s.list(t, 1) })
			s.measure(t, "three full lists at once", func() { s.list(t, 3) })
			s.measure(t, "a full list in protobuf", func() { s.listAs(t, "application/vnd.kubernetes.protobuf") })
			s.print(t, fmt.Sprintf("idle, collected: %.1f MiB in use", s.live(t)/megabyte), time.Now())
		})
	}
}

// sized is a server whose memory is printed.
type sized struct {
	*process
	limit  string
	config *rest.Config
	bundle []byte // the CA bundle of all clusters, or none
}

// measure prints the peak of memory while something is done.
func (s *sized) measure(t *testing.T, what string, do func()) {
	t.Helper()
	if err := os.WriteFile(s.file("clear_refs"), []byte("5"), 0); err != nil {
		t.Fatalf("reset the peak of memory: %v", err)
	}
	begin := time.Now()
	do()
	s.print(t, what, begin)
}

func (s *sized) print(t *testing.T, what string, begin time.Time) {
	t.Helper()
	fmt.Printf("| %s | %s | %.0f | %.0f | %.1f s |\n", s.limit, what, s.status(t, "VmRSS")/megabyte, s.status(t, "VmHWM")/megabyte, time.Since(begin).Seconds())
}

// populate creates clusters, several at a time.
func (s *sized) populate(t *testing.T, clusters, size int) {
	t.Helper()
	next := make(chan int)
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			client := newConnection(t, s.config)
			for i := range next {
				body := fmt.Sprintf(`{"apiVersion":"clusterregistry.k8s.io/v1beta1","kind":"Cluster","metadata":{"name":"c-%d","labels":{"region":"r%d"},"annotations":{"note":"`, i, i%50)
				end := fmt.Sprintf(`"}},"spec":{"endpoints":[{"name":"outside","url":"https://c-%d.example:6443"`, i)
				body += strings.Repeat("x", max(0, size-len(body)-len(end+"}]}}"))) + end
				if len(s.bundle) > 0 {
					body += fmt.Sprintf(`,"caBundle":%q`, base64.StdEncoding.EncodeToString(s.bundle))
				}
				body += "}]}}"
				response, err := client.Post(s.url+"/apis/clusterregistry.k8s.io/v1beta1/clusters", "application/json", strings.NewReader(body)) //nolint:noctx // it ends with the test's server
				if err != nil {
					t.Error(err)
					continue
				}
				said, _ := io.ReadAll(response.Body)
				_ = response.Body.Close()
				if response.StatusCode != http.StatusCreated {
					t.Errorf("create: %s: %.200s", response.Status, bytes.TrimSpace(said))
				}
			}
		})
	}
	for i := range clusters {
		next <- i
	}
	close(next)
	workers.Wait()
}

func (s *sized) list(t *testing.T, times int) {
	t.Helper()
	var all sync.WaitGroup
	for range times {
		all.Go(func() { s.listAs(t, "application/json") })
	}
	all.Wait()
}

func (s *sized) listAs(t *testing.T, encoding string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/apis/clusterregistry.k8s.io/v1beta1/clusters", nil)
	if err != nil {
		t.Error(err)
		return
	}
	request.Header.Set("Accept", encoding)
	response, err := newConnection(t, s.config).Do(request)
	if err != nil {
		t.Error(err)
		return
	}
	n, err := io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	if err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("list: %s, %v", response.Status, err)
	}
	t.Logf("%s: %.0f MiB", encoding, float64(n)/megabyte)
}

// fileSize returns the size of the member's database.
func fileSize(t *testing.T, etcd *framework.Etcd) float64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(etcd.DataDirs[0], "member", "snap", "db"))
	if err != nil {
		t.Fatal(err)
	}
	return float64(info.Size())
}
