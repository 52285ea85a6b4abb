package status

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/command/commandtest"
)

// listedClusters are one that is well, one that is not, and one without a reporter.
func listedClusters() []runtime.Object {
	east := cluster("east", condition("Available", "True", "Probed", ""))
	east.CreationTimestamp = *at(-3)
	east.Labels = map[string]string{"region": "eu", "env": "prod", v1beta1.ClusterSetLabel: "payments"}
	east.Spec = v1beta1.ClusterSpec{ClusterSet: "payments", Endpoints: []v1beta1.Endpoint{{Name: "main", URL: "https://east.example:6443"}, {Name: "inside"}}}
	east.Status.Version.Kubernetes = "v1.37.1"
	west := cluster("west", condition("Available", "False", "Refused\x1b[31m", ""))
	west.Spec.Endpoints = []v1beta1.Endpoint{{Name: "main", URL: "https://west.example"}}
	return []runtime.Object{east, west, cluster("north")}
}

func TestListClusters(t *testing.T) {
	for _, test := range []struct {
		args, want string
		code       int
	}{
		{"", "NAME AVAILABLE REASON VERSION SET AGE\neast True - v1.37.1 payments 3d\nnorth - - - - -\nwest False Refused[31m - - -\n", 0},
		{"-o wide", "NAME AVAILABLE REASON VERSION SET AGE ENDPOINT LABELS\neast True - v1.37.1 payments 3d https://east.example:6443 (and 1 more) env=prod,region=eu\nnorth - - - - - - -\nwest False Refused[31m - - - https://west.example -\n", 0},
		{"-o name -l env=prod", "cluster.clusterregistry.k8s.io/east\n", 0},
		{"-o jsonpath={.items[*].metadata.name}", "east north west", 0},
		{"-l env=none", "", 0},
		{"-o table", "--output=table: use wide or name or json or yaml or jsonpath=TEMPLATE", 2},
		{"--by region -o wide", "--output=wide: it is for a list, and --by counts: leave one of them out", 2},
	} {
		env := commandtest.New(t, listedClusters()...)
		text, code := env.Run(t, NewClusters(env.Env), strings.Fields(test.args)...)
		var lines []string
		for line := range strings.Lines(env.Stdout.String()) {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		}
		got := strings.Join(lines, "\n")
		if code == 2 {
			got = text
		}
		if code != test.code || got != strings.TrimSuffix(test.want, "\n") {
			t.Errorf("%q: exits with %d, %q and prints\n%s", test.args, code, text, got)
		}
		if none := test.want == ""; none != strings.Contains(env.Stderr.String(), "No clusters found.") {
			t.Errorf("%q: it notes %s", test.args, env.Stderr)
		}
	}
}

// TestListUnprobed has no availability be shown that no one has probed.
func TestListUnprobed(t *testing.T) {
	unprobed := fleet(func(creg *operatorv1alpha1.ClusterRegistry) {
		creg.Spec.Controllers = &operatorv1alpha1.Controllers{Health: &operatorv1alpha1.HealthController{}}
		creg.Status.Conditions = append(creg.Status.Conditions, condition("ControllerReady", "False", "LeaderLost", ""))
	})
	env := commandtest.New(t, listedClusters()...).WithObjects(t, unprobed)
	if text, code := env.Run(t, NewClusters(env.Env)); code != 0 || strings.Count(env.Stdout.String(), "unknown     LeaderLost") != 2 {
		t.Errorf("exits with %d, %s: %s", code, text, env.Stdout)
	}
}
