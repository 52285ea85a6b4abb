package render

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// granted is what the operator, or a server that it binds a role to, may do.
func granted(t *testing.T) map[string][]rbacv1.PolicyRule {
	t.Helper()
	objects, out := published(t), map[string][]rbacv1.PolicyRule{}
	for _, role := range typed[rbacv1.ClusterRole](t, objects, "ClusterRole") {
		if role.AggregationRule != nil {
			t.Errorf("ClusterRole %s takes in the rules of others", role.Name)
		}
		out[role.Name] = role.Rules
	}
	for _, role := range typed[rbacv1.Role](t, objects, "Role") {
		out[role.Namespace+"/"+role.Name] = role.Rules
	}
	return out
}

func TestNoWildcards(t *testing.T) {
	for role, rules := range granted(t) {
		for _, rule := range rules {
			for _, words := range [][]string{rule.Verbs, rule.APIGroups, rule.Resources, rule.ResourceNames, rule.NonResourceURLs} {
				if strings.Contains(strings.Join(words, " "), "*") {
					t.Errorf("%s has a wildcard: %v", role, rule)
				}
			}
		}
	}
}

// TestDangerousRules pins what could be turned into the powers of others: each
// verb of these resources, and the names that it is limited to.
func TestDangerousRules(t *testing.T) {
	const (
		everywhere = "clusterregistry:operator"
		kubeSystem = "kube-system/clusterregistry:operator"
		controller = "clusterregistry:controller"
	)
	want := map[string]string{
		everywhere + " secrets":             "get,create,patch,delete []",
		everywhere + " clusterroles":        "bind [system:auth-delegator clusterregistry:admission-reader clusterregistry:controller clusterregistry:controller:host clusterregistry:controller:metrics clusterregistry:controller:health clusterregistry:controller:register-host clusterregistry:controller:cluster-api clusterregistry:controller:cluster-api:namespace clusterregistry:controller:exports clusterregistry:controller:exports:cluster-profiles clusterregistry:controller:exports:secrets clusterregistry:controller:exports:config-maps clusterregistry:controller:cluster-selections clusterregistry:controller:cluster-selections:namespace clusterregistry:controller:feed]",
		everywhere + " clusterrolebindings": "get,list,watch,create,patch,delete []",
		everywhere + " rolebindings":        "get,list,watch,create,patch,delete []",
		everywhere + " leases":              "get,list,watch,create,patch,delete []",
		kubeSystem + " roles":               "bind [extension-apiserver-authentication-reader]",
		kubeSystem + " rolebindings":        "get,list,watch,create,patch,delete []",
		everywhere + " pods":                "get,list,watch []",
		everywhere + " pods/eviction":       "create []",
		everywhere + " serviceaccounts":     "get,list,watch,create,patch,delete []",
		everywhere + " tokenreviews":        "create []",
		everywhere + " clusters/status":     "patch []",

		controller + " leases":                   "get,update,patch []",
		controller + ":host nodes":               "list []",
		controller + ":host namespaces":          "get [kube-system]",
		controller + ":host configmaps":          "get [cluster-info]",
		controller + ":metrics tokenreviews":     "create []",
		controller + ":health clusters":          "get,list,watch []",
		controller + ":register-host clusters":   "get,list,create,update []",
		controller + ":health clusters/status":   "patch []",
		controller + ":health clusterheartbeats": "get,list []",

		controller + " events":                                "create []",
		controller + ":cluster-api clusters":                  "get,list,watch,create,update,delete []",
		controller + ":cluster-api clustersets/join":          "create []",
		controller + ":cluster-api:namespace namespaces":      "get []",
		controller + ":cluster-api:namespace configmaps":      "get []",
		controller + ":cluster-api:namespace clusters":        "get,list,watch []",
		controller + ":exports clusters":                      "get,list,watch []",
		controller + ":exports:config-maps namespaces":        "get []",
		controller + ":exports:config-maps rolebindings":      "get []",
		controller + ":exports:config-maps configmaps":        "get,list,watch,create,patch,delete []",
		controller + ":exports:secrets namespaces":            "get []",
		controller + ":exports:secrets rolebindings":          "get []",
		controller + ":exports:secrets secrets":               "get,list,watch,create,patch,delete []",
		controller + ":exports:cluster-profiles namespaces":   "get []",
		controller + ":exports:cluster-profiles rolebindings": "get []",

		controller + ":cluster-selections clusters":                           "get,list,watch []",
		controller + ":cluster-selections:namespace namespaces":               "get []",
		controller + ":cluster-selections:namespace clusterselections":        "get,list,watch []",
		controller + ":cluster-selections:namespace clusterselections/status": "update []",
		controller + ":feed clusters":                                         "get,list,watch []",
	}
	never := []string{"pods/exec", "pods/attach", "pods/portforward", "pods/ephemeralcontainers", "serviceaccounts/token", "nodes/proxy", "services/proxy",
		"users", "groups", "uids", "certificatesigningrequests", "mutatingwebhookconfigurations", "validatingwebhookconfigurations"}
	got := map[string]string{}
	for role, rules := range granted(t) {
		for _, rule := range rules {
			admission := role == "clusterregistry:admission-reader" && readsOnly(rule)
			for _, verb := range []string{"escalate", "impersonate"} {
				if slices.Contains(rule.Verbs, verb) {
					t.Errorf("%s may %s: %v", role, verb, rule)
				}
			}
			for _, resource := range rule.Resources {
				if slices.Contains(never, resource) && !admission {
					t.Errorf("%s has a rule for %s", role, resource)
				}
				key := role + " " + resource
				if got[key] != "" {
					got[key] += "; "
				}
				got[key] += strings.Join(rule.Verbs, ",") + " [" + strings.Join(rule.ResourceNames, " ") + "]"
			}
		}
	}
	for key, verbs := range want {
		if got[key] != verbs {
			t.Errorf("%s: %q, want %q", key, got[key], verbs)
		}
	}
	for _, elsewhere := range []string{"secrets", "roles", "rolebindings", "clusterroles", "clusterrolebindings"} {
		for key := range got {
			if _, expected := want[key]; strings.HasSuffix(key, " "+elsewhere) && !expected {
				t.Errorf("%s: %s", key, got[key])
			}
		}
	}
}

