package upgrade

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/snapshot"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/version"
)

var now = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// actions do nothing but say what was done.
type actions struct {
	// verifies is the error of what clients do; clientErr that there is no client, and
	// recordErr that of recording a release.
	verifies, clientErr, recordErr error
	saved                          snapshot.Saved
	taken                          verdict.Verdict
	calls                          []string
}

func (a *actions) Client(context.Context) (Registry, error) { return a, a.clientErr }
func (a *actions) Verify(context.Context, []string) error   { return a.verifies }
func (a *actions) Rewrite(_ context.Context, _, name string) error {
	a.calls = append(a.calls, "rewrite "+name)
	return nil
}
func (a *actions) RecordRelease(_ context.Context, release string) error {
	a.calls = append(a.calls, "record "+release)
	return a.recordErr
}
func (a *actions) TakeSnapshot(_ context.Context, name string) (snapshot.Saved, verdict.Verdict) {
	a.calls = append(a.calls, "snapshot "+name)
	return a.saved, a.taken
}
func (a *actions) Event(kind, reason, _, message string) {
	a.calls = append(a.calls, kind+" "+reason+" "+message)
}

// upgrading returns an upgrade in a phase, whose stages are complete.
func upgrading(t *testing.T, from, to, phase string) Handler {
	t.Helper()
	registry := &operatorv1alpha1.ClusterRegistry{}
	registry.Name, registry.Namespace, registry.UID = "fleet", "team", "1"
	operatorv1alpha1.SetDefaults(registry)
	registry.Spec.Etcd.Replicas = 3
	registry.Status.History = []operatorv1alpha1.Transition{{Version: to, State: operatorv1alpha1.TransitionProgressing}, {Version: from, State: operatorv1alpha1.TransitionCompleted}}
	registry.Status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationUpgrade, From: from, To: to, Phase: operatorv1alpha1.OperationPhase(phase), Snapshot: "s1", PhaseStartedTime: metav1.NewTime(now.Add(-time.Hour))}
	upgrade := &Upgrade{Operation: registry.Status.Operation}
	for version, into := range map[string]*version.Release{from: &upgrade.From, to: &upgrade.To} {
		*into = find(t, version)
	}
	return Handler{Upgrade: upgrade, Registry: registry, Now: now, Verdicts: map[string]verdict.Verdict{}, Notes: &Notes{}, Actions: &actions{}, Servers: pass.Servers{Asked: true}}
}

func find(t *testing.T, wanted string) version.Release {
	t.Helper()
	release, err := version.Find(version.WithMembers(released, ""), wanted)
	if err != nil {
		t.Fatal(err)
	}
	return release
}

// TestComposition says what is rendered in each phase: never two parts changed at
// once, and no version of the API that not every server has.
func TestComposition(t *testing.T) {
	for _, test := range []struct {
		from, to, phase             string
		server, etcd, helper, serve string
	}{
		{"v0.1.0", "v0.2.0", "Preflight", "v0.1.0", "v3.6.14", "v0.1.0", "v1alpha1"},
		{"v0.1.0", "v0.2.0", "Snapshot", "v0.1.0", "v3.6.14", "v0.1.0", "v1alpha1"},
		{"v0.1.0", "v0.2.0", "Etcd", "v0.1.0", "v3.6.14", "v0.1.0", "v1alpha1"},
		{"v0.1.0", "v0.2.0", "Server", "v0.2.0", "v3.6.14", "v0.1.0", "v1alpha1"},
		{"v0.1.0", "v0.2.0", "Verification", "v0.2.0", "v3.6.14", "v0.1.0", "v1alpha1,v1beta1"},
		{"v0.1.0", "v0.2.0", "StorageMigration", "v0.2.0", "v3.6.14", "v0.1.0", "v1alpha1,v1beta1"},
		{"v0.1.0", "v0.2.0", "Rollback", "v0.1.0", "v3.6.14", "v0.1.0", "v1alpha1"},
		{"v0.2.0", "v0.3.0", "Snapshot", "v0.2.0", "v3.6.14", "v0.1.0", "v1alpha1,v1beta1"},
		{"v0.2.0", "v0.3.0", "Etcd", "v0.2.0", "v3.7.3", "v0.3.0", "v1alpha1,v1beta1"},
		{"v0.2.0", "v0.3.0", "Server", "v0.3.0", "v3.7.3", "v0.3.0", "v1beta1"},
		{"v0.2.0", "v0.3.0", "Rollback", "v0.2.0", "v3.7.3", "v0.3.0", "v1beta1"},
	} {
		r := upgrading(t, test.from, test.to, test.phase).Release()
		if serves := strings.Join(r.Serves, ","); r.Version != test.server || r.Members.Etcd != test.etcd || r.Members.Helper != test.helper || serves != test.serve {
			t.Errorf("%+v: it renders %+v", test, r)
		}
	}
}
