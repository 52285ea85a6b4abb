package server

import (
	"encoding/json"
	"net/http"
	"reflect"
	"testing"

	"github.com/clusterregistry/operator/apiserver/storage/cluster"
)

// TestStoredAsWritten writes objects with all fields, and with no more than the required
// ones in each entry of a list, in every way. Tools that compare what they wrote with what
// is there (a three-way merge, Terraform) find it unchanged, but for the label of a set.
func TestStoredAsWritten(t *testing.T) {
	const (
		all = `{"clusterSet":"payments","displayName":"West","id":"w","endpoints":[` +
			`{"name":"z","url":"https://z.example:6443/","clientCIDRs":["10.0.0.0/8"],"proxyURL":"http://proxy.example:3128","tlsServerName":"kubernetes"},{"name":"a","url":"https://a.example"}],` +
			`"access":[{"name":"z","audience":"User","exec":{"apiVersion":"client.authentication.k8s.io/v1","command":"tsh","args":["b","a"],"env":[{"name":"Z","value":"1"},{"name":"A"}],"installHint":"ask","provideClusterInfo":true,"interactiveMode":"Always"}},` +
			`{"name":"idp","audience":"User","oidc":{"issuerURL":"https://idp.example","clientID":"k","scopes":["z","a"]}},` +
			`{"name":"agent","audience":"Controller","objectRef":{"apiVersion":"v1","kind":"Secret","namespace":"fleet","name":"west"}},` +
			`{"name":"cloud","audience":"Controller","provider":{"type":"x","config":{"region":"eu"}}}],` +
			`"taints":[{"key":"z","value":"1","effect":"NoExecute"},{"key":"a","effect":"NoSchedule"}],"heartbeat":{"periodSeconds":60,"toleratedMisses":5},` +
			`"manager":{"name":"ci"},"sourceRef":{"apiVersion":"v1","kind":"ConfigMap","namespace":"fleet","name":"west"}}`
		required = `{"endpoints":[{"name":"main"}],"access":[{"name":"login","audience":"User","exec":{"apiVersion":"client.authentication.k8s.io/v1","command":"tsh"}},` +
			`{"name":"idp","audience":"User","oidc":{"issuerURL":"https://idp.example","clientID":"k"}},{"name":"agent","audience":"Controller","objectRef":{"kind":"Secret","name":"west"}},` +
			`{"name":"cloud","audience":"Controller","provider":{}}],"taints":[{"key":"a","effect":"NoSchedule"}]}`
		old = `{"kubernetesApiEndpoints":{"serverEndpoints":[{"clientCIDR":"10.0.0.0/8","serverAddress":"z.example"},{"serverAddress":"a.example"},{"clientCIDR":"::/0"}]},` +
			`"authInfo":{"providers":[{"name":"z","type":{"name":"gcp"}},{"name":"a","type":{"name":"x"},"config":{"region":"eu"}}]}}`
	)
	for reason, test := range map[string]struct{ version, spec, label string }{
		"all fields":      {"v1beta1", all, "payments"},
		"required fields": {"v1beta1", required, ""},
		"v1alpha1":        {"v1alpha1", old, ""},
	} {
		body := `{"apiVersion":"clusterregistry.k8s.io/` + test.version + `","kind":"Cluster","metadata":{"name":"west","labels":{"team":"a"},"annotations":{"note":"x"}},"spec":` + test.spec + `}`
		for _, write := range []struct{ method, path, kind string }{
			{"POST", "clusters", plain},
			{"PUT", "clusters/west", plain},
			{"PATCH", "clusters/west", mergePatch},
			{"PATCH", "clusters/west?fieldManager=ci&force=true", applyPatch},
		} {
			if test.version == "v1alpha1" && write.kind == applyPatch {
				continue // refused, see TestApplyInV1alpha1
			}
			d := newDesk(t, cluster.GuardedFieldsOff)
			if code, answer, _ := d.send("POST", "v1beta1/clustersets", plain, `{"apiVersion":"clusterregistry.k8s.io/v1beta1","kind":"ClusterSet","metadata":{"name":"payments"}}`); code != http.StatusCreated {
				t.Fatalf("the set: %d %s", code, answer)
			}
			if write.kind == mergePatch {
				d.send("POST", test.version+"/clusters", plain, `{"metadata":{"name":"west"}}`)
			}
			code, answer, _ := d.send(write.method, test.version+"/"+write.path, write.kind, body)
			if code != http.StatusCreated && code != http.StatusOK {
				t.Errorf("%s by %s %s: %d %s", reason, write.method, write.kind, code, answer)
				continue
			}
			_, read, _ := d.send("GET", test.version+"/clusters/west", plain, "")
			for what, text := range map[string]string{"the answer": answer, "what is read": read} {
				if got, want := bare(t, text), bare(t, body); !reflect.DeepEqual(withLabel(want, test.label), got) {
					t.Errorf("%s by %s %s: %s is\n%v\nand what was written\n%v", reason, write.method, write.kind, what, got, want)
				}
			}
		}
	}
}

// bare returns what a person writes of an object.
func bare(t *testing.T, text string) map[string]any {
	t.Helper()
	object := map[string]any{}
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	metadata := object["metadata"].(map[string]any)
	return map[string]any{"name": metadata["name"], "labels": metadata["labels"], "annotations": metadata["annotations"], "spec": object["spec"], "status": object["status"]}
}

// withLabel adds the label by which the server shows a set.
func withLabel(object map[string]any, set string) map[string]any {
	if set != "" {
		object["labels"].(map[string]any)["clusterregistry.k8s.io/clusterset"] = set
	}
	return object
}
