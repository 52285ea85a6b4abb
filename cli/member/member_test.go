package member

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// TestAskErrors has each way in which a cluster doesn't say who it is, and expects the
// reason with what to do.
func TestAskErrors(t *testing.T) {
	const refusal = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","reason":%q,"code":%d}`
	for _, test := range []struct {
		reason string
		answer int
		kind   string
		change func(*clientcmdapi.Cluster)
		text   string
	}{
		{reason: "no right", answer: 403, kind: "Forbidden", text: "; its user needs the verb get on the namespace kube-system there"},
		{reason: "no credentials", answer: 401, kind: "Unauthorized", text: "it does not accept the context's credentials: sign in to it again"},
		{reason: "no version", text: `ask the cluster of context "east" for its version: `},
		{reason: "another name", change: func(c *clientcmdapi.Cluster) { c.TLSServerName = "east.invalid" }, text: "its certificate is for other names: "},
		{reason: "no server", change: func(c *clientcmdapi.Cluster) { c.Server = "https://127.0.0.1:1" }, text: "it can't be reached: "},
	} {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch {
			case test.answer != 0:
				w.WriteHeader(test.answer)
				_, _ = fmt.Fprintf(w, refusal, test.kind, test.answer)
			case r.URL.Path == "/version":
				w.WriteHeader(http.StatusInternalServerError)
			default:
				_, _ = fmt.Fprint(w, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system","uid":"u"}}`)
			}
		}))
		t.Cleanup(server.Close)
		config := clientcmdapi.NewConfig()
		config.Clusters["east"] = &clientcmdapi.Cluster{Server: server.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}
		config.Contexts["east"] = &clientcmdapi.Context{Cluster: "east"}
		if test.change != nil {
			test.change(config.Clusters["east"])
		}
		path := filepath.Join(t.TempDir(), "config")
		if err := clientcmd.WriteToFile(*config, path); err != nil {
			t.Fatal(err)
		}
		member, err := Load(path, "east")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := member.Ask(t.Context()); err == nil || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
}
