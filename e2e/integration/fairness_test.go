package integration

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/e2e/framework"
)

// TestIndependentOneUserLeavesRoom has one user keep as many writes in flight as
// the server takes, with bodies that never end. Probes and other users get
// through all the same.
func TestIndependentOneUserLeavesRoom(t *testing.T) {
	t.Parallel()
	registry, clients, admin := independent(t, "--max-requests-inflight=4", "--max-mutating-requests-inflight=4", "--request-timeout=20m")
	greedy := registry.Config(clients.Issue("greedy", admins))
	refused := make(chan refusal)
	const tries = 20
	for range tries {
		go func() { refused <- endless(t, greedy) }()
	}
	// Two are in flight, two wait, and all others are refused at once.
	for i := range tries - 4 {
		if got := <-refused; got.status != http.StatusTooManyRequests || got.retryAfter == "" {
			t.Errorf("request %d: %+v", i, got)
		}
	}
	for _, path := range []string{"/livez", "/readyz", "/healthz"} {
		if got := status(t, registry.Config(framework.Pair{}), path); got != http.StatusOK {
			t.Errorf("GET %s by a probe: %d", path, got)
		}
	}
	if _, err := clustersOf(t, admin).Create(t.Context(), cluster("room", nil), metav1.CreateOptions{}); err != nil {
		t.Errorf("a write of another user: %v", err)
	}
}

// slowReads is how many lists one user begins to read and doesn't read on.
const slowReads = 400

// TestIndependentSlowReads has one user begin 400 lists whose answers they don't read,
// as many as the server takes in all. Others are served at once, however many wait.
func TestIndependentSlowReads(t *testing.T) {
	t.Parallel()
	const limit = 40
	// A place to wait is kept for a quarter of the timeout. What there is to list is not
	// counted: lists of so much would take several seats.
	registry, clients, admin := independent(t, fmt.Sprintf("--max-requests-inflight=%d", limit), "--request-timeout=20m", "--etcd-count-metric-poll-period=0")
	for i := range 20 {
		large := cluster(fmt.Sprintf("large-%d", i), nil)
		large.Annotations = map[string]string{"note": strings.Repeat("x", 200<<10)}
		if _, err := clustersOf(t, admin).Create(t.Context(), large, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	greedy := registry.Config(clients.Issue("greedy", admins))
	refused, reads := make(chan struct{}, slowReads), make(chan error, slowReads)
	for range slowReads {
		go func() { reads <- readSlowly(t, greedy, refused) }()
	}
	// Half of the seats and half of the places to wait are left to others.
	const running, waiting = limit / 2, limit / 2
	for range slowReads - running - waiting {
		select {
		case <-refused:
		case err := <-reads:
			t.Fatal(err)
		}
	}
	for i := range limit / 2 {
		other := registry.Config(clients.Issue(fmt.Sprint("other-", i), admins))
		if _, err := clustersOf(t, other).Get(t.Context(), "large-1", metav1.GetOptions{}); err != nil {
			t.Errorf("a read of another user: %v", err)
		}
	}
	if got := status(t, registry.Config(framework.Pair{}), "/livez"); got != http.StatusOK {
		t.Errorf("GET /livez: %d", got)
	}
	metrics, err := clientset(t, admin).RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		fmt.Sprintf(`apiserver_flowcontrol_current_executing_requests{flow_schema="by-user",priority_level="reads"} %d`, running+1), // and this one
		fmt.Sprintf(`apiserver_flowcontrol_current_inqueue_requests{flow_schema="by-user",priority_level="reads"} %d`, waiting),
		fmt.Sprintf(`apiserver_flowcontrol_rejected_requests_total{flow_schema="by-user",priority_level="reads",reason="queue-full"} %d`, slowReads-running-waiting),
	} {
		if !strings.Contains(string(metrics), want+"\n") {
			t.Errorf("metrics lack %s; they have\n%s", want, regexp.MustCompile(`(?m)^apiserver_flowcontrol_(current|rejected).*$`).FindAllString(string(metrics), -1))
		}
	}
}

// readSlowly lists all clusters and reads no more of that than the status. It says on
// refused if that is a refusal, and returns what went wrong before the test ended.
func readSlowly(t *testing.T, config *rest.Config, refused chan<- struct{}) error {
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return err
	}
	// What the system takes for the client is soon more than a server has to say.
	dialer := &net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10) })
	}}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: tls, DisableCompression: true, DialContext: dialer.DialContext}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+"/apis/clusterregistry.k8s.io/v1beta1/clusters", nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil // the test ended
	}
	defer func() { _ = response.Body.Close() }()
	switch {
	case response.StatusCode == http.StatusTooManyRequests && response.Header.Get("Retry-After") != "":
		refused <- struct{}{}
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("GET clusters: %s", response.Status)
	}
	<-t.Context().Done()
	return nil
}

// refusal is what a server says of a request that it does not take.
type refusal struct {
	status     int
	retryAfter string
}

// endless begins to create a cluster and never comes to the end of it. It
// returns the server's answer, an empty one if there was none before the test ended.
func endless(t *testing.T, config *rest.Config) refusal {
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Error(err)
		return refusal{}
	}
	// A server answers only once it has read the body, unless that is still to be sent.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: tls, ExpectContinueTimeout: time.Minute}}
	defer client.CloseIdleConnections()
	body, never := io.Pipe()
	defer func() { _ = never.Close() }()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, config.Host+"/apis/clusterregistry.k8s.io/v1beta1/clusters", body)
	if err != nil {
		t.Error(err)
		return refusal{}
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Expect", "100-continue")
	response, err := client.Do(request)
	if err != nil {
		return refusal{}
	}
	_ = response.Body.Close()
	return refusal{response.StatusCode, response.Header.Get("Retry-After")}
}
