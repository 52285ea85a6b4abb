package issuance

import (
	"context"
	"sync"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/operator/informers"
)

// CertManager knows whether cert-manager is installed, which may happen after the
// operator was started. Only then can its objects be watched.
type CertManager struct {
	// Watch has the operator watch the objects of cert-manager. It is called once they
	// can be watched, again when it failed, and then no more.
	Watch func() error

	mu       sync.Mutex
	watching bool
}

// Installed reports whether the host serves cert-manager's API, and watches it
// from then on.
func (c *CertManager) Installed(ctx context.Context, reader client.Client) (bool, error) {
	crd := informers.CertificatesCRD()
	err := reader.Get(ctx, client.ObjectKeyFromObject(crd), crd)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	kind := certmanagerv1.SchemeGroupVersion.WithKind(certmanagerv1.CertificateKind)
	_, err = reader.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return false, nil // not served yet
	}
	if err != nil {
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watching {
		return true, nil
	}
	if err := c.Watch(); err != nil {
		return false, err
	}
	c.watching = true
	return true, nil
}
