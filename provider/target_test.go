package provider

import (
	"net/netip"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/client/clientset/versioned/fake"
)

// entry returns a Cluster that is to be engaged, as a test changes it.
func entry(name string, changes ...func(*v1beta1.Cluster)) *v1beta1.Cluster {
	c := &v1beta1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 2},
		Spec: v1beta1.ClusterSpec{
			ID:        "id-of-" + name,
			Endpoints: []v1beta1.Endpoint{{Name: "main", URL: "https://" + name + ".example.com:6443", CABundle: []byte("a CA"), TLSServerName: "member.example.com"}},
			Access: []v1beta1.Access{
				{Name: "people", Audience: v1beta1.AudienceUser, Exec: &v1beta1.ExecAccess{Command: "of-the-entry"}},
				{Name: "fleet", Audience: v1beta1.AudienceController, Provider: &v1beta1.ProviderAccess{Type: "vault", Config: map[string]string{"path": "fleet/" + name}}},
			},
		},
		Status: &v1beta1.ClusterStatus{Conditions: []metav1.Condition{{Type: v1beta1.ConditionAvailable, Status: metav1.ConditionTrue, ObservedGeneration: 2}}},
	}
	for _, change := range changes {
		change(c)
	}
	return c
}

func says(condition string, status metav1.ConditionStatus, generation int64) func(*v1beta1.Cluster) {
	return func(c *v1beta1.Cluster) {
		conditions := []metav1.Condition{{Type: condition, Status: status, Reason: "Tested", Message: "so the test says", ObservedGeneration: generation}}
		for _, other := range c.Status.Conditions {
			if other.Type != condition {
				conditions = append(conditions, other)
			}
		}
		c.Status.Conditions = conditions
	}
}

func options(t *testing.T, plugins ...Plugin) Options {
	t.Helper()
	o := Options{Registry: fake.NewSimpleClientset(), Plugins: plugins}
	if err := o.complete(); err != nil {
		t.Fatal(err)
	}
	return o
}

var caller = &clientcmdapi.ExecConfig{Command: "of-the-caller", Args: []string{"get"}, ProvideClusterInfo: true}

func TestWhatIsEngaged(t *testing.T) {
	o := options(t, Plugin{Name: "fleet", Exec: caller})
	for _, test := range []struct {
		reason string
		change func(*v1beta1.Cluster)
		want   string // what the reason against it says
		stays  bool
	}{
		{"all is well", func(*v1beta1.Cluster) {}, "", true},
		{"it is being deleted", func(c *v1beta1.Cluster) { now := metav1.Now(); c.DeletionTimestamp = &now }, "being deleted", false},
		{"another cluster answers", says(v1beta1.ConditionIdentityVerified, metav1.ConditionFalse, 2), "IdentityVerified is False (Tested: so the test says)", false},
		{"another cluster answered at an address of before", says(v1beta1.ConditionIdentityVerified, metav1.ConditionFalse, 1), "IdentityVerified is False", false},
		{"who answers is not known", says(v1beta1.ConditionIdentityVerified, metav1.ConditionUnknown, 2), "", true},
		{"no endpoint", func(c *v1beta1.Cluster) { c.Spec.Endpoints = nil }, "no endpoint for this client", false},
		{"an endpoint for others", func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].ClientCIDRs = []string{"192.0.2.0/24"} }, "no endpoint for this client", false},
		{"without TLS", func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].URL = "http://east.example.com" }, "the https URL of its endpoint main is not valid", false},
		{"a URL with a user", func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].URL = "https://u@east.example.com" }, "the https URL of its endpoint main is not valid", false},
		{"a proxy that is none", func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].ProxyURL = "file:///etc" }, "proxyURL of its endpoint main is not valid", false},
		{"loopback", func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].URL = "https://127.0.0.1:6443" }, "a loopback address", false},
		{"the metadata service", func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].URL = "https://[::ffff:169.254.169.254]" }, "the metadata service", false},
		{"whichever cluster it is in", func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].URL = "https://kubernetes.default.svc" }, "whichever cluster", false},
		{"a proxy at loopback", func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].ProxyURL = "http://localhost:3128" }, "a loopback address", false},
		{"no access", func(c *v1beta1.Cluster) { c.Spec.Access = nil }, "no access with the audience Controller", false},
		{"access for people alone", func(c *v1beta1.Cluster) { c.Spec.Access[1].Audience = v1beta1.AudienceUser }, "no access with the audience Controller", false},
		{"access of another name", func(c *v1beta1.Cluster) { c.Spec.Access[1].Name = "other" }, "no access with the audience Controller", false},
		{"no one has reported", func(c *v1beta1.Cluster) { c.Status = nil }, "no condition Available yet", true},
		{"it is down", says(v1beta1.ConditionAvailable, metav1.ConditionFalse, 2), "Available is False (Tested", true},
		{"no one knows", says(v1beta1.ConditionAvailable, metav1.ConditionUnknown, 2), "Available is Unknown", true},
		{"it was available at an address of before", says(v1beta1.ConditionAvailable, metav1.ConditionTrue, 1), "is of generation 1 of its Cluster, which has 2", true},
		{"a reporter that does not say of what", says(v1beta1.ConditionAvailable, metav1.ConditionTrue, 0), "", true},
	} {
		c := entry("east", test.change)
		_, err := o.target(c)
		if stays := err == nil; stays != test.stays {
			t.Errorf("%s: stays engaged: %v (%v)", test.reason, stays, err)
		}
		if err == nil {
			err = o.Available(c)
		}
		if err == nil && test.want != "" || err != nil && (test.want == "" || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: got %v, want %q", test.reason, err, test.want)
		}
	}
}

