package trust

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/operand"
)

// feedFollows is how long after it was issued the controller shows a certificate at the latest: a
// node takes up to two minutes to bring a Secret to a pod.
const feedFollows = 3 * time.Minute

// FeedShows says what is to be waited for until the controller shows a certificate that a CA has
// signed to those who ask its feed, "" for nothing: who trusts that CA alone is answered then.
func FeedShows(ctx context.Context, o *operand.Objects, ca Authority) (waits string, err error) {
	if o.Registry.Spec.Mode == operatorv1alpha1.ModeIndependent || o.Registry.Spec.Controllers == nil || o.Registry.Spec.Controllers.Feed == nil {
		return "", nil
	}
	name := o.Name(contract.ControllerSuffix)
	content, err := o.SecretValue(ctx, name, corev1.TLSCertKey)
	if err != nil || len(Parse(content)) == 0 {
		return "", err // no one is answered
	}
	if !SignedBy(content, ca.Current) {
		return fmt.Sprintf("waiting for cert-manager to issue Certificate %s by the CA in %s", name, ca.Source), nil
	}
	if shown := Parse(content)[0].NotBefore.Add(feedFollows); o.Now.Before(shown) {
		return fmt.Sprintf("waiting until the controller shows the certificate in Secret %s to those who ask its feed, which it does by %s", name, shown.UTC().Format(time.RFC3339)), nil
	}
	return "", nil
}
