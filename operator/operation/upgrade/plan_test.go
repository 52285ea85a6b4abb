package upgrade

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/history"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/pass/passtest"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/version"
)

// released are the releases of these tests.
var released = []version.Release{
	{Version: "v0.1.0", Etcd: "v3.6.14", Helper: "v0.1.0", Layout: "v1", Serves: []string{"v1alpha1"}, Reads: []string{"v1alpha1"}, Stores: "v1alpha1", Host: version.Range{From: "1.34", To: "1.37"}},
	{Version: "v0.2.0", Etcd: "v3.6.14", Helper: "v0.1.0", Layout: "v1", UpgradesFrom: []string{"v0.1.0"}, Serves: []string{"v1alpha1", "v1beta1"}, Reads: []string{"v1alpha1", "v1beta1"}, Stores: "v1alpha1", Host: version.Range{From: "1.35", To: "1.38"}},
	{Version: "v0.3.0", Etcd: "v3.7.3", Helper: "v0.3.0", Layout: "v1", UpgradesFrom: []string{"v0.2.0"}, Serves: []string{"v1beta1"}, Reads: []string{"v1alpha1", "v1beta1"}, Stores: "v1beta1", Host: version.Range{From: "1.35", To: "1.38"}},
	{Version: "v0.4.0", Etcd: "v3.7.3", Helper: "v0.4.0", Layout: "v2", UpgradesFrom: []string{"v0.3.0"}, Serves: []string{"v1beta1"}, Reads: []string{"v1beta1", "v1"}, Stores: "v1", Host: version.Range{From: "1.36", To: "1.39"}},
}

// known is what is known of a registry, and the upgrade that the plan has found.
type known struct {
	*passtest.Known
	upgrade *Upgrade
}

// looked returns a registry with a spec and status in YAML.
func looked(t *testing.T, text string) *known {
	t.Helper()
	s := &known{Known: passtest.New(t, text)}
	s.HostVersion, s.Release = "v1.37.1", released[0]
	return s
}

// plan has the plan be what is known.
func (s *known) plan(all []version.Release) verdict.Verdict {
	planned := Plan(s.Pass, all)
	s.Release, s.upgrade = planned.Release, planned.Upgrade
	return planned.Verdict
}

// begun returns a look at a registry that is on its way.
func begun(t *testing.T, from, to, phase string) *known {
	t.Helper()
	s := looked(t, "{spec: {version: "+to+", mode: Aggregated, etcd: {replicas: 3}}, status: {version: "+from+", etcdVersion: v3.6.14,"+
		"operation: {type: Upgrade, from: "+from+", to: "+to+", phase: "+phase+", phaseStartedTime: null},"+
		"history: [{version: "+to+", state: Progressing, startTime: null, snapshot: s1, snapshotRevision: 42}, {version: "+from+", state: Completed, startTime: null}]}}")
	s.Registry.Status.Operation.PhaseStartedTime = metav1.NewTime(s.Now)
	return s
}

// TestPlan is about which release is rendered, and which upgrade begins.
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
		s := looked(t, "{spec: {version: '"+test.spec+"', mode: Aggregated, etcd: {replicas: 1}}, status: "+status+"}")
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
		s := looked(t, "{spec: {version: '"+test.spec+"', mode: Aggregated, etcd: {replicas: 1}}, status: "+status+"}")
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

// TestLayouts says from which release's manifests the servers and etcd come in
// each phase: never both of another one at once, and etcd's stay in a return.
func TestLayouts(t *testing.T) {
	for _, test := range []struct{ phase, recorded, servers, etcd string }{
		{"Preflight", "v0.3.0", "v1", "v1"},
		{"Snapshot", "v0.3.0", "v1", "v1"},
		{"Etcd", "v0.3.0", "v1", "v2"},
		{"Server", "v0.4.0", "v2", "v2"},
		{"Verification", "v0.4.0", "v2", "v2"},
		{"Rollback", "v0.4.0", "v1", "v2"},
		{"Preflight", "v0.4.0", "v1", "v2"}, // tried again
	} {
		s := begun(t, "v0.3.0", "v0.4.0", test.phase)
		s.Identity.Record = &etcd.Record{EtcdVersion: "v3.7.3", EtcdRelease: test.recorded}
		if v := s.plan(released); !v.Complete() {
			t.Errorf("%+v: %+v", test, v)
		}
		in := render.ReleaseOf(s.Release)
		if in.Layout != test.servers || in.EtcdLayout != test.etcd || in.Helper != map[string]string{"v1": "v0.3.0", "v2": "v0.4.0"}[test.etcd] {
			t.Errorf("%+v: it renders %+v", test, in)
		}
	}
}

