package integration

import (
	"context"
	"errors"
	"net/http"
	"slices"
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
	var event auditv1.Event
	framework.Eventually(t, "the creation to be in the audit log", func(context.Context) error {
		found := slices.DeleteFunc(framework.AuditEvents(t, path), func(e auditv1.Event) bool {
			return e.Verb != "create" || e.ObjectRef == nil || e.ObjectRef.Resource != "clusters"
		})
		if len(found) > 1 {
			t.Fatalf("%d creates of clusters in the audit log: %+v", len(found), found)
		}
		if len(found) == 0 {
			return errors.New("it is not")
		}
		event = found[0]
		return nil
	})
	if event.User.Username != "alice" || event.ObjectRef.Name != "audited" || event.ObjectRef.APIGroup != "clusterregistry.k8s.io" || event.Stage != auditv1.StageResponseComplete || event.ResponseStatus.Code != http.StatusCreated {
		t.Errorf("the event is %+v", event)
	}
}
