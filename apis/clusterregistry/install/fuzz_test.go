package install

import (
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/diff"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/form"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/apis/clusterregistry/validation"
)

// FuzzConversion stores a cluster that was written through v1beta1, lets a client
// of v1alpha1 write it back as it is, and then anything else; and the other way
// round.
func FuzzConversion(f *testing.F) {
	for _, seed := range [][2]string{
		{`{}`, `{}`},
		{`{"endpoints":[{"name":"a","url":"https://a"},{"name":"b","url":"https://b","clientCIDRs":["10.0.0.0/8","::/0"],"proxyURL":"http://p"}],"access":[{"name":"x","audience":"User","provider":{"type":"oidc"}},{"name":"y","audience":"User","exec":{"apiVersion":"v1","command":"c"}}]}`,
			`{"kubernetesApiEndpoints":{"serverEndpoints":[{"clientCIDR":"0.0.0.0/0","serverAddress":"a"},{"serverAddress":"https://b"},{"clientCIDR":"::/0","serverAddress":"a"}],"caBundle":"eA=="},"authInfo":{"providers":[{"name":"y"},{}]}}`},
		{`{"endpoints":[{"name":"endpoint-1","url":"https://[::1]:6443","clientCIDRs":["0.0.0.0/0","::/0"]},{"name":"any"},{"name":"too"}]}`, `{"kubernetesApiEndpoints":{"serverEndpoints":[{"serverAddress":"::1"},{},{}]}}`},
		{`{"endpoints":[{"name":"a","url":"https://a","clientCIDRs":["0.0.0.0/0"]},{"name":"b","url":"https://a","clientCIDRs":["::/0"]}]}`, `{"kubernetesApiEndpoints":{"serverEndpoints":[{"serverAddress":"a"}]}}`},
		{`{"endpoints":[{"name":"mapped","url":"https://a","clientCIDRs":["::ffff:10.0.0.0/104","nonsense"]}]}`, `{"kubernetesApiEndpoints":{"serverEndpoints":[{"clientCIDR":"nonsense","serverAddress":"http://a"}]}}`},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	scheme := runtime.NewScheme()
	Install(scheme)
	f.Fuzz(func(t *testing.T, rich, plain []byte) {
		var beta v1beta1.Cluster
		var alpha v1alpha1.Cluster
		if json.Unmarshal(rich, &beta.Spec) != nil || json.Unmarshal(plain, &alpha.Spec) != nil {
			return
		}
		stored, old := &clusterregistry.Cluster{}, &clusterregistry.Cluster{}
		convert(t, scheme, &beta, stored)
		convert(t, scheme, &alpha, old)
		readable(t, stored)
		unchanged(t, scheme, stored, form.V1alpha1, &v1alpha1.Cluster{})
		unchanged(t, scheme, old, form.V1beta1, &v1beta1.Cluster{})
		unchanged(t, scheme, old, form.V1alpha1, &v1alpha1.Cluster{})

		written := old.DeepCopy()
		form.Restore(form.V1alpha1, written, stored)
		same(t, "what v1alpha1 wrote", written.Spec.KubernetesAPIEndpoints, old.Spec.KubernetesAPIEndpoints)
		same(t, "what v1alpha1 wrote", written.Spec.AuthInfo, old.Spec.AuthInfo)
		same(t, "what v1alpha1 doesn't show", hidden(written), hidden(stored))
		if len(alpha.Spec.KubernetesAPIEndpoints.ServerEndpoints) > 0 || len(written.Spec.Endpoints) > 0 {
			same(t, "ranges and addresses", reached(written.Spec.Endpoints), wanted(alpha.Spec.KubernetesAPIEndpoints.ServerEndpoints, stored, old))
		}
		unchanged(t, scheme, written, form.V1alpha1, &v1alpha1.Cluster{})
		unchanged(t, scheme, written, form.V1beta1, &v1beta1.Cluster{})

		again := stored.DeepCopy()
		form.Restore(form.V1beta1, again, old)
		same(t, "what v1beta1 wrote", again.Spec.Endpoints, stored.Spec.Endpoints)
		same(t, "what v1beta1 wrote", again.Spec.Access, stored.Spec.Access)
		unchanged(t, scheme, again, form.V1alpha1, &v1alpha1.Cluster{})
	})
}

func convert(t *testing.T, scheme *runtime.Scheme, in, out any) {
	t.Helper()
	if err := scheme.Convert(in, out, nil); err != nil {
		t.Fatal(err)
	}
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if !apiequality.Semantic.DeepEqual(got, want) {
		t.Fatalf("%s:\n%s", what, diff.Diff(want, got))
	}
}

// unchanged lets a client of a version write what it reads.
func unchanged(t *testing.T, scheme *runtime.Scheme, stored *clusterregistry.Cluster, version string, shown runtime.Object) {
	t.Helper()
	convert(t, scheme, stored, shown)
	written := &clusterregistry.Cluster{}
	convert(t, scheme, shown, written)
	form.Restore(version, written, stored)
	same(t, "written through "+version+" without a change", written, stored)
	if faults := validation.ClusterUpdate(withVersion(written), withVersion(stored), version); len(faults) > 0 {
		t.Fatalf("written through %s without a change: %v", version, faults)
	}
}

func withVersion(c *clusterregistry.Cluster) *clusterregistry.Cluster {
	c = c.DeepCopy()
	c.ObjectMeta = metav1.ObjectMeta{Name: "east", ResourceVersion: "1"}
	return c
}

// hidden returns the ways to sign in that v1alpha1 doesn't show, in their order.
func hidden(c *clusterregistry.Cluster) (out []clusterregistry.Access) {
	for _, way := range c.Spec.Access {
		if way.Provider == nil || way.Audience != clusterregistry.AudienceUser {
			out = append(out, way)
		}
	}
	return out
}

// reached returns each range with the URL that it leads to.
func reached(endpoints []clusterregistry.Endpoint) []string {
	var out []string
	for _, endpoint := range endpoints {
		cidrs := endpoint.ClientCIDRs
		if len(cidrs) == 0 || len(cidrs) == 1 && cidrs[0] == "" {
			cidrs = []string{"0.0.0.0/0", "::/0"}
		}
		for _, cidr := range cidrs {
			out = append(out, cidr+" "+endpoint.URL)
		}
	}
	slices.Sort(out)
	return out
}

// wanted returns what reached should return of written entries. When they are what
// is stored already, nothing of the stored endpoints changes.
func wanted(written []v1alpha1.ServerAddressByClientCIDR, stored, old *clusterregistry.Cluster) []string {
	if apiequality.Semantic.DeepEqual(old.Spec.KubernetesAPIEndpoints, stored.Spec.KubernetesAPIEndpoints) {
		return reached(stored.Spec.Endpoints)
	}
	var endpoints []clusterregistry.Endpoint
	for _, entry := range written {
		url := entry.ServerAddress
		switch {
		case url == "" || strings.Contains(url, "://"):
		case net.ParseIP(url) != nil && strings.Contains(url, ":"):
			url = "https://[" + url + "]"
		default:
			url = "https://" + url
		}
		endpoints = append(endpoints, clusterregistry.Endpoint{ClientCIDRs: []string{entry.ClientCIDR}, URL: url})
	}
	return reached(endpoints)
}

// readable makes sure that a client of 2018 takes from v1alpha1 what one of today
// takes from v1beta1, if the cluster is a valid one.
func readable(t *testing.T, c *clusterregistry.Cluster) {
	t.Helper()
	if len(validation.Cluster(withVersion(c), form.V1beta1)) > 0 {
		return
	}
	for _, own := range []string{"10.1.2.3", "203.0.113.7", "::1", "2001:db8::1"} {
		var first *string
		for _, entry := range c.Spec.KubernetesAPIEndpoints.ServerEndpoints {
			_, network, err := net.ParseCIDR(entry.ClientCIDR)
			if err != nil {
				t.Fatalf("v1alpha1 shows a range that is none: %v", err)
			}
			if first == nil && network.Contains(net.ParseIP(own)) {
				first = &entry.ServerAddress
			}
		}
		longest, url := -2, ""
		for _, endpoint := range c.Spec.Endpoints {
			if len(endpoint.ClientCIDRs) == 0 && longest < -1 {
				longest, url = -1, endpoint.URL
			}
			for _, cidr := range endpoint.ClientCIDRs {
				_, network, err := net.ParseCIDR(cidr)
				if err != nil {
					t.Fatalf("a valid range that is none: %v", err)
				}
				if bits, _ := network.Mask.Size(); network.Contains(net.ParseIP(own)) && bits > longest {
					longest, url = bits, endpoint.URL
				}
			}
		}
		if first == nil != (longest < -1) || first != nil && *first != url {
			t.Fatalf("%s: v1alpha1 leads to %s, v1beta1 to %s", own, fmt.Sprint(first), url)
		}
	}
}
