package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// testFastEdits changes a registry that is ready, again and again. Whoever waits
// for Ready as "kubectl wait" does, which compares the condition's generation with
// the object's, must not be told of what was there before.
func testFastEdits(t *testing.T, s *site) {
	s.apply("fleet", "{mode: Independent, server: {service: {hostnames: [registry.example]}}}")
	s.ready("fleet")
	for i := range 10 {
		argument, hostname := fmt.Sprintf("--v=%d", i), fmt.Sprintf("registry-%d.example", i)
		s.change(func(r *operatorv1alpha1.ClusterRegistry) {
			r.Spec.Server.ExtraArgs = map[string]operatorv1alpha1.Argument{"v": operatorv1alpha1.Argument(fmt.Sprint(i))}
			r.Spec.Server.Service.Hostnames = append(r.Spec.Server.Service.Hostnames[:1:1], operatorv1alpha1.Hostname(hostname))
		})
		s.eventually("it to be ready as it is wanted now", func(ctx context.Context) error {
			r := &operatorv1alpha1.ClusterRegistry{}
			if err := s.Get(ctx, s.key("fleet"), r); err != nil {
				return err
			}
			if c := meta.FindStatusCondition(r.Status.Conditions, operatorv1alpha1.ConditionReady); c.Status != metav1.ConditionTrue || c.ObservedGeneration != r.Generation {
				return fmt.Errorf("generation %d: %s", r.Generation, shown(r.Status.Conditions))
			}
			deployment, certificate := &appsv1.Deployment{}, &certmanagerv1.Certificate{}
			s.get("fleet-server", deployment)
			s.get("fleet-serving", certificate)
			if args := deployment.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, argument) || deployment.Status.ObservedGeneration != deployment.Generation {
				t.Errorf("it is ready for generation %d, and servers run with %q (generation %d of %d)", r.Generation, args, deployment.Status.ObservedGeneration, deployment.Generation)
			}
			if !slices.Contains(certificate.Spec.DNSNames, hostname) || len(certificate.Status.Conditions) == 0 || certificate.Status.Conditions[0].ObservedGeneration != certificate.Generation {
				t.Errorf("it is ready for generation %d, and the certificate is for %q (generation %d): %+v", r.Generation, certificate.Spec.DNSNames, certificate.Generation, certificate.Status.Conditions)
			}
			return nil
		})
	}
}
