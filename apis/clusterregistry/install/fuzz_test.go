package install

import (
	"fmt"
	"math/rand"
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
// round. Nearly every input is two clusters: see richSpec and plainSpec.
func FuzzConversion(f *testing.F) {
	for _, seed := range [][2]string{
		{"", ""},
		{"a https://a\nb https://b 10.0.0.0/8,::/0 http://p ca\n\nx provider\ny exec", "0.0.0.0/0 a\n- https://b\n::/0 a\n\ny\n-"},
		{"endpoint-1 https://[::1]:6443 0.0.0.0/0,::/0\nany\ntoo", "- ::1\n-\n-"},
		{"a https://a 0.0.0.0/0\nb https://a ::/0", "- a"},
		{"mapped https://a ::ffff:10.0.0.0/104,nonsense", "nonsense http://a"},
		{"a https://a - - one\nb https://b 10.0.0.0/8 - two\n\nx provider\nz exec\ny provider", "::/0 https://a\n10.0.0.0/8 https://b\n0.0.0.0/0 https://c\n\nx\ny\ny"},
		{"0 0", "0"},
		{"0 A 0.0.040aa,\nAa/ a:/0j0", "\ny"},
		{"a https://a 10.0.0.0/16,10.0.0.0/8,0.0.0.0/0\nb https://b", "0.0.0.0/0 https://b\n::/0 https://b\n0.0.0.0/0 https://a\n10.0.0.0/8 https://a"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(lossless)
}

// TestAnyConversion does the same with pairs of clusters that are as alike as
// clusters get: of few names, ranges and addresses.
func TestAnyConversion(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	of := func(values ...string) string { return values[r.Intn(len(values))] }
	cidr := func() string {
		return of("0.0.0.0/0", "::/0", "10.0.0.0/8", "10.1.0.0/16", "2001:db8::/32", "0.0.0.0/0", "::/0")
	}
	host := func() string { return of("a", "b", "[::1]:6443") }
	for range 2000 {
		var rich, ways, plain, providers []string
		for i := range r.Intn(4) {
			cidrs := "-"
			for n := range r.Intn(4) {
				cidrs = strings.TrimPrefix(cidrs+",", "-,") + cidr()
				if n == 0 {
					cidrs = strings.Trim(cidrs, ",-")
				}
			}
			rich = append(rich, fmt.Sprintf("%s https://%s %s %s %s", of("main", "other", "endpoint-1", fmt.Sprint("e", i)), host(), cidrs, of("-", "http://p"), of("-", "one", "two")))
		}
		for i := range r.Intn(4) {
			ways = append(ways, fmt.Sprintf("%s %s %s", of("people", "provider-1", fmt.Sprint("w", i)), of("provider", "provider", "exec", "controller"), of("-", "oidc")))
		}
		for range r.Intn(5) {
			plain = append(plain, fmt.Sprintf("%s %s %s", of("-", cidr(), cidr()), of("", "https://")+host(), of("-", "one")))
		}
		for range r.Intn(3) {
			providers = append(providers, of("-", "people", "provider-1")+" "+of("-", "oidc"))
		}
		lossless(t, strings.Join(rich, "\n")+"\n\n"+strings.Join(ways, "\n"), strings.Join(plain, "\n")+"\n\n"+strings.Join(providers, "\n"))
	}
}

var scheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	Install(scheme)
	return scheme
}()

// lossless is what holds for any two clusters.
func lossless(t *testing.T, rich, plain string) {
	defer func() {
		if t.Failed() {
			t.Logf("v1beta1 is\n%s\nv1alpha1 is\n%s", rich, plain)
		}
	}()
	beta, alpha := v1beta1.Cluster{Spec: richSpec(rich)}, v1alpha1.Cluster{Spec: plainSpec(plain)}
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
	agree(t, stored)
	agree(t, old)
	agree(t, written)
	unchanged(t, scheme, written, form.V1alpha1, &v1alpha1.Cluster{})
	unchanged(t, scheme, written, form.V1beta1, &v1beta1.Cluster{})

	again := stored.DeepCopy()
	form.Restore(form.V1beta1, again, old)
	same(t, "what v1beta1 wrote", again.Spec.Endpoints, stored.Spec.Endpoints)
	same(t, "what v1beta1 wrote", again.Spec.Access, stored.Spec.Access)
	agree(t, again)
	unchanged(t, scheme, again, form.V1alpha1, &v1alpha1.Cluster{})
}

// lines are the lines of two parts, each as its fields; "-" is an empty field.
func lines(text string) (first, second [][]string) {
	head, tail, _ := strings.Cut(text, "\n\n")
	split := func(part string) (out [][]string) {
		for line := range strings.Lines(part) {
			fields := append(strings.Fields(strings.ToValidUTF8(line, "")), make([]string, 5)...)
			for i := range fields {
				fields[i] = strings.TrimPrefix(fields[i], "-")
			}
			out = append(out, fields)
		}
		return out
	}
	return split(head), split(tail)
}

// richSpec reads endpoints, each with name, URL, ranges, proxy and CA, and ways to
// sign in, each with name and kind. An address becomes a URL, and an empty range
// none, since v1beta1 takes neither.
func richSpec(text string) (spec v1beta1.ClusterSpec) {
	endpoints, ways := lines(text)
	for _, e := range endpoints {
		if e[1] != "" && !strings.Contains(e[1], "://") {
			e[1] = "https://" + e[1]
		}
		endpoint := v1beta1.Endpoint{Name: e[0], URL: e[1], ProxyURL: e[3], CABundle: []byte(e[4])}
		if e[2] != "" {
			endpoint.ClientCIDRs = strings.FieldsFunc(e[2], func(r rune) bool { return r == ',' })
		}
		spec.Endpoints = append(spec.Endpoints, endpoint)
	}
	for _, w := range ways {
		way := v1beta1.Access{Name: w[0], Audience: v1beta1.AudienceUser}
		switch w[1] {
		case "exec":
			way.Exec = &v1beta1.ExecAccess{Command: w[2]}
		case "controller":
			way.Audience, way.Provider = v1beta1.AudienceController, &v1beta1.ProviderAccess{}
		default:
			way.Provider = &v1beta1.ProviderAccess{Type: w[2]}
		}
		spec.Access = append(spec.Access, way)
	}
	return spec
}

// plainSpec reads addresses, each with range and address, and providers, each with
// name and type.
func plainSpec(text string) (spec v1alpha1.ClusterSpec) {
	addresses, providers := lines(text)
	for _, a := range addresses {
		entry := v1alpha1.ServerAddressByClientCIDR{ClientCIDR: a[0], ServerAddress: a[1]}
		spec.KubernetesAPIEndpoints.ServerEndpoints = append(spec.KubernetesAPIEndpoints.ServerEndpoints, entry)
		spec.KubernetesAPIEndpoints.CABundle = []byte(a[2])
	}
	for _, p := range providers {
		spec.AuthInfo.Providers = append(spec.AuthInfo.Providers, v1alpha1.AuthProviderConfig{Name: p[0], Type: v1alpha1.AuthProviderType{Name: p[1]}})
	}
	return spec
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

// agree makes sure that both forms lead the same ranges to the same URLs.
func agree(t *testing.T, c *clusterregistry.Cluster) {
	t.Helper()
	var shown []clusterregistry.Endpoint
	for _, entry := range c.Spec.KubernetesAPIEndpoints.ServerEndpoints {
		url := entry.ServerAddress
		switch {
		case url == "" || strings.Contains(url, "://"):
		case net.ParseIP(url) != nil && strings.Contains(url, ":"):
			url = "https://[" + url + "]"
		default:
			url = "https://" + url
		}
		shown = append(shown, clusterregistry.Endpoint{ClientCIDRs: []string{entry.ClientCIDR}, URL: url})
	}
	same(t, "ranges and addresses", reached(shown), reached(c.Spec.Endpoints))
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
