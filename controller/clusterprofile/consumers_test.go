package clusterprofile

import (
	"encoding/json"
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/internal/contract"
)

// published is the profile of a cluster as a consumer reads it.
func published(t *testing.T, cluster *v1beta1.Cluster) *v1alpha1.ClusterProfile {
	t.Helper()
	return consumed(t, source.of(cluster, target, proof{verified: true}))
}

// consumed is a profile as a consumer reads it.
func consumed(t *testing.T, p *profile) *v1alpha1.ClusterProfile {
	t.Helper()
	content, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	out := &v1alpha1.ClusterProfile{}
	if err := json.Unmarshal(content, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// multiclusterRuntime is how the provider providers/cluster-inventory-api of
// multicluster-runtime v0.24 reads a profile: it waits until the control plane is healthy,
// and then needs a configuration.
func multiclusterRuntime(config *access.Config, profile *v1alpha1.ClusterProfile) (engaged bool, err error) {
	if !meta.IsStatusConditionTrue(profile.Status.Conditions, v1alpha1.ClusterConditionControlPlaneHealthy) {
		return false, nil
	}
	_, err = config.BuildConfigFromCP(profile)
	return err == nil, err
}

// multiKueue is how Kueue's MultiKueue reads one that a MultiKueueCluster names: whatever
// its conditions, it needs a configuration whose host is a name or an address, see
// kueueHost, and that has no token of a file, no password and no auth provider.
func multiKueue(config *access.Config, profile *v1alpha1.ClusterProfile) (*rest.Config, bool) {
	out, err := config.BuildConfigFromCP(profile)
	if err != nil || out.BearerTokenFile != "" || out.Username != "" || out.Password != "" || out.AuthProvider != nil {
		return nil, false
	}
	return out, kueueHost(out.Host)
}

// kueueHost is isValidHostname of Kueue at ff69552e: without a port an IPv6 address keeps its
// brackets, and is none then, and a name must not end with a dot.
func kueueHost(server string) bool {
	u, err := url.Parse(server)
	if err != nil {
		return false
	}
	host, _, err := net.SplitHostPort(u.Host)
	if err != nil {
		host = u.Host
	}
	return net.ParseIP(host) != nil || len(validation.IsDNS1123Subdomain(host)) == 0
}

func TestConsumers(t *testing.T) {
	healthy := func(status metav1.ConditionStatus) func(*v1beta1.Cluster) {
		return func(c *v1beta1.Cluster) { c.Status.Conditions[0].Status = status }
	}
	for _, test := range []struct {
		reason string
		change func(*v1beta1.Cluster)
		// runtime and kueue say whether each connects.
		runtime, kueue bool
	}{
		{"a cluster that is healthy", func(*v1beta1.Cluster) {}, true, true},
		{"not healthy", healthy(metav1.ConditionFalse), false, true},
		{"not known", healthy(metav1.ConditionUnknown), false, true},
		{"no reports", func(c *v1beta1.Cluster) { c.Status = nil }, false, true},
		{"tlsServerName", func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].TLSServerName = "api" }, false, false},
		{"a public CA", func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].CABundle = nil }, true, true},
		{"no access for controllers", func(c *v1beta1.Cluster) { c.Spec.Access = nil }, false, false},
		{"access by another plugin", func(c *v1beta1.Cluster) { c.Spec.Access[0].Provider.Type = "other" }, false, false},
		{"another cluster answers", func(c *v1beta1.Cluster) {
			c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: "IdentityVerified", Status: metav1.ConditionFalse})
		}, false, false},
		{"an address", func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].URL = "https://[fd00::1]:6443" }, true, true},
		{"an address without a port", func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].URL = "https://[fd00::1]" }, true, false},
		{"a name that ends with a dot", func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].URL = "https://east.example.com." }, true, false},
	} {
		config := access.New([]access.Provider{
			{Name: "unknown", ExecConfig: &clientcmdapi.ExecConfig{Command: "unknown"}},
			{Name: "secretreader", ExecConfig: &clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: "secretreader-plugin", ProvideClusterInfo: true}},
		})
		profile := published(t, member("east", test.change))
		if engaged, _ := multiclusterRuntime(config, profile); engaged != test.runtime {
			t.Errorf("%s: multicluster-runtime engages: %t", test.reason, engaged)
		}
		out, connects := multiKueue(config, profile)
		if connects != test.kueue {
			t.Errorf("%s: Kueue connects: %t", test.reason, connects)
		}
		if !connects {
			continue
		}
		if strings.Contains(test.reason, "address") != strings.Contains(out.Host, "fd00") || (string(out.CAData) == "CA") == (test.reason == "a public CA") || out.Insecure || out.ExecProvider.Command != "secretreader-plugin" {
			t.Errorf("%s: %+v", test.reason, out)
		}
	}
}

