package inventory

import (
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/pages"
	"github.com/clusterregistry/operator/operator/encryption"
	"github.com/clusterregistry/operator/operator/encryption/encryptiontest"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/keyring"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/pass/passtest"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/trust"
)

// TestRetire has the Secret of a CA that is no longer in use go with the registry's objects,
// but after its Certificate.
func TestRetire(t *testing.T) {
	s := passtest.New(t, "{spec: {mode: Independent, etcd: {replicas: 3}}}")
	certificate := operatorv1alpha1.ObjectReference{Group: "cert-manager.io", Kind: "Certificate", Namespace: "team", Name: "fleet-client-ca"}
	secret := operatorv1alpha1.ObjectReference{Kind: "Secret", Namespace: "team", Name: "fleet-client-ca"}
	s.Registry.Status.Inventory = []operatorv1alpha1.ObjectReference{certificate, secret}
	if !slices.Contains(made(s.Pass), secret) {
		t.Error("it goes before its Certificate")
	}
	s.Registry.Status.Inventory = []operatorv1alpha1.ObjectReference{secret}
	if slices.Contains(made(s.Pass), secret) {
		t.Error("it stays without its Certificate")
	}
	s.Registry.Status.Inventory = []operatorv1alpha1.ObjectReference{secret, trust.GenerationsReference(s.Objects)}
	if kept := retainable(s.Pass); len(kept) != 2 {
		t.Errorf("retained are %v", kept)
	}
}

// TestMounted keeps bundles and Secrets that are not rendered any more as long as a pod has
// them, or one that is made now would.
func TestMounted(t *testing.T) {
	spec := func(bundle string) corev1.PodSpec {
		return corev1.PodSpec{Volumes: []corev1.Volume{{Name: "data"}, {Name: "trust", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: bundle}}}}}}
	}
	meta := metav1.ObjectMeta{Namespace: "team", Name: "fleet-etcd-0", Labels: map[string]string{operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy, operatorv1alpha1.LabelInstance: "fleet"}}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-etcd"}, Spec: appsv1.StatefulSetSpec{Template: corev1.PodTemplateSpec{Spec: spec("fleet-etcd-trust-2")}}}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-server"}, Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: spec("fleet-etcd-client-trust-1")}}}
	s := passtest.New(t, "{spec: {mode: Aggregated, etcd: {replicas: 3}}}")
	for _, name := range []string{"fleet-etcd-trust-0", "fleet-etcd-trust-1", "fleet-etcd-trust-2", "fleet-etcd-client-trust-1", "fleet-etcd-client-trust-2", "fleet-trust"} {
		s.Registry.Status.Inventory = append(s.Registry.Status.Inventory, operatorv1alpha1.ObjectReference{Kind: "ConfigMap", Namespace: "team", Name: name})
	}
	for _, name := range []string{"fleet-audit-1", "fleet-audit-2", "fleet-etcd-ca-1"} {
		s.Registry.Status.Inventory = append(s.Registry.Status.Inventory, operatorv1alpha1.ObjectReference{Kind: "Secret", Namespace: "team", Name: name})
	}
	deployment.Spec.Template.Spec.Volumes = append(deployment.Spec.Template.Spec.Volumes, corev1.Volume{Name: "audit", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "fleet-audit-2"}}})
	s.HostCluster = operandtest.Host(t, &corev1.Pod{ObjectMeta: meta, Spec: spec("fleet-etcd-trust-1")}, set, deployment)
	for i := range pages.Size { // of others, with the same labels, which are listed before
		other := &corev1.Pod{ObjectMeta: *meta.DeepCopy()}
		other.Name = fmt.Sprintf("a-%d", i)
		if err := s.Client.Create(t.Context(), other); err != nil {
			t.Fatal(err)
		}
	}
	mounted, err := mounted(t.Context(), s.Pass)
	var names []string
	for _, reference := range mounted {
		names = append(names, reference.Name)
	}
	if want := []string{"fleet-etcd-trust-1", "fleet-etcd-trust-2", "fleet-etcd-client-trust-1", "fleet-audit-2"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("kept are %v, %v", names, err)
	}
}

