package export

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/export/clusterprofile"
	"github.com/clusterregistry/operator/controller/probe"
)

var (
	silent  = probe.Result{Outcome: probe.Failed, Reason: probe.ReasonTimedOut, Message: "It does not answer."}
	refused = probe.Result{Outcome: probe.NotAsked, Reason: probe.ReasonAddressRefused, Message: "spec.endpoints[0].url is not asked, since it leads to a loopback address."}
)

// leads expects where clients of a profile are led, "" for nowhere, and why.
func (b *bench) leads(reason, to, why string, healthy metav1.ConditionStatus) {
	b.t.Helper()
	p := b.profile("east")
	if p == nil {
		b.t.Fatalf("%s: there is no profile", reason)
	}
	var servers []string
	for _, a := range p.Status.AccessProviders {
		servers = append(servers, a.Cluster.Server)
	}
	access, health := meta.FindStatusCondition(p.Status.Conditions, clusterprofile.AccessPublished), meta.FindStatusCondition(p.Status.Conditions, "ControlPlaneHealthy")
	if strings.Join(servers, " ") != to || access.Reason != why || (access.Status == metav1.ConditionTrue) != (to != "") || health.Status != healthy {
		b.t.Errorf("%s: leads to %q, %+v, %+v; want %q, %s", reason, servers, access, health, to, why)
	}
}

// moved is an entry of a generation, whose endpoint is somewhere, with reports of another
// generation.
func moved(generation, observed int64, to string) *v1beta1.Cluster {
	return member("east", func(c *v1beta1.Cluster) {
		c.Generation, c.Spec.Endpoints[0].URL = generation, to
		c.Status.Conditions[0].ObservedGeneration = observed
	})
}

// TestNothingUnverifiedIsPublished expects that clients are led only where a server has shown a
// certificate of the entry's CA, and until then to where one had.
func TestNothingUnverifiedIsPublished(t *testing.T) {
	const old, next = "https://old.example.com", "https://new.example.com"
	b := newBench(t, "")
	b.answers[old], b.answers[next] = silent, silent
	b.put(moved(1, 1, old))
	b.leads("never reached", "", "NotVerified", metav1.ConditionTrue)
	delete(b.answers, old)
	b.pass(2 * time.Minute)
	b.leads("reached", old, "Published", metav1.ConditionTrue)

	// The cluster is down, and its entry changes elsewhere: nothing is taken back.
	b.answers[old] = silent
	b.put(moved(2, 1, old))
	b.pass(2 * time.Minute)
	b.leads("down", old, "Published", metav1.ConditionTrue)

	b.put(moved(3, 2, next))
	b.pass(2 * time.Minute)
	b.leads("changed, and not reached", old, "LastVerified", metav1.ConditionUnknown)
	delete(b.answers, next)
	b.pass(2 * time.Minute)
	b.leads("changed, and reached before it is reported of", next, "Published", metav1.ConditionUnknown)
	b.put(moved(3, 3, next))
	b.pass(2 * time.Minute)
	b.leads("reported of", next, "Published", metav1.ConditionTrue)

	// The same address with another CA is another endpoint.
	b.answers[next] = silent
	other := moved(4, 4, next)
	other.Spec.Endpoints[0].CABundle = []byte("another CA")
	b.put(other)
	b.pass(2 * time.Minute)
	b.leads("another CA", next, "LastVerified", metav1.ConditionTrue)
	if ca := string(b.profile("east").Status.AccessProviders[0].Cluster.CertificateAuthorityData); ca != "CA" {
		t.Errorf("published with the CA %q, which was not verified", ca)
	}
}

// TestRefusedAddressesAreNotPublished expects that what a probe may not dial is no one's way.
func TestRefusedAddressesAreNotPublished(t *testing.T) {
	for _, at := range []string{"https://kubernetes.default.svc", "https://169.254.169.254", "https://127.0.0.1:6443", "https://10.96.0.10"} {
		b := newBench(t, "")
		b.put(moved(1, 1, "https://old.example.com"))
		b.leads("before", "https://old.example.com", "Published", metav1.ConditionTrue)
		b.answers[at] = refused
		b.put(moved(2, 2, at))
		b.pass(time.Minute)
		b.leads(at, "", probe.ReasonAddressRefused, metav1.ConditionTrue)
	}
}

