package recovery

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/command/commandtest"
	"github.com/clusterregistry/operator/operator/version"
)

type (
	r = v1alpha1.ClusterRegistry
	b = v1alpha1.ClusterRegistryBackup
)

// releases are those that the plugin of the tests knows.
func releases() ([]version.Release, error) {
	release := func(v, etcd, layout string, from ...string) version.Release {
		r := version.Release{Version: v, Etcd: etcd, Layout: layout, UpgradesFrom: from}
		r.Host.From, r.Host.To = "1.34", "1.37"
		return r
	}
	return []version.Release{release("v0.3.0", "v3.7.2", "v1"), release("v0.4.0", "v3.7.3", "v2", "v0.3.0"), release("v0.5.0", "v3.7.4", "v2", "v0.4.0")}, nil
}

func at(age time.Duration) *metav1.Time {
	out := metav1.NewTime(commandtest.Now.Add(-age))
	return &out
}

// condition has EtcdReady be False for a reason.
func condition(reason, message string) func(*r) {
	return func(r *r) {
		r.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionEtcdReady, Status: metav1.ConditionFalse, Reason: reason, Message: message}}
	}
}

// fleet returns a registry whose etcd has lost its quorum: one member has said its revision, one
// has not, and of three of five the data is gone.
func fleet(changes ...func(*r)) *r {
	out := &r{ObjectMeta: metav1.ObjectMeta{Namespace: "registries", Name: "fleet"},
		Status: v1alpha1.ClusterRegistryStatus{Version: "v0.5.0", EtcdVersion: "v3.7.4", HostVersion: "v1.37.1", Backup: &v1alpha1.BackupStatus{Lineage: "one"}}}
	out.Spec.Etcd.Replicas = 5
	out.Spec.Backup = &v1alpha1.Backup{Schedule: "0 * * * *", Store: v1alpha1.BackupStore{S3: &v1alpha1.S3Store{Bucket: "backups"}}}
	out.Status.Recovery = &v1alpha1.RecoveryStatus{ID: "c-1", LostTime: *at(20 * time.Minute), LastRevision: 100, Members: []v1alpha1.RecoveryMember{
		{Name: "fleet-etcd-0", Revision: 90, RevisionsLost: 10, Message: "it has its data"},
		{Name: "fleet-etcd-1", Message: "its data may be left: it does not answer, and was on node node-1"},
		{Name: "fleet-etcd-2", DataGone: true, Message: "its volume is gone"}, {Name: "fleet-etcd-3", DataGone: true, Message: "it is\nempty\x1b[2J"}, {Name: "fleet-etcd-4", DataGone: true, Message: "its data is lost or damaged"},
	}}
	condition(v1alpha1.ReasonQuorumLost, "etcd has lost its quorum for good")(out)
	for _, change := range changes {
		change(out)
	}
	return out
}

// known has the first member say a revision, 0 for none.
func known(revision int64) func(*r) {
	return func(r *r) {
		m := &r.Status.Recovery.Members[0]
		m.Revision, m.RevisionsLost = revision, 0
		if revision > 0 {
			m.RevisionsLost = r.Status.Recovery.LastRevision - revision
		}
	}
}

// allGone has no member have its data.
func allGone(r *r) {
	for i := range r.Status.Recovery.Members {
		m := &r.Status.Recovery.Members[i]
		m.DataGone, m.Revision, m.RevisionsLost = true, 0, 0
	}
}

// newest has a backup be the newest verified one.
func newest(name string, revision int64) func(*r) {
	return func(r *r) {
		r.Status.Recovery.Backup = &v1alpha1.RecoveryBackup{Name: name, Time: *at(time.Hour), Revision: revision, RevisionsLost: 100 - revision, Location: "s3://backups/one/" + name}
	}
}

// approve sets spec.recovery.
func approve(from v1alpha1.RecoverySource, name string, loss int64, loses string) func(*r) {
	return func(r *r) {
		r.Spec.Recovery = &v1alpha1.Recovery{From: from, Name: name, AcceptDataLossUpTo: loss, ApprovedFor: loses}
	}
}

// in has a recovery be under way.
func in(phase v1alpha1.RecoveryPhase, message string) func(*r) {
	return func(r *r) {
		r.Status.Recovery.Phase, r.Status.Recovery.Message = phase, message
		condition(v1alpha1.ReasonRecovering, message)(r)
	}
}

// saved returns a backup that was taken some time ago.
func saved(name string, revision int64, age time.Duration, changes ...func(*b)) *b {
	out := &b{ObjectMeta: metav1.ObjectMeta{Namespace: "registries", Name: name, CreationTimestamp: *at(age)}, Spec: v1alpha1.ClusterRegistryBackupSpec{RegistryRef: v1alpha1.LocalObjectReference{Name: "fleet"}},
		Status: v1alpha1.ClusterRegistryBackupStatus{Phase: v1alpha1.BackupCompleted, Name: name, Location: "s3://backups/one/" + name, Lineage: "one", Revision: revision, Bytes: 7000,
			Release: "v0.5.0", EtcdVersion: "3.7.4", TakenTime: at(age), VerifiedTime: at(age), SHA256: "ab"}}
	for _, change := range changes {
		change(out)
	}
	return out
}

// pod returns a pod of the registry that runs on a node, and is not ready.
func pod(name, component, node string, changes ...func(*corev1.Pod)) *corev1.Pod {
	out := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: "registries", Name: name, Labels: map[string]string{v1alpha1.LabelInstance: "fleet", v1alpha1.LabelComponent: component}},
		Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: component, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}}
	for _, change := range changes {
		change(out)
	}
	return out
}

func terminating(since time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.DeletionTimestamp = at(since) }
}

func ready(p *corev1.Pod) {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
}

// nodeThat returns a node that answers or does not.
func nodeThat(name string, status corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}}}
}

// host returns a host cluster with objects.
func host(t *testing.T, objects ...runtime.Object) *commandtest.Env {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, object := range objects {
		switch o := object.(type) {
		case *r:
			o.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "ClusterRegistry"}
		case *b:
			o.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "ClusterRegistryBackup"}
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, &unstructured.Unstructured{Object: content})
	}
	env := commandtest.New(t)
	env.Objects = commandtest.HostCluster(all...)
	return env
}

// run runs the command, and returns all that it prints, and what it exits with.
func run(t *testing.T, env *commandtest.Env, args ...string) (string, int) {
	t.Helper()
	p := &planner{env: env.Env, releases: releases}
	text, code := env.Run(t, p.command(), args...)
	for _, action := range env.Objects.Actions() {
		if verb := action.GetVerb(); verb != "list" && verb != "get" {
			t.Errorf("a plan asks for %s", verb)
		}
	}
	if strings.Contains(env.Stdout.String(), "\x1b") {
		t.Errorf("an escape sequence is printed: %q", env.Stdout)
	}
	return env.Stdout.String() + text, code
}
