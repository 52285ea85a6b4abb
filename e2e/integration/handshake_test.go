package integration

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/operator/handshake"
)

// TestHandshake expects etcd members, at both ports, and servers to say in the TLS handshake
// whose clients they accept, by which a rotation of CAs goes; and members to let in there whom
// the operator is, and no one of another CA.
func TestHandshake(t *testing.T) {
	t.Parallel()
	etcd := framework.StartEtcd(t, 1)
	list, err := etcd.Client.MemberList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stranger := framework.NewAuthority(t, "etcd-ca-2")
	for _, url := range append(slices.Clone(etcd.Endpoints), list.Members[0].PeerURLs...) {
		shown, err := handshake.Ask(t.Context(), handshake.Server{Address: strings.TrimPrefix(url, "https://"), Client: &etcd.TLS.Certificates[0]})
		if err != nil {
			t.Fatal(err)
		}
		if !shown.AcceptsOnly(certificates(t, etcd.CA.PEM)) || shown.AcceptsAll(certificates(t, stranger.PEM)) || len(shown.Chain) == 0 {
			t.Errorf("%s shows %+v", url, shown)
		}
	}
	registry, clients, _ := independentOn(t, etcd)
	next := framework.NewAuthority(t, "clients-2")
	address := strings.TrimPrefix(registry.URL(), "https://")
	accepts := func(what string, holds func(handshake.Shown) bool) {
		t.Helper()
		framework.Eventually(t, what, func(ctx context.Context) error {
			shown, err := handshake.Ask(ctx, handshake.Server{Address: address})
			if err == nil && !holds(shown) {
				err = errors.New("it does not say so")
			}
			return err
		})
	}
	write := func(bundle []byte) {
		t.Helper()
		if err := os.WriteFile(clients.File, bundle, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	accepts("the server to accept its clients alone", func(s handshake.Shown) bool { return s.AcceptsOnly(certificates(t, clients.PEM)) })
	both := slices.Concat(clients.PEM, next.PEM)
	write(both)
	accepts("the server to accept clients of both CAs", func(s handshake.Shown) bool { return s.AcceptsAll(certificates(t, both)) })
	write(next.PEM)
	accepts("the server to accept those of the new one alone", func(s handshake.Shown) bool { return s.AcceptsOnly(certificates(t, next.PEM)) })
}

// certificates reads those of a bundle in PEM.
func certificates(t *testing.T, bundle []byte) []*x509.Certificate {
	t.Helper()
	var out []*x509.Certificate
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, certificate)
	}
	return out
}
