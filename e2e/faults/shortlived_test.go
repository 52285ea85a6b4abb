package faults

import (
	"context"
	"fmt"
	"testing"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/internal/contract"
)

// renewals is how often each certificate is renewed: for about an hour, every five minutes.
const renewals = 12

// TestMatrixShortLivedCertificates has a registry whose certificates are valid for an hour, the
// least that there is, and are renewed every five minutes, for an hour under load: no request
// fails, and nothing is restarted.
func TestMatrixShortLivedCertificates(t *testing.T) {
	e := framework.New(t).WithOperator()
	registry := e.Sample("aggregated-ha.yaml")
	registry.Spec.TLS.Duration, registry.Spec.TLS.RenewBefore = &metav1.Duration{Duration: time.Hour}, &metav1.Duration{Duration: 55 * time.Minute}
	e.Install(registry)
	e.WaitReady(registry)
	pods := podsOf(t, e, registry)
	load := framework.StartLoad(t, e.RegistryConfig(registry), rate)
	load.Settle(t)
	leaves := []string{contract.EtcdServerSuffix, contract.EtcdPeerSuffix, contract.EtcdClientSuffix, contract.ServingSuffix}
	first := map[string]int{}
	for _, leaf := range leaves {
		c := &certmanagerv1.Certificate{}
		if err := e.Get(t.Context(), registry.Name+leaf, c); err != nil {
			t.Fatal(err)
		}
		first[leaf] = revision(c)
	}
	for n := 1; n <= renewals; n++ {
		for _, leaf := range leaves {
			e.Eventually(fmt.Sprintf("renewal %d of %s", n, registry.Name+leaf), func(ctx context.Context) error {
				c := &certmanagerv1.Certificate{}
				if err := e.Get(ctx, registry.Name+leaf, c); err != nil {
					return err
				}
				if now := revision(c); now < first[leaf]+n {
					due := "is not known"
					if at := c.Status.RenewalTime; at != nil {
						due = fmt.Sprintf("is in %d minutes", max(0, int(time.Until(at.Time).Minutes())))
					}
					return fmt.Errorf("it is revision %d, began as %d, and its renewal %s", now, first[leaf], due)
				}
				return nil
			})
		}
	}
	e.WaitReady(registry)
	load.Settle(t)
	report := load.Stop()
	t.Logf("each certificate was renewed %d times: %s", renewals, report)
	e.Unharmed(registry, report)
	for uid, pod := range podsOf(t, e, registry) {
		if before, is := pods[uid]; !is || restarts(pod) != restarts(before) {
			t.Errorf("pod %s was restarted or is another one", pod.Name)
		}
	}
}

// revision returns how often a certificate was issued, 0 where that is not known.
func revision(c *certmanagerv1.Certificate) int {
	if c.Status.Revision == nil {
		return 0
	}
	return *c.Status.Revision
}
