package main

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

func cluster(uid, version string) *v1beta1.Cluster {
	return &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east", UID: types.UID(uid), ResourceVersion: version}}
}

// What is the same is not said, an older version is, and a name that came again is two clusters.
func Example_changed() {
	changed(cluster("u1", "7"), cluster("u1", "7"))
	changed(cluster("u1", "7"), cluster("u1", "3"))
	changed(cluster("u1", "3"), cluster("u2", "9"))
	// Output:
	// changed east u1 3
	// removed east u1 3
	// added east u2 9
}

// TestFollowed moves a registry to another address and path: the next request goes there.
// A file that is half written, or gone, changes nothing.
func TestFollowed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	serve := func(name string) *httptest.Server {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Is", name+r.URL.Path) }))
		t.Cleanup(server.Close)
		return server
	}
	write := func(server *httptest.Server, suffix string) {
		config := clientcmdapi.NewConfig()
		config.Clusters["r"] = &clientcmdapi.Cluster{Server: server.URL + suffix, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}
		config.Contexts["r"] = &clientcmdapi.Context{Cluster: "r"}
		config.CurrentContext = "r"
		if err := clientcmd.WriteToFile(*config, path); err != nil {
			t.Fatal(err)
		}
	}
	client := &http.Client{Transport: &followed{path: path}}
	expect := func(want string) {
		t.Helper()
		response, err := client.Get("https://registry/apis/x") //nolint:noctx // it ends with the test
		if want == "" {
			if err == nil {
				t.Error("it was answered without a kubeconfig")
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close() //nolint:errcheck // it was only read
		if is := response.Header.Get("Is"); is != want {
			t.Errorf("it reaches %q, want %q", is, want)
		}
	}
	expect("")
	write(serve("one"), "")
	expect("one/apis/x")
	write(serve("two"), "/below/")
	expect("two/below/apis/x")
	if err := os.WriteFile(path, []byte("apiVersion: v1\nkind: Con"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect("two/below/apis/x")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	expect("two/below/apis/x")
}
