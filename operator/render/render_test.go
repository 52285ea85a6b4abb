package render

import (
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/version"
)

// allReleases returns all releases, oldest first.
func allReleases(t testing.TB) []version.Release {
	t.Helper()
	releases, err := version.Releases()
	if err != nil {
		t.Fatal(err)
	}
	return releases
}

// newest returns the last release, in whose layout tests render. Digests hold the
// layouts of those before to what they were.
func newest(t testing.TB) version.Release {
	t.Helper()
	releases := allReleases(t)
	return releases[len(releases)-1]
}

// input returns the input of a test: a registry, changed by modify.
func input(t testing.TB, registry string, modify ...func(*operatorv1alpha1.ClusterRegistry)) Input {
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
		Audit:       auditOf(r),
		Reached:     reachedBy(r),
		Encryption:  encryptionOf(r),
		Members:     members,
		Registry:    r,
		Release:     Release{Version: string(r.Spec.Version), Helper: string(r.Spec.Version), Etcd: "v3.6.14", Layout: layout, EtcdLayout: layout, Serves: []string{"v1alpha1"}, Stores: "v1beta1"},
		HostVersion: "1.37",
		Trust:       Trust{Etcd: []byte("CA of etcd\n"), EtcdClients: []byte("CA of etcd\n"), Serving: []byte("CA of the servers\n"), Clients: []byte("CA of the users\n")},
		Environment: Environment{ImageRepository: PublishedRepository, ImageDigests: ImageDigestsPublished, Namespace: "clusterregistry-system", ClusterDomain: "cluster.local"},
	}
}

// encryptionOf returns the keys that servers of a registry have, as if one was in its Secret.
func encryptionOf(r *operatorv1alpha1.ClusterRegistry) *Encryption {
	if r.Spec.Server.Encryption == nil {
		return nil
	}
	return &Encryption{Configuration: []byte("the keys"), Digest: "0123456789abcdef"}
}

// auditOf returns what the servers of a registry are to record, as if all that its spec refers
// to were there.
func auditOf(r *operatorv1alpha1.ClusterRegistry) *Audit {
	spec := r.Spec.Server.Audit
	if spec == nil {
		return nil
	}
	out := &Audit{Spec: *spec, Policy: []byte("the policy")}
	if spec.Webhook != nil {
		out.Webhook = []byte("the kubeconfig")
	}
	return out
}

// reachedBy returns the namespaces that a registry names, as if all but closed were open to it.
func reachedBy(r *operatorv1alpha1.ClusterRegistry) []string {
	var out []string
	for _, function := range r.Spec.Controllers.Functions() {
		out = append(out, r.Spec.Controllers.Reaches(function)...)
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(namespace string) bool { return namespace == "closed" })
}

func rendered(t *testing.T, in Input) *Result {
	t.Helper()
	result, err := Render(in)
	if err != nil {
		t.Fatal(err)
	}
	return result
}
