package clusterprofile

import (
	"encoding/json"
	"net"
	"net/url"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// published is the profile of a cluster as a consumer reads it.
func published(t *testing.T, cluster *v1beta1.Cluster) *v1alpha1.ClusterProfile {
	t.Helper()
	return consumed(t, source.of(cluster, target, verified))
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
	return out, kueueHost(strings.ToLower(out.Host))
}

// kueueHost is isValidHostname of Kueue v0.19, which gets a server in small letters: without a port
// an IPv6 address keeps its brackets, and is none then, and a name must not end with a dot.
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
		{"a name in capitals", func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].URL = "https://EAST.example.com:6443" }, true, true},
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
