package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/apiserver/storage/cluster"
)

// TestFieldsOfAnUnknownVersion writes a cluster whose fields are owned in a version that
// another release of the server knows, as after a rollback: it stops no write.
func TestFieldsOfAnUnknownVersion(t *testing.T) {
	for reason, write := range map[string]struct{ method, path, kind, body string }{
		"apply":                   {"PATCH", "v1beta1/clusters/west?fieldManager=ci", applyPatch, `{"apiVersion":"clusterregistry.k8s.io/v1beta1","kind":"Cluster","metadata":{"name":"west","labels":{"x":"2"}}}`},
		"merge patch":             {"PATCH", "v1beta1/clusters/west", mergePatch, `{"metadata":{"labels":{"x":"2"}}}`},
		"strategic merge patch":   {"PATCH", "v1beta1/clusters/west", "application/strategic-merge-patch+json", `{"metadata":{"labels":{"x":"2"}}}`},
		"JSON patch":              {"PATCH", "v1beta1/clusters/west", jsonPatch, `[{"op":"add","path":"/metadata/labels/x","value":"2"}]`},
		"replace":                 {"PUT", "v1beta1/clusters/west", plain, `{"apiVersion":"clusterregistry.k8s.io/v1beta1","kind":"Cluster","metadata":{"name":"west","labels":{"a":"b","x":"2"}},"spec":{"displayName":"West"}}`},
		"merge patch in v1alpha1": {"PATCH", "v1alpha1/clusters/west", mergePatch, `{"metadata":{"labels":{"x":"2"}}}`},
		"status":                  {"PATCH", "v1beta1/clusters/west/status", mergePatch, `{"status":{"version":{"kubernetes":"v2"}}}`},
	} {
		d := newDesk(t, cluster.GuardedFieldsOff)
		if code, answer, _ := d.send("POST", "v1beta1/clusters", plain, `{"apiVersion":"clusterregistry.k8s.io/v1beta1","kind":"Cluster","metadata":{"name":"west","labels":{"a":"b"}},"spec":{"displayName":"West"}}`); code != http.StatusCreated {
			t.Fatalf("%d %s", code, answer)
		}
		owned := func(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
			return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, APIVersion: "clusterregistry.k8s.io/v2", Time: &metav1.Time{Time: time.Unix(0, 0)}, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
		}
		d.stored.change(t, "west", func(c *clusterregistry.Cluster) {
			c.ManagedFields = []metav1.ManagedFieldsEntry{
				owned("ci", metav1.ManagedFieldsOperationApply, `{"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:regions":{"k:{\"name\":\"eu\"}":{}}}}`),
				owned("other", metav1.ManagedFieldsOperationUpdate, `{"f:spec":{"f:displayName":{}}}`),
			}
		})
		if code, answer, _ := d.send(write.method, write.path, write.kind, write.body); code != http.StatusOK {
			t.Errorf("%s: %d %s", reason, code, answer)
		}
		_, read, _ := d.send("GET", "v1beta1/clusters/west", plain, "")
		changed := `"x":"2"`
		if reason == "status" {
			changed = `"kubernetes":"v2"`
		}
		if !strings.Contains(read, `"a":"b"`) || !strings.Contains(read, `"displayName":"West"`) || !strings.Contains(read, changed) {
			t.Errorf("%s: it is %s", reason, read)
		}
	}
}

// TestFromClientSideApply applies a cluster as "kubectl apply" does, in either version, and
// from then on as "kubectl apply --server-side" does: an endpoint that is left out there goes.
// Of one that was applied in v1alpha1 kubectl does not know the fields of v1beta1: it stays until
// someone removes it, once, and comes back no more.
func TestFromClientSideApply(t *testing.T) {
	for version, spec := range map[string]string{
		"v1alpha1": `{"kubernetesApiEndpoints":{"serverEndpoints":[{"clientCIDR":"0.0.0.0/0","serverAddress":"https://one.example"},{"clientCIDR":"10.0.0.0/8","serverAddress":"https://two.example"}]}}`,
		"v1beta1":  `{"endpoints":[{"name":"endpoint-1","url":"https://one.example"},{"name":"endpoint-2","url":"https://two.example"}]}`,
	} {
		d := newDesk(t, cluster.GuardedFieldsOff)
		body := `{"apiVersion":"clusterregistry.k8s.io/` + version + `","kind":"Cluster","metadata":{"name":"west","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"}},"spec":` + spec + `}`
		if code, answer, _ := d.send("POST", version+"/clusters?fieldManager=kubectl-client-side-apply", plain, body); code != http.StatusCreated {
			t.Fatalf("%s: %d %s", version, code, answer)
		}
		apply := func(endpoints string) []v1beta1.Endpoint {
			t.Helper()
			code, answer, _ := d.send("PATCH", "v1beta1/clusters/west?fieldManager=kubectl&force=true", applyPatch, `{"apiVersion":"clusterregistry.k8s.io/v1beta1","kind":"Cluster","metadata":{"name":"west"},"spec":{"endpoints":`+endpoints+`}}`)
			read := &v1beta1.Cluster{}
			if err := json.Unmarshal([]byte(answer), read); err != nil || code != http.StatusOK {
				t.Fatalf("%s: %d %s, %v", version, code, answer, err)
			}
			return read.Spec.Endpoints
		}
		apply(`[{"name":"endpoint-1","url":"https://one.example"}]`)
		// What kubectl does after that where it finds what it has applied itself before.
		_, answer, _ := d.send("GET", "v1beta1/clusters/west", plain, "")
		read := &v1beta1.Cluster{}
		if err := json.Unmarshal([]byte(answer), read); err != nil {
			t.Fatal(err)
		}
		patch, err := csaupgrade.UpgradeManagedFieldsPatch(read, sets.New("kubectl-client-side-apply"), "kubectl")
		if err != nil || len(patch) == 0 {
			t.Fatalf("%s: %s, %v", version, patch, err)
		}
		if code, answer, _ := d.send("PATCH", "v1beta1/clusters/west", jsonPatch, string(patch)); code != http.StatusOK {
			t.Fatalf("%s: %d %s", version, code, answer)
		}
		if version == "v1alpha1" {
			if code, answer, _ := d.send("PATCH", "v1beta1/clusters/west", mergePatch, `{"spec":{"endpoints":[{"name":"endpoint-1","url":"https://one.example"}]}}`); code != http.StatusOK {
				t.Fatalf("%d %s", code, answer)
			}
		}
		if got := apply(`[{"name":"endpoint-1","url":"https://one.example"}]`); len(got) != 1 || got[0].URL != "https://one.example" {
			t.Errorf("%s: one endpoint is applied, and there is %+v", version, got)
		}
		if got := apply(`[]`); len(got) != 0 {
			t.Errorf("%s: none is applied, and there is %+v", version, got)
		}
	}
}