// TestMembersStay is about a registry whose upgrade was given up after a member
// ran with what it brought, and about one that another operator left so.
func TestMembersStay(t *testing.T) {
	for _, test := range []struct{ recorded, want, says string }{
		{"", "v0.3.0 v1", ""},
		{"v0.3.0", "v0.3.0 v1", ""},
		{"v0.4.0", "v0.4.0 v2", ""},
		{"v0.9.0", "", "etcd members are of v0.9.0, which this operator does not know"},
	} {
		s := looked(t, "{spec: {version: v0.3.0, mode: Aggregated, etcd: {replicas: 3}}, status: {version: v0.3.0, etcd: {members: [{name: a, version: v3.7.3}]}}}")
		s.Identity.Record = &etcd.Record{EtcdVersion: "v3.7.3", EtcdRelease: test.recorded}
		v := s.plan(released)
		if (v.Complete()) != (test.says == "") || !v.Complete() && !strings.Contains(v.Message, test.says) {
			t.Errorf("%+v: %+v", test, v)
		}
		if m := s.Release.Members; v.Complete() && m.Helper+" "+m.Layout != test.want {
			t.Errorf("%+v: %+v", test, m)
		}
	}
}

// TestEtcdIsNeverTurnedBack is about members that have run a newer etcd than the
// release has.
func TestEtcdIsNeverTurnedBack(t *testing.T) {
	s := looked(t, "{spec: {version: v0.2.0, mode: Aggregated, etcd: {replicas: 3}}, status: {version: v0.2.0, etcd: {members: [{name: a, version: v3.6.14}, {name: b, version: v3.7.3}]}}}")
	if v := s.plan(released); !v.Complete() || s.Release.Members.Etcd != "v3.7.3" || s.Release.Members.Helper != "v0.3.0" {
		t.Errorf("a member runs it: %+v, %+v", s.Release, v)
	}
	s = looked(t, "{spec: {version: v0.2.0, mode: Aggregated, etcd: {replicas: 3}}, status: {version: v0.2.0}}")
	s.Identity.Record = &etcd.Record{EtcdVersion: "v3.7.2"}
	if v := s.plan(released); !v.Complete() || s.Release.Members.Etcd != "v3.7.2" {
		t.Errorf("it is recorded: %s, %+v", s.Release.Members.Etcd, v)
	}
}

// TestRetainedData is about a registry that takes over what another release wrote.
func TestRetainedData(t *testing.T) {
	for _, test := range []struct{ reason, wrote, wanted, renders, says string }{
		{"the release that wrote it", "v0.2.0", "v0.2.0", "v0.2.0", ""},
		{"the next one: the one that wrote it comes first", "v0.2.0", "v0.3.0", "v0.2.0", ""},
		{"an older one", "v0.3.0", "v0.2.0", "", "v0.3.0 -> v0.2.0 is a downgrade"},
		{"one too far", "v0.1.0", "v0.3.0", "", "skips v0.2.0"},
		{"no release is recorded", "", "v0.2.0", "v0.2.0", ""},
	} {
		s := looked(t, "{spec: {version: "+test.wanted+", mode: Aggregated, etcd: {replicas: 3}}}")
		s.Identity.Record, s.Release.Version = &etcd.Record{Release: test.wrote}, ""
		v := s.plan(released)
		if s.Release.Version != test.renders || (v.Complete()) != (test.says == "") || !v.Complete() && !strings.Contains(v.Message, test.says) {
			t.Errorf("%s: renders %q, %+v", test.reason, s.Release.Version, v)
		}
	}
}

// TestChangesOfMind changes spec.version in the middle of v0.2.0 -> v0.3.0 or
// v0.3.0 -> v0.4.0, which can't go back.
func TestChangesOfMind(t *testing.T) {
	for _, test := range []struct {
		reason, from, to, phase, wanted string
		phaseThen, state, says          string
	}{
		{"a second bump is not mixed in", "v0.2.0", "v0.3.0", "Etcd", "v0.4.0", "Etcd", "Progressing", "the upgrade from v0.2.0 to v0.3.0 is in progress: v0.4.0 must wait"},
		{"nothing was changed yet", "v0.2.0", "v0.3.0", "Snapshot", "v0.2.0", "", "Abandoned", ""},
		{"members may have changed, servers not", "v0.2.0", "v0.3.0", "Etcd", "v0.2.0", "", "Abandoned", ""},
		{"servers are being changed", "v0.2.0", "v0.3.0", "Server", "v0.2.0", "Rollback", "Progressing", ""},
		{"all are, and are read by the ones before", "v0.2.0", "v0.3.0", "StorageMigration", "v0.2.0", "Rollback", "Progressing", ""},
		{"it goes back already", "v0.2.0", "v0.3.0", "Rollback", "v0.2.0", "Rollback", "Progressing", ""},
		{"servers before can't read what is stored", "v0.3.0", "v0.4.0", "Server", "v0.3.0", "Server", "Progressing", "cannot roll back to v0.3.0, since it does not read v1, in which v0.4.0 stores clusters; the upgrade continues"},
	} {
		s := begun(t, test.from, test.to, test.phase)
		s.Registry.Spec.Version = operatorv1alpha1.Version(test.wanted)
		v := s.plan(released)
		if (v.Complete()) != (test.says == "") || !v.Complete() && (!strings.Contains(v.Message, test.says) || v.State != verdict.Degraded) {
			t.Errorf("%s: %+v", test.reason, v)
		}
		phase := ""
		if s.upgrade != nil {
			phase = string(s.upgrade.Phase)
		}
		if phase != test.phaseThen || (s.upgrade == nil) != (s.Registry.Status.Operation == nil) || string(history.Last(s.Registry).State) != test.state {
			t.Errorf("%s: phase %q, state %s", test.reason, phase, history.Last(s.Registry).State)
		}
	}
}

