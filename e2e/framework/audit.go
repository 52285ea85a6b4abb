package framework

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Audit is a host's log of what one user asked for.
type Audit struct {
	t    *testing.T
	path string
}

// StartAuditedHost is StartHost with a log of the requests of a user.
func StartAuditedHost(t *testing.T, kubernetesVersion, user string, allowedNames ...string) (*Host, *Audit) {
	t.Helper()
	policy := writeFile(t, "policy.yaml", []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata, users: ["+`"`+user+`"`+"]}]\n"))
	audit := &Audit{t: t, path: filepath.Join(t.TempDir(), "audit.log")}
	return startHost(t, kubernetesVersion, allowedNames, map[string]string{"audit-policy-file": policy, "audit-log-path": audit.path}), audit
}

// Events returns all that was logged so far.
func (a *Audit) Events() []auditv1.Event {
	a.t.Helper()
	return AuditEvents(a.t, a.path)
}

// AuditEvents returns all that was logged so far to a file, none while there is no file.
func AuditEvents(t *testing.T, path string) (out []auditv1.Event) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(content, []byte("\n"))
	for _, line := range lines {
		var event auditv1.Event
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // it is being written
		}
		if err := json.Unmarshal(line, &event); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		out = append(out, event)
	}
	return out
}
