package main

import (
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// operatorRole is the name of the roles of the operator itself. OLM makes roles
// from their rules, under names of its own.
const operatorRole = "clusterregistry:operator"

// rights are what the operator may do.
type rights struct {
	// cluster is what it may do everywhere.
	cluster []rbacv1.PolicyRule
	// own is what it may do in its own namespace.
	own []rbacv1.PolicyRule
}

// rightsOf sorts the operator's rules as a ClusterServiceVersion has them. OLM gives
// an operator that watches all namespaces both kinds everywhere; what it needs in
// kube-system alone has no other place than among the first. The names in the rules
// still limit what can be bound.
func rightsOf(objects []*unstructured.Unstructured) (rights, error) {
	var out rights
	own := ""
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			own = object.GetNamespace()
		}
	}
	for _, object := range objects {
		if object.GetName() != operatorRole || (object.GetKind() != "Role" && object.GetKind() != "ClusterRole") {
			continue
		}
		var role rbacv1.Role // both have the same fields
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
			return out, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
		if object.GetKind() == "Role" && object.GetNamespace() == own {
			out.own = append(out.own, role.Rules...)
		} else {
			out.cluster = append(out.cluster, role.Rules...)
		}
	}
	if len(out.cluster) == 0 || len(out.own) == 0 {
		return out, fmt.Errorf("no ClusterRole or no Role %s is among the operator's objects", operatorRole)
	}
	return out, nil
}