// TestKey expects a key that changes with what leads to a cluster, and with nothing else.
func TestKey(t *testing.T) {
	o := options(t, Plugin{Type: "vault", Exec: caller}, Plugin{Name: "other", Exec: caller})
	key := func(c *v1beta1.Cluster) string {
		t.Helper()
		found, err := o.target(c)
		if err != nil {
			t.Fatal(err)
		}
		return found.key
	}
	before := key(entry("east"))
	for reason, change := range map[string]func(*v1beta1.Cluster){
		"nothing":          func(*v1beta1.Cluster) {},
		"a label":          func(c *v1beta1.Cluster) { c.Labels = map[string]string{"a": "b"} },
		"status":           says("Other", metav1.ConditionTrue, 1),
		"access of people": func(c *v1beta1.Cluster) { c.Spec.Access[0].Exec.Command = "another" },
		"an endpoint for others": func(c *v1beta1.Cluster) {
			c.Spec.Endpoints = append(c.Spec.Endpoints, v1beta1.Endpoint{Name: "b", URL: "https://b", ClientCIDRs: []string{"192.0.2.0/24"}})
		},
	} {
		if key(entry("east", change)) != before {
			t.Errorf("%s changes the key", reason)
		}
	}
	for reason, change := range map[string]func(*v1beta1.Cluster){
		"the URL":         func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].URL = "https://b.example.com" },
		"the CA":          func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].CABundle = []byte("another CA") },
		"the server name": func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].TLSServerName = "" },
		"the proxy":       func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].ProxyURL = "http://proxy:3128" },
		"the pointer":     func(c *v1beta1.Cluster) { c.Spec.Access[1].Provider.Config["path"] = "another" },
		"the plugin":      func(c *v1beta1.Cluster) { c.Spec.Access[1].Name, c.Spec.Access[1].Provider.Type = "other", "x" },
		"the id":          func(c *v1beta1.Cluster) { c.Spec.ID = "another" },
		"the own endpoint": func(c *v1beta1.Cluster) {
			c.Spec.Endpoints = append([]v1beta1.Endpoint{{Name: "b", URL: "https://b"}}, c.Spec.Endpoints...)
		},
	} {
		if key(entry("east", change)) == before {
			t.Errorf("%s does not change the key", reason)
		}
	}
}

