package clusterapi

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

const templates = `{"accessTemplates": [
	{"namespaces": ["a"], "matchLabels": {"env": "test"}, "hosts": ["*.example.com"], "access": [{"name": "test", "provider": {}}]},
	{"namespaces": ["a"], "infrastructureKinds": ["AWSManagedCluster"], "hosts": ["*.example.com"], "access": [
		{"name": "eks", "exec": {"command": "aws", "args": ["eks", "get-token", "--cluster-name", "{namespace}_{controlPlane}"], "env": [{"name": "AWS_PROFILE", "value": "{namespace}"}]}},
		{"name": "reader", "provider": {"config": {"cluster": "{namespace}/{name}"}}}]},
	{"namespaces": ["a"], "matchLabels": {"env": "prod"}, "hosts": ["*.example.com"], "access": [{"name": "sso", "audience": "User", "exec": {"command": "sso"}}]}
]}`

func parsed(t *testing.T, text string) Grants {
	t.Helper()
	out, err := ParseGrants([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// filled is a bench with grants.
func filled(t *testing.T, text string, objects ...*v1beta1.Cluster) *bench {
	t.Helper()
	b := newBench(t, func(c *Config) { c.Grants = parsed(t, text) })
	for _, object := range objects {
		if _, err := b.registry.ClusterregistryV1beta1().Clusters().Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// messagesOf are those of held Clusters.
func messagesOf(b *bench) (out []string) {
	for _, hold := range b.held() {
		out = append(out, hold.message)
	}
	return out
}

func aws(c *clusterv1.Cluster) {
	c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{Kind: "AWSManagedCluster", Name: "east-infra"}
	c.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{Kind: "AWSManagedControlPlane", Name: "east-cp"}
}

// brief is what templates fill in of an entry, as one text.
func brief(entry *v1beta1.Cluster) string {
	out := []string{entry.Spec.ClusterSet}
	for _, way := range entry.Spec.Access {
		text := way.Name + " " + string(way.Audience)
		if way.Exec != nil {
			text += fmt.Sprint(" ", way.Exec.Command, way.Exec.Args, way.Exec.Env)
		}
		if way.Provider != nil {
			text += fmt.Sprint(" ", way.Provider.Config)
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

// TestFilling has a template chosen by kind, by label, and not at all.
func TestFilling(t *testing.T) {
	for reason, test := range map[string]struct {
		change func(*clusterv1.Cluster)
		want   string
	}{
		"by its kind":          {aws, "; eks Controller aws[eks get-token --cluster-name a_east-cp] [{AWS_PROFILE a}]; reader Controller map[cluster:a/east]"},
		"by a label":           {func(*clusterv1.Cluster) {}, "; sso User sso[] []"},
		"the first one, alone": {func(c *clusterv1.Cluster) { aws(c); c.Labels["env"] = "test" }, "; test Controller map[]"},
		"none":                 {func(c *clusterv1.Cluster) { c.Labels["env"] = "none" }, ""},
		"no label":             {func(c *clusterv1.Cluster) { c.Labels = nil }, ""},
	} {
		b := filled(t, templates)
		b.see(cluster("east", test.change))
		b.must("east")
		if got := brief(b.east()); got != test.want || len(b.held()) > 0 {
			t.Errorf("%s: %s, want %s; held for %v", reason, got, test.want, messagesOf(b))
		}
	}
}

// TestRefill changes entries that are there: what is someone's own stays, and the rest follows.
func TestRefill(t *testing.T) {
	const access = `{"f:spec":{"f:access":{"k:{\"name\":\"sso\"}":{".":{},"f:name":{},"f:audience":{},"f:exec":{"f:command":{}}}}}}`
	const changed = `{"f:spec":{"f:access":{"k:{\"name\":\"sso\"}":{"f:exec":{"f:args":{}}}}}}`
	const set = `{"f:spec":{"f:clusterSet":{}}}`
	sso := func(command string) func(*v1beta1.Cluster) {
		return func(e *v1beta1.Cluster) {
			e.Spec.Access = []v1beta1.Access{{Name: "sso", Audience: v1beta1.AudienceUser, Exec: &v1beta1.ExecAccess{Command: command}}}
		}
	}
	by := func(manager string, sets ...string) func(*v1beta1.Cluster) {
		return func(e *v1beta1.Cluster) {
			for _, text := range sets {
				e.ManagedFields = append(e.ManagedFields, fields(manager, "Update", "", text))
			}
		}
	}
	in := func(name string) func(*v1beta1.Cluster) {
		return func(e *v1beta1.Cluster) {
			e.Spec.ClusterSet, e.Labels = name, map[string]string{v1beta1.ClusterSetLabel: name}
		}
	}
	const now = `{"clusterSets": [{"namespace": "a", "clusterSet": "new"}], "accessTemplates": [{"namespaces": ["a"], "hosts": ["*.example.com"], "access": [{"name": "sso", "audience": "User", "exec": {"command": "new"}}]}]}`
	for reason, test := range map[string]struct {
		templates string
		changes   []func(*v1beta1.Cluster)
		want      string
	}{
		"a template that has changed": {now, []func(*v1beta1.Cluster){sso("old"), in("old"), by(Manager, access, set)}, "new; sso User new[] []"},
		"one that is gone":            {"{}", []func(*v1beta1.Cluster){sso("old"), in("old"), by(Manager, access, set)}, ""},
		"a person's":                  {now, []func(*v1beta1.Cluster){sso("old"), in("old"), by("kubectl", access, set)}, "old; sso User old[] []"},
		"a person's, without one":     {"{}", []func(*v1beta1.Cluster){sso("old"), in("old"), by("kubectl", access, set)}, "old; sso User old[] []"},
		"one that a person changed":   {now, []func(*v1beta1.Cluster){sso("old"), by(Manager, access), by("kubectl", changed)}, "new; sso User old[] []"},
		"of no one that is known":     {now, []func(*v1beta1.Cluster){sso("old"), in("old")}, "old; sso User old[] []"},
		"what can't be made": {`{"accessTemplates": [{"namespaces": ["a"], "hosts": ["*.example.com"], "access": [{"name": "sso", "exec": {"command": "new", "args": ["{namespace}/{controlPlane}"]}}]}]}`,
			[]func(*v1beta1.Cluster){sso("old"), by(Manager, access)}, ""},
		"hosts that are narrower": {strings.ReplaceAll(now, "*.example.com", "*.example.net"), []func(*v1beta1.Cluster){sso("old"), by(Manager, access)}, "new"},
	} {
		b := filled(t, test.templates, entryOf("east", "uid-east", test.changes...))
		b.see(cluster("east"))
		b.must("east")
		if got := brief(b.east()); got != test.want {
			t.Errorf("%s: %s, want %s", reason, got, test.want)
		}
		if test.want == "" || test.want == "new" {
			continue // the fake does not keep fields, by which what is gone is recognized
		}
		// What has been written stays, and is not written again.
		if b.must("east"); slices.Contains(b.writes(), "update ") {
			t.Errorf("%s: written again: %v", reason, b.writes())
		}
	}
}

// TestTrimmedAccess keeps nothing large of what others have written in memory.
func TestTrimmedAccess(t *testing.T) {
	entry := entryOf("east", "uid-east", func(e *v1beta1.Cluster) {
		e.Spec.Access = []v1beta1.Access{{Name: "mine", Exec: &v1beta1.ExecAccess{Command: "a"}}, {Name: "theirs", Exec: &v1beta1.ExecAccess{Command: strings.Repeat("a", 4096)}}}
		e.ManagedFields = []metav1.ManagedFieldsEntry{fields(Manager, "Update", "", `{"f:spec":{"f:access":{"k:{\"name\":\"mine\"}":{".":{},"f:name":{}}}}}`)}
	})
	if _, err := trimEntry(entry); err != nil {
		t.Fatal(err)
	}
	if want := []v1beta1.Access{{Name: "mine", Exec: &v1beta1.ExecAccess{Command: "a"}}, {Name: "theirs"}}; !reflect.DeepEqual(entry.Spec.Access, want) {
		t.Errorf("%+v", entry.Spec.Access)
	}
}
