package main

import (
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/cli/command/commandtest"
)

// teamHost is the host cluster of the sessions about teams: its registry tells sets apart.
var teamHost = strings.Replace(sessionHost, "mode: Aggregated", "mode: Aggregated\n  server: {authorization: {visibility: ClusterSets}}", 1)

// teamRoles are what a team has of the set payments, and the gate.
var teamRoles = []string{`
metadata: {name: "clusterregistry:viewer"}
rules: [{apiGroups: [clusterregistry.k8s.io], resources: [clusters], verbs: [get, list, watch]}]
`, `
metadata: {name: "clusterregistry:set:payments:viewer"}
rules:
- {apiGroups: [clusterregistry.k8s.io], resources: [clustersets/clusters], resourceNames: [payments], verbs: [get]}
- {apiGroups: [clusterregistry.k8s.io], resources: [clustersets], resourceNames: [payments], verbs: [get]}
`}

// teamOf puts the clusters of an environment into sets, east into payments and west into
// search, and returns the client of a host cluster in which a team has its roles, and which
// reviews what the team may do.
func teamOf(t *testing.T, env *commandtest.Env) *kubernetesfake.Clientset {
	t.Helper()
	for cluster, set := range map[string]string{"east": "payments", "west": "search"} {
		if err := env.Clusters.Tracker().Add(&v1beta1.ClusterSet{ObjectMeta: metav1.ObjectMeta{Name: set}}); err != nil {
			t.Fatal(err)
		}
		resource := v1beta1.SchemeGroupVersion.WithResource("clusters")
		found, err := env.Clusters.Tracker().Get(resource, "", cluster)
		if err != nil {
			t.Fatal(err)
		}
		moved := found.(*v1beta1.Cluster).DeepCopy()
		moved.Spec.ClusterSet = set
		if err := env.Clusters.Tracker().Update(resource, moved, ""); err != nil {
			t.Fatal(err)
		}
	}
	var objects []runtime.Object
	var rules []rbacv1.PolicyRule
	for i, text := range teamRoles {
		role := &rbacv1.ClusterRole{}
		if err := yaml.UnmarshalStrict([]byte(text), role); err != nil {
			t.Fatal(err)
		}
		rules = append(rules, role.Rules...)
		name := []string{"clusterregistry:gate:viewer:group:team-payments", "clusterregistry:set:payments:viewer:group:team-payments"}[i]
		objects = append(objects, role, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{Name: role.Name}, Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, Name: "team-payments"}},
		})
	}
	client := kubernetesfake.NewClientset(objects...)
	allowed := func(asked *authorizationv1.ResourceAttributes) bool {
		return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
			resource := strings.TrimSuffix(asked.Resource+"/"+asked.Subresource, "/")
			return slices.Contains(rule.Verbs, asked.Verb) && slices.Contains(rule.Resources, resource) && (rule.ResourceNames == nil || slices.Contains(rule.ResourceNames, asked.Name))
		})
	}
	client.PrependReactor("create", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		object := action.(clienttesting.CreateAction).GetObject().DeepCopyObject()
		switch review := object.(type) {
		case *authorizationv1.SubjectAccessReview:
			review.Status.Allowed = allowed(review.Spec.ResourceAttributes)
		case *authorizationv1.SelfSubjectAccessReview:
			review.Status.Allowed = allowed(review.Spec.ResourceAttributes)
		case *authenticationv1.SelfSubjectReview:
			review.Status.UserInfo = authenticationv1.UserInfo{Username: "ann", Groups: []string{"team-payments", "system:authenticated"}}
		}
		return true, object, nil
	})
	return client
}
