package informers

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
)

// TestOnlyRead has objects with the operator's label as large as anyone could make
// them: what the operator holds of each of the kinds that it watches is small.
func TestOnlyRead(t *testing.T) {
	huge := strings.Repeat("x", 1<<20)
	container := corev1.Container{Name: "server", Image: "server:v0.1.0", Args: []string{huge}, Env: []corev1.EnvVar{{Name: "A", Value: huge}}}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{operatorv1alpha1.AnnotationHostVersion: "1.37", "a": huge}}, Spec: corev1.PodSpec{Containers: []corev1.Container{container}}}
	all := append(append(Owned(), Issued()...), Lease(), &operatorv1alpha1.ClusterRegistry{}, &corev1.Node{}, Namespace(), CertificatesCRD())
	for _, object := range all {
		object.SetName("fleet-server")
		object.SetLabels(map[string]string{operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy, "a": huge})
		object.SetAnnotations(map[string]string{"a": huge, contract.ControllerStatusAnnotation: huge, operatorv1alpha1.AnnotationDefragment: huge})
		object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: huge}})
		object.SetOwnerReferences([]metav1.OwnerReference{{Name: huge}})
		object.SetFinalizers([]string{huge})
		switch o := object.(type) {
		case *corev1.Service:
			o.Spec.ExternalName = huge
			for range 1000 {
				o.Spec.Ports = append(o.Spec.Ports, corev1.ServicePort{Name: "https", Port: 443})
			}
		case *corev1.Pod:
			o.Spec = template.Spec
		case *corev1.PersistentVolumeClaim:
			o.Spec.VolumeName = huge
		case *batchv1.Job:
			o.Spec.Template = template
		case *appsv1.Deployment:
			o.Spec.Template = template
		case *appsv1.StatefulSet:
			o.Spec.Template = template
		case *certmanagerv1.Certificate:
			o.Spec.CommonName = huge
		case *operatorv1alpha1.ClusterRegistry:
			o.Spec.TLS.CABundle = []byte(huge)
		case *corev1.Node:
			o.Status.Images = []corev1.ContainerImage{{Names: []string{huge}}}
		case *apiregistrationv1.APIService:
			continue // in no namespace: administrators alone make them
		}
		left, err := onlyRead(object)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(left)
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprintf("%T", left) != fmt.Sprintf("%T", object) || left.(client.Object).GetName() != "fleet-server" || left.(client.Object).GetLabels()[operatorv1alpha1.LabelManagedBy] == "" || len(text) > 2<<10 {
			t.Errorf("%T: left are %d bytes in a %T: %.500s", object, len(text), left, text)
		}
	}
}

// TestBounded has every field of every kind filled with more than anyone needs, as whoever may
// write the object can: what is held of each is bounded, whichever fields are kept.
func TestBounded(t *testing.T) {
	all := append(append(Owned(), Issued()...), Lease(), &operatorv1alpha1.ClusterRegistry{}, &operatorv1alpha1.ClusterRegistryBackup{}, &corev1.Node{}, Namespace(), CertificatesCRD())
	for _, object := range all {
		if _, is := object.(*apiregistrationv1.APIService); is {
			continue // in no namespace: administrators alone make them
		}
		kind := object.GetObjectKind().GroupVersionKind()
		fill(reflect.ValueOf(object), 8)
		object.GetObjectKind().SetGroupVersionKind(kind)
		annotations := object.GetAnnotations()
		for _, key := range []string{operatorv1alpha1.AnnotationVerify, operatorv1alpha1.AnnotationBackupReason, operatorv1alpha1.AnnotationBackup, operatorv1alpha1.AnnotationSnapshot, operatorv1alpha1.AnnotationDefragment, contract.ControllerStatusAnnotation} {
			annotations[key] = filler
		}
		object.SetAnnotations(annotations)
		left, err := onlyRead(object)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(left)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > 4*largest {
			t.Errorf("%T: %d KiB are held", object, len(text)>>10)
		}
	}
}

