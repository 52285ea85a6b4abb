package member

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// expired returns a certificate whose time is over.
func expired(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Unix(86400, 0), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestAskErrors has each way in which a cluster doesn't say who it is, and expects the
// reason with what to do.
func TestAskErrors(t *testing.T) {
	const refusal = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","reason":%q,"code":%d}`
	login := clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: "/nowhere/login", InteractiveMode: clientcmdapi.NeverExecInteractiveMode}}
	for _, test := range []struct {
		reason string
		answer int
		kind   string
		// shown are the certificates of the server, empty for one that is valid.
		shown  []tls.Certificate
		change func(*clientcmdapi.Cluster)
		user   clientcmdapi.AuthInfo
		// policy is that of the user's kuberc, for programs.
		policy string
		text   string
	}{
		{reason: "no right", answer: 403, kind: "Forbidden", text: "; its user needs the verb get on the namespace kube-system there"},
		{reason: "no credentials", answer: 401, kind: "Unauthorized", text: "it does not accept the context's credentials: sign in to it again"},
		{reason: "no namespace", answer: 404, kind: "NotFound", text: "it has no namespace kube-system, so it is not a Kubernetes cluster whose identity can be read; enter it by hand with an id of your choice"},
		{reason: "a server that refuses", answer: 409, kind: "Conflict", text: `ask the cluster of context "east" who it is: no`},
		{reason: "no version", text: `ask the cluster of context "east" for its version: `},
		{reason: "another name", change: func(c *clientcmdapi.Cluster) { c.TLSServerName = "east.invalid" }, text: "its certificate is for other names: "},
		{reason: "another CA", change: func(c *clientcmdapi.Cluster) { c.CertificateAuthorityData = nil }, text: "its certificate is not signed by the CA in the kubeconfig: correct certificate-authority-data"},
		{reason: "an expired certificate", shown: []tls.Certificate{expired(t)}, text: "its certificate has expired or is not valid yet: "},
		{reason: "no server", change: func(c *clientcmdapi.Cluster) { c.Server = "https://127.0.0.1:1" }, text: "it can't be reached: "},
		{reason: "a CA that is none", change: func(c *clientcmdapi.Cluster) { c.CertificateAuthorityData = []byte("x") }, text: `context "east": unable to load root certificates: `},
		{reason: "a certificate that is not there", user: clientcmdapi.AuthInfo{ClientCertificate: "/nowhere/ann.crt", ClientKey: "/nowhere/ann.key"}, text: `context "east": invalid configuration: [unable to read client-cert /nowhere/ann.crt`},
		{reason: "a program that is not allowed", user: login, policy: "DenyAll", text: `not allowed: policy set to "DenyAll"; the policy is in your kuberc`},
		{reason: "a policy that is none", user: login, policy: "Perhaps", text: "which credential plugins may run is not known: kuberc "},
	} {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
		server.TLS = &tls.Config{Certificates: test.shown}
		server.StartTLS()
		t.Cleanup(server.Close)
		config := clientcmdapi.NewConfig()
		config.Clusters["east"] = &clientcmdapi.Cluster{Server: server.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}
		config.Contexts["east"] = &clientcmdapi.Context{Cluster: "east", AuthInfo: "ann"}
		config.AuthInfos["ann"] = &test.user
		if test.change != nil {
			test.change(config.Clusters["east"])
		}
		path, kuberc := filepath.Join(t.TempDir(), "config"), filepath.Join(t.TempDir(), "kuberc")
		if err := clientcmd.WriteToFile(*config, path); err != nil {
			t.Fatal(err)
		}
		t.Setenv("KUBERC", "off")
		if test.policy != "" {
			t.Setenv("KUBERC", kuberc)
			if err := os.WriteFile(kuberc, []byte("apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\ncredentialPluginPolicy: "+test.policy+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		member, err := Load(path, "east")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := member.Ask(t.Context(), ""); err == nil || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
}

// TestAskAt asks at another address than the context's, for which neither its proxy nor its
// tls-server-name is.
func TestAskAt(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/version" {
			_, _ = fmt.Fprint(w, `{"gitVersion":"v1.37.1"}`)
			return
		}
		_, _ = fmt.Fprint(w, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system","uid":"u"}}`)
	}))
	t.Cleanup(server.Close)
	config := clientcmdapi.NewConfig()
	config.Clusters["east"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1", ProxyURL: "http://127.0.0.1:1", TLSServerName: "tunnel.invalid", CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}
	config.Contexts["east"] = &clientcmdapi.Context{Cluster: "east", AuthInfo: "ann"}
	config.AuthInfos["ann"] = &clientcmdapi.AuthInfo{}
	path := filepath.Join(t.TempDir(), "config")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBERC", "off")
	member, err := Load(path, "east")
	if err != nil {
		t.Fatal(err)
	}
	if facts, err := member.Ask(t.Context(), server.URL); err != nil || facts != (Facts{ID: "u", Version: "v1.37.1"}) {
		t.Errorf("%+v, %v", facts, err)
	}
	if _, err := member.Ask(t.Context(), ""); err == nil {
		t.Error("the context's own address is not asked")
	}
}

// TestKubeconfigErrors has what can be wrong with the file before a cluster is asked.
func TestKubeconfigErrors(t *testing.T) {
	dir := t.TempDir()
	const lost = `{apiVersion: v1, kind: Config, clusters: [{name: east, cluster: {server: "https://e.example", certificate-authority: /nowhere/ca.crt}}], contexts: [{name: east, context: {cluster: east}}]}`
	for _, test := range []struct{ reason, content, text string }{
		{"no file", "", "read the cluster's kubeconfig: stat FILE: no such file or directory; name the file with --cluster-kubeconfig"},
		{"no kubeconfig", "{", "read the cluster's kubeconfig: error loading config file \"FILE\": "},
		{"no contexts", "{apiVersion: v1, kind: Config}", `the kubeconfig has no contexts, and so not "east": name its file with --cluster-kubeconfig`},
		{"a CA that is not there", lost, `read the CA of context "east": open /nowhere/ca.crt: no such file or directory`},
	} {
		path := filepath.Join(dir, test.reason)
		if test.content != "" {
			if err := os.WriteFile(path, []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		member, err := Load(path, "east")
		if err == nil {
			_, err = member.Endpoint("main", "")
		}
		if err == nil || !strings.HasPrefix(err.Error(), strings.ReplaceAll(test.text, "FILE", path)) {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
}
