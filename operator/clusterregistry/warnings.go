package clusterregistry

import (
	"context"
	"fmt"
	"strings"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmetav1 "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// atOnceRead bounds how many objects the operator reads at once that it does not make,
// and that anybody in a namespace may make many of.
const atOnceRead = 100

// lastWarning returns what the host's newest warning about an object says, or
// nothing. Much of what holds a pod up is told by events alone. They are read
// only while something is wrong; that they can't be read is no problem of the
// registry's.
func (r *Reconciler) lastWarning(ctx context.Context, namespace string, uid types.UID) string {
	list := &corev1.EventList{}
	err := r.Live.List(ctx, list, client.InNamespace(namespace), client.Limit(atOnceRead), client.MatchingFieldsSelector{
		Selector: fields.Set{"involvedObject.uid": string(uid), "type": corev1.EventTypeWarning}.AsSelector()})
	if err != nil {
		logf.FromContext(ctx).Error(err, "Events can't be read that may explain what is wrong")
		return ""
	}
	var newest *corev1.Event
	for i := range list.Items {
		if newest == nil || told(newest).Before(told(&list.Items[i])) {
			newest = &list.Items[i]
		}
	}
	if newest == nil {
		return ""
	}
	return lastLines(newest.Message)
}

// told returns when an event was told last. Which field says so depends on who
// told it.
func told(event *corev1.Event) *metav1.Time {
	switch {
	case event.Series != nil:
		return &metav1.Time{Time: event.Series.LastObservedTime.Time}
	case !event.LastTimestamp.IsZero():
		return &event.LastTimestamp
	}
	return &metav1.Time{Time: event.EventTime.Time}
}

// podsProblems says of each pod that does not serve what holds it up.
func (r *Reconciler) podsProblems(ctx context.Context, pods []corev1.Pod) []string {
	var out []string
	for i := range pods {
		pod := &pods[i]
		if ready(pod) {
			continue
		}
		problem := podProblem(pod)
		if pod.Status.Phase == corev1.PodPending && pod.DeletionTimestamp == nil {
			for _, why := range append(r.claimProblems(ctx, pod), r.lastWarning(ctx, pod.Namespace, pod.UID)) {
				if why != "" && !strings.Contains(problem, why) {
					problem += ": " + why
				}
			}
		}
		out = append(out, problem)
	}
	return out
}

// claimProblems says which volumes a pod waits for, and why.
func (r *Reconciler) claimProblems(ctx context.Context, pod *corev1.Pod) []string {
	var out []string
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim == nil {
			continue
		}
		claim := &corev1.PersistentVolumeClaim{}
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: volume.PersistentVolumeClaim.ClaimName}, claim)
		if err != nil || claim.Status.Phase == corev1.ClaimBound {
			continue
		}
		problem := "PersistentVolumeClaim " + claim.Name + " has no volume"
		if why := r.lastWarning(ctx, claim.Namespace, claim.UID); why != "" {
			problem += " (" + why + ")"
		}
		out = append(out, problem)
	}
	return out
}

// missingPods says why a workload's pods are not even made.
func (r *Reconciler) missingPods(ctx context.Context, workload client.Object) string {
	if deployment, is := workload.(*appsv1.Deployment); is {
		for _, condition := range deployment.Status.Conditions {
			if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
				return condition.Message
			}
		}
	}
	if why := r.lastWarning(ctx, workload.GetNamespace(), workload.GetUID()); why != "" {
		return why
	}
	return "their pods do not exist yet"
}

// requestProblem returns what a Certificate's issuer says of the request that it
// has not granted.
func (r *Reconciler) requestProblem(ctx context.Context, c *certmanagerv1.Certificate) string {
	revision := 1
	if c.Status.Revision != nil {
		revision += *c.Status.Revision
	}
	request := &certmanagerv1.CertificateRequest{}
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: fmt.Sprintf("%s-%d", c.Name, revision)}, request); err != nil {
		return ""
	}
	for _, condition := range request.Status.Conditions {
		if condition.Type == certmanagerv1.CertificateRequestConditionReady && condition.Status == cmmetav1.ConditionFalse {
			return condition.Message
		}
	}
	return ""
}