// TestLastVerifiedOutlivesTheProcess begins with the profile that a process before has
// written, and with one that someone has changed since.
func TestLastVerifiedOutlivesTheProcess(t *testing.T) {
	const old, next = "https://old.example.com", "https://new.example.com"
	for reason, test := range map[string]struct {
		to, why string
		edit    func(*unstructured.Unstructured)
	}{
		"as it was written": {to: old, why: "LastVerified", edit: func(*unstructured.Unstructured) {}},
		"changed by someone else": {why: "NotVerified", edit: func(object *unstructured.Unstructured) {
			object.SetManagedFields(append(object.GetManagedFields(), metav1.ManagedFieldsEntry{Manager: "someone", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status", FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:accessProviders":{"k:{\"name\":\"secretreader\"}":{"f:cluster":{"f:server":{}}}}}}`)}))
		}},
	} {
		b := newBench(t, "")
		b.put(moved(1, 1, old))
		b.restart() // another process has taken over
		b.answers[old], b.answers[next] = silent, silent
		b.put(moved(2, 1, next))
		b.host.edit("east", test.edit)
		b.pass(2 * time.Minute)
		b.leads(reason, test.to, test.why, metav1.ConditionUnknown)
	}
}

// TestAccessOfUnverifiedEndpoints expects that what an entry says of an endpoint that is not
// verified is published with no other one: a credential that it names would go to the wrong
// cluster.
func TestAccessOfUnverifiedEndpoints(t *testing.T) {
	b := newBench(t, "")
	b.put(moved(1, 1, "https://old.example.com"))
	b.answers["https://new.example.com"] = silent
	next := moved(2, 1, "https://new.example.com")
	next.Spec.Access[0].Provider.Config = map[string]string{"clusterName": "another"}
	b.put(next)
	b.pass(time.Minute)
	a := b.profile("east").Status.AccessProviders
	if len(a) != 1 || a[0].Cluster.Server != "https://old.example.com" || !strings.Contains(string(a[0].Cluster.Extensions[0].Extension.Raw), `"clusterName":"east"`) {
		t.Errorf("%+v", a)
	}
	next = next.DeepCopy()
	next.Generation, next.Spec.Access[0].Provider.Type = 3, "gke"
	b.put(next)
	b.pass(time.Minute)
	b.leads("what the entry no longer has", "", "NotVerified", metav1.ConditionUnknown)
}

// TestProbesOfEndpoints expects that an endpoint is asked once in a generation, less and less
// often while it is not reached, and never because of a status or when nothing is to be
// published.
func TestProbesOfEndpoints(t *testing.T) {
	b := newBench(t, "")
	count := func(reason string, want int) {
		t.Helper()
		if len(b.asked) != want {
			t.Errorf("%s: asked %d times, want %d", reason, len(b.asked), want)
		}
		b.asked = nil
	}
	b.put(moved(1, 1, "https://old.example.com"))
	for range 20 {
		b.put(moved(1, 1, "https://old.example.com"))
	}
	b.pass(time.Hour)
	count("one generation", 1)
	b.put(moved(2, 1, "https://old.example.com"))
	b.pass(time.Hour)
	count("the next generation", 1)
	b.answers["https://new.example.com"] = silent
	b.put(moved(3, 1, "https://new.example.com"))
	for range 600 {
		b.put(moved(3, 1, "https://new.example.com"))
		b.pass(time.Second)
	}
	count("ten minutes of silence, and as many heartbeats", 6+9)
	without := moved(4, 1, "https://new.example.com")
	without.Spec.Access = nil
	b.put(without)
	b.pass(time.Hour)
	count("nothing to publish", 0)
	b.drop("east")
	if n := b.verifier.Remembered(); n > 0 {
		t.Errorf("something is remembered of %d clusters that are gone", n)
	}
}

// TestPublicCA expects that an endpoint without a CA bundle is published once a probe has
// verified it by the CAs of the system, that a CA which someone else adds is taken out, and
// that a steady one is not written again.
func TestPublicCA(t *testing.T) {
	const at = "https://gateway.example.com/v1/memberships/east"
	public := func(generation int64) *v1beta1.Cluster {
		c := moved(generation, generation, at)
		c.Spec.Endpoints[0].CABundle = nil
		return c
	}
	b := newBench(t, "")
	b.answers[at] = probe.Result{Outcome: probe.Failed, Reason: probe.ReasonCertificateUntrusted, Message: "Its CA is not trusted."}
	b.put(public(1))
	b.pass(time.Minute)
	b.leads("signed by no public CA", "", "NotVerified", metav1.ConditionTrue)
	if c := meta.FindStatusCondition(b.profile("east").Status.Conditions, clusterprofile.AccessPublished); !strings.Contains(c.Message, "public CA") {
		t.Errorf("%+v", c)
	}
	delete(b.answers, at)
	b.pass(2 * time.Minute)
	b.leads("signed by one", at, "Published", metav1.ConditionTrue)
	b.writesOf()
	b.pass(time.Hour)
	expectWrites(t, b, "steady")

	b.host.edit("east", func(object *unstructured.Unstructured) {
		providers, _, _ := unstructured.NestedSlice(object.Object, "status", "accessProviders")
		providers[0].(map[string]any)["cluster"].(map[string]any)["certificate-authority-data"] = "Q0E="
		_ = unstructured.SetNestedSlice(object.Object, providers, "status", "accessProviders")
	})
	b.pass(time.Minute)
	expectWrites(t, b, "with a CA of someone else", "patch status east")
	if a := b.profile("east").Status.AccessProviders; len(a) != 1 || len(a[0].Cluster.CertificateAuthorityData) > 0 {
		t.Errorf("with a CA of someone else: %+v", a)
	}
	b.pass(time.Hour)
	expectWrites(t, b, "steady again")

	// The same address with a CA of its own is another endpoint.
	b.answers[at] = silent
	b.put(moved(2, 2, at))
	b.pass(time.Minute)
	b.leads("a CA of its own", at, "LastVerified", metav1.ConditionTrue)
	if a := b.profile("east").Status.AccessProviders; len(a[0].Cluster.CertificateAuthorityData) > 0 {
		t.Errorf("published with the CA %q, which was not verified", a[0].Cluster.CertificateAuthorityData)
	}
}
