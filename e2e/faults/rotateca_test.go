package faults

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/client/clientset/versioned"
	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/internal/contract"
)

// TestMatrixCARotation gives the CAs of etcd and of the servers of an aggregated registry new keys
// while clients write through the host: no request fails, and what the old key of etcd has
// signed opens no member.
func TestMatrixCARotation(t *testing.T) {
	e := framework.New(t).WithOperator()
	registry := e.Sample("aggregated-ha.yaml")
	e.Install(registry)
	e.WaitReady(registry)
	old := keyPair(t, e, registry.Name+contract.EtcdClientSuffix)
	load := framework.StartLoad(t, e.RegistryConfig(registry), rate)
	load.Settle(t)
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) {
		spec.TLS.Rotation.Etcd, spec.TLS.Rotation.Serving = 2, 2
	})
	rotated(t, e, registry, contract.EtcdCASuffix)
	rotated(t, e, registry, contract.ServingCASuffix)
	e.WaitReady(registry)
	load.Settle(t)
	report := load.Stop()
	t.Logf("the CAs of etcd and of the servers were rotated: %s", report)
	e.Unharmed(registry, report)
	now := keyPair(t, e, registry.Name+contract.EtcdClientSuffix)
	for _, pod := range podsOf(t, e, registry) {
		if pod.Labels[operatorv1alpha1.LabelComponent] != "etcd" {
			continue
		}
		for _, port := range []int{2379, 2380} {
			if err := opens(t, e, pod.Name, port, old); err == nil {
				t.Errorf("%s, port %d: a certificate of the previous CA still opens it", pod.Name, port)
			}
			if err := opens(t, e, pod.Name, port, now); err != nil {
				t.Errorf("%s, port %d: %v", pod.Name, port, err)
			}
		}
	}
}

// TestMatrixCARotationOfClients gives the CAs of an independent registry's clients and servers new
// keys: clients that were given copies are served until the previous CA is dropped by their
// administrator's word, and neither the old certificate nor the old CA is of use after that.
func TestMatrixCARotationOfClients(t *testing.T) {
	e := framework.New(t).WithOperator()
	registry := independent(e, 1)
	e.Install(registry)
	e.WaitReady(registry)
	before := e.RegistryConfig(registry)
	load := framework.StartLoad(t, before, rate)
	load.Settle(t)
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) {
		spec.TLS.Rotation.Serving, spec.TLS.Rotation.Client = 2, 2
	})
	e.WaitCondition(registry, operatorv1alpha1.ConditionCertificatesReady, metav1.ConditionTrue, operatorv1alpha1.ReasonDropPending,
		"spec.tls.rotation.drop.serving to 1", "spec.tls.rotation.drop.client to 1")
	if err := lists(t, unshared(t, before)); err != nil {
		t.Errorf("a client that connects with what it was given before: %v", err)
	}
	load.Settle(t)
	report := load.Stop()
	t.Logf("the CAs of clients and servers were rotated as far as without a word: %s", report)
	e.Unharmed(registry, report)
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) {
		spec.TLS.Rotation.Drop = operatorv1alpha1.RotationDrop{Serving: 1, Client: 1}
	})
	rotated(t, e, registry, contract.ServingCASuffix)
	rotated(t, e, registry, contract.ClientCASuffix)
	e.WaitReady(registry)
	after := e.RegistryConfig(registry)
	if err := lists(t, unshared(t, after)); err != nil {
		t.Errorf("a client with the new kubeconfig: %v", err)
	}
	oldCertificate := unshared(t, after)
	oldCertificate.CertData, oldCertificate.KeyData = before.CertData, before.KeyData
	if err := lists(t, oldCertificate); !apierrors.IsUnauthorized(err) {
		t.Errorf("a certificate of the previous CA of clients: %v", err)
	}
	oldCA := unshared(t, after)
	oldCA.CAData = before.CAData
	var unknown x509.UnknownAuthorityError
	if err := lists(t, oldCA); !errors.As(err, &unknown) {
		t.Errorf("a client that trusts the previous CA of the servers alone: %v", err)
	}
}

// rotated waits until the second generation of a CA signs, and no other one is there.
func rotated(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry, suffix string) {
	t.Helper()
	first := registry.Name + suffix
	e.Eventually("the second generation of "+first+" to be the only one", func(ctx context.Context) error {
		if err := e.Get(ctx, registry.Name, registry); err != nil {
			return err
		}
		use := operatorv1alpha1.CAUse("")
		for _, c := range registry.Status.Certificates {
			if c.Name == contract.Generation(first, 2) && c.Generation == 2 {
				use = c.Use
			}
			if c.Name == first {
				return fmt.Errorf("the first one is still there: %+v, operation %+v", c, registry.Status.Operation)
			}
		}
		if use != operatorv1alpha1.CASigning {
			return fmt.Errorf("it is %q, operation %+v", use, registry.Status.Operation)
		}
		if err := e.Get(ctx, first, &corev1.Secret{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the Secret with the first key is still there: %w", err)
		}
		return nil
	})
}

// keyPair reads a certificate and its key from a Secret.
func keyPair(t *testing.T, e *framework.Env, name string) tls.Certificate {
	t.Helper()
	secret := &corev1.Secret{}
	if err := e.Get(t.Context(), name, secret); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// opens returns nil when a pod accepts a client certificate. In TLS 1.3 a server refuses it
// after the handshake, with the first answer; one that accepts it waits for a request.
func opens(t *testing.T, e *framework.Env, pod string, port int, pair tls.Certificate) error {
	t.Helper()
	return e.Forward(t.Context(), e.Namespace, pod, port, func(address string) error {
		dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}} //nolint:gosec // whom the server lets in is what is asked
		connection, err := dialer.DialContext(t.Context(), "tcp", address)
		if err != nil {
			return err
		}
		defer func() { _ = connection.Close() }()
		if err := connection.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
			return err
		}
		_, err = connection.Read(make([]byte, 1))
		if errors.Is(err, os.ErrDeadlineExceeded) || err == nil {
			return nil
		}
		var network net.Error
		if errors.As(err, &network) || errors.Is(err, io.EOF) {
			return err
		}
		return fmt.Errorf("unexpected: %w", err)
	})
}

// unshared returns a configuration whose clients share no connection with others: the content of
// its files, and a dialer of its own.
func unshared(t *testing.T, config *rest.Config) *rest.Config {
	t.Helper()
	out := rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(out); err != nil {
		t.Fatal(err)
	}
	out.CAFile, out.CertFile, out.KeyFile = "", "", ""
	out.Dial = (&net.Dialer{Timeout: 10 * time.Second}).DialContext
	return out
}

// lists returns the error of a list of clusters.
func lists(t *testing.T, config *rest.Config) error {
	t.Helper()
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = clients.ClusterregistryV1alpha1().Clusters().List(t.Context(), metav1.ListOptions{Limit: 1})
	return err
}