// TestConsumersPrograms expects that an entry adds nothing to the program that a consumer
// runs, even if it lets profiles do so: its configuration is shared by all clusters.
func TestConsumersPrograms(t *testing.T) {
	config := access.New([]access.Provider{{
		Name: "gke", ExecConfig: &clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: "plugin", Args: []string{"--safe"}},
		ProfileSourcedCLIArgsPolicy: access.ProfileSourcedCLIArgsPolicyAppend, ProfileSourcedEnvVarsPolicy: access.ProfileSourcedEnvVarsPolicyReplace,
	}})
	profile := published(t, member("east", func(c *v1beta1.Cluster) {
		c.Spec.Access[0] = v1beta1.Access{Name: "gke", Audience: v1beta1.AudienceController, Exec: &v1beta1.ExecAccess{Command: "evil", Args: []string{"--evil"}, Env: []v1beta1.ExecEnvVar{{Name: "EVIL"}}}}
	}))
	for range 2 {
		out, err := config.BuildConfigFromCP(profile)
		if err != nil || out.ExecProvider.Command != "plugin" || len(out.ExecProvider.Args) != 1 || len(out.ExecProvider.Env) != 0 {
			t.Errorf("%+v, %v", out, err)
		}
	}
}

// engaged is what the provider of multicluster-runtime v0.24 has connected to: a profile that
// it can't use leaves a client of before as it is, and one that is gone ends it.
type engaged struct {
	config *access.Config
	server string
}

func (e *engaged) reconcile(t *testing.T, have *profile) {
	t.Helper()
	if have == nil {
		e.server = ""
		return
	}
	profile := consumed(t, have)
	if ok, _ := multiclusterRuntime(e.config, profile); ok {
		out, err := e.config.BuildConfigFromCP(profile)
		if err != nil {
			t.Fatal(err)
		}
		e.server = out.Host
	}
}

// TestMistakenClustersAreCutOff expects that consumers that have connected to a cluster drop it
// once another cluster answers there, and come back when it is the right one.
func TestMistakenClustersAreCutOff(t *testing.T) {
	mistaken := func(c *v1beta1.Cluster) {
		c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: "IdentityVerified", Status: metav1.ConditionFalse})
	}
	consumer := engaged{config: access.New([]access.Provider{{Name: "secretreader", ExecConfig: &clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: "plugin", ProvideClusterInfo: true}}})}
	b := newBench(t, "")
	fleet := []*v1beta1.Cluster{member("east"), member("west"), member("north")}
	b.put(fleet...)
	b.pass(time.Minute)
	consumer.reconcile(t, b.profile("east"))
	if consumer.server != "https://east.example.com:6443" {
		t.Fatalf("it is connected to %q", consumer.server)
	}
	b.writesOf()

	// All at once: what is said of each is no sign of a registry that was emptied. The registry
	// need not answer either.
	b.refusal = errors.New("away")
	b.put(member("east", mistaken), member("west", mistaken), member("north", mistaken))
	consumer.reconcile(t, b.profile("east"))
	if consumer.server != "" {
		t.Errorf("it is still connected to %s", consumer.server)
	}
	expectWrites(t, b, "other clusters answer", "delete east", "delete west", "delete north")
	expectState(t, b, "other clusters answer", contract.FunctionRunning, `(IdentityVerified is False): "east", "north", "west"`)
	b.pass(time.Hour)
	expectWrites(t, b, "they still do")

	// Identities that are found wrong and right all the time.
	b.refusal = nil
	for range 300 {
		b.put(member("east"))
		b.pass(time.Second)
		b.put(member("east", mistaken))
		b.pass(time.Second)
	}
	if n := len(b.writesOf()); n < 40 || n > 4*(600/30+1) {
		t.Errorf("%d writes in ten minutes", n)
	}
	b.put(fleet...)
	b.pass(time.Minute)
	consumer.reconcile(t, b.profile("east"))
	if consumer.server == "" || b.profile("west") == nil {
		t.Error("the right clusters answer, and are not published")
	}
	expectState(t, b, "the right clusters answer", contract.FunctionRunning, "")
}

// TestMistakenClusterThatIsHeldBack expects that a profile that waits for someone's finalizer
// has no providers while another cluster answers.
func TestMistakenClusterThatIsHeldBack(t *testing.T) {
	b := newBench(t, "")
	b.put(member("east"))
	b.host.edit("east", func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"argoproj.io/cluster-profile-finalizer"}) })
	b.pass(time.Minute)
	b.writesOf()
	b.put(member("east", func(c *v1beta1.Cluster) {
		c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: "IdentityVerified", Status: metav1.ConditionFalse})
	}))
	expectWrites(t, b, "it is held back", "delete east", "apply status east")
	if p := b.profile("east"); p == nil || p.DeletionTimestamp == nil || len(p.Status.AccessProviders) != 0 {
		t.Errorf("%+v", p)
	}
	b.host.edit("east", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
	b.pass(time.Minute)
	expectWrites(t, b, "it is let go")
	b.put(member("east"))
	b.pass(time.Minute)
	expectWrites(t, b, "the right cluster answers", "create east", "apply main east", "apply status east")
}
