package framework

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmetav1 "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// InstallCertManagerAPI applies cert-manager's CRDs, of the version that this
// module names.
func InstallCertManagerAPI(t *testing.T, kubectl *Kubectl) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager")
	cmd.Dir = Root(t)
	dir, err := cmd.Output()
	if err != nil {
		t.Fatalf("find cert-manager's module: %v", err)
	}
	for _, kind := range []string{"certificates", "issuers"} {
		kubectl.Run("apply", "--server-side", "-f", filepath.Join(strings.TrimSpace(string(dir)), "deploy", "crds", "cert-manager.io_"+kind+".yaml"))
	}
}

// CertManager plays cert-manager's part in one namespace: it issues what
// Certificates want, from CAs of its own. An Issuer is known by its name only,
// which is that of its CA's Secret.
type CertManager struct {
	t           *testing.T
	client      client.Client
	namespace   string
	authorities map[string]*Authority
}

// NewCertManager returns one that has issued nothing.
func NewCertManager(t *testing.T, c client.Client, namespace string) *CertManager {
	return &CertManager{t: t, client: c, namespace: namespace, authorities: map[string]*Authority{}}
}

// Issue issues what is not issued yet. Errors tell of what is not there yet or was
// changed meanwhile, and are worth another try.
func (c *CertManager) Issue(ctx context.Context) error {
	list := &certmanagerv1.CertificateList{}
	if err := c.client.List(ctx, list, client.InNamespace(c.namespace)); err != nil {
		return err
	}
	var errs []error
	for i := range list.Items {
		certificate := &list.Items[i]
		if certificate.DeletionTimestamp != nil || issued(certificate) {
			continue
		}
		if err := c.issue(ctx, certificate); err != nil {
			errs = append(errs, fmt.Errorf("issue %s: %w", certificate.Name, err))
		}
	}
	return errors.Join(errs...)
}

func issued(certificate *certmanagerv1.Certificate) bool {
	for _, condition := range certificate.Status.Conditions {
		if condition.Type == certmanagerv1.CertificateConditionReady && condition.ObservedGeneration == certificate.Generation {
			return true
		}
	}
	return false
}

func (c *CertManager) issue(ctx context.Context, certificate *certmanagerv1.Certificate) error {
	pair, signer, err := c.sign(certificate)
	if err != nil {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: certificate.Spec.SecretName}}
	if template := certificate.Spec.SecretTemplate; template != nil {
		secret.Labels = template.Labels
	}
	secret.Type, secret.Data = corev1.SecretTypeTLS, map[string][]byte{cmmetav1.TLSCAKey: signer.PEM}
	for key, file := range map[string]string{corev1.TLSCertKey: pair.Cert, corev1.TLSPrivateKeyKey: pair.Key} {
		if secret.Data[key], err = os.ReadFile(file); err != nil {
			return err
		}
	}
	if err := c.client.Create(ctx, secret); apierrors.IsAlreadyExists(err) {
		err = c.client.Update(ctx, secret)
		if err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	valid := 24 * time.Hour
	if certificate.Spec.Duration != nil {
		valid = certificate.Spec.Duration.Duration
	}
	now := time.Now()
	certificate.Status.NotAfter, certificate.Status.RenewalTime = new(metav1.NewTime(now.Add(valid))), new(metav1.NewTime(now.Add(valid*2/3)))
	certificate.Status.Conditions = []certmanagerv1.CertificateCondition{{Type: certmanagerv1.CertificateConditionReady, Status: cmmetav1.ConditionTrue,
		Reason: "Ready", Message: "issued by the test", ObservedGeneration: certificate.Generation, LastTransitionTime: new(metav1.NewTime(now))}}
	return c.client.Status().Update(ctx, certificate)
}

// sign makes a certificate. A CA stays what it was: its key is never rotated.
func (c *CertManager) sign(certificate *certmanagerv1.Certificate) (Pair, *Authority, error) {
	if certificate.Spec.IsCA {
		a := c.authorities[certificate.Spec.SecretName]
		if a == nil {
			a = NewAuthority(c.t, certificate.Spec.CommonName)
			c.authorities[certificate.Spec.SecretName] = a
		}
		return Pair{Cert: a.File, Key: filepath.Join(filepath.Dir(a.File), "tls.key")}, a, nil
	}
	a := c.authorities[certificate.Spec.IssuerRef.Name]
	if a == nil {
		return Pair{}, nil, fmt.Errorf("there is no CA %s yet", certificate.Spec.IssuerRef.Name)
	}
	var groups []string
	if subject := certificate.Spec.Subject; subject != nil {
		groups = subject.Organizations
	}
	return a.Issue(certificate.Spec.CommonName, groups, append(certificate.Spec.DNSNames, certificate.Spec.IPAddresses...)...), a, nil
}
