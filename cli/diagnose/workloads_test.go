package diagnose

import (
	"os"
	"strings"
	"testing"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// TestGuide names sections that there are.
func TestGuide(t *testing.T) {
	page, err := os.ReadFile("../../docs/how-to/replace-an-etcd-member.md")
	if err != nil {
		t.Fatal(err)
	}
	creg := &operatorv1alpha1.ClusterRegistry{}
	for lost, want := range map[*operatorv1alpha1.RecoveryStatus]string{nil: "A member has lost its data", {ID: "c-1"}: "Lost quorum"} {
		creg.Status.Recovery = lost
		if got := guide(creg); got != want || !strings.Contains(string(page), "\n## "+got+"\n") {
			t.Errorf("with the loss %v: it is %q, want %q, a section of the page", lost, got, want)
		}
	}
}
