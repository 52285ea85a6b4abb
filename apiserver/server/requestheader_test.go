package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/kubernetes/fake"
)

// authority returns two certificates of one key, as a CA has before and after
// its renewal.
func authority(t *testing.T) (old, renewed string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var out [2]string
	for i := range out {
		template := &x509.Certificate{SerialNumber: big.NewInt(int64(i + 1)), IsCA: true}
		der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		out[i] = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	}
	return out[0], out[1]
}

func TestTrust(t *testing.T) {
	ca, renewed := authority(t)
	other, _ := authority(t)
	file := func(content string) string {
		path := filepath.Join(t.TempDir(), "ca.crt")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	data := func(names, frontProxy, client string) map[string]string {
		return map[string]string{"requestheader-allowed-names": names, "requestheader-client-ca-file": frontProxy, "client-ca-file": client, "requestheader-username-headers": `["X-Remote-User"]`}
	}
	const name = `["front-proxy"]`
	for _, test := range []struct {
		reason string
		data   map[string]string
		flags  genericoptions.RequestHeaderAuthenticationOptions
		client string
		want   string
	}{
		{reason: "two authorities and a name", data: data(name, ca, other)},
		{reason: "no client certificates at all", data: data(name, ca, "")},
		{reason: "any name", data: data("[]", ca, other), want: "--requestheader-allowed-names=NAME"},
		{reason: "no list", data: data("", ca, other), want: "requestheader-allowed-names is empty"},
		{reason: "a broken list", data: data("x", ca, other), want: "requestheader-allowed-names: invalid"},
		{reason: "no header for users", data: map[string]string{"requestheader-allowed-names": name, "requestheader-client-ca-file": ca}, want: "requestheader-username-headers is empty"},
		{reason: "a broken list of headers", data: map[string]string{"requestheader-group-headers": "x"}, want: "requestheader-group-headers: invalid"},
		{reason: "no front proxy", data: data(name, "", other), want: "no requestheader CA"},
		{reason: "one authority for both", data: data(name, ca, ca), want: "share a CA"},
		{reason: "one key, renewed, among others", data: data(name, other+ca, renewed), want: "--requestheader-client-ca-file of its own"},
		{reason: "nonsense", data: data(name, "nonsense", ca), want: "requestheader-client-ca-file: "},
		{reason: "flags with names", data: data("[]", ca, ca), flags: genericoptions.RequestHeaderAuthenticationOptions{ClientCAFile: file(other), AllowedNames: []string{"x"}}},
		{reason: "flags without names", data: data(name, ca, other), flags: genericoptions.RequestHeaderAuthenticationOptions{ClientCAFile: file(ca)}, want: "--requestheader-allowed-names=NAME"},
		{reason: "a client CA by flag", data: data(name, ca, other), client: file(ca), want: "share a CA"},
		{reason: "a file that is not there", data: data(name, ca, other), client: "/none", want: "--client-ca-file: open /none"},
	} {
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "extension-apiserver-authentication"}, Data: test.data}
		options := genericoptions.NewDelegatingAuthenticationOptions()
		options.RequestHeader.ClientCAFile, options.RequestHeader.AllowedNames, options.ClientCert.ClientCA = test.flags.ClientCAFile, test.flags.AllowedNames, test.client
		trust, err := readTrust(t.Context(), options, fake.NewClientset(config))
		if err == nil {
			err = trust.check()
		}
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.reason, err, test.want)
		}
	}
	if _, err := readTrust(t.Context(), genericoptions.NewDelegatingAuthenticationOptions(), fake.NewClientset()); err == nil || !strings.Contains(err.Error(), "extension-apiserver-authentication-reader in kube-system") {
		t.Errorf("no ConfigMap: %v", err)
	}
}
