package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/clusterregistry/operator/apiserver/storage/cluster"
)

// TestApplyInV1alpha1 refuses server-side apply there: what another manager has applied in
// v1beta1 would change without a conflict.
func TestApplyInV1alpha1(t *testing.T) {
	const (
		good  = `{"apiVersion":"clusterregistry.k8s.io/v1beta1","kind":"Cluster","metadata":{"name":"west"},"spec":{"endpoints":[{"name":"main","url":"https://good.example"}]}}`
		other = `{"apiVersion":"clusterregistry.k8s.io/v1alpha1","kind":"Cluster","metadata":{"name":"west"},"spec":{"kubernetesApiEndpoints":{"serverEndpoints":[{"clientCIDR":"0.0.0.0/0","serverAddress":"https://other.example"}]}}}`
	)
	d := newDesk(t, cluster.GuardedFieldsOff)
	if code, answer, _ := d.send("PATCH", "v1beta1/clusters/west?fieldManager=a", applyPatch, good); code != http.StatusCreated {
		t.Fatalf("v1beta1: %d %s", code, answer)
	}
	for _, test := range []struct{ path, kind string }{
		{"west?fieldManager=b", applyPatch},
		{"west?fieldManager=b&force=true", applyPatch},
		{"west?fieldManager=b", applyPatch + "; charset=utf-8"},
		{"west?fieldManager=b", "application/apply-patch+cbor"},
		{"west/status?fieldManager=b", applyPatch},
		{"new?fieldManager=b", applyPatch},
		{"west?fieldManager=b&dryRun=All", applyPatch},
	} {
		code, answer, _ := d.send("PATCH", "v1alpha1/clusters/"+test.path, test.kind, other)
		if code != http.StatusUnsupportedMediaType || !strings.Contains(answer, "apply the object in clusterregistry.k8s.io/v1beta1") {
			t.Errorf("%s as %s: %d %s", test.path, test.kind, code, answer)
		}
	}
	if _, answer, _ := d.send("GET", "v1beta1/clusters/west", plain, ""); !strings.Contains(answer, "https://good.example") || strings.Contains(answer, "other.example") {
		t.Errorf("another manager changed it: %s", answer)
	}
	if code, answer, _ := d.send("GET", "v1beta1/clusters/new", plain, ""); code != http.StatusNotFound {
		t.Errorf("it was created: %d %s", code, answer)
	}
	if code, answer, _ := d.send("PATCH", "v1beta1/clusters/west?fieldManager=b", applyPatch, strings.Replace(good, "good", "other", 1)); code != http.StatusConflict {
		t.Errorf("in v1beta1: %d %s", code, answer)
	}
	for _, kind := range []string{mergePatch, "application/strategic-merge-patch+json"} {
		if code, answer, _ := d.send("PATCH", "v1alpha1/clusters/west", kind, `{"metadata":{"labels":{"a":"b"}}}`); code != http.StatusOK {
			t.Errorf("%s: %d %s", kind, code, answer)
		}
	}
}
