package address

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// registryOf returns a registry with a mode, and the Service of its servers in YAML.
func registryOf(t *testing.T, mode, service string) *operatorv1alpha1.ClusterRegistry {
	t.Helper()
	registry := &operatorv1alpha1.ClusterRegistry{}
	if err := yaml.UnmarshalStrict(fmt.Appendf(nil, "{spec: {mode: %s, server: {service: %s}}}", mode, service), registry); err != nil {
		t.Fatalf("%v: %s", err, service)
	}
	registry.Namespace, registry.Name = "team", "fleet"
	operatorv1alpha1.SetDefaults(registry)
	return registry
}

// TestKnownNodePort is about which port a Service that is made again asks for.
func TestKnownNodePort(t *testing.T) {
	for reason, test := range map[string]struct {
		mode, service, url string
		want               int32
	}{
		"the one that clients know":             {"Independent", "{type: NodePort}", "https://203.0.113.1:30443", 30443},
		"behind a name":                         {"Independent", "{type: NodePort, hostnames: [a.example]}", "https://a.example:30443", 30443},
		"of IPv6":                               {"Independent", "{type: NodePort}", "https://[2001:db8::1]:30443", 30443},
		"of IPv6 that had no node port":         {"Independent", "{type: NodePort}", "https://[2001:db8::1]", 0},
		"there was none yet":                    {"Independent", "{type: NodePort}", "", 0},
		"it was a balancer's, or the Service's": {"Independent", "{type: NodePort}", "https://lb.example", 0},
		"the spec names one":                    {"Independent", "{type: NodePort, nodePort: 30500}", "https://203.0.113.1:30443", 0},
		"it is a balancer's now":                {"Independent", "{type: LoadBalancer}", "https://203.0.113.1:30443", 0},
		"it is for clients in the host now":     {"Independent", "{type: ClusterIP}", "https://203.0.113.1:30443", 0},
		"no Service is asked for":               {"Independent", "null", "https://203.0.113.1:30443", 0},
		"past the schema":                       {"Aggregated", "{type: NodePort}", "https://203.0.113.1:30443", 0},
		"no URL":                                {"Independent", "{type: NodePort}", "::", 0},
		"no port that can be":                   {"Independent", "{type: NodePort}", "https://203.0.113.1:70000", 0},
	} {
		registry := registryOf(t, test.mode, test.service)
		if test.url != "" {
			registry.Status.Endpoint = &operatorv1alpha1.Endpoint{URL: test.url}
		}
		if got := KnownNodePort(registry); got != test.want {
			t.Errorf("%s: %d, want %d", reason, got, test.want)
		}
	}
}

// TestWithNodePort asks for a port, and leaves the Service that is applied alone.
func TestWithNodePort(t *testing.T) {
	for _, test := range []struct {
		reason, service string
		port            int32
		want            int64 // 0 when there is nothing to ask for
	}{
		{"one that clients know", "{spec: {ports: [{port: 443}]}}", 30443, 30443},
		{"the first of two ports", "{spec: {ports: [{port: 443}, {port: 80}]}}", 30443, 30443},
		{"none is known", "{spec: {ports: [{port: 443}]}}", 0, 0},
		{"no ports", "{spec: {ports: []}}", 30443, 0},
		{"no spec", "{}", 30443, 0},
		{"ports that are none", "{spec: {ports: much}}", 30443, 0},
	} {
		service := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(test.service), &service.Object); err != nil {
			t.Fatal(err)
		}
		before := fmt.Sprint(service.Object)
		got := WithNodePort(service, test.port)
		if (got != nil) != (test.want != 0) {
			t.Errorf("%s: %v", test.reason, got)
		}
		if got != nil {
			ports, _, _ := unstructured.NestedSlice(got.Object, "spec", "ports")
			if port := ports[0].(map[string]any)["nodePort"]; port != test.want {
				t.Errorf("%s: asks for %v", test.reason, port)
			}
		}
		if after := fmt.Sprint(service.Object); after != before {
			t.Errorf("%s: what is applied has become %s", test.reason, after)
		}
	}
}

// TestNodePortRefused tells a port that is taken from all else that may be wrong.
func TestNodePortRefused(t *testing.T) {
	invalid := func(path *field.Path) error {
		return fmt.Errorf("create Service: %w", apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Service").GroupKind(), "fleet-server", field.ErrorList{
			field.Required(field.NewPath("spec"), "else"), field.Invalid(path, 30443, "provided port is already allocated")}))
	}
	port := field.NewPath("spec", "ports").Index(0)
	for _, test := range []struct {
		reason  string
		err     error
		refused bool
	}{
		{"another Service has it", invalid(port.Child("nodePort")), true},
		{"another field", invalid(port.Child("port")), false},
		{"without details", &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid}}, false},
		{"without causes", apierrors.NewNotFound(schema.GroupResource{Resource: "services"}, "fleet-server"), false},
		{"no answer at all", errors.New("EOF"), false},
		{"nothing", nil, false},
	} {
		got := NodePortRefused(test.err)
		want := ""
		if test.refused {
			want = `Invalid value: 30443: provided port is already allocated`
		}
		if got != want {
			t.Errorf("%s: %q, want %q", test.reason, got, want)
		}
	}
}
