package diagnose

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/clusterregistry/operator/internal/pages"
)

// mostEvents bounds how many events are read of one object: anyone in a namespace may
// create many.
const mostEvents = 100

// lastWarning returns the message of the latest warning event about an object, empty
// when there is none or events can't be read. Much of what blocks a pod is in events
// alone.
func (d Diagnoser) lastWarning(ctx context.Context, namespace string, uid types.UID) string {
	var message string
	var latest *metav1.Time
	seen := 0
	err := pages.Each(ctx, d.Live, &corev1.EventList{}, func(page *corev1.EventList) bool {
		for i := range page.Items {
			if at := lastObserved(&page.Items[i]); latest == nil || latest.Before(at) {
				latest, message = at.DeepCopy(), lastLines(page.Items[i].Message)
			}
		}
		seen += len(page.Items)
		return seen < mostEvents
	}, client.InNamespace(namespace), client.MatchingFieldsSelector{
		Selector: fields.Set{"involvedObject.uid": string(uid), "type": corev1.EventTypeWarning}.AsSelector()})
	if err != nil {
		logf.FromContext(ctx).Error(err, "Events can't be read that may explain what is wrong")
		return ""
	}
	return message
}

// lastObserved returns when an event occurred last. Which field has it depends on the
// API that its reporter used.
func lastObserved(event *corev1.Event) *metav1.Time {
	switch {
	case event.Series != nil:
		return &metav1.Time{Time: event.Series.LastObservedTime.Time}
	case !event.LastTimestamp.IsZero():
		return &event.LastTimestamp
	}
	return &metav1.Time{Time: event.EventTime.Time}
}
