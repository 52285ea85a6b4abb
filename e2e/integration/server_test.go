package integration

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/clusterregistry/operator/e2e/framework"
)

// TestServer uses what every server of a registry has, whatever the host.
func TestServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	policy, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	if err := os.WriteFile(policy, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	host, registry := framework.StartAggregated(t, newest, "--audit-policy-file="+policy, "--audit-log-path="+log)
	t.Run("readiness", func(t *testing.T) { testReadiness(t, host) })
	t.Run("audit log", func(t *testing.T) { testAuditLog(t, host, log) })
	t.Run("protected paths", func(t *testing.T) { testProtectedPaths(t, host, registry) })
	t.Run("serving certificate", func(t *testing.T) { testServingCertificate(t, registry) })
	t.Run("TLS versions", func(t *testing.T) { testTLSVersions(t, registry) })
}
