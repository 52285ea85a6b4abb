package clusterregistry

import (
	"slices"
	"strings"
	"testing"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

func TestPlan(t *testing.T) {
	const done, back = "completed", "rolled back"
	for _, test := range []struct {
		what, spec, running, host string
		// reason is empty for a plan without a hold; renders is the release that is
		// rendered, if any, and begins the one that an upgrade begins to.
		reason, says, renders, begins, last string
	}{
		{"an installation", "v0.1.0", "", "v1.37.1", "", "", "v0.1.0", "", ""},
		{"what runs", "v0.1.0", "v0.1.0", "v1.34.0", "", "", "v0.1.0", "", done},
		{"a version that nobody knows", "v9.9.9", "", "v1.37.1", "VersionUnknown", "does not know version", "", "", ""},
		{"the same, while another runs", "v9.9.9", "v0.1.0", "v1.37.1", "VersionUnknown", "; v0.1.0 keeps running", "v0.1.0", "", done},
		{"no version at all", "", "", "v1.37.1", "VersionUnknown", `know version ""`, "", "", ""},
		{"a host too old to begin", "v0.2.0", "", "v1.34.0", "HostUnsupported", "tested with 1.35 to 1.38", "", "", ""},
		{"a host too new to begin", "v0.1.0", "", "v1.38.0", "HostUnsupported", "tested with 1.34 to 1.37", "", "", ""},
		{"a host upgraded under a registry", "v0.1.0", "v0.1.0", "v1.38.0", "HostUnsupported", "the host cluster runs Kubernetes v1.38.0", "v0.1.0", "", done},
		{"a host whose version is none, under a registry", "v0.1.0", "v0.1.0", "1.37_custom", "HostUnsupported", "not a valid Kubernetes version", "v0.1.0", "", done},
		{"what runs is unknown to an older operator", "v0.1.0", "v0.9.0", "v1.37.1", "VersionUnknown", "the registry runs v0.9.0", "", "", done},
		{"an upgrade", "v0.2.0", "v0.1.0", "v1.37.1", "", "", "v0.1.0", "v0.2.0", done},
		{"an upgrade to what the host is too old for", "v0.2.0", "v0.1.0", "v1.34.1", "HostUnsupported", "v0.2.0 was tested with 1.35 to 1.38; v0.1.0 keeps running", "v0.1.0", "", done},
		{"a step that is left out", "v0.3.0", "v0.1.0", "v1.37.1", "UpgradeUnsupported", "v0.1.0 -> v0.3.0 skips v0.2.0; set spec.version to v0.2.0 first; v0.1.0 keeps running", "v0.1.0", "", done},
		{"backward", "v0.1.0", "v0.2.0", "v1.37.1", "UpgradeUnsupported", "is a downgrade, which is not possible: set spec.version back to v0.2.0", "v0.2.0", "", done},
		{"what was rolled back, with the same spec", "v0.2.0", "v0.1.0", "v1.37.1", "RolledBack", "is retried when the spec changes: no image", "v0.1.0", "", back},
		{"another version than was rolled back", "v0.3.0", "v0.2.0", "v1.37.1", "", "", "v0.2.0", "v0.3.0", back},
		{"before it was complete, it is installed first", "v0.2.0", "v0.1.0", "v1.37.1", "", "", "v0.1.0", "", ""},
	} {
		status := "{version: '" + test.running + "'}"
		switch test.last {
		case done:
			status = "{version: '" + test.running + "', history: [{version: v0.1.0, state: Completed, startTime: null}]}"
		case back:
			status = "{version: '" + test.running + "', history: [{version: v0.2.0, state: RolledBack, generation: 7, message: no image, startTime: null}, {version: v0.1.0, state: Completed, startTime: null}]}"
		}
		s := look(t, "{spec: {version: '"+test.spec+"', mode: Aggregated, etcd: {replicas: 1}}, status: "+status+"}")
		s.HostVersion, s.Release.Version = test.host, ""
		v := s.plan(released)
		if (v.Complete()) != (test.reason == "") || !v.Complete() && (v.Reason != test.reason || !strings.Contains(v.Message, test.says) || v.Err != nil) {
			t.Errorf("%s: %+v", test.what, v)
		}
		// Only a usable verdict lets the stages run, since nothing is rendered yet.
		if goes := v.Usable(); goes != (test.renders != "") || goes && s.Release.Version != test.renders {
			t.Errorf("%s: renders %q (%+v), want %q", test.what, s.Release.Version, v, test.renders)
		}
		begins := ""
		if u := s.Registry.Status.Operation; u != nil {
			begins = u.To
			if u.Phase != operatorv1alpha1.PhasePreflight || u.From != test.running || s.upgrade == nil {
				t.Errorf("%s: it begins with %+v", test.what, u)
			}
		}
		if begins != test.begins {
			t.Errorf("%s: an upgrade to %q begins, want %q", test.what, begins, test.begins)
		}
		if goes := v.Usable(); goes && s.input(reading(t, s).Environment).Registry != s.Registry {
			t.Errorf("%s: the input is of another registry", test.what)
		}
	}
}

// TestPlanOutOfSupport looks at a release that four minor releases have left behind.
func TestPlanOutOfSupport(t *testing.T) {
	releases := slices.Clone(released)
	for i := range releases {
		releases[i].Released = true
	}
	const installed = ", history: [{version: v0.1.0, state: Completed, startTime: null}]}"
	for _, test := range []struct{ what, spec, running, reason, says, renders, begins string }{
		{"it is to be installed", "v0.1.0", "", "VersionUnsupported", "set spec.version to v0.4.0, the newest", "", ""},
		{"it runs", "v0.1.0", "v0.1.0", "VersionUnsupported", "v0.1.0 is no longer supported, only the last 3 minor releases are: set spec.version to v0.2.0", "v0.1.0", ""},
		{"it is upgraded", "v0.2.0", "v0.1.0", "", "", "v0.1.0", "v0.2.0"},
		{"it is to be upgraded too far", "v0.3.0", "v0.1.0", "UpgradeUnsupported", "set spec.version to v0.2.0 first", "v0.1.0", ""},
		{"another is installed", "v0.2.0", "", "", "", "v0.2.0", ""},
	} {
		status := "{version: '" + test.running + "'" + installed
		if test.running == "" {
			status = "{}"
		}
		s := look(t, "{spec: {version: '"+test.spec+"', mode: Aggregated, etcd: {replicas: 1}}, status: "+status+"}")
		s.Release.Version = ""
		v := s.plan(releases)
		if v.Complete() != (test.reason == "") || !v.Complete() && (v.Reason != test.reason || !strings.Contains(v.Message, test.says)) {
			t.Errorf("%s: %+v", test.what, v)
		}
		if v.Usable() != (test.renders != "") || v.Usable() && s.Release.Version != test.renders {
			t.Errorf("%s: renders %q (%+v)", test.what, s.Release.Version, v)
		}
		begins := ""
		if operation := s.Registry.Status.Operation; operation != nil {
			begins = operation.To
		}
		if begins != test.begins {
			t.Errorf("%s: an upgrade to %q begins, want %q", test.what, begins, test.begins)
		}
	}
}
