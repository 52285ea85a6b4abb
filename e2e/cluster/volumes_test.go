package cluster

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/e2e/framework"
)

// store is a StatefulSet whose pods each keep an etcd of their own on a claim,
// one pod to a node, and the headless Service that names them.
func store(t *testing.T, replicas int32) (*appsv1.StatefulSet, *corev1.Service) {
	labels := map[string]string{"app": "store"}
	probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/health", Port: intstr.FromInt32(2379)}}, PeriodSeconds: 1, TimeoutSeconds: 5}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "store"},
		Spec: appsv1.StatefulSetSpec{
			ServiceName:         "store",
			Replicas:            new(replicas),
			PodManagementPolicy: appsv1.ParallelPodManagement,
			Selector:            &metav1.LabelSelector{MatchLabels: labels},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "data"},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("100Mi")}},
				},
			}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					AutomountServiceAccountToken: new(false),
					SecurityContext:              &corev1.PodSecurityContext{FSGroup: new(int64(65532))},
					TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
						MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
					}},
					Containers: []corev1.Container{{
						Name:            "etcd",
						Image:           framework.FindImage(t, "etcd").Reference,
						Args:            []string{"--data-dir=/data/etcd", "--listen-client-urls=http://0.0.0.0:2379", "--advertise-client-urls=http://127.0.0.1:2379"},
						SecurityContext: framework.Restricted(),
						ReadinessProbe:  probe,
						VolumeMounts:    []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
					}},
				},
			},
		},
	}
	return set, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "store"}, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: labels, Ports: []corev1.ServicePort{{Port: 2379}}}}
}

// pods are the names of a store's three pods.
var pods = []string{"store-0", "store-1", "store-2"}

func waitReady(e *framework.Env, names ...string) {
	for _, name := range names {
		e.Eventually("pod "+name+" to be ready", func(ctx context.Context) error { return e.PodReady(ctx, name) })
	}
}

// checkValues reads back what each pod was given to keep.
func checkValues(e *framework.Env, names ...string) {
	for _, name := range names {
		e.Eventually("the value of "+name, func(ctx context.Context) error {
			got, err := e.Exec(ctx, name, "etcdctl", "get", "--print-value-only", "key")
			if err == nil && strings.TrimSpace(got) != "kept by "+name {
				err = fmt.Errorf("it reads %q", got)
			}
			return err
		})
	}
}

func node(t *testing.T, e *framework.Env, pod string) (name string, uid string) {
	t.Helper()
	var p corev1.Pod
	if err := e.Get(t.Context(), pod, &p); err != nil {
		t.Fatal(err)
	}
	return p.Spec.NodeName, string(p.UID)
}

func TestStatefulSetKeepsItsData(t *testing.T) {
	e := framework.New(t)
	set, service := store(t, 3)
	e.Create(service, set)
	waitReady(e, pods...)

	seen := map[string]bool{}
	for _, pod := range pods {
		name, _ := node(t, e, pod)
		seen[name] = true
		if _, err := e.Exec(t.Context(), pod, "etcdctl", "put", "key", "kept by "+pod); err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) != 3 {
		t.Errorf("3 pods with DoNotSchedule run on %d nodes", len(seen))
	}

	t.Log("a pod's name resolves from another pod, on the short and on the full name")
	for i, host := range []string{"store-1.store", "store-2.store." + e.Namespace + ".svc.cluster.local"} {
		out := e.Run(fmt.Sprintf("reader-%d", i), framework.FindImage(t, "etcd").Reference, "etcdctl", "--endpoints=http://"+host+":2379", "get", "--print-value-only", "key")
		if want := "kept by " + strings.Split(host, ".")[0]; strings.TrimSpace(out) != want {
			t.Errorf("read %q through %s, want %q", out, host, want)
		}
	}

	t.Log("a deleted pod comes back with its data")
	_, before := node(t, e, "store-0")
	if err := e.Client.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "store-0"}}); err != nil {
		t.Fatal(err)
	}
	e.Eventually("store-0 to be replaced", func(ctx context.Context) error {
		var p corev1.Pod
		if err := e.Get(ctx, "store-0", &p); err != nil {
			return err
		}
		if string(p.UID) == before {
			return fmt.Errorf("it is still the pod %s", before)
		}
		return e.PodReady(ctx, "store-0")
	})
	checkValues(e, pods...)

	t.Log("a node's power cut ends its pod, and the data outlives it")
	victim, _ := node(t, e, "store-1")
	e.Node("stop", victim)
	if _, err := e.Exec(t.Context(), "store-1", "etcdctl", "get", "key"); err == nil {
		t.Errorf("a pod of the stopped node %s still runs commands", victim)
	}
	e.Eventually("node "+victim+" to count as lost", func(ctx context.Context) error {
		ready, err := e.NodeReady(ctx, victim)
		if err == nil && ready {
			err = fmt.Errorf("it still counts as Ready")
		}
		return err
	})
	framework.Cluster(t, "node", "start", victim)
	waitReady(e, pods...)
	checkValues(e, pods...)
}

