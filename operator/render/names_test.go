package render

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/generation"
)

// named returns kind, namespace and name of all that a registry brings about:
// its objects, and those that the host and cert-manager make for them.
func named(t *testing.T, in Input) []string {
	t.Helper()
	name, namespace := in.Registry.Name, in.Registry.Namespace
	local := func(kind, name string) string { return kind + " " + namespace + "/" + name }
	both := generation.InUse{Signing: 2, Also: 1}
	in.Authorities = Authorities{Etcd: both, Serving: both, Clients: both}
	out := []string{local("ConfigMap", name+contract.IdentitySuffix), local("ConfigMap", name+contract.GenerationsSuffix), local("Secret", name+contract.KubeconfigSuffix)}
	for _, object := range rendered(t, in).Objects() {
		if object.GetKind() == "APIService" {
			continue // there is one for all, and whose it is the operator asks
		}
		out = append(out, object.GetKind()+" "+object.GetNamespace()+"/"+object.GetName())
		if secret, found, _ := unstructured.NestedString(object.Object, "spec", "secretName"); found {
			out = append(out, local("Secret", secret))
		}
	}
	for _, member := range EtcdMembers(in.Registry, in.Members) {
		out = append(out, local("Pod", member.Name), local("PersistentVolumeClaim", contract.EtcdMemberClaim(member.Name)))
	}
	return out
}

// withController has a registry ask for all that its controller does.
func withController(r *operatorv1alpha1.ClusterRegistry) {
	r.Spec.Controllers = &operatorv1alpha1.Controllers{Health: &operatorv1alpha1.HealthController{}, RegisterHost: &operatorv1alpha1.RegisterHost{Name: "host"}}
}

// TestNamesOfRegistriesDiffer renders registries of one namespace whose names
// are each other's with what the operator appends, and looks for an object that
// two of them would have.
func TestNamesOfRegistriesDiffer(t *testing.T) {
	appended := map[string]bool{"": true, "-0": true, "-etcd-0": true, "-data": true, "-ca": true, "-auth-delegator": true}
	in := input(t, registry, withController, func(r *operatorv1alpha1.ClusterRegistry) { r.Name = "a" })
	for _, name := range named(t, in) {
		_, local, _ := strings.Cut(name, "/a")
		appended[local] = true
	}
	if len(appended) < 15 {
		t.Fatalf("these suffixes can't be all: %v", appended)
	}
	owner := map[string]string{}
	for suffix := range appended {
		for _, mode := range []operatorv1alpha1.Mode{operatorv1alpha1.ModeAggregated, operatorv1alpha1.ModeIndependent} {
			registry := "a" + suffix
			if strings.Contains(registry, ":") {
				continue // of names elsewhere, which no registry can have
			}
			in := input(t, registryNamed(registry, "team"), withController, func(r *operatorv1alpha1.ClusterRegistry) { r.Spec.Mode = mode })
			for _, name := range named(t, in) {
				if other, taken := owner[name]; taken && other != registry {
					t.Errorf("the registries %s and %s both have %s", other, registry, name)
				}
				owner[name] = registry
			}
		}
	}
}

// TestNamesElsewhereDiffer is about objects outside of the registries'
// namespaces, where a dash could be of either part.
func TestNamesElsewhereDiffer(t *testing.T) {
	owner := map[string]string{}
	for _, key := range [][2]string{{"a", "b-c"}, {"a-b", "c"}, {"a", "b"}, {"b", "a"}} {
		in := input(t, registryNamed(key[1], key[0]), withController, func(r *operatorv1alpha1.ClusterRegistry) { r.Spec.Mode = operatorv1alpha1.ModeAggregated })
		for _, object := range rendered(t, in).Objects() {
			if object.GetNamespace() == key[0] || object.GetKind() == "APIService" {
				continue
			}
			if other, taken := owner[object.GetName()+object.GetKind()]; taken {
				t.Errorf("%v and %s both have %s %s", key, other, object.GetKind(), object.GetName())
			}
			owner[object.GetName()+object.GetKind()] = key[0] + "/" + key[1]
		}
	}
}

func registryNamed(name, namespace string) string {
	return strings.Replace(registry, "{name: fleet, namespace: team}", "{name: "+name+", namespace: "+namespace+"}", 1)
}

// TestNamesFit renders a registry with the longest names that there are.
func TestNamesFit(t *testing.T) {
	for variant, in := range variants(t) {
		in = change(in, func(r *operatorv1alpha1.ClusterRegistry) {
			r.Name, r.Namespace = strings.Repeat("n", 40), strings.Repeat("s", 63)
		})
		result := rendered(t, in)
		for _, object := range result.Objects() {
			problems := validation.IsDNS1123Subdomain(strings.ReplaceAll(object.GetName(), ":", "."))
			if kind := object.GetKind(); kind == "Service" || kind == "StatefulSet" || kind == "Deployment" {
				problems = append(problems, validation.IsDNS1035Label(object.GetName())...)
			}
			if object.GetKind() == "StatefulSet" {
				problems = append(problems, validation.IsValidLabelValue(object.GetName()+"-0123456789")...) // its revisions, a label of its pods
			}
			for _, value := range object.GetLabels() {
				problems = append(problems, validation.IsValidLabelValue(value)...)
			}
			if common, _, _ := unstructured.NestedString(object.Object, "spec", "commonName"); len(common) > 64 {
				problems = append(problems, "X.509 ends common names at 64 characters, not with "+common)
			}
			names, _, _ := unstructured.NestedStringSlice(object.Object, "spec", "dnsNames")
			for _, name := range names {
				problems = append(problems, validation.IsDNS1123Subdomain(name)...)
			}
			if len(problems) > 0 {
				t.Errorf("%s: %s %s: %v", variant, object.GetKind(), object.GetName(), problems)
			}
		}
		for workload, template := range podTemplates(t, result) {
			for key, value := range template.Labels {
				if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
					t.Errorf("%s: %s: label %s: %v", variant, workload, key, problems)
				}
			}
		}
	}
}
