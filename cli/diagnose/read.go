package diagnose

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// What is listed beside ClusterRegistries. No Secrets and no ConfigMaps.
var (
	pods                = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	events              = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	persistentClaims    = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	deployments         = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	statefulSets        = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	jobs                = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	leases              = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	certificates        = schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "certificates"}
	certificateRequests = schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "certificaterequests"}
	apiServices         = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
)

// read lists objects of a namespace, or of all when it is empty. The error is the
// server's own.
func read[T any](ctx context.Context, host dynamic.Interface, resource schema.GroupVersionResource, namespace string, options metav1.ListOptions) ([]T, error) {
	list, err := host.Resource(resource).Namespace(namespace).List(ctx, options)
	if err != nil {
		return nil, err
	}
	out := make([]T, len(list.Items))
	for i := range list.Items {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &out[i]); err != nil {
			return nil, fmt.Errorf("%s %s: %w; this plugin may be too old", resource.Resource, list.Items[i].GetName(), err)
		}
	}
	return out, nil
}

// list is read for what has labels; what may not be listed becomes a finding, and false
// is returned.
func list[T any](ctx context.Context, d *diagnosis, resource schema.GroupVersionResource, namespace, selector string) ([]T, bool) {
	out, err := read[T](ctx, d.host, resource, namespace, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		d.unchecked(resource.Resource, resource, namespace, err)
	}
	return out, err == nil
}

// of returns the selector of a registry's objects.
func of(creg *operatorv1alpha1.ClusterRegistry) string {
	return operatorv1alpha1.LabelInstance + "=" + creg.Name + "," + operatorv1alpha1.LabelManagedBy + "=" + operatorv1alpha1.ManagedBy
}

// mostEvents bounds how many events are read: anyone in a namespace may create many.
const mostEvents = 1000

// warnings are the warning events of a namespace, by the object.
type warnings map[types.UID][]corev1.Event

// warnings reads the warning events of a namespace.
func (d *diagnosis) warnings(ctx context.Context, namespace string) warnings {
	list, err := read[corev1.Event](ctx, d.host, events, namespace, metav1.ListOptions{FieldSelector: "type=" + corev1.EventTypeWarning, Limit: mostEvents})
	if err != nil {
		d.unchecked(events.Resource, events, namespace, err)
	}
	out := warnings{}
	for _, event := range list {
		if event.Type == corev1.EventTypeWarning && event.InvolvedObject.UID != "" {
			out[event.InvolvedObject.UID] = append(out[event.InvolvedObject.UID], event)
		}
	}
	for _, of := range out {
		slices.SortStableFunc(of, func(a, b corev1.Event) int { return observed(a).Compare(observed(b).Time) })
	}
	return out
}

// last returns the message of the last warning about an object, "" when there is none.
func (w warnings) last(uid types.UID) string {
	of := w[uid]
	if len(of) == 0 {
		return ""
	}
	return of[len(of)-1].Message
}

// because returns a reason behind a colon, or nothing.
func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// observed returns when an event occurred last. Which field has it depends on the API
// that its reporter used.
func observed(event corev1.Event) *metav1.Time {
	switch {
	case event.Series != nil:
		return &metav1.Time{Time: event.Series.LastObservedTime.Time}
	case !event.LastTimestamp.IsZero():
		return &event.LastTimestamp
	}
	return &metav1.Time{Time: event.EventTime.Time}
}

// absent reports whether an error says that the host cluster does not have a resource.
func absent(err error) bool { return apierrors.IsNotFound(err) }
