package render

import (
	"testing"

	"sigs.k8s.io/yaml"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/version"
)

// allReleases returns all releases, oldest first.
func allReleases(t *testing.T) []version.Release {
	t.Helper()
	releases, err := version.Releases()
	if err != nil {
		t.Fatal(err)
	}
	return releases
}

// newest returns the last release, in whose layout tests render. Digests hold the
// layouts of those before to what they were.
func newest(t *testing.T) version.Release {
	t.Helper()
	releases := allReleases(t)
	return releases[len(releases)-1]
}

// input returns the input of a test: a registry, changed by modify.
func input(t *testing.T, registry string, modify ...func(*operatorv1alpha1.ClusterRegistry)) Input {
	t.Helper()
	r := &operatorv1alpha1.ClusterRegistry{}
	if err := yaml.UnmarshalStrict([]byte(registry), r); err != nil {
		t.Fatal(err)
	}
	for _, m := range modify {
		m(r)
	}
	operatorv1alpha1.SetDefaults(r)
	layout := newest(t).Layout
	var members []string
	for ordinal := range r.Spec.Etcd.Replicas {
		members = append(members, contract.EtcdMember(r.Name, int(ordinal)))
	}
	return Input{
		Members:     members,
		Registry:    r,
		Release:     Release{Version: string(r.Spec.Version), Helper: string(r.Spec.Version), Etcd: "v3.6.14", Layout: layout, EtcdLayout: layout, Serves: []string{"v1alpha1"}, Controllers: newest(t).Controllers},
		HostVersion: "1.37",
		Trust:       Trust{Etcd: []byte("CA of etcd\n"), EtcdClients: []byte("CA of etcd\n"), Serving: []byte("CA of the servers\n"), Clients: []byte("CA of the users\n")},
		Environment: Environment{ImageRepository: PublishedRepository, ImageDigests: ImageDigestsPublished, Namespace: "clusterregistry-system", ClusterDomain: "cluster.local"},
	}
}

func rendered(t *testing.T, in Input) *Result {
	t.Helper()
	result, err := Render(in)
	if err != nil {
		t.Fatal(err)
	}
	return result
}