// TestMountedByOthers is about bundles and Secrets that no pod has which runs: what has ended needs
// none, a Job that tries again does, and so do servers of an earlier template while a rollout is
// not over, since the Deployment makes them again.
func TestMountedByOthers(t *testing.T) {
	former := []operatorv1alpha1.ObjectReference{
		{Kind: "ConfigMap", Namespace: "team", Name: "fleet-etcd-trust-1"},
		{Kind: "ConfigMap", Namespace: "team", Name: "fleet-etcd-client-trust-1"}, {Kind: "Secret", Namespace: "team", Name: "fleet-audit-1"},
	}
	meta := metav1.ObjectMeta{Namespace: "team", Name: "fleet-server", Labels: map[string]string{operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy, operatorv1alpha1.LabelInstance: "fleet"}}
	all := corev1.PodSpec{}
	for _, reference := range former {
		source := corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: reference.Name}}
		if reference.Kind == "ConfigMap" {
			source = corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: reference.Name}}}
		}
		all.Volumes = append(all.Volumes, corev1.Volume{Name: "any", VolumeSource: source})
	}
	pod := func(phase corev1.PodPhase) client.Object {
		return &corev1.Pod{ObjectMeta: meta, Spec: all, Status: corev1.PodStatus{Phase: phase}}
	}
	job := func(conditions ...batchv1.JobCondition) client.Object {
		return &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: all}}, Status: batchv1.JobStatus{Conditions: conditions}}
	}
	deployment := func(status appsv1.DeploymentStatus) client.Object {
		return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: new(int32(1))}, Status: status}
	}
	for _, test := range []struct {
		reason string
		object client.Object
		want   []operatorv1alpha1.ObjectReference
	}{
		{"a pod runs", pod(corev1.PodRunning), former},
		{"a pod starts", pod(corev1.PodPending), former},
		{"a pod was evicted by its node", pod(corev1.PodFailed), nil},
		{"a pod of a Job is done", pod(corev1.PodSucceeded), nil},
		{"a Job tries again", job(batchv1.JobCondition{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue}, batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionFalse}), former},
		{"a Job is complete", job(batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}), nil},
		{"a Job has failed", job(batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}), nil},
		{"servers are replaced, and the only pod of the template before was lost", deployment(appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 1}), former[1:]},
		{"none is replaced yet", deployment(appsv1.DeploymentStatus{Replicas: 1}), former[1:]},
		{"all were replaced", deployment(appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1}), nil},
	} {
		s := passtest.New(t, "{spec: {mode: Aggregated, etcd: {replicas: 3}}}")
		s.Registry.Status.Inventory = former
		s.HostCluster = operandtest.Host(t, test.object)
		if kept, err := mounted(t.Context(), s.Pass); err != nil || !slices.Equal(kept, test.want) {
			t.Errorf("%s: kept are %v, %v", test.reason, kept, err)
		}
	}
}

// encrypting returns a pass of a registry with keys.
func encrypting(t *testing.T, inUse encryption.Keys) *passtest.Known {
	t.Helper()
	s := passtest.New(t, "{spec: {mode: Aggregated, etcd: {replicas: 3}}}")
	s.Identity.Record = &etcd.Record{InitialClusterState: "existing", Replicas: 1, Names: []string{"fleet-etcd-0"}}
	if inUse != nil {
		s.Identity.Record = keyring.Record(*s.Identity.Record, inUse)
	}
	s.Keys = keyring.Found{InUse: inUse}
	return s
}

// TestKeysStay deletes no Secret with keys, mounted or not, that what is stored may need: it is
// recorded which are in use, and that everything is stored under the one that writes.
func TestKeysStay(t *testing.T) {
	a := encryptiontest.Key(t, "a")
	stored := func(s *passtest.Known) { s.Identity.Record.StoredUnder = "secretbox/a" }
	for reason, test := range map[string]struct {
		inUse  encryption.Keys
		change func(*passtest.Known)
		stay   bool
	}{
		"they are not known":                       {nil, stored, true},
		"all is stored under the one in use":       {a, stored, false},
		"something may be under another one":       {a, func(s *passtest.Known) { s.Identity.Record.StoredUnder = "unknown" }, true},
		"it is not known under which":              {a, func(*passtest.Known) {}, true},
		"there is no record":                       {a, func(s *passtest.Known) { s.Identity.Record = nil }, true},
		"the record has no keys":                   {encryption.Keys{encryption.Identity}, func(s *passtest.Known) { s.Identity.Record.KeyIDs = nil }, true},
		"the record is to be written again":        {a, func(s *passtest.Known) { stored(s); s.Keys.Unrecorded = true }, true},
		"nothing is encrypted any more":            {encryption.Keys{encryption.Identity}, func(*passtest.Known) {}, false},
		"the record names it as that of those use": {a, func(s *passtest.Known) { stored(s); s.Identity.Record.Keys = "0123456789abcdef" }, true},
	} {
		s := encrypting(t, test.inUse)
		test.change(s)
		s.Rendered = &render.Result{}
		former := operatorv1alpha1.ObjectReference{Kind: "Secret", Namespace: "team", Name: "fleet-encryption-0123456789abcdef"}
		s.Registry.Status.Inventory = []operatorv1alpha1.ObjectReference{former}
		keep, err := mounted(t.Context(), s.Pass)
		if err != nil || slices.Contains(keep, former) != test.stay {
			t.Errorf("%s: %v are kept, %v", reason, keep, err)
		}
	}
}
