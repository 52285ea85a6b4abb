package members

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

// access reads the key pair that opens etcd.
func (s *Stage) access(ctx context.Context) (etcd.Access, verdict.Verdict) {
	name := render.EtcdClientSecret(s.Registry)
	secret, err := s.Secret(ctx, name)
	if err != nil {
		return etcd.Access{}, verdict.Failed(err)
	}
	if secret == nil {
		return etcd.Access{}, verdict.Waiting(operatorv1alpha1.ReasonSecretInvalid, "Secret %s with the etcd client certificate and key does not exist", name).In(verdict.Soon)
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return etcd.Access{}, verdict.Waiting(operatorv1alpha1.ReasonSecretInvalid, "Secret %s: tls.crt and tls.key are not a valid PEM key pair: %s", name, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(s.Authorities.EtcdClients().Trusted()) {
		return etcd.Access{}, verdict.Waiting(operatorv1alpha1.ReasonSecretInvalid, "Secret %s: ca.crt contains no PEM CA certificate to verify etcd with", name)
	}
	return etcd.Access{Endpoints: map[string]string{}, Addresses: map[string]string{}, TLS: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, MinVersion: tls.VersionTLS12}, Dial: s.Dial}, done
}

// reportEtcd writes the status. What a member said before stays as long as it
// says nothing.
func (s *Stage) reportEtcd(state etcd.State) {
	status := operatorv1alpha1.EtcdStatus{Ready: fmt.Sprintf("%d/%d", state.Serving(), len(state.Members)), ClusterID: s.Before.Etcd.ClusterID, VolumeSize: s.Volumes.Smallest(), Compaction: s.Before.Etcd.Compaction, Newest: s.Before.Etcd.Newest}
	said := map[string]operatorv1alpha1.EtcdMember{}
	for _, member := range s.Before.Etcd.Members {
		said[member.Name] = member
	}
	versions := map[string]bool{}
	for _, member := range state.Members {
		m := said[member.Name]
		m.Name, m.Ready = member.Name, member.Err == nil
		if member.ID != "" {
			m.ID, m.Version, m.Leader, m.Learner = member.ID, "v"+member.Version, member.Leads(), member.Learner
			s.noteSizes(&m, member)
		}
		if status.ClusterID == "" && member.Err == nil {
			status.ClusterID = member.ClusterID
		}
		versions[m.Version] = true
		status.Members = append(status.Members, m)
	}
	s.Registry.Status.Etcd = status
	if len(versions) == 1 && status.Members[0].Version != "" {
		s.Registry.Status.EtcdVersion = status.Members[0].Version
	}
}
