package framework

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// StartEtcd starts an etcd of one member on loopback and returns its URL; it
// ends with the test.
func StartEtcd(t *testing.T, version string) string {
	t.Helper()
	etcd := &envtest.Etcd{Path: Program(t, "etcd", version, "etcd"), StartTimeout: 3 * time.Minute, StopTimeout: 3 * time.Minute}
	if err := etcd.Start(); err != nil {
		t.Fatalf("start etcd %s: %v", version, err)
	}
	t.Cleanup(func() {
		if err := etcd.Stop(); err != nil {
			t.Errorf("stop etcd %s: %v", version, err)
		}
	})
	return etcd.URL.String()
}
