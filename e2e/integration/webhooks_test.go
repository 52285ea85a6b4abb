package integration

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	clustersv1alpha1 "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1alpha1"
	clustersv1beta1 "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// verdict is a webhook's answer: a refusal when it is not empty, or a JSON patch.
type verdict struct{ refusal, patch string }

// busy is the refusal of a webhook that has no time.
const busy = "come-back-later"

// serveWebhook serves an admission webhook on loopback, over TLS as it must be.
func serveWebhook(t *testing.T, judge func(*admissionv1.AdmissionRequest) verdict) (*httptest.Server, admissionregistrationv1.WebhookClientConfig) {
	t.Helper()
	ca := framework.NewAuthority(t, "webhook-ca")
	pair := ca.Issue("webhook", nil, "127.0.0.1")
	certificate, err := tls.LoadX509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		v := judge(review.Request)
		response := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: v.refusal == ""}
		if v.refusal != "" {
			response.Result = &metav1.Status{Message: v.refusal}
		}
		if v.refusal == busy {
			response.Result.Code, response.Result.Reason, response.Result.Details = http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, &metav1.StatusDetails{RetryAfterSeconds: 7}
		}
		if v.patch != "" {
			response.Patch, response.PatchType = []byte(v.patch), new(admissionv1.PatchTypeJSONPatch)
		}
		review.Request, review.Response = nil, response
		if err := json.NewEncoder(w).Encode(review); err != nil {
			t.Error(err)
		}
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, admissionregistrationv1.WebhookClientConfig{URL: &server.URL, CABundle: ca.PEM}
}

// stamp is the annotation that the mutating webhook sets.
const stamp = "registered-by"

// webhooked selects the clusters that the webhooks are for, so that no other
// test meets them.
var webhooked = &metav1.LabelSelector{MatchLabels: map[string]string{"webhooks": "yes"}}

// testWebhooks registers webhooks with the host and expects them to act on what
// a user writes through the host's aggregator.
func testWebhooks(t *testing.T, host *framework.Host) {
	_, mutating := serveWebhook(t, func(r *admissionv1.AdmissionRequest) verdict {
		return verdict{patch: `[{"op":"add","path":"/metadata/annotations","value":{"` + stamp + `":"` + r.UserInfo.Username + `"}}]`}
	})
	var asked atomic.Int32
	server, validating := serveWebhook(t, func(r *admissionv1.AdmissionRequest) verdict {
		asked.Add(1)
		var c v1alpha1.Cluster
		object := r.Object.Raw
		if r.Operation == admissionv1.Delete {
			object = r.OldObject.Raw
		}
		if err := json.Unmarshal(object, &c); err != nil {
			return verdict{refusal: err.Error()}
		}
		if c.Annotations[stamp] == "" {
			return verdict{refusal: "nobody has stamped it"}
		}
		return verdict{refusal: c.Labels["refuse-"+strings.ToLower(string(r.Operation))]}
	})
	// It knows v1alpha1 only, and is asked about writes through v1beta1 as well.
	stamped := []admissionregistrationv1.RuleWithOperations{{Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule: admissionregistrationv1.Rule{APIGroups: []string{"clusterregistry.k8s.io"}, APIVersions: []string{"v1alpha1"}, Resources: []string{"clusters"}}}}
	_, completing := serveWebhook(t, func(r *admissionv1.AdmissionRequest) verdict {
		var c v1beta1.Cluster
		if err := json.Unmarshal(r.Object.Raw, &c); err != nil || c.Labels["complete"] == "" {
			return verdict{}
		}
		if c.Spec.DisplayName == "" || len(c.Spec.Access) != len(richSpec().Access) {
			return verdict{refusal: "the cluster is not whole"}
		}
		return verdict{patch: `[{"op":"add","path":"/spec/taints/-","value":{"key":"by-webhook","effect":"NoSchedule"}},{"op":"replace","path":"/spec/endpoints/0/tlsServerName","value":"by-webhook"}]`}
	})
	rules := func(operations ...admissionregistrationv1.OperationType) []admissionregistrationv1.RuleWithOperations {
		return []admissionregistrationv1.RuleWithOperations{{Operations: operations, Rule: admissionregistrationv1.Rule{APIGroups: []string{"clusterregistry.k8s.io"}, APIVersions: []string{"*"}, Resources: []string{"clusters"}}}}
	}
	framework.Create(t, framework.HostClient(t, host.Config),
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "stamp"}, Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "stamp.clusters.example", ClientConfig: mutating, ObjectSelector: webhooked, SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
			FailurePolicy: new(admissionregistrationv1.Fail), Rules: stamped,
		}, {
			Name: "complete.clusters.example", ClientConfig: completing, ObjectSelector: webhooked, SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
			FailurePolicy: new(admissionregistrationv1.Fail), Rules: []admissionregistrationv1.RuleWithOperations{{Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
				Rule: admissionregistrationv1.Rule{APIGroups: []string{"clusterregistry.k8s.io"}, APIVersions: []string{"v1beta1"}, Resources: []string{"clusters"}}}},
		}}},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "judge"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "judge.clusters.example", ClientConfig: validating, ObjectSelector: webhooked, SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
			FailurePolicy: new(admissionregistrationv1.Fail), Rules: rules(admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete)}}})
	clusters := asUser(t, host, "alice")
	// The server learns of webhooks through watches.
	framework.Eventually(t, "the webhooks to be asked", func(ctx context.Context) error {
		made, err := clusters.Create(ctx, forWebhooks("probe", "refuse-create", "probed"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			return errors.New("a refused cluster is admitted: " + made.Name)
		}
		if !strings.Contains(err.Error(), `admission webhook "judge.clusters.example" denied the request: probed`) {
			return err
		}
		return nil
	})
	t.Run("answers", func(t *testing.T) { testWebhookAnswers(t, clusters) })
	t.Run("busy", func(t *testing.T) { testWebhookBusy(t, userConfig(t, host, "alice"), &asked) })
	t.Run("another version", func(t *testing.T) { testWebhookOfAnotherVersion(t, betaOf(t, userConfig(t, host, "alice"))) })
	t.Run("a newer version", func(t *testing.T) { testWebhookOfANewerVersion(t, clusters, betaOf(t, userConfig(t, host, "alice"))) })
	server.Close()
	t.Run("down", func(t *testing.T) { testWebhookDown(t, clusters) })
}