// TestWhole has the longest texts that the operator reads through the cache: they are held whole.
func TestWhole(t *testing.T) {
	const ended, entered = 4 << 10, 4<<10 + len("...") // as kubelet and backup.Enter bound them
	report, message := strings.Repeat("x", ended), strings.Repeat("x", entered)
	pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
		{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: report}}}}}}
	if left, err := onlyRead(pod); err != nil || left.(*corev1.Pod).Status.ContainerStatuses[0].State.Terminated.Message != report {
		t.Errorf("the report of a Job is cut: %v", err)
	}
	b := &operatorv1alpha1.ClusterRegistryBackup{Status: operatorv1alpha1.ClusterRegistryBackupStatus{Message: message, Conditions: []metav1.Condition{{Message: message}}}}
	left, err := onlyRead(b)
	if err != nil {
		t.Fatal(err)
	}
	if status := left.(*operatorv1alpha1.ClusterRegistryBackup).Status; status.Message != message || status.Conditions[0].Message != message {
		t.Error("the message of a backup is cut")
	}
}

var filler = strings.Repeat("x", 200<<10)

// fill sets every string to a long one, and gives every list and map entries, to a depth.
func fill(v reflect.Value, depth int) {
	if depth == 0 || !v.CanSet() && v.Kind() != reflect.Pointer {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() && v.CanSet() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		if !v.IsNil() {
			fill(v.Elem(), depth)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), depth-1)
		}
	case reflect.String:
		v.SetString(filler)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range v.Len() {
			fill(v.Index(i), depth-1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for i := range 3 {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			key.SetString(fmt.Sprint(i))
			fill(value, depth-1)
			v.SetMapIndex(key, value)
		}
	}
}

// TestOnlyReadKeeps has what is read of a Deployment and of a Job.
func TestOnlyReadKeeps(t *testing.T) {
	replicas := int32(2)
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 3}, Spec: appsv1.DeploymentSpec{Replicas: &replicas}, Status: appsv1.DeploymentStatus{ReadyReplicas: replicas}}
	deployment.Spec.Template.Annotations = map[string]string{operatorv1alpha1.AnnotationHostVersion: "1.37", "a": "b"}
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "server", Image: "server:v0.1.0", Args: []string{"--a=b", "--visibility=ClusterSets", "--visibility=" + strings.Repeat("x", 1<<20)}}}
	left, _ := onlyRead(deployment)
	if d := left.(*appsv1.Deployment); *d.Spec.Replicas != 2 || d.Generation != 3 || d.Status.ReadyReplicas != 2 || len(d.Spec.Template.Annotations) != 1 ||
		d.Spec.Template.Annotations[operatorv1alpha1.AnnotationHostVersion] != "1.37" || d.Spec.Template.Spec.Containers[0].Image != "server:v0.1.0" || !slices.Equal(d.Spec.Template.Spec.Containers[0].Args, []string{contract.HidingFlag}) {
		t.Errorf("%+v", d)
	}
	left, _ = onlyRead(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{operatorv1alpha1.AnnotationSnapshot: "s", "a": "b"}}})
	if job := left.(*batchv1.Job); len(job.Annotations) != 1 || job.Annotations[operatorv1alpha1.AnnotationSnapshot] != "s" {
		t.Errorf("%+v", job)
	}
}

// TestOnlyReadNamespace keeps which registries a namespace is opened to, as far as it is not
// opened to everything there could be.
func TestOnlyReadNamespace(t *testing.T) {
	namespace := Namespace()
	namespace.Labels = map[string]string{"a": "b", contract.NamespaceLabel("fleet"): "team"}
	for _, test := range []struct{ more, want int }{{0, 1}, {10_000, opened}} {
		for i := range test.more {
			namespace.Labels[contract.NamespaceLabel(fmt.Sprint(i))] = "x"
		}
		left, err := onlyRead(namespace)
		if err != nil {
			t.Fatal(err)
		}
		labels := left.(client.Object).GetLabels()
		if _, has := labels["a"]; has || len(labels) != test.want {
			t.Errorf("of %d labels are left %d", len(namespace.Labels), len(labels))
		}
	}
}

// TestOnlyReadPlace leaves of a registry what keeps its place in the host cluster's API.
func TestOnlyReadPlace(t *testing.T) {
	history := []operatorv1alpha1.Transition{{Version: "v0.2.0", State: operatorv1alpha1.TransitionProgressing, Message: "long"}, {Version: "v0.1.0", State: operatorv1alpha1.TransitionCompleted, Message: "long"}}
	registry := &operatorv1alpha1.ClusterRegistry{Spec: operatorv1alpha1.ClusterRegistrySpec{Mode: operatorv1alpha1.ModeAggregated}, Status: operatorv1alpha1.ClusterRegistryStatus{History: history}}
	left, err := onlyRead(registry)
	if err != nil {
		t.Fatal(err)
	}
	want := &operatorv1alpha1.ClusterRegistry{Spec: operatorv1alpha1.ClusterRegistrySpec{Mode: operatorv1alpha1.ModeAggregated}, Status: operatorv1alpha1.ClusterRegistryStatus{History: []operatorv1alpha1.Transition{{State: operatorv1alpha1.TransitionCompleted}}}}
	if !apiequality.Semantic.DeepEqual(left, want) {
		t.Errorf("%+v", left)
	}
}