// TestVolumesGrow has the volume of a pod that runs grow, and one of a class that does not
// allow it stay as it is.
func TestVolumesGrow(t *testing.T) {
	e := framework.New(t)
	set, service := store(t, 1)
	e.Create(service, set)
	waitReady(e, "store-0")
	if _, err := e.Exec(t.Context(), "store-0", "etcdctl", "put", "key", "kept by store-0"); err != nil {
		t.Fatal(err)
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-store-0", Namespace: e.Namespace}}
	e.Update(claim, func() {
		claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("200Mi")
	})
	e.Eventually("the claim to have 200Mi", func(ctx context.Context) error {
		if err := e.Get(ctx, "data-store-0", claim); err != nil {
			return err
		}
		if has := claim.Status.Capacity[corev1.ResourceStorage]; has.String() != "200Mi" || len(claim.Status.Conditions) > 0 {
			return fmt.Errorf("it has %s, conditions %+v", has.String(), claim.Status.Conditions)
		}
		return nil
	})
	volume := &corev1.PersistentVolume{}
	if err := e.Client.Get(t.Context(), client.ObjectKey{Name: claim.Spec.VolumeName}, volume); err != nil {
		t.Fatal(err)
	}
	if has := volume.Spec.Capacity[corev1.ResourceStorage]; has.String() != "200Mi" {
		t.Errorf("the volume has %s", has.String())
	}
	checkValues(e, "store-0")

	var standard storagev1.StorageClass
	if err := e.Client.Get(t.Context(), client.ObjectKey{Name: "standard"}, &standard); err != nil {
		t.Fatal(err)
	}
	fixed := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: e.Namespace}, Provisioner: standard.Provisioner, VolumeBindingMode: standard.VolumeBindingMode}
	if err := e.Client.Create(t.Context(), fixed); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Client.Delete(context.Background(), fixed) })
	other, _ := store(t, 1)
	other.Name, other.Spec.VolumeClaimTemplates[0].Spec.StorageClassName = "fixed", &fixed.Name
	other.Spec.Selector.MatchLabels, other.Spec.Template.Labels = map[string]string{"app": "fixed"}, map[string]string{"app": "fixed"}
	e.Create(other)
	waitReady(e, "fixed-0")
	if err := e.Get(t.Context(), "data-fixed-0", claim); err != nil {
		t.Fatal(err)
	}
	claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("200Mi")
	if err := e.Client.Update(t.Context(), claim); !apierrors.IsForbidden(err) {
		t.Errorf("a class that does not allow it: %v", err)
	}
}

func TestWipeLosesAVolumesContent(t *testing.T) {
	e := framework.New(t)
	set, service := store(t, 1)
	e.Create(service, set)
	waitReady(e, "store-0")
	if _, err := e.Exec(t.Context(), "store-0", "etcdctl", "put", "key", "kept by store-0"); err != nil {
		t.Fatal(err)
	}
	victim, _ := node(t, e, "store-0")
	if out, err := framework.TryCluster(t.Context(), framework.Root(t), "node", "wipe", victim); err == nil || !strings.Contains(out, "stop it first") {
		t.Errorf("wiping a running node gave %v: %s", err, out)
	}
	e.Node("stop", victim)
	framework.Cluster(t, "node", "wipe", victim)
	framework.Cluster(t, "node", "start", victim)
	e.Eventually("store-0 to serve from an empty volume", func(ctx context.Context) error {
		got, err := e.Exec(ctx, "store-0", "etcdctl", "get", "--print-value-only", "key")
		if err == nil && strings.TrimSpace(got) != "" {
			err = fmt.Errorf("it still has %q", got)
		}
		return err
	})
}

func TestReclaimPolicies(t *testing.T) {
	for _, policy := range []corev1.PersistentVolumeReclaimPolicy{corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain} {
		t.Run(string(policy), func(t *testing.T) {
			e := framework.New(t)
			var standard storagev1.StorageClass
			if err := e.Client.Get(t.Context(), client.ObjectKey{Name: "standard"}, &standard); err != nil {
				t.Fatal(err)
			}
			class := &storagev1.StorageClass{
				ObjectMeta:        metav1.ObjectMeta{Name: e.Namespace},
				Provisioner:       standard.Provisioner,
				VolumeBindingMode: standard.VolumeBindingMode,
				ReclaimPolicy:     &policy,
			}
			if err := e.Client.Create(t.Context(), class); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = e.Client.Delete(context.Background(), class) })
			set, service := store(t, 1)
			set.Spec.VolumeClaimTemplates[0].Spec.StorageClassName = &class.Name
			set.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenDeleted: appsv1.DeletePersistentVolumeClaimRetentionPolicyType, WhenScaled: appsv1.RetainPersistentVolumeClaimRetentionPolicyType}
			e.Create(service, set)
			waitReady(e, "store-0")
			var claim corev1.PersistentVolumeClaim
			if err := e.Get(t.Context(), "data-store-0", &claim); err != nil {
				t.Fatal(err)
			}
			volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName}}
			if err := e.Client.Delete(t.Context(), set); err != nil {
				t.Fatal(err)
			}
			e.Eventually("the volume to be "+string(policy)+"d", func(ctx context.Context) error {
				err := e.Client.Get(ctx, client.ObjectKeyFromObject(volume), volume)
				switch {
				case policy == corev1.PersistentVolumeReclaimDelete && apierrors.IsNotFound(err):
					return nil
				case err != nil:
					return err
				case policy == corev1.PersistentVolumeReclaimRetain && volume.Status.Phase == corev1.VolumeReleased:
					return nil
				}
				return fmt.Errorf("it is %s", volume.Status.Phase)
			})
			if policy == corev1.PersistentVolumeReclaimRetain {
				if err := e.Client.Delete(t.Context(), volume); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
