package integration

import (
	"context"
	"errors"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/e2e/framework"
)

// testAdmission makes a policy of the host and expects the registry to obey it.
func testAdmission(t *testing.T, host *framework.Host) {
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "clusters-have-an-owner"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: new(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"clusterregistry.k8s.io"}, APIVersions: []string{"*"}, Resources: []string{"clusters"}},
			}}}},
			Validations: []admissionregistrationv1.Validation{{Expression: "has(object.metadata.labels) && 'owner' in object.metadata.labels", Message: "every cluster has an owner label"}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec:       admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: policy.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}},
	}
	framework.Create(t, framework.HostClient(t, host.Config), policy, binding)
	clusters := clustersOf(t, host.Config)
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	// The server learns of a policy through a watch.
	framework.Eventually(t, "the policy to be obeyed", func(ctx context.Context) error {
		_, err := clusters.Create(ctx, cluster("ownerless", nil), dryRun)
		if err == nil {
			return errors.New("a cluster without an owner is admitted")
		}
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "every cluster has an owner label") {
			return err
		}
		return nil
	})
	if _, err := clusters.Create(t.Context(), cluster("owned", map[string]string{"owner": "team-a"}), dryRun); err != nil {
		t.Errorf("a cluster with an owner: %v", err)
	}
}
