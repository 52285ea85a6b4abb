package feed

import (
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// hostile has the texts of an entry that no answer may have.
var hostile = []string{"<<", ">>", "{{", "\"\n", "'", "=cmd", "@SUM", "$(", "`"}

// TestFormats expects what each consumer reads.
func TestFormats(t *testing.T) {
	b := newBench(t)
	b.put(member("east", func(c *v1beta1.Cluster) { c.Labels["example.com/zone"] = "a" }), member("west", func(c *v1beta1.Cluster) {
		c.Labels, c.Spec.ID, c.Spec.ClusterSet, c.Spec.Access = nil, "", "", nil
	}), member("v6", func(c *v1beta1.Cluster) {
		c.Spec.Endpoints[0].URL, c.Spec.Access[0].Provider.Type = "https://v6.example.com", "plain"
	}))
	pem := base64.StdEncoding.EncodeToString(ca)
	for path, want := range map[string]string{
		"/v1/clusters.json": `{"clusters": [
			{"id": "east", "name": "east", "clusterID": "east-id", "clusterSet": "payments", "provider": "sso", "address": "https://east.example.com:6443", "ca": "PEM", "verified": true, "reason": "", "labels": {"tier": "gold", "example.com/zone": "a"}},
			{"id": "v6", "name": "v6", "clusterID": "v6-id", "clusterSet": "payments", "provider": "plain", "address": "https://v6.example.com", "ca": "PEM", "verified": true, "reason": "", "labels": {"tier": "gold"}},
			{"id": "west", "name": "west", "clusterID": "", "clusterSet": "", "provider": "", "address": "", "ca": "", "verified": false, "reason": "NoAccess", "labels": {}}]}`,
		"/v1/prometheus": `[
			{"targets": ["east.example.com:6443"], "labels": {"__scheme__": "https", "__meta_clusterregistry_name": "east", "__meta_clusterregistry_id": "east-id", "__meta_clusterregistry_clusterset": "payments", "__meta_clusterregistry_provider": "sso", "__meta_clusterregistry_address": "https://east.example.com:6443", "__meta_clusterregistry_label_tier": "gold", "__meta_clusterregistry_label_example_com_zone": "a"}},
			{"targets": ["v6.example.com:443"], "labels": {"__scheme__": "https", "__meta_clusterregistry_name": "v6", "__meta_clusterregistry_id": "v6-id", "__meta_clusterregistry_clusterset": "payments", "__meta_clusterregistry_provider": "plain", "__meta_clusterregistry_address": "https://v6.example.com", "__meta_clusterregistry_label_tier": "gold"}}]`,
		"/v1/backstage.json": `[
			{"apiVersion": "backstage.io/v1alpha1", "kind": "Resource", "metadata": {"name": "east", "labels": {"tier": "gold", "example.com/zone": "a"}, "annotations": {"backstage.io/managed-by-location": "LOCATION", "backstage.io/managed-by-origin-location": "LOCATION", "kubernetes.io/api-server": "https://east.example.com:6443", "kubernetes.io/api-server-certificate-authority": "PEM", "kubernetes.io/auth-provider": "oidc", "kubernetes.io/oidc-token-provider": "okta"}}, "spec": {"type": "kubernetes-cluster", "owner": "unknown"}},
			{"apiVersion": "backstage.io/v1alpha1", "kind": "Resource", "metadata": {"name": "v6", "labels": {"tier": "gold"}, "annotations": {"backstage.io/managed-by-location": "LOCATION", "backstage.io/managed-by-origin-location": "LOCATION"}}, "spec": {"type": "kubernetes-cluster", "owner": "unknown"}},
			{"apiVersion": "backstage.io/v1alpha1", "kind": "Resource", "metadata": {"name": "west", "annotations": {"backstage.io/managed-by-location": "LOCATION", "backstage.io/managed-by-origin-location": "LOCATION"}}, "spec": {"type": "kubernetes-cluster", "owner": "unknown"}}]`,
	} {
		want = strings.NewReplacer("PEM", pem, "LOCATION", "url:"+audience+"/v1/backstage.json").Replace(want)
		got := b.ask(path)
		var have, wanted any
		if err := json.Unmarshal(got.Body.Bytes(), &have); err != nil {
			t.Errorf("%s: %v: %s", path, err, got.Body)
		}
		if err := json.Unmarshal([]byte(want), &wanted); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if !reflect.DeepEqual(have, wanted) || got.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: %v\n%s\nwant %s", path, got.Header(), got.Body, want)
		}
	}
	inputs := strings.Replace(b.ask("/v1/clusters.json").Body.String(), `"clusters"`, `"inputs"`, 1)
	if got := b.ask("/v1/flux").Body.String(); got != inputs {
		t.Errorf("Flux reads %s", got)
	}
	rows, err := csv.NewReader(b.ask("/v1/clusters.csv").Body).ReadAll()
	want := [][]string{
		{"name", "clusterID", "clusterSet", "provider", "address", "verified", "reason", "labels", "ca"},
		{"east", "east-id", "payments", "sso", "https://east.example.com:6443", "true", "", "example.com/zone=a,tier=gold", pem},
		{"v6", "v6-id", "payments", "plain", "https://v6.example.com", "true", "", "tier=gold", pem},
		{"west", "", "", "", "", "false", "NoAccess", "", ""},
	}
	if err != nil || !reflect.DeepEqual(rows, want) {
		t.Errorf("%v: %q", err, rows)
	}
}