// forWebhooks returns a cluster that the webhooks are for, with more labels in pairs.
func forWebhooks(name string, pairs ...string) *v1alpha1.Cluster {
	labels := map[string]string{"webhooks": "yes"}
	for i := 0; i < len(pairs); i += 2 {
		labels[pairs[i]] = pairs[i+1]
	}
	return cluster(name, labels)
}

func testWebhookAnswers(t *testing.T, clusters clustersv1alpha1.ClusterInterface) {
	ctx := t.Context()
	if _, err := clusters.Create(ctx, forWebhooks("refused", "refuse-create", "not-today"), metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "denied the request: not-today") {
		t.Errorf("a create that the webhook refuses: %v", err)
	}
	if _, err := clusters.Get(ctx, "refused", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("what the webhook refused was stored: %v", err)
	}
	if _, err := clusters.Create(ctx, forWebhooks("stamped", "refuse-delete", "it-stays"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	stored, err := clusters.Get(ctx, "stamped", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// The host's front proxy vouches for the user; the webhook is told the same one.
	if stored.Annotations[stamp] != "alice" {
		t.Errorf("stored with annotations %v", stored.Annotations)
	}
	changed := stored.DeepCopy()
	changed.Labels["refuse-update"] = "no-change"
	if _, err := clusters.Update(ctx, changed, metav1.UpdateOptions{}); err == nil || !strings.Contains(err.Error(), "denied the request: no-change") {
		t.Errorf("an update that the webhook refuses: %v", err)
	}
	if err := clusters.Delete(ctx, "stamped", metav1.DeleteOptions{}); err == nil || !strings.Contains(err.Error(), "denied the request: it-stays") {
		t.Errorf("a deletion that the webhook refuses: %v", err)
	}
	after, err := clusters.Get(ctx, "stamped", metav1.GetOptions{})
	if err != nil || after.ResourceVersion != stored.ResourceVersion {
		t.Errorf("refused writes have changed it: %v, %v", err, after)
	}
}

// testWebhookBusy expects the refusal of a webhook that has no time to reach the
// client as it is, after the webhook was asked once: to come back is for the client.
func testWebhookBusy(t *testing.T, config *rest.Config, asked *atomic.Int32) {
	clusters := clustersOf(t, config)
	if _, err := clusters.Create(t.Context(), forWebhooks("occupied", "refuse-delete", busy), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// Not a client of the API, which would come back by itself.
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	for method, body := range map[string]string{http.MethodPatch: `{"metadata":{"labels":{"refuse-update":"` + busy + `"}}}`, http.MethodDelete: ""} {
		request, err := http.NewRequestWithContext(t.Context(), method, config.Host+"/apis/clusterregistry.k8s.io/v1alpha1/clusters/occupied", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", string(types.MergePatchType))
		if method == http.MethodDelete {
			request.Header.Del("Content-Type")
		}
		before := asked.Load()
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusTooManyRequests || response.Header.Get("Retry-After") != "7" {
			t.Errorf("%s: %s, Retry-After %q", method, response.Status, response.Header.Get("Retry-After"))
		}
		if n := asked.Load() - before; n != 1 {
			t.Errorf("%s: the webhook was asked %d times", method, n)
		}
	}
}

// testWebhookDown writes while the webhook that must agree doesn't answer.
func testWebhookDown(t *testing.T, clusters clustersv1alpha1.ClusterInterface) {
	ctx := t.Context()
	refused := func(what string, err error) {
		t.Helper()
		if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), `failed calling webhook "judge.clusters.example"`) || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := clusters.Create(ctx, forWebhooks("unjudged"), metav1.CreateOptions{})
	refused("create", err)
	if _, err := clusters.Get(ctx, "unjudged", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("what no webhook agreed to was stored: %v", err)
	}
	before, err := clusters.Get(ctx, "stamped", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	changed := before.DeepCopy()
	changed.Spec.KubernetesAPIEndpoints.ServerEndpoints[0].ServerAddress = "moved.example"
	_, err = clusters.Update(ctx, changed, metav1.UpdateOptions{})
	refused("update", err)
	refused("delete", clusters.Delete(ctx, "stamped", metav1.DeleteOptions{}))
	after, err := clusters.Get(ctx, "stamped", metav1.GetOptions{})
	if err != nil || after.ResourceVersion != before.ResourceVersion {
		t.Errorf("refused writes have changed it: %v, %v", err, after)
	}
	if _, err := clusters.Create(ctx, cluster("not-for-webhooks", nil), metav1.CreateOptions{}); err != nil {
		t.Errorf("a cluster that no webhook is for: %v", err)
	}
}

// testWebhookOfAnotherVersion creates a cluster through v1beta1 that a webhook
// changes which knows v1alpha1 only: it must not lose what that doesn't show.
func testWebhookOfAnotherVersion(t *testing.T, clusters clustersv1beta1.ClusterInterface) {
	made, err := clusters.Create(t.Context(), &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "rich", Labels: webhooked.MatchLabels}, Spec: richSpec()}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if made.Annotations[stamp] != "alice" || !apiequality.Semantic.DeepEqual(made.Spec, richSpec()) {
		t.Errorf("stamped by %q:\n%s", made.Annotations[stamp], diff.Diff(richSpec(), made.Spec))
	}
	if err := clusters.Delete(t.Context(), "rich", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

// testWebhookOfANewerVersion changes a cluster through v1alpha1 in each way there
// is. A webhook that knows v1beta1 only has to see all of it, and what it sets
// there has to stay.
func testWebhookOfANewerVersion(t *testing.T, olds clustersv1alpha1.ClusterInterface, clusters clustersv1beta1.ClusterInterface) {
	ctx := t.Context()
	for name, write := range map[string]func(*v1alpha1.Cluster) error{
		"put": func(c *v1alpha1.Cluster) error {
			c.Labels["complete"] = "yes"
			_, err := olds.Update(ctx, c, metav1.UpdateOptions{})
			return err
		},
		"patch": func(c *v1alpha1.Cluster) error {
			_, err := olds.Patch(ctx, c.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"complete":"yes"}}}`), metav1.PatchOptions{})
			return err
		},
	} {
		spec := richSpec()
		spec.ID = "by-" + name
		if _, err := clusters.Create(ctx, &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: webhooked.MatchLabels}, Spec: spec}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		seen, err := olds.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := write(seen); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		spec.Taints = append(spec.Taints, v1beta1.Taint{Key: "by-webhook", Effect: v1beta1.TaintNoSchedule})
		spec.Endpoints[0].TLSServerName = "by-webhook"
		got, err := clusters.Get(ctx, name, metav1.GetOptions{})
		if err != nil || !apiequality.Semantic.DeepEqual(got.Spec, spec) {
			t.Errorf("%s: %v\n%s", name, err, diff.Diff(spec, got.Spec))
		}
	}
	if err := clusters.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "complete=yes"}); err != nil {
		t.Error(err)
	}
}
