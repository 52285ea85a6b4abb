package bench

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterregistry/operator/e2e/framework"
)

const (
	nullGroup = "null.example"
	// nullVariable has the test's program be the null backend: it is the port and the
	// files of the certificate and its key.
	nullVariable = "BENCH_NULL"
	// nullRoot is where it serves, and told, below it, is where it is told what to answer.
	nullRoot = "/apis/" + nullGroup
	told     = "/v1alpha1/answers/"
)

// TestMain is the null backend's main function, too: it is a process of its own, whose
// CPU can be told from the test's.
func TestMain(m *testing.M) {
	if arguments := os.Getenv(nullVariable); arguments != "" {
		fmt.Fprintln(os.Stderr, serveNull(strings.Split(arguments, ",")))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// serveNull serves over TLS, with HTTP/2, until it is killed.
func serveNull(arguments []string) error {
	server := &http.Server{
		Addr: "127.0.0.1:" + arguments[0], Handler: &nullBackend{answers: map[string][]byte{}},
		ReadHeaderTimeout: time.Minute, TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	return server.ListenAndServeTLS(arguments[1], arguments[2])
}

// nullBackend answers each kind of request with the same bytes whatever it says, and does
// nothing: no server behind the aggregator can be faster.
type nullBackend struct {
	mu      sync.RWMutex
	answers map[string][]byte
}

// ServeHTTP answers a request, or learns what to answer.
func (n *nullBackend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if kind, ok := strings.CutPrefix(r.URL.Path, nullRoot+told); ok {
		n.mu.Lock()
		n.answers[kind] = body
		n.mu.Unlock()
		return
	}
	collection := nullRoot + "/v1alpha1/clusters"
	answer, status := []byte(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"`+nullGroup+`/v1alpha1","resources":[{"name":"clusters","singularName":"cluster","namespaced":false,"kind":"Cluster","verbs":["get","list","create","patch","delete"]}]}`), http.StatusOK
	if strings.HasPrefix(r.URL.Path, collection) {
		n.mu.RLock()
		answer = n.answers[kindOf(r.Method, r.URL.Path == collection, r.URL.Query())]
		n.mu.RUnlock()
		if r.Method == http.MethodPost {
			status = http.StatusCreated
		}
	} else if !strings.HasPrefix(collection, r.URL.Path) {
		status = http.StatusNotFound
	}
	w.Header().Set("Content-Type", inJSON.media)
	w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
	w.WriteHeader(status)
	_, _ = w.Write(answer) // who asked may be gone
}

// kindOf names the requests that get one answer.
func kindOf(method string, collection bool, query url.Values) string {
	kind := method
	if collection {
		kind += "-collection"
	}
	for _, selector := range []string{"labelSelector", "fieldSelector"} {
		if query.Has(selector) {
			kind += "-" + selector
		}
	}
	return kind
}

// startNull starts the null backend and returns its process id.
func startNull(t *testing.T, port int, pair framework.Pair) int {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program) //nolint:noctx // it outlives the test's context
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d,%s,%s", nullVariable, port, pair.Cert, pair.Key))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatalf("start the null backend: %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // its error is that of the kill
	})
	return cmd.Process.Pid
}

// learn tells the null backend to answer as another contestant does now.
func (c *contestant) learn(t *testing.T, from *contestant, size int) {
	t.Helper()
	name := newName(0)
	body, err := from.body(name, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, exemplar := range []struct {
		method, path, contentType string
		query                     url.Values
		body                      []byte
	}{
		{http.MethodGet, "", "", nil, nil},
		{http.MethodGet, "", "", byLabel(0), nil},
		{http.MethodGet, "", "", byField(0), nil},
		{http.MethodGet, "/" + objectName(size-1), "", nil, nil},
		{http.MethodPost, "", from.media, nil, body},
		{http.MethodPatch, "/" + name, string(types.MergePatchType), nil, []byte(note(0))},
		{http.MethodDelete, "/" + name, "", nil, nil},
	} {
		request, err := from.request(t.Context(), exemplar.method, exemplar.path+"?"+exemplar.query.Encode(), exemplar.contentType, exemplar.body)
		if err != nil {
			t.Fatal(err)
		}
		response, err := from.open(from.connections[0], request)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		c.tell(t, kindOf(exemplar.method, exemplar.path == "", exemplar.query), answer)
	}
}

// tell says to the null backend what it answers to a kind of request.
func (c *contestant) tell(t *testing.T, kind string, answer []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, c.root+told+kind, bytes.NewReader(answer))
	if err != nil {
		t.Fatal(err)
	}
	response, err := newConnection(t, c.site.administrator).Do(request)
	if err != nil {
		t.Fatalf("tell the null backend what to answer: %v", err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("tell the null backend what to answer: status %s", response.Status)
	}
}
