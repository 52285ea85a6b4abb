package kubeconfig

import (
	"net/netip"
	"strings"
	"testing"
)

// TestWherePeopleAreLed expects that no entry leads a person, with credentials, to their own
// computer, to a cloud's metadata service, or to whichever cluster they are in.
func TestWherePeopleAreLed(t *testing.T) {
	for url, says := range map[string]string{
		"https://api.example.com:6443":   "",
		"https://10.0.0.7":               "",
		"https://127.0.0.1:6443":         "a loopback address",
		"https://[::ffff:127.0.0.1]":     "a loopback address",
		"https://localhost:6443":         "a loopback address",
		"https://169.254.169.254":        "the metadata service",
		"https://kubernetes.default.svc": "the API server of whichever cluster",
	} {
		_, err := newEntry(cluster("east", url), "", netip.Addr{}, nil)
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), "its endpoint main is refused: it leads to "+says) {
			t.Errorf("%s: %v, want %q", url, err, says)
		}
	}
	for proxy, says := range map[string]string{
		"http://proxy.example:3128": "",
		"socks5://10.0.0.7:1080":    "",
		"http://localhost:3128":     "",
		"socks5://[::1]:1080":       "",
		"http://[fe80::1]:3128":     "a link-local address",
		"http://169.254.169.254":    "the metadata service",
	} {
		behind := cluster("east", "https://api.example.com")
		behind.Spec.Endpoints[0].ProxyURL = proxy
		_, err := newEntry(behind, "", netip.Addr{}, nil)
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), "the proxy of its endpoint main is refused: it leads to "+says) {
			t.Errorf("%s: %v, want %q", proxy, err, says)
		}
	}
}
