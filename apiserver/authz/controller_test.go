package authz

import (
	"bytes"
	"os"
	"reflect"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// TestShippedRoles expects people and the controller to have the same rights in a registry in
// both modes: by bootstrap roles, and by the ClusterRoles that the operator ships.
func TestShippedRoles(t *testing.T) {
	shipped := map[string][]rbacv1.PolicyRule{}
	for _, file := range []string{"controller", "users"} {
		content, err := os.ReadFile("../../manifests/operator/" + file + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range bytes.Split(content, []byte("\n---\n")) {
			role := rbacv1.ClusterRole{}
			if err := yaml.UnmarshalStrict(document, &role); err != nil {
				t.Fatal(err)
			}
			shipped[role.Name] = role.Rules
		}
	}
	compared := 0
	for _, role := range bootstrapRoles() {
		if rules, ok := shipped[role.Name]; ok {
			compared++
			if !reflect.DeepEqual(role.Rules, rules) {
				t.Errorf("%s permits %v in an independent registry, and %v in an aggregated one", role.Name, role.Rules, rules)
			}
		}
	}
	if compared != 10 {
		t.Errorf("%d roles are in both, want five for people, and those of five functions", compared)
	}
}
