package framework

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Audit is a host's log of what one user asked for.
type Audit struct {
	t    *testing.T
	path string
	// events are those that were read, and read is how many bytes they are in the file.
	events []auditv1.Event
	read   int64
}

// StartAuditedHost is StartHost with a log of the requests of a user.
func StartAuditedHost(t *testing.T, kubernetesVersion, user string, allowedNames ...string) (*Host, *Audit) {
	t.Helper()
	policy := writeFile(t, "policy.yaml", []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata, users: ["+`"`+user+`"`+"]}]\n"))
	audit := &Audit{t: t, path: filepath.Join(t.TempDir(), "audit.log")}
	flags := map[string]string{
		"audit-policy-file": policy, "audit-log-path": audit.path,
		"audit-log-maxsize": "10000", // MiB: one that is rotated at 100 loses events
	}
	return startHost(t, kubernetesVersion, allowedNames, flags), audit
}

// Events returns all that was logged so far. It reads only what is new: a log of some minutes
// has tens of megabytes, and tests wait for events.
func (a *Audit) Events() []auditv1.Event {
	a.t.Helper()
	events, read := auditEvents(a.t, a.path, a.read)
	a.events, a.read = append(a.events, events...), a.read+read
	return a.events
}

// AuditEvents returns all that was logged so far to a file, none while there is no file.
func AuditEvents(t *testing.T, path string) []auditv1.Event {
	t.Helper()
	events, _ := auditEvents(t, path, 0)
	return events
}

// auditEvents returns what was logged to a file behind an offset, and how many bytes that is.
func auditEvents(t *testing.T, path string, offset int64) (out []auditv1.Event, read int64) {
	t.Helper()
	file, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil, 0
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // it is only read
	content, err := io.ReadAll(io.NewSectionReader(file, offset, math.MaxInt64-offset))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(content) {
		var event auditv1.Event
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // it is being written
		}
		if err := json.Unmarshal(line, &event); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		out, read = append(out, event), read+int64(len(line))
	}
	return out, read
}