// TestServersReadOnly holds what the servers of registries get through the
// operator to reading.
func TestServersReadOnly(t *testing.T) {
	for _, rule := range granted(t)["clusterregistry:admission-reader"] {
		if !readsOnly(rule) {
			t.Errorf("more than reading: %v", rule)
		}
	}
}

func readsOnly(rule rbacv1.PolicyRule) bool {
	return !slices.ContainsFunc(rule.Verbs, func(verb string) bool { return !slices.Contains([]string{"get", "list", "watch"}, verb) })
}

// TestPodSecurity checks what Pod Security "restricted" asks for, and a root
// file system that can't be written.
func TestPodSecurity(t *testing.T) {
	objects := published(t)
	for _, namespace := range typed[corev1.Namespace](t, objects, "Namespace") {
		if namespace.Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
			t.Errorf("namespace %s does not enforce it", namespace.Name)
		}
	}
	for _, deployment := range typed[appsv1.Deployment](t, objects, "Deployment") {
		pod := deployment.Spec.Template.Spec
		if pod.HostNetwork || pod.HostPID || pod.HostIPC || len(pod.Volumes) > 0 {
			t.Errorf("%s uses its node, or volumes", deployment.Name)
		}
		if s := pod.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("%s: the pods' security context is %+v", deployment.Name, s)
		}
		for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
			s := container.SecurityContext
			if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem ||
				s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(s.Capabilities.Add) > 0 || s.Privileged != nil {
				t.Errorf("%s: the security context of container %s is %+v", deployment.Name, container.Name, s)
			}
			if container.Resources.Requests.Cpu().IsZero() || container.Resources.Requests.Memory().IsZero() || container.Resources.Limits.Memory().IsZero() {
				t.Errorf("%s: container %s has resources %+v", deployment.Name, container.Name, container.Resources)
			}
		}
	}
}