// TestEmpty expects a registry without clusters, of which a person has said that it is right, to be an
// answer, with a list.
func TestEmpty(t *testing.T) {
	b := newBench(t)
	b.fleet.accept()
	for path, want := range map[string]string{"/v1/clusters.json": "{\"clusters\":[\n]}\n", "/v1/flux": "{\"inputs\":[\n]}\n", "/v1/prometheus": "[\n]\n", "/v1/backstage.json": "[\n]\n"} {
		if got := b.ask(path); got.Code != http.StatusOK || got.Body.String() != want {
			t.Errorf("%s: %d, %q", path, got.Code, got.Body)
		}
	}
}

// TestTexts expects nothing of what someone writes into an entry to be in an answer, but what a
// template, a spreadsheet and a shell take for text.
func TestTexts(t *testing.T) {
	for _, text := range hostile {
		b := newBench(t)
		b.put(member("east", func(c *v1beta1.Cluster) {
			c.Spec.DisplayName, c.Spec.ID, c.Spec.ClusterSet = "evil"+text, text+"evil", "evil"+text
			c.Labels = map[string]string{"tier": text, "example.com/x": "evil" + text, "example.com/" + text: "evil", "other": "evil"}
			c.Annotations = map[string]string{"a": text}
			c.Spec.Endpoints[0].Name = text
			c.Spec.Endpoints[0].URL = "https://east.example.com/evil" + text
			c.Spec.Endpoints[0].CABundle = append([]byte("evil "+text+"\n"), ca...)
			c.Spec.Access[0].Name = text
			c.Spec.Access[0].Provider.Config = map[string]string{"clusterName": text}
		}), member("plain", func(c *v1beta1.Cluster) {
			c.Spec.Endpoints[0].CABundle = append([]byte("evil "+text+"\n"), ca...)
		}))
		for path, form := range forms {
			body := b.ask(path).Body.String()
			if strings.Contains(body, "evil") || strings.Contains(body, text) && text != "\"\n" {
				t.Errorf("%s: %q is in %s", form.name, text, body)
			}
		}
		for _, r := range b.records(b.ask("/v1/flux")) {
			pem, err := base64.StdEncoding.DecodeString(r.CA)
			if err != nil || strings.Contains(string(pem), "evil") {
				t.Errorf("the CA of %s is %s, %v", r.Name, pem, err)
			}
		}
	}
}

// unquoted are texts that YAML takes as they are, as templates of Flux put them there.
var unquoted = regexp.MustCompile(`^[A-Za-z0-9]?[A-Za-z0-9._:/+=~\[\]-]*$`)

// TestUnquoted expects each value to be fit for YAML without quotes, and for one line.
func TestUnquoted(t *testing.T) {
	b := newBench(t)
	b.put(member("east", func(c *v1beta1.Cluster) { c.Labels["example.com/zone"] = "a_b.c" }))
	var said struct{ Inputs []map[string]any }
	if err := json.Unmarshal(b.ask("/v1/flux").Body.Bytes(), &said); err != nil {
		t.Fatal(err)
	}
	for key, value := range said.Inputs[0] {
		if text, is := value.(string); is && !unquoted.MatchString(text) {
			t.Errorf("%s is %q", key, text)
		}
	}
}

// TestCells expects no cell to be a formula.
func TestCells(t *testing.T) {
	for text, want := range map[string]string{"": "", "east": "east", "a=b": "a=b", "=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)", "\t=1": "'\t=1", "\r=1": "'\r=1", "\n=1": "'\n=1"} {
		if got := cell(text); got != want {
			t.Errorf("%q is written as %q", text, got)
		}
	}
}

// TestSettings is about what is wrong with settings.
func TestSettings(t *testing.T) {
	for settings, says := range map[string]string{
		`{}`: "", published: "",
		`{"label": []}`:                                  "unknown field",
		`{"labels": ["*"]}`:                              "neither the key of a label",
		`{"providers": [{"hosts": ["a.b"]}]}`:            "without a name",
		`{"providers": [{"name": "a"}]}`:                 "it needs hosts",
		`{"providers": [{"name": "a", "hosts": ["*"]}]}`: "hosts has",
		`{"providers": [{"name": "a", "hosts": ["a.b"]}, {"name": "a", "hosts": ["c.d"]}]}`:                               "is there twice",
		`{"providers": [{"name": "a", "hosts": ["a.b"], "backstage": {}}]}`:                                               "needs an authProvider",
		`{"providers": [{"name": "a", "hosts": ["a.b"], "backstage": {"authProvider": "a b"}}]}`:                          "needs an authProvider",
		`{"providers": [{"name": "a", "hosts": ["a.b"], "backstage": {"authProvider": "a", "oidcTokenProvider": "\n"}}]}`: "needs an authProvider",
	} {
		if _, err := ParseSettings([]byte(settings)); (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", settings, err)
		}
	}
}

// TestTooLong expects an answer that is too long to be an error, and not to be cut.
func TestTooLong(t *testing.T) {
	b := newBench(t)
	for i := range 1500 {
		b.put(member(fmt.Sprintf("east-%d", i)))
	}
	if got := b.ask("/v1/flux"); got.Code != http.StatusBadRequest || !strings.Contains(got.Body.String(), "longer than 900 KiB") {
		t.Errorf("%d, %.100s", got.Code, got.Body)
	}
	if got := len(b.records(b.ask("/v1/clusters.json"))); got != 1500 {
		t.Errorf("%d are told", got)
	}
	for i := range 20 {
		b.put(member(fmt.Sprintf("west-%d", i), func(c *v1beta1.Cluster) { c.Labels["tier"] = "silver" }))
	}
	if got := b.ask("/v1/flux?labelSelector=tier%3Dsilver"); got.Code != http.StatusOK || got.Body.Len() > maxFlux {
		t.Errorf("%d, %d bytes", got.Code, got.Body.Len())
	}
}
