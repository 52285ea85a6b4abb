package remainder

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/diff"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/form"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// withModes is a cluster whose programs have the given modes, by name of the access.
func withModes(modes map[string]clusterregistry.InteractiveMode) *clusterregistry.Cluster {
	cluster := &clusterregistry.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}
	for _, name := range []string{"a", "b", "c"} {
		if mode, ok := modes[name]; ok {
			cluster.Spec.Access = append(cluster.Spec.Access, clusterregistry.Access{
				Name: name, Audience: clusterregistry.AudienceUser,
				Exec: &clusterregistry.ExecAccess{APIVersion: "client.authentication.k8s.io/v1", Command: "login-" + name, InteractiveMode: mode},
			})
		}
	}
	return cluster
}

// asV030 does to a stored cluster what a server of v0.3.0 does when a client of
// v1beta1 changes it: fields that it doesn't know are dropped, members of the
// remainder that it doesn't know are carried along.
func asV030(t *testing.T, data []byte, change func(*v1beta1.Cluster)) []byte {
	t.Helper()
	etcd := protobuf.NewSerializer(scheme, scheme)
	object, _, err := etcd.Decode(data, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	raw := object.(*v1beta1.Cluster)
	for _, access := range raw.Spec.Access {
		if access.Exec != nil {
			access.Exec.InteractiveMode = ""
		}
	}
	members := map[string]json.RawMessage{}
	if remainder := raw.Annotations[clusterregistry.RemainderAnnotation]; remainder != "" {
		if err := json.Unmarshal([]byte(remainder), &members); err != nil {
			t.Fatal(err)
		}
	}
	change(raw)
	remainder, err := text(members)
	if err != nil {
		t.Fatal(err)
	}
	raw.Annotations = nil
	if remainder != "" {
		raw.Annotations = map[string]string{clusterregistry.RemainderAnnotation: remainder}
	}
	raw.SetGroupVersionKind(v1beta1.SchemeGroupVersion.WithKind("Cluster"))
	if data, err = runtime.Encode(etcd, raw); err != nil {
		t.Fatal(err)
	}
	return data
}

// TestInteractiveModesSurviveV030 lets a server of v0.3.0 write what this one has
// stored, as after a rollback or while an upgrade is under way.
func TestInteractiveModesSurviveV030(t *testing.T) {
	type modes = map[string]clusterregistry.InteractiveMode
	const never, always, ask = clusterregistry.InteractiveNever, clusterregistry.InteractiveAlways, clusterregistry.InteractiveIfAvailable
	storage := codec{plain(v1beta1.SchemeGroupVersion), form.V1beta1}
	for _, test := range []struct {
		reason       string
		before, want modes
		change       func(*v1beta1.Cluster)
	}{
		{"no change", modes{"a": never, "b": ask, "c": always}, modes{"a": never, "b": ask, "c": always}, nil},
		{"another command", modes{"a": never, "b": ask}, modes{"a": never, "b": ask}, func(c *v1beta1.Cluster) { c.Spec.Access[0].Exec.Command = "other" }},
		{"one is removed", modes{"a": never, "b": always}, modes{"b": always}, func(c *v1beta1.Cluster) { c.Spec.Access = c.Spec.Access[1:] }},
		{"the order changes", modes{"a": never, "b": ask}, modes{"a": never, "b": ask}, func(c *v1beta1.Cluster) {
			c.Spec.Access[0], c.Spec.Access[1] = c.Spec.Access[1], c.Spec.Access[0]
		}},
		{"one is added", modes{"a": never}, modes{"a": never, "b": ask}, func(c *v1beta1.Cluster) {
			c.Spec.Access = append(c.Spec.Access, v1beta1.Access{Name: "b", Audience: v1beta1.AudienceUser, Exec: &v1beta1.ExecAccess{Command: "login-b"}})
		}},
		{"a program becomes another kind of access", modes{"a": never, "b": ask}, modes{"b": ask}, func(c *v1beta1.Cluster) {
			c.Spec.Access[0].Exec, c.Spec.Access[0].OIDC = nil, &v1beta1.OIDCAccess{}
		}},
	} {
		data, err := runtime.Encode(storage, withModes(test.before))
		if err != nil {
			t.Fatal(err)
		}
		change := test.change
		if change == nil {
			change = func(*v1beta1.Cluster) {}
		}
		written := asV030(t, data, change)
		if test.change == nil && !bytes.Equal(written, data) {
			t.Errorf("%s: v0.3.0 writes it in other bytes:\n%q\n%q", test.reason, data, written)
		}
		got := &clusterregistry.Cluster{}
		if err := runtime.DecodeInto(storage, written, got); err != nil {
			t.Fatal(err)
		}
		is := modes{}
		for _, access := range got.Spec.Access {
			if access.Exec != nil {
				is[access.Name] = access.Exec.InteractiveMode
			}
		}
		if !maps.Equal(is, test.want) {
			t.Errorf("%s: read with the modes %v, want %v", test.reason, is, test.want)
		}
		// What is of no use any more goes with the next write.
		again, err := runtime.Encode(storage, got)
		if err != nil {
			t.Fatal(err)
		}
		for name := range test.before {
			if _, ok := test.want[name]; !ok && strings.Contains(annotated(t, again)[clusterregistry.RemainderAnnotation], `"`+name+`"`) {
				t.Errorf("%s: the mode of access %q stays: %v", test.reason, name, annotated(t, again))
			}
		}
	}
}

// TestTheDefaultModeIsNotStored makes sure that a cluster that v0.3.0 has stored is
// not written again for the default, that no server sees it changed, and that what is
// encoded, which caches share, stays as it is.
func TestTheDefaultModeIsNotStored(t *testing.T) {
	for _, version := range versions {
		storage := codec{plain(version), version.Version}
		stored := withModes(map[string]clusterregistry.InteractiveMode{"a": clusterregistry.InteractiveIfAvailable, "b": clusterregistry.InteractiveNever})
		before := stored.DeepCopy()
		data, err := runtime.Encode(storage, stored)
		if err != nil {
			t.Fatal(err)
		}
		if !apiequality.Semantic.DeepEqual(stored, before) {
			t.Errorf("%s: encoding changed the object: %s", version, diff.Diff(before, stored))
		}
		if bytes.Contains(data, []byte(clusterregistry.InteractiveIfAvailable)) || bytes.Count(data, []byte(clusterregistry.InteractiveNever)) != 1 {
			t.Errorf("%s: stored as %q", version, data)
		}
		got := &clusterregistry.Cluster{}
		if err := runtime.DecodeInto(storage, data, got); err != nil || !apiequality.Semantic.DeepEqual(got.Spec.Access, before.Spec.Access) {
			t.Errorf("%s: read back as %+v, %v", version, got.Spec.Access, err)
		}
		if again, err := runtime.Encode(storage, got); err != nil || !bytes.Equal(again, data) {
			t.Errorf("%s: %v\n%q\n%q", version, err, data, again)
		}
	}
}

// TestALaterReleaseMayStoreTheMode reads a mode from the field of v1beta1 itself: a
// release that never runs beside v0.3.0 may store it there, and be rolled back.
func TestALaterReleaseMayStoreTheMode(t *testing.T) {
	below := plain(v1beta1.SchemeGroupVersion)
	data, err := runtime.Encode(below, withModes(map[string]clusterregistry.InteractiveMode{"a": clusterregistry.InteractiveAlways}))
	if err != nil {
		t.Fatal(err)
	}
	got := &clusterregistry.Cluster{}
	if err := runtime.DecodeInto(codec{below, form.V1beta1}, data, got); err != nil || got.Spec.Access[0].Exec.InteractiveMode != clusterregistry.InteractiveAlways {
		t.Errorf("read as %+v, %v", got.Spec.Access, err)
	}
}
