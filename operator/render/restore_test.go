package render

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// s3 is a store of the tests.
func s3() operatorv1alpha1.BackupStore {
	return operatorv1alpha1.BackupStore{S3: &operatorv1alpha1.S3Store{Bucket: "b", Prefix: "p", Endpoint: "https://s3:9000", CABundle: []byte("CA of the store"), SecretRef: &operatorv1alpha1.LocalObjectReference{Name: "store"}}}
}

// restoring returns the input of a registry that begins with a backup.
func restoring(t *testing.T, r Restore) Input {
	t.Helper()
	in := input(t, registry)
	in.Restore, in.Members = &r, []string{"fleet-etcd-0"}
	return in
}

// TestLookUp is about the Job that looks a backup up: nothing else of a restore is there.
func TestLookUp(t *testing.T) {
	for before, want := range map[string]string{
		"":                     "show --store=s3 --bucket=b --lineage=0b9c --prefix=p --endpoint=https://s3:9000 --credentials=/credentials --store-cacert=/store-ca/ca.crt --name=n",
		"2026-03-01T03:00:00Z": "show --store=s3 --bucket=b --lineage=0b9c --prefix=p --endpoint=https://s3:9000 --credentials=/credentials --store-cacert=/store-ca/ca.crt --before=2026-03-01T03:00:00Z",
	} {
		r := Restore{Store: s3(), Source: "0b9c", Before: before, Task: "show 1"}
		if before == "" {
			r.Name = "n"
		}
		result := rendered(t, restoring(t, r))
		job := convert[batchv1.Job](t, find(result, "Job", "fleet-restore"))
		if got := strings.Join(job.Spec.Template.Spec.Containers[0].Args, " "); got != want {
			t.Errorf("the Job runs %s, want %s", got, want)
		}
		if volumes := job.Spec.Template.Spec.Volumes; len(volumes) != 2 || volumes[0].Secret.SecretName != "store" || volumes[1].ConfigMap.Name != "fleet-restore" {
			t.Errorf("the Job has the volumes %+v", volumes)
		}
		if policy := convert[networkingv1.NetworkPolicy](t, find(result, "NetworkPolicy", "fleet-restore")); len(policy.Spec.Egress) != 2 {
			t.Errorf("the Job reaches %+v", policy.Spec.Egress)
		}
		if set := convert[appsv1.StatefulSet](t, find(result, "StatefulSet", "fleet-etcd")); len(set.Spec.Template.Spec.InitContainers) != 1 {
			t.Errorf("the members have the init containers %+v", set.Spec.Template.Spec.InitContainers)
		}
	}
}

// TestRestoreMember is about the first member that restores a backup, with the identity that
// the store asks for; and about those after it.
func TestRestoreMember(t *testing.T) {
	in := restoring(t, Restore{Store: s3(), Source: "0b9c", Name: "n", SHA256: "ab", Lineage: "5f2c"})
	result := rendered(t, in)
	// What it calls is allowed to etcd's own pods, beside what policies of the namespace deny.
	policy := convert[networkingv1.NetworkPolicy](t, find(result, "NetworkPolicy", "fleet-restore"))
	if len(policy.Spec.Egress) != 1 || policy.Spec.PodSelector.MatchLabels["app.kubernetes.io/component"] != "etcd" || len(policy.Spec.PolicyTypes) != 1 {
		t.Errorf("the policy is %+v", policy.Spec)
	}
	onClaim := in
	onClaim.Restore = &Restore{Store: operatorv1alpha1.BackupStore{PersistentVolumeClaim: &operatorv1alpha1.VolumeStore{ClaimName: "backups"}}, Source: "0b9c", Name: "n", SHA256: "ab", Lineage: "5f2c"}
	if find(rendered(t, onClaim), "NetworkPolicy", "fleet-restore") != nil {
		t.Error("with a claim as store there is a policy, and nothing is called")
	}
	if find(result, "Job", "fleet-restore") != nil || find(result, "ConfigMap", "fleet-restore") == nil {
		t.Error("there is a Job that looks the backup up, or no ConfigMap with the CA of the store")
	}
	pod := convert[appsv1.StatefulSet](t, find(result, "StatefulSet", "fleet-etcd")).Spec.Template.Spec
	var names []string
	for _, container := range pod.InitContainers {
		names = append(names, container.Name)
	}
	if !slices.Equal(names, []string{"helper", "fetch", "restore"}) {
		t.Fatalf("the init containers are %v", names)
	}
	fetch, restore := pod.InitContainers[1], pod.InitContainers[2]
	if got, want := strings.Join(fetch.Args, " "), "fetch --name=n --sha256=ab --to=/data/restore/snapshot.db --unless=/data/etcd --store=s3 --bucket=b --lineage=0b9c --prefix=p --endpoint=https://s3:9000 --credentials=/credentials --store-cacert=/store-ca/ca.crt"; got != want {
		t.Errorf("fetched is by %s, want %s", got, want)
	}
	if got := strings.Join(restore.Args, " "); !strings.Contains(got, "--restore=5f2c ") || !strings.Contains(got, "--sha256=ab ") || !strings.Contains(got, "--peer-url=https://{member}.fleet-etcd.team.svc:2380") {
		t.Errorf("restored is by %s", got)
	}
	if len(fetch.VolumeMounts) != 3 || len(restore.VolumeMounts) != 3 || len(pod.Containers[0].VolumeMounts) != 6 || fetch.Image == restore.Image || restore.Image != pod.Containers[0].Image {
		t.Errorf("%+v, %+v", fetch, restore)
	}
	if pod.ServiceAccountName != "fleet-etcd" {
		t.Errorf("the member runs as %s", pod.ServiceAccountName)
	}

	in.Restore.Store = operatorv1alpha1.BackupStore{GCS: &operatorv1alpha1.GCSStore{Bucket: "b"}, ServiceAccountName: "saver"}
	if pod := convert[appsv1.StatefulSet](t, find(rendered(t, in), "StatefulSet", "fleet-etcd")).Spec.Template.Spec; pod.ServiceAccountName != "saver" {
		t.Errorf("the member that fetches by the platform's identity runs as %s", pod.ServiceAccountName)
	}
	in.Restore.Store = operatorv1alpha1.BackupStore{PersistentVolumeClaim: &operatorv1alpha1.VolumeStore{ClaimName: "backups"}}
	pod = convert[appsv1.StatefulSet](t, find(rendered(t, in), "StatefulSet", "fleet-etcd")).Spec.Template.Spec
	if mounts := pod.InitContainers[1].VolumeMounts; !slices.ContainsFunc(mounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/persistentVolumeClaim/backups" && m.ReadOnly }) {
		t.Errorf("the claim is mounted as %+v", mounts)
	}
}
