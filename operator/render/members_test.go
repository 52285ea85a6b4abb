package render

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// TestMembers renders the members that there are, however many the spec asks for: a
// member more or less is the end of an operation, not the effect of a field.
func TestMembers(t *testing.T) {
	in := input(t, registry, func(r *operatorv1alpha1.ClusterRegistry) { r.Spec.Etcd.Replicas = 3 })
	in.Registry.Spec.Etcd.Replicas = 5
	text := ""
	for _, object := range rendered(t, in).Objects() {
		content, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		text += string(content)
		if replicas, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas"); object.GetKind() == "StatefulSet" && replicas != 3 {
			t.Errorf("the StatefulSet has %d replicas", replicas)
		}
	}
	for ordinal, want := range []bool{true, true, true, false, false} {
		member := EtcdMembers(in.Registry, []string{in.Registry.Name + "-etcd-" + string(rune('0'+ordinal))})[0]
		if got := strings.Contains(text, member.Host); got != want {
			t.Errorf("%s is rendered: %t", member.Name, got)
		}
	}
	if got := EtcdEndpoints(in.Registry, in.Members[:1]); !slices.Equal(got, []string{EtcdMembers(in.Registry, in.Members)[0].ClientURL()}) {
		t.Errorf("endpoints %q", got)
	}
}

// TestMembersChangeNoTemplate renders one, three and five members from the newest layout:
// their pods are the same, so that another number replaces none that is there.
func TestMembersChangeNoTemplate(t *testing.T) {
	templates := map[int]any{}
	for _, members := range []int{1, 3, 5} {
		in := input(t, registry, func(r *operatorv1alpha1.ClusterRegistry) { r.Spec.Etcd.Replicas = int32(members) })
		template, ok := podTemplates(t, rendered(t, in))["StatefulSet "+in.Registry.Name+"-etcd"]
		if !ok || len(in.Members) != members {
			t.Fatalf("%d members, want %d; rendered: %t", len(in.Members), members, ok)
		}
		templates[members] = template
	}
	for _, members := range []int{3, 5} {
		if !reflect.DeepEqual(templates[members], templates[1]) {
			t.Errorf("pods of %d members are not those of one: %+v, %+v", members, templates[members], templates[1])
		}
	}
}

// TestSavedOfVoters renders what saves etcd while the servers use one member of three already:
// all three are compared.
func TestSavedOfVoters(t *testing.T) {
	in := saved(t, "{persistentVolumeClaim: {claimName: backups}}", "save")
	in.Endpoints, in.Voters, in.Snapshot = in.Members[:1], in.Members, "before-scale-to-1"
	all := "--endpoints=" + strings.Join(EtcdEndpoints(in.Registry, in.Members), ",")
	seen := 0
	for _, object := range rendered(t, in).Objects() {
		content, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if text := string(content); strings.Contains(text, "--endpoints=") {
			seen++
			if !strings.Contains(text, all+`"`) {
				t.Errorf("%s %s does not ask all members", object.GetKind(), object.GetName())
			}
		}
	}
	if seen != 2 {
		t.Errorf("%d objects name members, want the Jobs of the snapshot and of the backup", seen)
	}
}
