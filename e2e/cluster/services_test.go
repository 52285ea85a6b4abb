package cluster

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmetav1 "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/e2e/framework"
)

func TestCertManagerIssues(t *testing.T) {
	e := framework.New(t)
	if err := certmanagerv1.AddToScheme(e.Client.Scheme()); err != nil {
		t.Fatal(err)
	}
	issuer := func(name string, config certmanagerv1.IssuerConfig) *certmanagerv1.Issuer {
		return &certmanagerv1.Issuer{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: certmanagerv1.IssuerSpec{IssuerConfig: config}}
	}
	certificate := func(name, issuer string, spec certmanagerv1.CertificateSpec) *certmanagerv1.Certificate {
		spec.SecretName, spec.IssuerRef = name, cmmetav1.IssuerReference{Name: issuer}
		spec.PrivateKey = &certmanagerv1.CertificatePrivateKey{Algorithm: certmanagerv1.ECDSAKeyAlgorithm}
		return &certmanagerv1.Certificate{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	}
	e.Create(
		issuer("self-signed", certmanagerv1.IssuerConfig{SelfSigned: &certmanagerv1.SelfSignedIssuer{}}),
		certificate("ca", "self-signed", certmanagerv1.CertificateSpec{IsCA: true, CommonName: "test CA"}),
		issuer("ca", certmanagerv1.IssuerConfig{CA: &certmanagerv1.CAIssuer{SecretName: "ca"}}),
		certificate("leaf", "ca", certmanagerv1.CertificateSpec{DNSNames: []string{"store.example"}}),
	)
	e.Eventually("the leaf Certificate to be ready", func(ctx context.Context) error {
		var leaf certmanagerv1.Certificate
		if err := e.Get(ctx, "leaf", &leaf); err != nil {
			return err
		}
		for _, c := range leaf.Status.Conditions {
			if c.Type == certmanagerv1.CertificateConditionReady && c.Status == cmmetav1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %v", leaf.Status.Conditions)
	})
	var ca, leaf corev1.Secret
	if err := errors.Join(e.Get(t.Context(), "ca", &ca), e.Get(t.Context(), "leaf", &leaf)); err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca.Data[corev1.TLSCertKey]) {
		t.Fatal("the CA's Secret has no certificate")
	}
	block, _ := pem.Decode(leaf.Data[corev1.TLSCertKey])
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parsed.Verify(x509.VerifyOptions{Roots: roots, DNSName: "store.example"}); err != nil {
		t.Error(err)
	}

	t.Log("cert-manager's webhook refuses nonsense")
	bad := certificate("bad", "ca", certmanagerv1.CertificateSpec{DNSNames: []string{"store.example"}})
	bad.Spec.SecretName = ""
	bad.Namespace = e.Namespace
	if err := e.Client.Create(t.Context(), bad); err == nil || !strings.Contains(err.Error(), "secretName") {
		t.Errorf("a Certificate without a Secret's name gave %v", err)
	}
}

func TestPodSecurityIsEnforced(t *testing.T) {
	e := framework.New(t)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "privileged", Namespace: e.Namespace},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: framework.FindImage(t, "etcd").Reference, SecurityContext: &corev1.SecurityContext{Privileged: new(true)}}}},
	}
	if err := e.Client.Create(t.Context(), pod); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "PodSecurity") {
		t.Errorf("a privileged pod in a restricted namespace gave %v", err)
	}
}

func TestImagesOfThisRepositoryRun(t *testing.T) {
	e := framework.New(t)
	for _, name := range []string{"clusterregistry-operator", "clusterregistry-apiserver"} {
		image := framework.FindImage(t, name)
		out := e.Run(name, image.Reference, "/usr/local/bin/"+name, "--version")
		if !strings.Contains(out, image.Tag) || !strings.Contains(out, image.Commit) {
			t.Errorf("%s --version says %q, want %s and commit %s", name, out, image.Tag, image.Commit)
		}
	}
	for i, image := range framework.Images(t) {
		if image.Name != "etcd" {
			continue
		}
		for _, tool := range [][]string{{"etcd", "--version"}, {"etcdctl", "version"}, {"etcdutl", "version"}} {
			out := e.Run(fmt.Sprintf("%s-%d", tool[0], i), image.Reference, tool...)
			if !strings.Contains(out, strings.TrimPrefix(image.Tag, "v")) {
				t.Errorf("%s of %s says %q", tool[0], image.Reference, out)
			}
		}
	}
}
