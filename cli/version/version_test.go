package version

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterregistry/operator/cli/command/commandtest"
)

var info = version.Info{GitVersion: "v0.2.0", GitCommit: "1234abc", Platform: "linux/amd64"}

const registry = `
apiVersion: operator.clusterregistry.io/v1alpha1
kind: ClusterRegistry
metadata: {name: fleet, namespace: registries}
spec: {version: v0.2.0, mode: Aggregated}
status: {version: v0.1.0, etcdVersion: v3.7.3, hostVersion: v1.37.1}
`

func TestVersion(t *testing.T) {
	newer := strings.Replace(registry, "version: v0.2.0", "version: v99.0.0", 1)
	for _, test := range []struct {
		reason, objects, args string
		code                  int
		// says is in what is printed or in the error.
		says []string
	}{
		{"all releases are known", registry, "", 0, []string{"Plugin: v0.2.0 (commit 1234abc, linux/amd64)\n", "Releases that it knows: v0.1.0 to v", "registries   fleet      v0.1.0    v0.2.0    v3.7.3   v1.37.1        yes\n"}},
		{"one is not", newer, "", 4, []string{"v99.0.0", " no\n", "ClusterRegistry registries/fleet has release v99.0.0, which this plugin does not know: use the plugin of the operator's release"}},
		{"for a program", newer, "-o json", 4, []string{`"unknown": [`, `"version": "v0.2.0"`}},
		{"the plugin alone", newer, "--client", 0, []string{"Plugin: v0.2.0"}},
		{"no such form", registry, "-o wide", 2, []string{"wide"}},
	} {
		env := commandtest.New(t)
		env.Objects = commandtest.HostCluster(commandtest.Objects(t, test.objects)...)
		text, code := env.Run(t, New(env.Env, info), strings.Fields(test.args)...)
		text += env.Stdout.String()
		for _, says := range test.says {
			if !strings.Contains(text, says) {
				t.Errorf("%s: it does not say %q: %s", test.reason, says, text)
			}
		}
		if code != test.code {
			t.Errorf("%s: exits with %d: %s", test.reason, code, text)
		}
		if test.args == "--client" && len(env.Objects.Actions()) > 0 {
			t.Errorf("%s: it has asked for %v", test.reason, env.Objects.Actions())
		}
	}
}

// TestVersionWithoutRegistries has contexts that say nothing of ClusterRegistries.
func TestVersionWithoutRegistries(t *testing.T) {
	resource := schema.GroupResource{Resource: "clusterregistries"}
	for says, refusal := range map[string]error{
		"this context has no ClusterRegistries": apierrors.NewNotFound(resource, ""),
		"you may not list ClusterRegistries":    apierrors.NewForbidden(resource, "", errors.New("no")),
	} {
		env := commandtest.New(t)
		env.Objects.PrependReactor("list", "clusterregistries", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, refusal })
		text, code := env.Run(t, New(env.Env, info))
		if code != 0 || !strings.Contains(env.Stdout.String(), "Plugin: v0.2.0") || !strings.Contains(env.Stderr.String(), says) {
			t.Errorf("%s: exits with %d, %s: %s%s", says, code, text, env.Stdout, env.Stderr)
		}
	}
	env := commandtest.New(t)
	env.Flags.Namespace = new(string)
	*env.Flags.Namespace = "team"
	env.Objects.PrependReactor("list", "clusterregistries", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(resource, "", errors.New("no"))
	})
	if _, code := env.Run(t, New(env.Env, info)); code != 0 || !strings.Contains(env.Stderr.String(), "note: you may not list ClusterRegistries in the namespace team\n") {
		t.Errorf("a namespace: exits with %d: %s", code, env.Stderr)
	}
	for args, says := range map[string]string{"": "Plugin: v0.2.0", "-o=json": "connection refused"} {
		env := commandtest.New(t)
		env.Objects.PrependReactor("list", "clusterregistries", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("connection refused")
		})
		if text, code := env.Run(t, New(env.Env, info), strings.Fields(args)...); code != 1 || !strings.Contains(text, "connection refused") || !strings.Contains(env.Stdout.String(), says) {
			t.Errorf("an error: exits with %d: %s%s", code, text, env.Stdout)
		}
	}
}
