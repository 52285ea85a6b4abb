// Package skew is the matrix of versions: the host that is up, releases of the
// registry and kubectl. "make e2e-skew" runs it on every host and prints the table.
package skew

import (
	"strings"
	"testing"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/operator/version"
)

// kubectls are the oldest kubectl that is supported, one in the middle and the
// newest.
var kubectls = []string{"v1.32.13", "v1.34.4", "v1.37.1"}

const east = `
apiVersion: clusterregistry.k8s.io/VERSION
kind: Cluster
metadata: {name: east, labels: {region: eu}}
`

// TestSkew installs the first release and the last, and has every kubectl do with
// each what users do, in every version of the API that the release serves.
func TestSkew(t *testing.T) {
	releases, err := version.Releases()
	if err != nil {
		t.Fatal(err)
	}
	for _, release := range []version.Release{releases[0], releases[len(releases)-1]} {
		t.Run(release.Version, func(t *testing.T) {
			e := framework.New(t).WithOperator()
			host, err := e.Kubernetes.Discovery().ServerVersion()
			if err != nil {
				t.Fatal(err)
			}
			registry := e.Sample("aggregated-single.yaml")
			registry.Spec.Version = operatorv1alpha1.Version(release.Version)
			e.Install(registry)
			e.WaitReady(registry)
			for _, client := range kubectls {
				result := "passed"
				if !t.Run(client, func(t *testing.T) {
					kubectl := framework.NewKubectl(t, client, framework.ClusterKubeconfig(t))
					for _, api := range release.Serves {
						use(t, kubectl, api)
					}
				}) {
					result = "FAILED"
				}
				t.Logf("SKEW | %s | %s | %s | %s | %s |", host.GitVersion, release.Version, strings.Join(release.Serves, ", "), client, result)
			}
		})
	}
}

// use creates, reads, changes, watches and deletes a cluster as one version of
// the API.
func use(t *testing.T, kubectl *framework.Kubectl, api string) {
	t.Helper()
	resource := "clusters." + api + ".clusterregistry.k8s.io"
	manifest := kubectl.Stdin(strings.ReplaceAll(east, "VERSION", api))
	manifest.Run("apply", "-f", "-")
	if out := manifest.Run("apply", "-f", "-"); !strings.Contains(out, "unchanged") {
		t.Errorf("the second apply says %q", out)
	}
	if api != "v1alpha1" { // which has no server-side apply
		manifest.Run("apply", "--server-side", "--force-conflicts", "-f", "-")
	}
	if out := kubectl.Run("get", resource, "east", "--no-headers"); !strings.HasPrefix(out, "east ") {
		t.Errorf("get prints %q", out)
	}
	seen := make(chan error, 1)
	go func() {
		_, err := kubectl.Try("wait", resource, "east", "--for=jsonpath={.metadata.labels.watched}=yes", "--timeout=2m")
		seen <- err
	}()
	kubectl.Run("label", resource, "east", "watched=yes", "--overwrite")
	if err := <-seen; err != nil {
		t.Errorf("the change was not seen by who waited: %v", err)
	}
	kubectl.Run("patch", resource, "east", "--subresource=status", "--type=merge", "-p", `{"status":{"version":{"kubernetes":"v1.30.1"}}}`)
	if out := kubectl.Run("get", resource, "-l", "region=eu", "-o", "jsonpath={.items[*].status.version.kubernetes}"); out != "v1.30.1" {
		t.Errorf("the status says %q", out)
	}
	kubectl.Run("delete", resource, "east", "--timeout=2m")
}
