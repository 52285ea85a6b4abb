package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/clusterregistry/operator/apis/clusterregistry/validation"
	"github.com/clusterregistry/operator/apiserver/storage/cluster"
)

// TestLargeClientSideApply creates a cluster with the largest CA bundles that there may be as
// "kubectl apply" does, which keeps a copy of it in an annotation. A copy that is larger than
// annotations may be is refused, and the answer says so.
func TestLargeClientSideApply(t *testing.T) {
	d := newDesk(t, cluster.GuardedFieldsOff)
	one := certificates(t, 1)
	most := validation.MaxCABundle / len(one)
	object := map[string]any{"apiVersion": "clusterregistry.k8s.io/v1beta1", "kind": "Cluster", "metadata": map[string]any{"name": "west"}, "spec": map[string]any{"endpoints": []any{
		map[string]any{"name": "inside", "url": "https://inside.example", "caBundle": bytes.Repeat(one, most)},
		map[string]any{"name": "outside", "url": "https://outside.example", "caBundle": bytes.Repeat(one, most-1)},
	}}}
	applied, err := json.Marshal(object)
	if err != nil || len(applied) < 150<<10 {
		t.Fatalf("%d bytes, %v", len(applied), err)
	}
	send := func(name, applied string) (code int, answer string) {
		t.Helper()
		object["metadata"] = map[string]any{"name": name, "annotations": map[string]any{"kubectl.kubernetes.io/last-applied-configuration": applied}}
		body, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		code, answer, _ = d.send("POST", "v1beta1/clusters?fieldManager=kubectl-client-side-apply", plain, string(body))
		return code, answer
	}
	if code, answer := send("west", string(applied)); code != http.StatusCreated {
		t.Errorf("the largest bundles: %d %s", code, answer[:min(500, len(answer))])
	}
	if code, answer := send("east", strings.Repeat("x", 257<<10)); code != http.StatusUnprocessableEntity || !strings.Contains(answer, "metadata.annotations: Too long: may not be more than 262144 bytes") {
		t.Errorf("a copy of 257 KiB: %d %s", code, answer[:min(500, len(answer))])
	}
}
