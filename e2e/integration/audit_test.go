package integration

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/clusterregistry/operator/e2e/framework"
)

// testAuditLog expects that the log tells who came through the aggregator.
func testAuditLog(t *testing.T, host *framework.Host, path string) {
	if _, err := asUser(t, host, "alice").Create(t.Context(), cluster("audited", nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var found []auditv1.Event
	for lines := bufio.NewScanner(bytes.NewReader(content)); lines.Scan(); {
		var event auditv1.Event
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		if event.Verb == "create" && event.ObjectRef != nil && event.ObjectRef.Resource == "clusters" {
			found = append(found, event)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d creates of clusters in the audit log: %+v", len(found), found)
	}
	event := found[0]
	if event.User.Username != "alice" || event.ObjectRef.Name != "audited" || event.ObjectRef.APIGroup != "clusterregistry.k8s.io" || event.Stage != auditv1.StageResponseComplete || event.ResponseStatus.Code != http.StatusCreated {
		t.Errorf("the event is %+v", event)
	}
}