// TestStrangeUpgrade is about an upgrade that a newer operator has begun.
func TestStrangeUpgrade(t *testing.T) {
	s := begun(t, "v0.2.0", "v0.9.0", "Server")
	v := s.plan(released)
	if v.Complete() || v.State == verdict.Degraded || v.Reason != "VersionUnknown" || !strings.Contains(v.Message, "another operator started the upgrade from v0.2.0 to v0.9.0") {
		t.Errorf("%+v", v)
	}
	s = begun(t, "v0.2.0", "v0.3.0", "Server")
	s.Registry.Status.Operation.Type = "Teleport"
	if v := s.plan(released); v.State != verdict.Blocked || v.Reason != "VersionUnknown" || !strings.Contains(v.Message, "another operator started the operation Teleport") || s.upgrade != nil {
		t.Errorf("%+v", v)
	}
}

// defragmented returns a complete registry whose etcd is being defragmented, with a version in
// the spec.
func defragmented(t *testing.T, version, phase string) *known {
	t.Helper()
	return looked(t, "{spec: {version: "+version+", mode: Aggregated, etcd: {replicas: 3}}, status: {version: v0.1.0, etcdVersion: v3.6.14, operation: {type: Defragmentation, to: m1, phase: "+phase+", phaseStartedTime: null}"+operandtest.Complete+"}}")
}

// TestDefragmentAndUpgrade has an upgrade wait for a member that is being defragmented, and
// come first otherwise.
func TestDefragmentAndUpgrade(t *testing.T) {
	for phase, waits := range map[string]bool{"Preflight": false, "Defragmentation": true} {
		s := defragmented(t, "v0.2.0", phase)
		v := s.plan(released)
		if waits != strings.Contains(v.Message, "the upgrade to v0.2.0 starts when the defragmentation of etcd is complete (the condition Progressing says what is awaited); v0.1.0 keeps running") || waits != (v.Reason == operatorv1alpha1.ReasonOperationInProgress) || waits != (s.upgrade == nil) {
			t.Errorf("%s: %+v, %+v", phase, v, s.Registry.Status.Operation)
		}
		if s.Release.Version != "v0.1.0" {
			t.Errorf("%s: it renders %s", phase, s.Release.Version)
		}
	}
	s := defragmented(t, "v0.1.0", "Defragmentation")
	if v := s.plan(released); !v.Complete() || s.upgrade != nil {
		t.Errorf("without an upgrade: %+v", v)
	}
}

// TestFullAndUpgrade has an upgrade wait until etcd has room, also before that is observed.
func TestFullAndUpgrade(t *testing.T) {
	s := defragmented(t, "v0.2.0", "Preflight")
	s.Before.Conditions = []metav1.Condition{{Type: operatorv1alpha1.ConditionEtcdReady, Status: "False", Reason: operatorv1alpha1.ReasonNoSpace}}
	if v := s.plan(released); v.Reason != operatorv1alpha1.ReasonOperationInProgress || s.upgrade != nil || s.Registry.Status.Operation == nil {
		t.Errorf("%+v, %+v", v, s.Registry.Status.Operation)
	}
}

// TestRotateAndUpgrade has an upgrade wait for a rotation that has begun to change something,
// and come first otherwise.
func TestRotateAndUpgrade(t *testing.T) {
	for phase, waits := range map[operatorv1alpha1.OperationPhase]bool{"Preflight": false, "Issuance": true, "Withdrawal": true} {
		s := looked(t, "{spec: {version: v0.2.0, mode: Independent, etcd: {replicas: 3}}, status: {version: v0.1.0"+operandtest.Complete+"}}")
		s.Registry.Status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationRotation, From: "client 1", To: "client 2", Phase: phase}
		v := s.plan(released)
		if waits != strings.Contains(v.Message, "the upgrade to v0.2.0 starts when the rotation of a CA is complete (the condition Progressing says what is awaited); v0.1.0 keeps running") || waits == (s.upgrade != nil) {
			t.Errorf("%s: %+v, %+v", phase, v, s.Registry.Status.Operation)
		}
	}
}
