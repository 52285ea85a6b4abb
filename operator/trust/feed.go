package trust

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/operand"
)

// feedFollows is how long after it was issued the controller shows a certificate at the latest: a
// node takes up to two minutes to bring a Secret to a pod.
const feedFollows = 3 * time.Minute

// Copied reports whether clients and programs have copies of the servers' CA: those of an independent
// registry, and those that request the feed of an aggregated one.
func Copied(registry *operatorv1alpha1.ClusterRegistry) bool {
	return registry.Spec.Mode == operatorv1alpha1.ModeIndependent || feeds(registry)
}

// feeds reports whether the controller answers programs that request clusters.
func feeds(registry *operatorv1alpha1.ClusterRegistry) bool {
	return registry.Spec.Mode != operatorv1alpha1.ModeIndependent && registry.Spec.Controllers != nil && registry.Spec.Controllers.Feed != nil
}

// FeedShows says what is to be waited for until the controller shows a certificate that a CA has
// signed to those who ask its feed, "" for nothing: who trusts that CA alone is answered then.
func FeedShows(ctx context.Context, o *operand.Objects, ca Authority) (waits string, err error) {
	if !feeds(o.Registry) {
		return "", nil
	}
	name := o.Name(contract.ControllerSuffix)
	secret, err := o.Secret(ctx, name)
	if err != nil || secret == nil || apply.Owner(secret) != o.Owner() {
		return "", err // no one is answered, or by what is someone else's
	}
	content := secret.Data[corev1.TLSCertKey]
	if len(Parse(content)) == 0 {
		return "", nil
	}
	if !SignedBy(content, ca.Current) {
		return fmt.Sprintf("waiting for cert-manager to issue Certificate %s by the CA in %s", name, ca.Source), nil
	}
	if shown := Parse(content)[0].NotBefore.Add(feedFollows); o.Now.Before(shown) {
		return fmt.Sprintf("waiting until the controller shows the certificate in Secret %s to those who ask its feed, which it does by %s", name, shown.UTC().Format(time.RFC3339)), nil
	}
	return "", nil
}
