package render

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
)

// suffixes are what the contract appends to a registry's name, with the kinds of the
// objects that are rendered under that name.
var suffixes = map[string][]string{
	contract.ServerSuffix:     {"Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service", "ServiceAccount"},
	contract.ControllerSuffix: {"Certificate", "ConfigMap", "Deployment", "NetworkPolicy", "PodDisruptionBudget", "RoleBinding", "Secret", "Service", "ServiceAccount"},
	contract.EtcdSuffix:       {"NetworkPolicy", "PodDisruptionBudget", "Service", "ServiceAccount", "StatefulSet"},
	contract.SelfSignedSuffix: {"Issuer"},
	contract.EtcdCASuffix:     {"Certificate", "Issuer", "Secret"},
	contract.ServingCASuffix:  {"Certificate", "Issuer", "Secret"},
	contract.ClientCASuffix:   {"Certificate", "Issuer", "Secret"},
	contract.EtcdServerSuffix: {"Certificate", "Secret"},
	contract.EtcdPeerSuffix:   {"Certificate", "Secret"},
	contract.EtcdClientSuffix: {"Certificate", "Secret"},
	contract.ServingSuffix:    {"Certificate", "Secret"},
	contract.AdminSuffix:      {"Certificate", "Secret"},
	contract.TrustSuffix:      {"ConfigMap"},

	contract.EtcdTrustSuffix:       {"ConfigMap"},
	contract.EtcdClientTrustSuffix: {"ConfigMap"},
	contract.AuditSuffix:           {"Secret"},
	contract.EncryptionSuffix:      {"Secret"},

	contract.SnapshotSuffix:  {"Job", "NetworkPolicy"},
	contract.SnapshotsSuffix: {"PersistentVolumeClaim"},
	contract.BackupSuffix:    {"ConfigMap", "Job", "NetworkPolicy", "ServiceAccount"},
	contract.RestoreSuffix:   {"ConfigMap", "Job", "NetworkPolicy", "ServiceAccount"},

	// The operator makes it; etcd's pods only refer to it.
	contract.IdentitySuffix: nil,
}

// allLayouts are those of all releases, each once.
func allLayouts(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, release := range allReleases(t) {
		if !slices.Contains(out, release.Layout) {
			out = append(out, release.Layout)
		}
	}
	return out
}

// TestNamesAreThoseOfTheContract renders every variant in every layout: the names of
// the objects, and all that refers to one, are what the contract says, and nothing
// that it says is missing.
func TestNamesAreThoseOfTheContract(t *testing.T) {
	for _, layout := range allLayouts(t) {
		kinds, mentioned := map[string]map[string]bool{}, map[string]bool{"": true}
		for variant, in := range variants(t) {
			in = change(in, func(r *operatorv1alpha1.ClusterRegistry) { r.Name = "xyzzy" })
			in.Release.Layout, in.Release.EtcdLayout = layout, layout
			for _, object := range rendered(t, in).Objects() {
				mention(object.Object, mentioned)
				// What is made in each namespace that a function reaches has one name in all of them.
				reaches := strings.HasPrefix(object.GetName(), "clusterregistry:")
				if object.GetNamespace() == in.Registry.Namespace && !reaches {
					nameOf(kinds, object.GetKind(), object.GetName())
				}
				if secret, found, _ := unstructured.NestedString(object.Object, "spec", "secretName"); found {
					nameOf(kinds, "Secret", secret)
				}
				if object.GetKind() == "StatefulSet" {
					claim := convert[appsv1.StatefulSet](t, object).Spec.VolumeClaimTemplates[0].Name + "-" + object.GetName() + "-0"
					if want := contract.EtcdMemberClaim(contract.EtcdMember("xyzzy", 0)); claim != want {
						t.Errorf("%s: the first member's claim is %s, and the contract says %s", variant, claim, want)
					}
				}
			}
		}
		for suffix, want := range suffixes {
			if got := slices.Sorted(maps.Keys(kinds["xyzzy"+suffix])); !slices.Equal(got, want) {
				t.Errorf("layout %s: the objects ...%s are %v, want %v", layout, suffix, got, want)
			}
			delete(kinds, "xyzzy"+suffix)
			if !mentioned[suffix] {
				t.Errorf("layout %s: nothing has the name ...%s", layout, suffix)
			}
			delete(mentioned, suffix)
		}
		delete(mentioned, "") // as in labels, and in the names of what is elsewhere
		if len(kinds) > 0 || len(mentioned) > 0 {
			t.Errorf("layout %s: the contract does not have the objects %v, nor the names %v", layout, kinds, slices.Collect(maps.Keys(mentioned)))
		}
	}
}

// aGeneration ends the names of CAs but for the first ones.
var aGeneration = regexp.MustCompile(`-ca(-[0-9]+)$`)

// aBundle ends the names of bundles and Secrets that never change.
var aBundle = regexp.MustCompile(`(-trust|-audit|-encryption)-[0-9a-f]{16}\b`)

func nameOf(kinds map[string]map[string]bool, kind, name string) {
	if found := aGeneration.FindStringSubmatch(name); found != nil {
		name = strings.TrimSuffix(name, found[1])
	}
	name = aBundle.ReplaceAllString(name, "$1")
	if kinds[name] == nil {
		kinds[name] = map[string]bool{}
	}
	kinds[name][kind] = true
}

// aName is a name of an object of the registry, which an ordinal may end.
var aName = regexp.MustCompile(`xyzzy((?:-[a-z]+)*)`)

// mention collects what follows the registry's name wherever that is in a value.
func mention(value any, into map[string]bool) {
	switch value := value.(type) {
	case map[string]any:
		for key, content := range value {
			mention(key, into)
			mention(content, into)
		}
	case []any:
		for _, content := range value {
			mention(content, into)
		}
	case string:
		for _, name := range aName.FindAllStringSubmatch(aBundle.ReplaceAllString(value, "$1"), -1) {
			into[name[1]] = true
		}
	}
}

// TestPortsAreThoseOfTheContract renders every layout: etcd's container listens on the
// port of the contract, and so does the server's.
func TestPortsAreThoseOfTheContract(t *testing.T) {
	for _, layout := range allLayouts(t) {
		in := variants(t)["five members"]
		in.Release.Layout, in.Release.EtcdLayout = layout, layout
		found := map[string]string{}
		for _, object := range rendered(t, in).Objects() {
			containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
			for _, one := range containers {
				container := one.(map[string]any)
				ports, _, _ := unstructured.NestedSlice(container, "ports")
				for _, one := range ports {
					port := one.(map[string]any)
					found[fmt.Sprintf("%s/%s", container["name"], port["name"])] = fmt.Sprint(port["containerPort"])
				}
			}
		}
		if found["etcd/client"] != contract.EtcdClientPort || found["server/https"] != contract.ServerPort {
			t.Errorf("layout %s: the ports are %v", layout, found)
		}
	}
}
