package reliability

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
)

// fragment has the files of all members be largely free: each value of a key takes the place
// of the one before.
func (s *stage) fragment() {
	s.t.Helper()
	const values, size = 160, 1 << 20
	s.etcd(s.registry.Status.Etcd.Members[0].Name, func(ctx context.Context, client *clientv3.Client) error {
		value, revision := strings.Repeat("x", size), int64(0)
		for range values {
			answer, err := client.Put(ctx, "/fragments", value)
			if err != nil {
				return err
			}
			revision = answer.Header.Revision
		}
		if _, err := client.Put(ctx, "/fragments", "little"); err != nil {
			return err
		}
		_, err := client.Compact(ctx, revision, clientv3.WithCompactPhysical())
		return err
	})
}

// defragmented waits until all members whose files were largely free are defragmented, but for
// those that are no longer there: the operation ends when a member is to be replaced, and begins
// again for the others.
func (s *stage) defragmented() {
	s.t.Helper()
	s.e.Eventually("all members to be defragmented", func(ctx context.Context) error {
		s.poke(ctx)
		if err := s.e.Get(ctx, s.registry.Name, s.registry); err != nil {
			return err
		}
		for _, member := range s.registry.Status.Etcd.Members {
			if s.fragmented[member.ID] && member.DefragmentedTime == nil {
				return fmt.Errorf("%s is not", member.Name)
			}
		}
		return nil
	})
}

// etcd uses a member as the operator does, with the certificate of the registry's servers.
func (s *stage) etcd(member string, use func(context.Context, *clientv3.Client) error) {
	s.t.Helper()
	var secret corev1.Secret
	if err := s.e.Get(s.t.Context(), s.registry.Name+"-etcd-client", &secret); err != nil {
		s.t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	roots := x509.NewCertPool()
	if err != nil || !roots.AppendCertsFromPEM(secret.Data["ca.crt"]) {
		s.t.Fatalf("Secret %s is not what opens etcd: %v", secret.Name, err)
	}
	err = s.e.Forward(s.t.Context(), s.e.Namespace, member, 2379, func(address string) error {
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{"https://" + address}, DialTimeout: time.Minute, Logger: zap.NewNop(),
			TLS: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS12}})
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Minute)
		defer cancel()
		return errors.Join(use(ctx, client), client.Close())
	})
	if err != nil {
		s.t.Fatalf("use etcd member %s: %v", member, err)
	}
}
