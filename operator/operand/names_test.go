package operand

import (
	"testing"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// TestNames lists some of many objects.
func TestNames(t *testing.T) {
	var references []operatorv1alpha1.ObjectReference
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		references = append(references, operatorv1alpha1.ObjectReference{Kind: "Role", Namespace: "n", Name: name})
	}
	if got := Names(references[:2]); got != "Role n/a, Role n/b" {
		t.Error(got)
	}
	if got := Names(references); got != "Role n/a, Role n/b, Role n/c, Role n/d, Role n/e, 2 more" {
		t.Error(got)
	}
}