// TestNothingOfAnEntryIsRun gives an entry all that could be a program.
func TestNothingOfAnEntryIsRun(t *testing.T) {
	o := options(t, Plugin{Name: "fleet", Exec: caller})
	c := entry("east", func(c *v1beta1.Cluster) {
		c.Spec.Access[1].Exec = &v1beta1.ExecAccess{Command: "of-the-entry", Args: []string{"--of-the-entry"}, Env: []v1beta1.ExecEnvVar{{Name: "LD_PRELOAD", Value: "of-the-entry"}}, APIVersion: "of-the-entry"}
		c.Spec.Endpoints[0].ProxyURL = "socks5://proxy.example.com:1080"
	})
	found, err := o.target(c)
	if err != nil {
		t.Fatal(err)
	}
	config, err := found.config(t.Context(), &o)
	if err != nil {
		t.Fatal(err)
	}
	exec := config.ExecProvider
	if exec.Command != "of-the-caller" || len(exec.Args) != 1 || exec.Args[0] != "get" || len(exec.Env) != 0 || exec.APIVersion != "client.authentication.k8s.io/v1" || exec.InteractiveMode != clientcmdapi.NeverExecInteractiveMode {
		t.Errorf("the program is %+v", exec)
	}
	if given := string(exec.Config.(*runtime.Unknown).Raw); given != `{"path":"fleet/east"}` {
		t.Errorf("the program is given %s", given)
	}
	if caller.Config != nil || caller.InteractiveMode != "" {
		t.Errorf("the caller's own configuration was changed: %+v", caller)
	}
	if config.Host != "https://east.example.com:6443" || config.ServerName != "member.example.com" || string(config.CAData) != "a CA" || config.Insecure {
		t.Errorf("the configuration is %+v", config)
	}
	if proxy, err := config.Proxy(nil); err != nil || proxy.String() != "socks5://proxy.example.com:1080" {
		t.Errorf("the proxy is %v, %v", proxy, err)
	}
}

// TestWhatPluginsAreGiven expects what a ClusterProfile of the same entry gives to the plugin:
// upstream's asks for the cluster's name where the entry says nothing.
func TestWhatPluginsAreGiven(t *testing.T) {
	o := options(t, Plugin{Name: "fleet", Exec: caller})
	for want, change := range map[string]func(*v1beta1.Access){
		`{"clusterName":"east"}`: func(a *v1beta1.Access) { a.Provider.Config = nil },
		`{"apiVersion":"v1","kind":"Secret","name":"token"}`: func(a *v1beta1.Access) {
			a.Provider, a.ObjectRef = nil, &v1beta1.ObjectReference{APIVersion: "v1", Kind: "Secret", Name: "token"}
		},
	} {
		found, err := o.target(entry("east", func(c *v1beta1.Cluster) { change(&c.Spec.Access[1]) }))
		if err != nil {
			t.Fatal(err)
		}
		config, err := found.config(t.Context(), &o)
		if err != nil {
			t.Fatal(err)
		}
		if given := string(config.ExecProvider.Config.(*runtime.Unknown).Raw); given != want {
			t.Errorf("the program is given %s, want %s", given, want)
		}
	}
}

func TestEndpointForTheClient(t *testing.T) {
	o := options(t, Plugin{Name: "fleet", Exec: caller})
	o.ClientAddress = netip.MustParseAddr("10.1.2.3")
	found, err := o.target(entry("east", func(c *v1beta1.Cluster) {
		c.Spec.Endpoints = append(c.Spec.Endpoints, v1beta1.Endpoint{Name: "inside", URL: "https://inside", ClientCIDRs: []string{"10.0.0.0/8"}})
	}))
	if err != nil || found.endpoint.Name != "inside" {
		t.Fatalf("got %+v, %v", found, err)
	}
}

func TestOptions(t *testing.T) {
	registry := fake.NewSimpleClientset()
	for says, o := range map[string]Options{
		"Registry is missing":         {Plugins: []Plugin{{Name: "a", Exec: caller}}},
		"there are no Plugins":        {Registry: registry},
		"neither a Name nor a Type":   {Registry: registry, Plugins: []Plugin{{Exec: caller}}},
		"needs either Exec or":        {Registry: registry, Plugins: []Plugin{{Name: "a"}}},
		"names no Command":            {Registry: registry, Plugins: []Plugin{{Name: "a", Exec: &clientcmdapi.ExecConfig{}}}},
		"set a positive one, or none": {Registry: registry, Plugins: []Plugin{{Name: "a", Exec: caller}}, Timeout: -1},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
}
