package clusterregistry

import (
	"strings"
	"testing"
)

func TestPlan(t *testing.T) {
	for _, test := range []struct {
		what, spec, running, host string
		// reason is empty for a plan without a hold; renders is the release that is
		// rendered, if any.
		reason, says, renders string
	}{
		{"an installation", "v0.1.0", "", "v1.37.1", "", "", "v0.1.0"},
		{"what runs", "v0.1.0", "v0.1.0", "v1.34.0", "", "", "v0.1.0"},
		{"a version that nobody knows", "v9.9.9", "", "v1.37.1", "VersionUnknown", "knows no version", ""},
		{"the same, while another runs", "v9.9.9", "v0.1.0", "v1.37.1", "VersionUnknown", "; v0.1.0 goes on", "v0.1.0"},
		{"no version at all", "", "", "v1.37.1", "VersionUnknown", `no version ""`, ""},
		{"a host too old to begin", "v0.2.0", "", "v1.34.0", "HostUnsupported", "tested with 1.35 to 1.38", ""},
		{"a host too new to begin", "v0.1.0", "", "v1.38.0", "HostUnsupported", "tested with 1.34 to 1.37", ""},
		{"a host upgraded under a registry", "v0.1.0", "v0.1.0", "v1.38.0", "HostUnsupported", "the host runs Kubernetes v1.38.0", "v0.1.0"},
		{"a host whose version is none, under a registry", "v0.1.0", "v0.1.0", "1.37_custom", "HostUnsupported", "no version of Kubernetes", "v0.1.0"},
		{"an upgrade that is not built", "v0.2.0", "v0.1.0", "v1.37.1", "UpgradeUnsupported", "set spec.version back to v0.1.0", "v0.1.0"},
		{"the return from there", "v0.1.0", "v0.1.0", "v1.37.1", "", "", "v0.1.0"},
		{"what runs is unknown to an older operator", "v0.1.0", "v0.9.0", "v1.37.1", "UpgradeUnsupported", "from v0.9.0", ""},
	} {
		s := look(t, "{spec: {version: '"+test.spec+"', mode: Aggregated, etcd: {replicas: 1}}, status: {version: '"+test.running+"'}}")
		s.host, s.release.Version = test.host, ""
		h := s.plan(released)
		if (h == nil) != (test.reason == "") || h != nil && (h.reason != test.reason || !strings.Contains(h.message, test.says) || h.err != nil) {
			t.Errorf("%s: %+v", test.what, h)
		}
		// Only an impaired hold lets the stages run, since nothing is rendered yet.
		if goes := h == nil || h.impaired; goes != (test.renders != "") || goes && s.release.Version != test.renders {
			t.Errorf("%s: renders %q (hold %+v), want %q", test.what, s.release.Version, h, test.renders)
		}
		if goes := h == nil || h.impaired; goes && s.input(reading(t).Environment).Registry != s.registry {
			t.Errorf("%s: the input is of another registry", test.what)
		}
	}
}
