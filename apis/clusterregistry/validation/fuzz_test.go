package validation

import (
	"encoding/base64"
	"net"
	"net/netip"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/form"
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
		c := cluster(func(c *clusterregistry.Cluster) {
			c.Spec.KubernetesAPIEndpoints.ServerEndpoints = []clusterregistry.ServerAddressByClientCIDR{{ClientCIDR: cidr, ServerAddress: address}}
			form.FillV1beta1(&c.Spec)
		})
		faults := Cluster(c, form.V1alpha1)
		if own := addressFaults(faults); len(own) > 0 {
			silent(t, own, address)
			return
		}
		if faults := Cluster(c, form.V1beta1); len(faults) > 0 {
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

// FuzzCredentials gives a value any name. The verdict doesn't depend on how the
// name is spelled nor on where it stands, and no fault repeats the value.
func FuzzCredentials(f *testing.F) {
	const key, jwt = "-----BEGIN EC PRIVATE KEY-----\nx\n", "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzb21lb25lIn0.c2ln"
	for _, seed := range [][2]string{
		{"password", "hunter2"}, {"aws_session_token", "x"}, {"secretRef", "team-a/token"}, {"url", "https://u:hunter2@h"}, {"note", key}, {"note", jwt}, {"KUBECONFIG", "~/.kube/config"},
		{"token", "true"}, {"", ""}, {"-", "--token"}, {"--header", "Authorization: Bearer x"}, {"=", ": "}, {"Tokens", "\x00"}, {"İ", "ſecret"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		faults := config(map[string]string{name: value}, field.NewPath("config"))
		faults = append(faults, arguments([]string{"--" + name + "=" + value, "--" + name, value, value}, field.NewPath("args"))...)
		faults = append(faults, exec(&clusterregistry.ExecAccess{APIVersion: "v1", Command: value, Env: []clusterregistry.ExecEnvVar{{Name: name, Value: value}}}, field.NewPath("exec"))...)
		discreet(faults)
		if len(value) > 20 && !strings.Contains(name, value) && len(faults) > 0 && strings.Contains(faults.ToAggregate().Error(), value) && !strings.Contains(storePointer, value) {
			t.Fatalf("the value is repeated: %v", faults)
		}
		verdict := isCredential(name, value)
		for _, spelled := range []string{strings.ToUpper(name), name + "_", "-" + name, "x." + name} {
			if isASCII(name) && verdict && !isCredential(spelled, value) {
				t.Fatalf("%q is for a credential and %q is not", name, spelled)
			}
		}
		if verdict && len(config(map[string]string{name: value}, nil)) == 0 {
			t.Fatalf("%q is accepted as a setting", name)
		}
		if len(value) > 512 {
			return
		}
		for _, secret := range []string{key, jwt} {
			if credential(value+" "+secret+" "+value) == "" {
				t.Fatalf("%q hides a credential", value)
			}
		}
		if credential(base64.StdEncoding.EncodeToString([]byte(value+key))) == "" {
			t.Fatalf("%q hides a credential in base64", value)
		}
	})
}

// isASCII reports whether upper and lower case are each other's inverse in a text.
func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r > 127 }) < 0
}
