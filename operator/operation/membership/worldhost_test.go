package membership

import (
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/render"
)

// claim returns the UID of a member's claim, empty when there is none.
func (w *world) claim(ordinal int) string {
	claim := &corev1.PersistentVolumeClaim{}
	if err := w.host.Get(w.t.Context(), client.ObjectKey{Namespace: "team", Name: contract.EtcdMemberClaim(w.name(ordinal))}, claim); err != nil {
		return ""
	}
	return string(claim.UID)
}

// bound reports whether a member's claim has a volume.
func (w *world) bound(ordinal int) bool {
	claim := &corev1.PersistentVolumeClaim{}
	err := w.host.Get(w.t.Context(), client.ObjectKey{Namespace: "team", Name: contract.EtcdMemberClaim(w.name(ordinal))}, claim)
	return err == nil && claim.Spec.VolumeName != ""
}

// tick lets the controllers, kubelet and etcd go on.
func (w *world) tick() {
	w.t.Helper()
	for told := w.objects.Events.(*events.FakeRecorder).Events; len(told) > 0; {
		<-told // it holds no more than a few
	}
	ctx, c := w.t.Context(), w.host
	store := identity.Read(ctx, w.objects)
	if store.Err != nil {
		w.t.Fatal(store.Err)
	}
	members := len(store.Members())
	set := &appsv1.StatefulSet{}
	err := c.Get(ctx, client.ObjectKey{Namespace: "team", Name: "fleet-etcd"}, set)
	if apierrors.IsNotFound(err) {
		set = statefulSet(render.EtcdClass(w.objects.Registry))
		set.CreationTimestamp = metav1.NewTime(w.objects.Now)
		w.recreated++
		set.UID = types.UID("set-" + strconv.Itoa(w.recreated))
		err = c.Create(ctx, set)
	}
	w.must(err)
	if w.class = *set.Spec.VolumeClaimTemplates[0].Spec.StorageClassName; w.forced != "" {
		w.class = w.forced
	}
	if *set.Spec.Replicas != int32(members) { // a write costs as much as the rest of a tick
		set.Spec.Replicas = new(int32(members))
		w.must(c.Update(ctx, set))
	}
	deployment := &appsv1.Deployment{}
	w.must(c.Get(ctx, client.ObjectKey{Namespace: "team", Name: "fleet-server"}, deployment))
	endpoints := render.EtcdEndpoints(w.objects.Registry, store.Endpoints())
	if args := []string{"--etcd-servers=" + join(endpoints)}; !slices.Equal(deployment.Spec.Template.Spec.Containers[0].Args, args) {
		deployment.Spec.Template.Spec.Containers[0].Args = args
		w.must(c.Update(ctx, deployment))
	}
	for ordinal := range Most {
		w.tickPod(ordinal, ordinal < members)
	}
	for i, m := range w.list {
		ordinal := slices.IndexFunc([]int{0, 1, 2, 3, 4}, func(o int) bool { return m.PeerURLs[0] == w.peer(o) })
		name := w.name(ordinal)
		starts := m.Learner && m.Name == "" && store.Record.Joining == name && store.Record.Members[name] == m.ID && w.bound(ordinal) && w.data[w.claim(ordinal)] == ""
		if starts {
			w.list[i].Name, w.data[w.claim(ordinal)] = name, m.ID
		}
	}
}

func (w *world) tickPod(ordinal int, wanted bool) {
	ctx, c := w.t.Context(), w.host
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: w.name(ordinal), CreationTimestamp: metav1.NewTime(w.objects.Now),
		Labels: map[string]string{operatorv1alpha1.LabelInstance: "fleet", operatorv1alpha1.LabelComponent: operand.ComponentEtcd}}, Spec: corev1.PodSpec{NodeName: "n0"}}
	if !wanted {
		w.must(client.IgnoreNotFound(c.Delete(ctx, pod)))
		return
	}
	w.uid++
	uid := "u" + strconv.Itoa(w.uid)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: contract.EtcdMemberClaim(w.name(ordinal)), UID: types.UID(uid), CreationTimestamp: metav1.NewTime(w.objects.Now)},
		Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-" + uid, StorageClassName: new(w.class)}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}
	switch {
	case w.claim(ordinal) != "":
	case w.unprovisioned != "" && w.class == w.unprovisioned:
		claim.Spec.VolumeName, claim.Status.Phase = "", corev1.ClaimPending
		w.must(c.Create(ctx, claim))
	default:
		w.must(c.Create(ctx, claim))
		w.must(c.Create(ctx, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + uid}, Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}, ClaimRef: &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete}}))
	}
	if code := w.exit[w.name(ordinal)]; code != 0 {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "etcd", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}}}
	}
	runs := &corev1.Pod{}
	if c.Get(ctx, client.ObjectKeyFromObject(pod), runs) == nil && len(runs.Status.ContainerStatuses) == len(pod.Status.ContainerStatuses) {
		return
	}
	w.must(client.IgnoreNotFound(c.Delete(ctx, pod.DeepCopy())))
	w.must(c.Create(ctx, pod))
}
