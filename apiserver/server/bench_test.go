package server

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/validation"
	"github.com/clusterregistry/operator/apiserver/storage/cluster"
)

// BenchmarkRequests prints what requests of both versions cost a server, without TLS,
// authorization and etcd: for a cluster as most are, one with as many certificates as a CA
// bundle may have, and one without any.
func BenchmarkRequests(b *testing.B) {
	ca := certificates(b, 1)
	for _, of := range []struct {
		name   string
		bundle []byte
	}{
		{"no-CA", nil},
		{"one-CA", ca},
		{"65-KB-of-CAs", certificates(b, validation.MaxCABundle/len(ca)-1)},
	} {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			b.Run(of.name+"/"+version, func(b *testing.B) { benchmarkRequests(b, version, of.bundle) })
		}
	}
}

// benchmarkRequests measures each request for a cluster of a version that has a CA bundle.
func benchmarkRequests(b *testing.B, version string, bundle []byte) {
	stored := newEncoded()
	d := newDeskOn(b, cluster.GuardedFieldsOff, stored.getter())
	collection := version + "/clusters"
	put := func(name string, label int) string { return written(version, name, label, bundle) }
	must := func(method, path, kind, body string) {
		b.Helper()
		if code, answer, _ := d.send(method, path, kind, body); code >= http.StatusBadRequest {
			b.Fatalf("%s %s: %d %.500s", method, path, code, answer)
		}
	}
	// Two writers, as where a person creates clusters and a controller labels them.
	must(http.MethodPost, collection+"?fieldManager=person", plain, put("west", 0))
	must(http.MethodPatch, collection+"/west?fieldManager=controller", mergePatch, `{"metadata":{"labels":{"seen":"yes"}}}`)
	change := `{"spec":{"displayName":"%d"}}`
	if version == "v1alpha1" {
		change = `{"spec":{"authInfo":{"providers":[{"name":"people","type":{"name":"oidc"},"config":{"client-id":"%d"}}]}}}`
	}
	for _, op := range []struct {
		name string
		do   func(n int)
	}{
		{"create", func(n int) {
			must(http.MethodPost, collection+"?fieldManager=person", plain, put("new", n))
			stored.remove("new")
		}},
		{"get", func(int) { must(http.MethodGet, collection+"/west", "", "") }},
		{"patch-label", func(n int) {
			must(http.MethodPatch, collection+"/west?fieldManager=controller", mergePatch, fmt.Sprintf(`{"metadata":{"labels":{"seen":"%d"}}}`, n))
		}},
		{"put-label", func(n int) { must(http.MethodPut, collection+"/west?fieldManager=person", plain, put("west", n)) }},
		{"patch-spec", func(n int) {
			must(http.MethodPatch, collection+"/west?fieldManager=person", mergePatch, fmt.Sprintf(change, n))
		}},
	} {
		b.Run(op.name, func(b *testing.B) { measure(b, op.do) })
	}
	if len(bundle) > 0 && len(bundle) < 1<<12 {
		stored.fill(b, "west", 10_000)
		b.Run("list-10000", func(b *testing.B) { measure(b, func(int) { must(http.MethodGet, collection, "", "") }) })
	}
}

// measure prints what something costs that is done with another number each time. Time on the
// clock says little where others have the processors as well.
func measure(b *testing.B, do func(n int)) {
	b.ReportAllocs()
	began, n := processor(), 0
	for b.Loop() {
		n++
		do(n)
	}
	b.ReportMetric(float64((processor()-began).Microseconds())/float64(n), "cpu-µs/op")
}

// fill has copies of an object cached, each with a name of its own.
func (e *encoded) fill(b *testing.B, name string, copies int) {
	b.Helper()
	object := &clusterregistry.Cluster{}
	if err := e.decode(e.value(keyOf(name)), object); err != nil {
		b.Fatal(err)
	}
	for i := range copies {
		clone := object.DeepCopy()
		clone.Name = fmt.Sprintf("cluster-%05d", i)
		e.cached = append(e.cached, clone)
	}
}

// written returns what a client sends for a cluster with a CA bundle, in JSON.
func written(version, name string, label int, bundle []byte) string {
	ca := ""
	if len(bundle) > 0 {
		ca = `,"caBundle":"` + base64.StdEncoding.EncodeToString(bundle) + `"`
	}
	spec := `{"endpoints":[{"name":"inside","url":"https://` + name + `.internal.example:6443","clientCIDRs":["10.0.0.0/8"]` + ca + `},{"name":"outside","url":"https://` + name + `.example"}],` +
		`"access":[{"name":"people","audience":"User","oidc":{"issuerURL":"https://idp.example","clientID":"kubernetes"}}]}`
	if version == "v1alpha1" {
		spec = `{"kubernetesApiEndpoints":{"serverEndpoints":[{"clientCIDR":"10.0.0.0/8","serverAddress":"` + name + `.internal.example:6443"},{"serverAddress":"https://` + name + `.example"}]` + ca + `},` +
			`"authInfo":{"providers":[{"name":"people","type":{"name":"oidc"},"config":{"idp-issuer-url":"https://idp.example","client-id":"kubernetes"}}]}}`
	}
	return fmt.Sprintf(`{"apiVersion":"clusterregistry.k8s.io/%s","kind":"Cluster","metadata":{"name":%q,"labels":{"team":"payments","environment":"production","round":"%d"}},"spec":%s}`, version, name, label, spec)
}

// certificates returns certificates in PEM of CAs as kubeadm makes them.
func certificates(tb testing.TB, n int) []byte {
	tb.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		tb.Fatal(err)
	}
	var out bytes.Buffer
	for i := range n {
		template := &x509.Certificate{
			SerialNumber: big.NewInt(int64(i + 1)), Subject: pkix.Name{CommonName: "kubernetes"}, NotBefore: time.Now(), NotAfter: time.Now().Add(24 * time.Hour),
			KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true, DNSNames: []string{"kubernetes"},
		}
		der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		if err != nil {
			tb.Fatal(err)
		}
		if err := pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: der}); err != nil {
			tb.Fatal(err)
		}
	}
	return out.Bytes()
}

// TestBenchmarkedObjects: what is measured is what real clusters are.
func TestBenchmarkedObjects(t *testing.T) {
	if n := len(certificates(t, 1)); n < 1<<10 || n > 2<<10 {
		t.Errorf("a CA has %d bytes", n)
	}
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		stored := newEncoded()
		d := newDeskOn(t, cluster.GuardedFieldsOff, stored.getter())
		if code, answer, _ := d.send(http.MethodPost, version+"/clusters", plain, written(version, "west", 1, certificates(t, 3))); code != http.StatusCreated {
			t.Fatalf("%d %s", code, answer)
		}
		code, answer, _ := d.send(http.MethodPatch, version+"/clusters/west?fieldManager=other", mergePatch, `{"metadata":{"labels":{"seen":"yes"}}}`)
		if code != http.StatusOK || strings.Count(answer, `"manager":`) != 2 || !strings.Contains(answer, `"seen":"yes"`) {
			t.Errorf("%s: %d, and %d managers in %.300s", version, code, strings.Count(answer, `"manager":`), answer)
		}
	}
}
