package framework

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Host starts a bare host for integration tests: a real kube-apiserver of the
// given version over a real etcd, on loopback, without nodes. It ends with the
// test.
func Host(t *testing.T, kubernetesVersion string) *rest.Config {
	t.Helper()
	env := &envtest.Environment{
		ControlPlane: envtest.ControlPlane{
			APIServer: &envtest.APIServer{Path: Program(t, "kubernetes", kubernetesVersion, "kube-apiserver")},
			Etcd:      &envtest.Etcd{Path: Program(t, "etcd", "v3.6.14", "etcd")},
		},
		ControlPlaneStartTimeout: 3 * time.Minute,
		ControlPlaneStopTimeout:  3 * time.Minute,
	}
	config, err := env.Start()
	if err != nil {
		t.Fatalf("start a bare Kubernetes %s: %v", kubernetesVersion, err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Errorf("stop Kubernetes %s: %v", kubernetesVersion, err)
		}
	})
	return config
}

// Program returns the path of a program of Kubernetes or etcd that the cluster
// command builds, when it's missing.
func Program(t *testing.T, component, version, program string) string {
	t.Helper()
	root := Root(t)
	cmd := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "cluster"), "binaries", component, version, program)
	cmd.Dir = root
	var stderr strings.Builder
	cmd.Stderr = &stderr
	dir, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s of %s %s: %v: %s\n\"make integration\" builds what these tests need", program, component, version, err, stderr.String())
	}
	return filepath.Join(strings.TrimSpace(string(dir)), program)
}