// TestOnlyReadRequests has changes of a registry seen that are requests, and no others: the
// registry itself is read from the host.
func TestOnlyReadRequests(t *testing.T) {
	held := func(annotations map[string]string) client.Object {
		registry := &operatorv1alpha1.ClusterRegistry{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
		left, err := onlyRead(registry)
		if err != nil {
			t.Fatal(err)
		}
		return left.(client.Object)
	}
	for _, test := range []struct {
		before, after map[string]string
		want          bool
	}{
		{nil, map[string]string{operatorv1alpha1.AnnotationReplaceMember: "1"}, true},
		{map[string]string{operatorv1alpha1.AnnotationReplaceMember: "1"}, map[string]string{operatorv1alpha1.AnnotationReplaceMember: "1,2"}, true},
		{map[string]string{operatorv1alpha1.AnnotationDefragment: "now"}, nil, true},
		{map[string]string{operatorv1alpha1.AnnotationDefragment: "now"}, map[string]string{operatorv1alpha1.AnnotationDefragment: "now", "a": "b"}, false},
	} {
		changed := predicate.AnnotationChangedPredicate{}.Update(event.UpdateEvent{ObjectOld: held(test.before), ObjectNew: held(test.after)})
		if changed != test.want {
			t.Errorf("from %v to %v: it is seen: %t", test.before, test.after, changed)
		}
	}
}

// TestOnlyReadBackup keeps of a backup what people ask for by its annotations: a request to verify
// it again is seen through the informer alone.
func TestOnlyReadBackup(t *testing.T) {
	b := &operatorv1alpha1.ClusterRegistryBackup{}
	b.Annotations = map[string]string{operatorv1alpha1.AnnotationVerify: "1", operatorv1alpha1.AnnotationBackupReason: "Manual", "big": "x"}
	out, err := onlyRead(b)
	if err != nil {
		t.Fatal(err)
	}
	if got := out.(*operatorv1alpha1.ClusterRegistryBackup).Annotations; len(got) != 2 || got[operatorv1alpha1.AnnotationVerify] != "1" || got[operatorv1alpha1.AnnotationBackupReason] != "Manual" {
		t.Errorf("of the annotations are left %v", got)
	}
}

// TestReported has a Lease renewed, which is of no interest, and changed in what is.
func TestReported(t *testing.T) {
	held := func(change func(*metav1.PartialObjectMetadata)) client.Object {
		lease := Lease()
		lease.UID, lease.Labels = "1", map[string]string{operatorv1alpha1.LabelInstance: "fleet"}
		lease.Annotations = map[string]string{contract.ControllerStatusAnnotation: "Running", "renewed": "at noon"}
		change(lease)
		left, err := onlyRead(lease)
		if err != nil {
			t.Fatal(err)
		}
		return left.(client.Object)
	}
	before := held(func(*metav1.PartialObjectMetadata) {})
	for reason, test := range map[string]struct {
		change func(*metav1.PartialObjectMetadata)
		want   bool
	}{
		"a renewal":                    {func(l *metav1.PartialObjectMetadata) { l.ResourceVersion, l.Annotations["renewed"] = "2", "at one" }, false},
		"another report":               {func(l *metav1.PartialObjectMetadata) { l.Annotations[contract.ControllerStatusAnnotation] = "Isolated" }, true},
		"the report is gone":           {func(l *metav1.PartialObjectMetadata) { l.Annotations = nil }, true},
		"the labels are gone":          {func(l *metav1.PartialObjectMetadata) { l.Labels = nil }, true},
		"it was deleted and recreated": {func(l *metav1.PartialObjectMetadata) { l.UID = "2" }, true},
		"it is being deleted":          {func(l *metav1.PartialObjectMetadata) { l.DeletionTimestamp = new(metav1.Now()) }, true},
	} {
		if got := Reported(before, held(test.change)); got != test.want {
			t.Errorf("%s: %v", reason, got)
		}
	}
}
