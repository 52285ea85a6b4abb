package upgrade

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/operator/version"
)

// brokenRepository has releases that are well, and others that are not.
const brokenRepository = "broken.localhost"

// loadBroken brings the images of releases to the nodes under that name, but for
// one, in whose place is another program.
func loadBroken(t *testing.T, releases []version.Release, broken, tag, instead string) {
	t.Helper()
	loaded := map[string]bool{}
	for _, release := range releases {
		for _, runs := range release.Runs() {
			name, of := runs.Name, runs.Tag
			if loaded[name+of] {
				continue
			}
			image := framework.TaggedImage(t, name, of)
			if name == broken && of == tag {
				image = framework.TaggedImage(t, instead, releases[0].Version)
			}
			framework.LoadAs(t, image, brokenRepository+"/"+name+":"+of)
			loaded[name+of] = true
		}
	}
}

// TestBrokenServer is about a release whose server ends at once, and that has a newer etcd:
// the registry returns to the one before, is available all the while, and does not try again
// until its spec changes. The newer etcd stays, with its helper, and no member is replaced for
// the return.
func TestBrokenServer(t *testing.T) {
	e, releases := framework.New(t).WithOperator(), steps(t)[:2]
	from, to := releases[0].Version, releases[1].Version
	loadBroken(t, releases, "clusterregistry-apiserver", to, "clusterregistry-helper")
	registry := install(t, e, "aggregated-ha.yaml", func(spec *operatorv1alpha1.ClusterRegistrySpec) {
		spec.Version, spec.Images.Repository = operatorv1alpha1.Version(from), brokenRepository
		spec.Server.ProgressDeadlineSeconds = 60
	})
	clients := framework.StartLoad(t, e.RegistryConfig(registry), rate/4, load()...)
	clients.Settle(t)
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) { spec.Version = operatorv1alpha1.Version(to) })
	e.WaitCondition(registry, operatorv1alpha1.ConditionVersionSupported, metav1.ConditionFalse, operatorv1alpha1.ReasonRolledBack, "the upgrade to "+to+" was rolled back", "; "+from+" keeps running")
	checkEvent(t, e, registry, string(operatorv1alpha1.PhaseRollback), "the servers of "+to+" do not become ready")
	last := registry.Status.History[0]
	if last.State != operatorv1alpha1.TransitionRolledBack || last.Version != to || last.Snapshot == "" || !strings.Contains(last.Message, "the servers of "+to+" do not become ready: ") || registry.Status.Version != from {
		t.Errorf("it runs %s, history %+v", registry.Status.Version, last)
	}
	members := etcdPods(t, e, registry)
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) { spec.Version = operatorv1alpha1.Version(from) })
	e.WaitReady(registry)
	clients.Settle(t)
	finish(t, e, registry, clients)
	if after := etcdPods(t, e, registry); !maps.Equal(after, members) || registry.Status.EtcdVersion != releases[1].Etcd {
		t.Errorf("etcd %s has pods %v, and had %v after the return", registry.Status.EtcdVersion, after, members)
	}
	if n := len(registry.Status.History); n != 2 {
		t.Errorf("it was tried again: %+v", registry.Status.History)
	}
}

// etcdPods returns the UIDs of the pods of etcd, by name.
func etcdPods(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry) map[string]types.UID {
	t.Helper()
	members := pods(t, e, registry, client.MatchingLabels{operatorv1alpha1.LabelComponent: "etcd"})
	if len(members) != int(registry.Spec.Etcd.Replicas) {
		t.Fatalf("%d members of etcd are to run, and %v do", registry.Spec.Etcd.Replicas, members)
	}
	return members
}

// TestMatrixBrokenMember is about an etcd that does not start: the first member that
// gets it stays away, the others are left alone, and the way back is open.
func TestMatrixBrokenMember(t *testing.T) {
	e := framework.New(t).WithOperator()
	releases := steps(t)
	newer := slices.IndexFunc(releases, func(r version.Release) bool { return r.Etcd != releases[0].Etcd })
	before, to := releases[newer-1], releases[newer]
	loadBroken(t, releases, "etcd", to.Etcd, "clusterregistry-helper")
	registry := install(t, e, "aggregated-ha.yaml", func(spec *operatorv1alpha1.ClusterRegistrySpec) {
		spec.Version, spec.Images.Repository = operatorv1alpha1.Version(before.Version), brokenRepository
	})
	clients := framework.StartLoad(t, e.RegistryConfig(registry), rate/4, load()...)
	clients.Settle(t)
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) { spec.Version = operatorv1alpha1.Version(to.Version) })
	e.WaitCondition(registry, operatorv1alpha1.ConditionProgressing, metav1.ConditionTrue, string(operatorv1alpha1.PhaseEtcd), "etcd 0/3 members on "+to.Etcd, "container etcd exited")
	clients.Settle(t)
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) {
		spec.Version = operatorv1alpha1.Version(before.Version)
	})
	e.WaitReady(registry)
	if last := registry.Status.History[0]; last.State != operatorv1alpha1.TransitionAbandoned || registry.Status.EtcdVersion != before.Etcd {
		t.Errorf("etcd %s, history %+v", registry.Status.EtcdVersion, last)
	}
	finish(t, e, registry, clients)
}

// finish ends a load of which nothing may have failed.
func finish(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry, clients *framework.Load) {
	t.Helper()
	report := clients.Stop()
	t.Logf("%s", report)
	for _, failure := range report.Failed {
		t.Error(failure)
	}
	e.Compare(registry, report)
}

// waitPhase waits until an upgrade is in a phase.
func waitPhase(e *framework.Env, registry *operatorv1alpha1.ClusterRegistry, phase operatorv1alpha1.OperationPhase) {
	e.Eventually("the upgrade to be in phase "+string(phase), func(ctx context.Context) error {
		if err := e.Client.Get(ctx, client.ObjectKeyFromObject(registry), registry); err != nil {
			return err
		}
		if u := registry.Status.Operation; u == nil || u.Phase != phase {
			return fmt.Errorf("it is %+v", u)
		}
		return nil
	})
}
