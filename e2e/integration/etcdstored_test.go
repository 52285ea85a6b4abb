package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/operator/etcd"
)

// TestEtcdStored counts what is stored in which version of an API, page by page,
// and compares the members' data.
func TestEtcdStored(t *testing.T) {
	t.Parallel()
	members := framework.StartEtcd(t, 3)
	access := accessTo(members)
	recordIdentity(t, access, 3)
	store := func(key, version string) {
		t.Helper()
		unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: version, Kind: "Cluster"}}
		content, err := unknown.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		put(t, members, key, "k8s\x00"+string(content))
	}
	const prefix, all = "/registry/clusters/", 1201
	for i := range all {
		version := "example.org/v2"
		if i%500 == 0 {
			version = "example.org/v1"
		}
		store(fmt.Sprintf("%sc%04d", prefix, i), version)
	}
	store("/registry/clusters-of-others/x", "example.org/v1")
	store("/registry/clusterids/x", "example.org/v1")
	var outdated []string
	inV1 := func(name string, content []byte) error {
		version, err := etcd.StoredVersion(content)
		if version == "example.org/v1" {
			outdated = append(outdated, name)
		}
		return err
	}
	seen, pages, after := 0, 0, ""
	for left := 1; left > 0; pages++ {
		stored, err := access.Stored(t.Context(), prefix, after, inV1)
		if err != nil || stored.Objects > 500 || seen+stored.Objects+stored.Left != all {
			t.Fatalf("after %q: %+v, %v", after, stored, err)
		}
		seen, after, left = seen+stored.Objects, stored.Last, stored.Left
	}
	if seen != all || pages != 3 || after != "c1200" || !slices.Equal(outdated, []string{"c0000", "c0500", "c1000"}) {
		t.Errorf("%d objects on %d pages, the last is %s, outdated %v", seen, pages, after, outdated)
	}
	if stored, err := access.Stored(t.Context(), prefix, after, inV1); err != nil || stored.Objects != 0 || stored.Left != 0 || stored.Last != after {
		t.Errorf("after the last: %+v, %v", stored, err)
	}
	expectAgreed(t, access)
	put(t, members, prefix+"nonsense", "k8s:enc:secret")
	if _, err := access.Stored(t.Context(), prefix, "c1200", inV1); err == nil || !strings.Contains(err.Error(), prefix+"nonsense is neither Kubernetes protobuf nor JSON") {
		t.Errorf("what is no object: %v", err)
	}
}
