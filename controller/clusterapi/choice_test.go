package clusterapi

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestTemplate(t *testing.T) {
	for _, test := range []struct{ text, namespace, name, want, says string }{
		{"{name}", "a", "east", "east", ""},
		{"{namespace}-{name}", "a", "east", "a-east", ""},
		{"capi-{name}", "a", "{namespace}", "", "is not the name of a cluster"},
		{"{name}", "a", "east.example.com", "", "is not the name of a cluster"},
		{"{namespace}-{name}", strings.Repeat("a", 40), strings.Repeat("b", 40), "", "63"},
		{"{namespace}", "", "", "", "lacks {name}"},
		{"{name}-{kind}", "", "", "", "has {kind}"},
		{"Prod-{name}", "", "", "", "makes no valid names"},
	} {
		template, err := ParseTemplate(test.text)
		got := ""
		if err == nil {
			got, err = template.Name(test.namespace, test.name)
		}
		if got != test.want || (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s of %s/%s: %q, %v", test.text, test.namespace, test.name, got, err)
		}
	}
}

func TestAllowList(t *testing.T) {
	list, err := ParseAllowList([]string{"env", "example.com/*", "other.io/tier"})
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]bool{"env": true, "environment": false, "example.com/a": true, "sub.example.com/a": false, "example.com": false, "other.io/tier": true, "other.io/x": false} {
		if list.Allows(key) != want {
			t.Errorf("%s: %v", key, !want)
		}
	}
	for _, text := range []string{"*", "/*", "a b", "clusterregistry.k8s.io/*", "clusterregistry.k8s.io/clusterset"} {
		if _, err := ParseAllowList([]string{text}); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestSelected(t *testing.T) {
	gold, err := labels.Parse("tier=gold")
	if err != nil {
		t.Fatal(err)
	}
	labeled := func(set map[string]string) *clusterv1.Cluster {
		return cluster("east", func(c *clusterv1.Cluster) { c.Labels = set })
	}
	for _, test := range []struct {
		reason             string
		selector           labels.Selector
		cluster, namespace map[string]string
		want               bool
	}{
		{"all", labels.Everything(), nil, nil, true},
		{"the cluster's label", gold, map[string]string{"tier": "gold"}, nil, true},
		{"the namespace's label", gold, nil, map[string]string{"tier": "gold"}, true},
		{"the cluster's label wins", gold, map[string]string{"tier": "iron"}, map[string]string{"tier": "gold"}, false},
		{"no label", gold, nil, nil, false},
		{"ignored", gold, map[string]string{"tier": "gold", IgnoreLabel: "true"}, nil, false},
		{"a namespace ignored", gold, map[string]string{"tier": "gold", IgnoreLabel: "false"}, map[string]string{IgnoreLabel: "true"}, false},
		{"not ignored", gold, map[string]string{"tier": "gold", IgnoreLabel: "false"}, nil, true},
	} {
		c := &Controller{Config: Config{Selector: test.selector}}
		if got := c.selected(labeled(test.cluster), test.namespace); got != test.want {
			t.Errorf("%s: %v", test.reason, got)
		}
	}
}

// TestEKS makes the entry of a cluster whose infrastructure provider writes a URL for the host.
func TestEKS(t *testing.T) {
	b := newBench(t, nil, cluster("east", func(c *clusterv1.Cluster) {
		c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "https://ABCDEF0123456789.gr7.us-east-1.eks.amazonaws.com", Port: 443}
	}))
	b.must("east")
	if e := b.east().Spec.Endpoints; len(b.held()) > 0 || len(e) != 1 || e[0].URL != "https://abcdef0123456789.gr7.us-east-1.eks.amazonaws.com:443" {
		t.Errorf("%+v, held: %+v", e, b.held())
	}
}

func TestVersionOf(t *testing.T) {
	runs := func(versions ...string) *clusterv1.Cluster {
		return cluster("east", func(c *clusterv1.Cluster) {
			c.Status.ControlPlane = &clusterv1.ClusterControlPlaneStatus{}
			for _, v := range versions {
				c.Status.ControlPlane.Versions = append(c.Status.ControlPlane.Versions, clusterv1.StatusVersion{Version: v})
			}
		})
	}
	for _, test := range []struct {
		reason string
		source *clusterv1.Cluster
		want   string
	}{
		{"what is to run", cluster("east"), "v1.37.1"},
		{"what runs", runs("v1.36.3"), "v1.36.3"},
		{"the lowest of an upgrade", runs("v1.37.1", "v1.36.10", "v1.36.9"), "v1.36.9"},
		{"nothing that can be read", runs("?"), "v1.37.1"},
		{"no topology", cluster("east", func(c *clusterv1.Cluster) { c.Spec.Topology.Version = "" }), ""},
	} {
		if got := versionOf(test.source); got != test.want {
			t.Errorf("%s: %q", test.reason, got)
		}
	}
}

// TestTrim expects that no Secret's name, variable or other annotation is kept in memory.
func TestTrim(t *testing.T) {
	kept, err := trimSource(cluster("east", func(c *clusterv1.Cluster) {
		c.Annotations = map[string]string{CAAnnotation: "ca", "kubectl.kubernetes.io/last-applied-configuration": "large"}
		c.Spec.Topology.Variables = []clusterv1.ClusterVariable{{Name: "secret"}}
	}))
	if err != nil {
		t.Fatal(err)
	}
	c := kept.(*clusterv1.Cluster)
	if len(c.Annotations) != 1 || len(c.Spec.Topology.Variables) != 0 || c.UID == "" || c.Spec.Topology.Version == "" {
		t.Errorf("%+v", c)
	}
	if kept, err := trimSource(&corev1.Pod{}); err != nil || kept == nil {
		t.Errorf("%v, %v", kept, err)
	}
}
