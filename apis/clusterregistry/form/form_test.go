package form

import (
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/diff"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

type (
	spec     = clusterregistry.ClusterSpec
	endpoint = clusterregistry.Endpoint
	way      = clusterregistry.Access
	address  = clusterregistry.ServerAddressByClientCIDR
	provider = clusterregistry.AuthProviderConfig
)

func addresses(ca string, addresses ...address) spec {
	return spec{KubernetesAPIEndpoints: clusterregistry.KubernetesAPIEndpoints{ServerEndpoints: addresses, CABundle: []byte(ca)}}
}

func at(cidr, server string) address { return address{ClientCIDR: cidr, ServerAddress: server} }

func withProviders(providers ...provider) spec {
	return spec{AuthInfo: clusterregistry.AuthInfo{Providers: providers}}
}

// plugin is a way to sign in that v1alpha1 shows as a provider.
func plugin(name, kind string) way {
	return way{Name: name, Audience: clusterregistry.AudienceUser, Provider: &clusterregistry.ProviderAccess{Type: kind}}
}

// equal compares one form of two specs.
func equal(t *testing.T, reason string, got, want any) {
	t.Helper()
	if !apiequality.Semantic.DeepEqual(got, want) {
		t.Errorf("%s:\n%s", reason, diff.Diff(want, got))
	}
}

func TestWhatV1beta1MakesOfV1alpha1(t *testing.T) {
	for _, test := range []struct {
		reason    string
		spec      spec
		endpoints []endpoint
		access    []way
	}{
		{reason: "nothing"},
		{
			reason: "each address gets a name and the CA", spec: addresses("ca", at("10.0.0.0/8", "10.0.0.1:6443"), at("", "east.example")),
			endpoints: []endpoint{
				{Name: "endpoint-1", URL: "https://10.0.0.1:6443", ClientCIDRs: []string{"10.0.0.0/8"}, CABundle: []byte("ca")},
				{Name: "endpoint-2", URL: "https://east.example", CABundle: []byte("ca")},
			},
		},
		{
			reason: "every kind of address", spec: addresses("", at("", "2001:db8::1"), at("", "[2001:db8::1]:6443"), at("", "https://east/k"), at("", "")),
			endpoints: []endpoint{
				{Name: "endpoint-1", URL: "https://[2001:db8::1]"}, {Name: "endpoint-2", URL: "https://[2001:db8::1]:6443"},
				{Name: "endpoint-3", URL: "https://east/k"}, {Name: "endpoint-4"},
			},
		},
		{
			reason: "all of both families is any client, once for each pair",
			spec:   addresses("", at("0.0.0.0/0", "https://east"), at("0.0.0.0/0", "west"), at("::/0", "east"), at("::/0", "north")),
			endpoints: []endpoint{
				{Name: "endpoint-1", URL: "https://east"}, {Name: "endpoint-2", URL: "https://west", ClientCIDRs: []string{"0.0.0.0/0"}},
				{Name: "endpoint-3", URL: "https://north", ClientCIDRs: []string{"::/0"}},
			},
		},
		{reason: "a CA without an address can't be said", spec: addresses("ca")},
		{
			reason: "providers with and without a name", spec: withProviders(provider{Name: "people"}, provider{Config: map[string]string{"a": "b"}}),
			access: []way{plugin("people", ""), {Name: "provider-2", Audience: clusterregistry.AudienceUser, Provider: &clusterregistry.ProviderAccess{Config: map[string]string{"a": "b"}}}},
		},
		{
			reason: "a name that another got", spec: withProviders(provider{}, provider{Name: "provider-1"}),
			access: []way{plugin("provider-1", ""), plugin("provider-1-2", "")},
		},
	} {
		FillV1beta1(&test.spec)
		equal(t, test.reason, test.spec.Endpoints, test.endpoints)
		equal(t, test.reason, test.spec.Access, test.access)
	}
}

func TestWhatV1alpha1ShowsOfV1beta1(t *testing.T) {
	for _, test := range []struct {
		reason      string
		spec, shown spec
	}{
		{reason: "nothing"},
		{
			reason: "an entry for each range, and all CAs once",
			spec: spec{Endpoints: []endpoint{
				{Name: "inside", URL: "https://10.0.0.1:6443", ClientCIDRs: []string{"10.0.0.0/8", "192.168.0.0/16"}, CABundle: []byte("one"), ProxyURL: "http://proxy"},
				{Name: "outside", URL: "https://east.example", CABundle: []byte("two\n")},
				{Name: "again", URL: "https://west.example/k", CABundle: []byte("one")},
			}},
			shown: addresses("one\ntwo\n", at("192.168.0.0/16", "https://10.0.0.1:6443"), at("10.0.0.0/8", "https://10.0.0.1:6443"),
				at("0.0.0.0/0", "https://east.example"), at("::/0", "https://east.example"), at("0.0.0.0/0", "https://west.example/k"), at("::/0", "https://west.example/k")),
		},
		{
			reason: "the longest range first, and those for any client last",
			spec: spec{Endpoints: []endpoint{
				{Name: "any", URL: "https://any"}, {Name: "all", URL: "https://all", ClientCIDRs: []string{"::/0", "0.0.0.0/0"}},
				{Name: "mapped", URL: "https://mapped", ClientCIDRs: []string{"::ffff:10.0.0.0/104"}}, {Name: "long", URL: "https://long", ClientCIDRs: []string{"2001:db8::/32", "10.1.0.0/16"}},
			}},
			shown: addresses("", at("2001:db8::/32", "https://long"), at("10.1.0.0/16", "https://long"), at("::ffff:10.0.0.0/104", "https://mapped"),
				at("::/0", "https://all"), at("0.0.0.0/0", "https://all"), at("0.0.0.0/0", "https://any"), at("::/0", "https://any")),
		},
		{
			reason: "users' providers only",
			spec: spec{Access: []way{
				{Name: "exec", Audience: clusterregistry.AudienceUser, Exec: &clusterregistry.ExecAccess{}}, plugin("people", "oidc"),
				{Name: "machines", Audience: clusterregistry.AudienceController, Provider: &clusterregistry.ProviderAccess{}},
			}},
			shown: withProviders(provider{Name: "people", Type: clusterregistry.AuthProviderType{Name: "oidc"}}),
		},
	} {
		FillV1alpha1(&test.spec)
		equal(t, test.reason, test.spec.KubernetesAPIEndpoints, test.shown.KubernetesAPIEndpoints)
		equal(t, test.reason, test.spec.AuthInfo, test.shown.AuthInfo)
	}
}

// rich is a cluster that uses what only v1beta1 has.
func rich() *clusterregistry.Cluster {
	s := spec{
		DisplayName: "East", ID: "one",
		Endpoints: []endpoint{
			{Name: "inside", URL: "https://10.0.0.1:6443", ClientCIDRs: []string{"10.0.0.0/8", "192.168.0.0/16"}, CABundle: []byte("one"), TLSServerName: "kubernetes"},
			{Name: "outside", URL: "https://east.example", CABundle: []byte("two"), ProxyURL: "http://proxy"},
		},
		Access: []way{{Name: "exec", Audience: clusterregistry.AudienceUser, Exec: &clusterregistry.ExecAccess{}}, plugin("people", "oidc"), plugin("others", "aws")},
	}
	FillV1alpha1(&s)
	return &clusterregistry.Cluster{Spec: s, Remainder: `{"v2":{}}`}
}

// TestWhatAClientOfV1alpha1Changes lets one write what he sees of rich, changed:
// 192.168.0.0/16, 10.0.0.0/8 of inside, 0.0.0.0/0 and ::/0 of outside.
func TestWhatAClientOfV1alpha1Changes(t *testing.T) {
	inside, outside := rich().Spec.Endpoints[0], rich().Spec.Endpoints[1]
	as := func(e endpoint, change func(*endpoint)) endpoint {
		change(&e)
		return e
	}
	list := func(s *spec) []address { return s.KubernetesAPIEndpoints.ServerEndpoints }
	for _, test := range []struct {
		reason    string
		change    func(*spec)
		endpoints []endpoint
		access    []way
	}{
		{reason: "nothing", change: func(*spec) {}},
		{
			reason: "an address of a range that is one of two: it becomes an endpoint of its own, like the old one",
			change: func(s *spec) { list(s)[0].ServerAddress = "10.0.0.2:6443" },
			endpoints: []endpoint{as(inside, func(e *endpoint) {
				e.Name, e.URL, e.ClientCIDRs = "endpoint-1", "https://10.0.0.2:6443", e.ClientCIDRs[1:]
			}), as(inside, func(e *endpoint) { e.ClientCIDRs = e.ClientCIDRs[:1] }), outside},
		},
		{
			reason:    "both addresses of an endpoint: it stays one, and so do its ranges",
			change:    func(s *spec) { list(s)[0].ServerAddress, list(s)[1].ServerAddress = "moved", "moved" },
			endpoints: []endpoint{as(inside, func(e *endpoint) { e.URL = "https://moved" }), outside},
		},
		{
			reason:    "both addresses of an endpoint for any client: it stays one",
			change:    func(s *spec) { list(s)[2].ServerAddress, list(s)[3].ServerAddress = "moved", "moved" },
			endpoints: []endpoint{inside, as(outside, func(e *endpoint) { e.URL = "https://moved" })},
		},
		{
			reason: "one of them: the other half stays where it was",
			change: func(s *spec) { list(s)[2].ServerAddress = "moved" },
			endpoints: []endpoint{inside, as(outside, func(e *endpoint) {
				e.Name, e.URL, e.ClientCIDRs = "endpoint-2", "https://moved", []string{"0.0.0.0/0"}
			}), as(outside, func(e *endpoint) { e.ClientCIDRs = []string{"::/0"} })},
		},
		{
			reason: "how any client is spelled",
			change: func(s *spec) {
				s.KubernetesAPIEndpoints.ServerEndpoints = []address{list(s)[0], list(s)[1], at("", "east.example")}
			},
			endpoints: []endpoint{inside, outside},
		},
		{
			reason:    "IPv4 only",
			change:    func(s *spec) { s.KubernetesAPIEndpoints.ServerEndpoints = list(s)[:3] },
			endpoints: []endpoint{inside, as(outside, func(e *endpoint) { e.ClientCIDRs = []string{"0.0.0.0/0"} })},
		},
		{
			reason: "a range",
			change: func(s *spec) { list(s)[1].ClientCIDR = "11.0.0.0/8" },
			endpoints: []endpoint{as(inside, func(e *endpoint) {
				e.ClientCIDRs = []string{"192.168.0.0/16", "11.0.0.0/8"}
			}), outside},
		},
		{
			reason:    "any client in place of ranges",
			change:    func(s *spec) { list(s)[0].ClientCIDR, list(s)[1].ClientCIDR = "0.0.0.0/0", "::/0" },
			endpoints: []endpoint{as(inside, func(e *endpoint) { e.ClientCIDRs = nil }), outside},
		},
		{
			reason: "the order of endpoints",
			change: func(s *spec) {
				s.KubernetesAPIEndpoints.ServerEndpoints = []address{list(s)[2], list(s)[3], list(s)[0], list(s)[1]}
			},
			endpoints: []endpoint{outside, inside},
		},
		{
			reason: "the order of an endpoint's ranges, which means nothing",
			change: func(s *spec) {
				s.KubernetesAPIEndpoints.ServerEndpoints = []address{list(s)[1], list(s)[0], list(s)[3], list(s)[2]}
			},
			endpoints: []endpoint{inside, outside},
		},
		{
			reason: "an entry more, in front",
			change: func(s *spec) {
				s.KubernetesAPIEndpoints.ServerEndpoints = append([]address{at("10.1.0.0/16", "new")}, list(s)...)
			},
			endpoints: []endpoint{inside, outside, {Name: "endpoint-3", URL: "https://new", ClientCIDRs: []string{"10.1.0.0/16"}, CABundle: []byte("one\ntwo")}},
		},
		{
			reason: "an entry less and one more, which trusts what all trusted",
			change: func(s *spec) {
				s.KubernetesAPIEndpoints.ServerEndpoints = []address{list(s)[0], list(s)[1], at("2001:db8::/32", "2001:db8::1")}
			},
			endpoints: []endpoint{inside, {Name: "endpoint-2", URL: "https://[2001:db8::1]", ClientCIDRs: []string{"2001:db8::/32"}, CABundle: []byte("one\ntwo")}},
		},
		{
			reason:    "the CA, of all endpoints",
			change:    func(s *spec) { s.KubernetesAPIEndpoints.CABundle = []byte("new") },
			endpoints: []endpoint{as(inside, func(e *endpoint) { e.CABundle = []byte("new") }), as(outside, func(e *endpoint) { e.CABundle = []byte("new") })},
		},
		{reason: "no endpoints", change: func(s *spec) { s.KubernetesAPIEndpoints = clusterregistry.KubernetesAPIEndpoints{} }, endpoints: []endpoint{}},
		{
			reason: "a provider's type", change: func(s *spec) { s.AuthInfo.Providers[1].Type.Name = "gcp" },
			access: []way{rich().Spec.Access[0], plugin("people", "oidc"), plugin("others", "gcp")},
		},
		{
			reason: "a provider less", change: func(s *spec) { s.AuthInfo.Providers = s.AuthInfo.Providers[1:] },
			access: []way{rich().Spec.Access[0], plugin("others", "aws")},
		},
		{
			reason: "a provider more, with the name of what he doesn't see", change: func(s *spec) { s.AuthInfo.Providers = append(s.AuthInfo.Providers, provider{Name: "exec"}) },
			access: []way{rich().Spec.Access[0], plugin("people", "oidc"), plugin("others", "aws"), plugin("exec-2", "")},
		},
	} {
		stored, before := rich(), rich()
		seen := spec{KubernetesAPIEndpoints: rich().Spec.KubernetesAPIEndpoints, AuthInfo: rich().Spec.AuthInfo}
		test.change(&seen)
		FillV1beta1(&seen)
		got, want := &clusterregistry.Cluster{Spec: seen}, rich()
		want.Spec.KubernetesAPIEndpoints, want.Spec.AuthInfo = seen.KubernetesAPIEndpoints, seen.AuthInfo
		if test.endpoints != nil {
			want.Spec.Endpoints = test.endpoints
		}
		if test.access != nil {
			want.Spec.Access = test.access
		}
		Restore(V1alpha1, got, stored)
		equal(t, test.reason, got, want)
		equal(t, test.reason+": what is stored is shared", stored, before)
	}
}

// TestWhatAClientOfV1beta1Changes lets one write what he sees of a cluster that
// uses what only v1alpha1 has.
func TestWhatAClientOfV1beta1Changes(t *testing.T) {
	old := func() *clusterregistry.Cluster {
		s := addresses("ca", at("", "https://east:6443"), at("", "2001:db8::1"))
		s.AuthInfo = withProviders(provider{}, provider{Name: "people"}).AuthInfo
		FillV1beta1(&s)
		return &clusterregistry.Cluster{Spec: s}
	}
	for _, test := range []struct {
		reason string
		change func(*spec)
		shown  func(*spec)
	}{
		{reason: "nothing", change: func(*spec) {}},
		{reason: "what v1alpha1 doesn't show", change: func(s *spec) { s.DisplayName, s.Endpoints[0].ProxyURL = "East", "http://proxy" }},
		{
			reason: "an address", change: func(s *spec) { s.Endpoints[0].URL = "https://moved" },
			shown: func(s *spec) {
				s.KubernetesAPIEndpoints.ServerEndpoints = []address{at("0.0.0.0/0", "https://moved"), at("::/0", "https://moved"), s.KubernetesAPIEndpoints.ServerEndpoints[1]}
			},
		},
		{
			reason: "any client becomes all of IPv4", change: func(s *spec) { s.Endpoints[0].ClientCIDRs = []string{"0.0.0.0/0"} },
			shown: func(s *spec) {
				s.KubernetesAPIEndpoints.ServerEndpoints[0].ClientCIDR = "0.0.0.0/0"
				s.KubernetesAPIEndpoints.ServerEndpoints[0].ServerAddress = "https://east:6443"
			},
		},
		{
			reason: "an endpoint more", change: func(s *spec) { s.Endpoints = append(s.Endpoints, endpoint{Name: "new", URL: "https://new"}) },
			shown: func(s *spec) {
				s.KubernetesAPIEndpoints.ServerEndpoints = append(s.KubernetesAPIEndpoints.ServerEndpoints, at("0.0.0.0/0", "https://new"), at("::/0", "https://new"))
			},
		},
		{
			reason: "the type of a provider without a name", change: func(s *spec) { s.Access[0].Provider = &clusterregistry.ProviderAccess{Type: "oidc"} },
			shown: func(s *spec) { s.AuthInfo.Providers[0].Type.Name = "oidc" },
		},
		{
			reason: "a provider's name", change: func(s *spec) { s.Access[0].Name = "named" },
			shown: func(s *spec) { s.AuthInfo.Providers[0].Name = "named" },
		},
	} {
		stored, before := old(), old()
		seen := old().Spec
		test.change(&seen)
		FillV1alpha1(&seen)
		got, want := &clusterregistry.Cluster{Spec: *seen.DeepCopy()}, &clusterregistry.Cluster{Spec: seen}
		want.Spec.KubernetesAPIEndpoints, want.Spec.AuthInfo = old().Spec.KubernetesAPIEndpoints, old().Spec.AuthInfo
		if test.shown != nil {
			test.shown(&want.Spec)
		}
		Restore(V1beta1, got, stored)
		equal(t, test.reason, got, want)
		equal(t, test.reason+": what is stored is shared", stored, before)
	}
}

func TestWhatAClientOfV1alpha1Reports(t *testing.T) {
	ready := []metav1.Condition{{Type: "Ready"}}
	version := clusterregistry.ClusterVersion{Kubernetes: "v1"}
	nodes := &clusterregistry.NodeCount{Total: 1}
	type status = clusterregistry.ClusterStatus
	for _, test := range []struct {
		reason                string
		stored, written, want *status
	}{
		{reason: "the first report", written: &status{Version: version}, want: &status{Version: version}},
		{reason: "others' reports stay", stored: &status{Nodes: nodes, Version: version}, written: &status{Conditions: ready}, want: &status{Nodes: nodes, Conditions: ready}},
		{reason: "none, where others report", stored: &status{Nodes: nodes, Version: version}, want: &status{Nodes: nodes}},
		{reason: "none, where nobody else reports", stored: &status{Version: version}},
		{reason: "an empty one", stored: &status{Version: version}, written: &status{}, want: &status{}},
	} {
		written := &clusterregistry.Cluster{Status: test.written}
		Restore(V1alpha1, written, &clusterregistry.Cluster{Status: test.stored})
		equal(t, test.reason, written.Status, test.want)
	}
}

func TestTheServerItselfWritesAll(t *testing.T) {
	written := &clusterregistry.Cluster{Spec: spec{DisplayName: "West"}}
	Restore("", written, rich())
	if written.Spec.DisplayName != "West" || len(written.Spec.Endpoints) != 0 || written.Remainder != rich().Remainder {
		t.Errorf("got %+v", written)
	}
}
