package client_test

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/form"
	"github.com/clusterregistry/operator/apis/clusterregistry/validation"
)

// FuzzEndpoints writes any address and range through both versions. What is
// accepted is what clients can use, and leads them to TLS; what v1alpha1 accepts,
// v1beta1 does.
func FuzzEndpoints(f *testing.F) {
	for _, seed := range [][2]string{
		{"api.example.com:6443", "10.0.0.0/8"}, {"2001:db8::1", "2001:db8::/32"}, {"[2001:db8::1]:6443", ""}, {"https://u:p@h", "::ffff:10.0.0.0/104"},
		{"https://h/k", "0.0.0.0/0"}, {"u:p@h", "10.0.0.1"}, {"https://h?x#y", "fe80::1%eth0/64"}, {"HTTPS://H", "10.0.0.0/08"}, {"https://h%zz", "::/129"}, {"10.0.0.256", "::/0"},
		{"https://[fe80::1%25eth0]", "1.2.3.4/0"}, {"h\n", "10.0.0.0/8\n"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, address, cidr string) {
		c := &clusterregistry.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
		c.Spec.KubernetesAPIEndpoints.ServerEndpoints = []clusterregistry.ServerAddressByClientCIDR{{ClientCIDR: cidr, ServerAddress: address}}
		form.FillV1beta1(&c.Spec)
		faults := validation.Cluster(c, form.V1alpha1)
		if own := addressFaults(faults); len(own) > 0 {
			silent(t, own, address)
			return
		}
		if faults := validation.Cluster(c, form.V1beta1); len(faults) > 0 {
			t.Fatalf("v1alpha1 accepts what v1beta1 refuses: %v", faults)
		}
		form.FillV1alpha1(&c.Spec)
		for _, shown := range c.Spec.KubernetesAPIEndpoints.ServerEndpoints {
			_, network, err := net.ParseCIDR(shown.ClientCIDR)
			if err != nil {
				t.Fatalf("a client can't read the range %q: %v", shown.ClientCIDR, err)
			}
			if prefix := netip.MustParsePrefix(shown.ClientCIDR).Masked(); prefix.String() != network.String() {
				t.Fatalf("the range %q is %s to one client and %s to another", shown.ClientCIDR, prefix, network)
			}
			if shown.ServerAddress == "" {
				continue
			}
			url, _, err := rest.DefaultServerURL(shown.ServerAddress, "", clusterregistry.SchemeGroupVersion, false)
			if err != nil || url.Scheme != "https" || url.User != nil || url.RawQuery != "" {
				t.Fatalf("a client makes %v, %v of %q", url, err, shown.ServerAddress)
			}
		}
	})
}

// addressFaults are those of the endpoints.
func addressFaults(faults field.ErrorList) field.ErrorList {
	var out field.ErrorList
	for _, fault := range faults {
		if strings.Contains(fault.Field, "ndpoints") {
			out = append(out, fault)
		}
	}
	return out
}

// silent makes sure that faults don't repeat what may be a credential in an
// address: what is in front of an @ or behind a ?.
func silent(t *testing.T, faults field.ErrorList, address string) {
	t.Helper()
	for _, part := range []string{before(address, "@"), after(address, "?"), after(address, "#")} {
		if len(part) > 20 && strings.Contains(faults.ToAggregate().Error(), part) {
			t.Fatalf("%q is repeated: %v", part, faults)
		}
	}
}

func before(s, sep string) string {
	head, _, ok := strings.Cut(s, sep)
	if !ok {
		return ""
	}
	return head
}

func after(s, sep string) string {
	_, tail, _ := strings.Cut(s, sep)
	return tail
}
