package render

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// templates are those of all pods that stay, by the kind and name of what has them.
func templates(t *testing.T, in Input) map[string]any {
	t.Helper()
	out := map[string]any{}
	for _, objects := range rendered(t, in).Stages {
		for _, object := range objects {
			if kind := object.GetKind(); kind == "Deployment" || kind == "StatefulSet" {
				out[kind+" "+object.GetName()], _, _ = unstructured.NestedFieldNoCopy(object.Object, "spec", "template")
			}
		}
	}
	return out
}

// TestRolls says which pods another trust replaces. A CA of the servers or of clients that is made
// again, as after its Secret was deleted, replaces none: what is mounted is followed. Only whom
// etcd and its clients trust is read once, at start.
func TestRolls(t *testing.T) {
	const servers, members = "Deployment servers", "StatefulSet members"
	for _, fixture := range []string{"aggregated-ha", "every-field"} {
		original := inputOf(t, newest(t), fixture)
		before := templates(t, original)
		for reason, test := range map[string]struct {
			change func(*Input)
			rolls  string
		}{
			"both CAs of the servers are published": {func(in *Input) { in.Trust.Serving = []byte("CA of the servers\nanother CA\n") }, ""},
			"another CA of the servers":             {func(in *Input) { in.Trust.Serving = []byte("another CA\n") }, ""},
			"another CA of the users":               {func(in *Input) { in.Trust.Clients = []byte("another CA\n") }, ""},
			"both, at one time":                     {func(in *Input) { in.Trust.Serving, in.Trust.Clients = []byte("another CA\n"), []byte("another CA\n") }, ""},
			"whom the clients of etcd trust":        {func(in *Input) { in.Trust.EtcdClients = []byte("CA of etcd\nanother CA\n") }, servers},
			"whom members trust":                    {func(in *Input) { in.Trust.Etcd = []byte("CA of etcd\nanother CA\n") }, members},
		} {
			in := original
			name := map[string]string{servers: "Deployment " + in.Registry.Name + "-server", members: "StatefulSet " + in.Registry.Name + "-etcd"}[test.rolls]
			test.change(&in)
			after := templates(t, in)
			for _, of := range slices.Sorted(maps.Keys(before)) {
				if changed := !reflect.DeepEqual(before[of], after[of]); changed != (of == name) {
					t.Errorf("%s, %s: the pods of %s are replaced: %t", fixture, reason, of, changed)
				}
			}
		}
	}
}
