package selection

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	inventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/clusterregistry/operator/apis/clusterregistry/equality"
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
)

const (
	// perSlice is how many decisions a PlacementDecision has at most.
	perSlice = 100
	// crd is where users get the CRD.
	crd = "the CRD placementdecisions.multicluster.x-k8s.io of sigs.k8s.io/cluster-inventory-api v0.1.3"
)

// The reasons of the condition Published.
const (
	reasonPublished = "Published"
	reasonUnserved  = "NotServed"
	reasonTaken     = "NameTaken"
)

// publish brings the PlacementDecisions of a selection up to date with its status, and sets
// the condition Published. It returns when they are to be looked at again; zero when a change
// is a reason.
func (s *session) publish(ctx context.Context, selection *operatorv1alpha1.ClusterSelection) (time.Duration, error) {
	if err := s.published.trouble(s.Clock.Now()); err != nil {
		s.set(selection, operatorv1alpha1.SelectionConditionPublished, unready(reasonUnserved, "PlacementDecisions of the host cluster can't be read: %v. Install %s, or read status.decisions.", err, crd))
		return recheck, nil
	}
	if !s.published.HasSynced() {
		return soonest, nil
	}
	want := s.slices(selection)
	for _, slice := range want {
		taken, err := s.put(ctx, slice)
		if err != nil {
			return 0, err
		}
		if taken {
			s.set(selection, operatorv1alpha1.SelectionConditionPublished, unready(reasonTaken, "PlacementDecision %q is not of this ClusterSelection, and is left alone: delete it, or give the ClusterSelection another name.", slice.Name))
			return recheck, nil
		}
	}
	s.set(selection, operatorv1alpha1.SelectionConditionPublished, metav1.Condition{Status: metav1.ConditionTrue, Reason: reasonPublished, Message: fmt.Sprintf("PlacementDecisions with the label %s=%s have the decisions.", inventory.DecisionKeyLabel, selection.Name)})
	return 0, s.prune(ctx, selection.Name, selection.UID, len(want))
}

// slices returns the PlacementDecisions of a selection. There is one even if it is empty, so
// that readers tell nothing selected from nothing known.
func (s *session) slices(selection *operatorv1alpha1.ClusterSelection) []*inventory.PlacementDecision {
	chunks := slices.Collect(slices.Chunk(selection.Status.Decisions, perSlice))
	if len(chunks) == 0 {
		chunks = append(chunks, nil)
	}
	var out []*inventory.PlacementDecision
	for i, chunk := range chunks {
		slice := &inventory.PlacementDecision{
			TypeMeta: metav1.TypeMeta{APIVersion: inventory.GroupVersion.String(), Kind: "PlacementDecision"},
			ObjectMeta: metav1.ObjectMeta{
				Name: sliceName(selection.Name, i), Namespace: selection.Namespace,
				Labels: map[string]string{
					inventory.DecisionKeyLabel: selection.Name, inventory.DecisionIndexLabel: strconv.Itoa(i),
					contract.NamespaceLabel(s.Registry): s.Controller.Namespace,
				},
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: operatorv1alpha1.SchemeGroupVersion.String(), Kind: "ClusterSelection", Name: selection.Name, UID: selection.UID, Controller: ptr.To(true),
				}},
			},
			Decisions:     []inventory.ClusterDecision{},
			SchedulerName: contract.SelectionScheduler,
		}
		for _, is := range chunk {
			slice.Decisions = append(slice.Decisions, inventory.ClusterDecision{
				ClusterProfileRef: inventory.ClusterProfileReference{Name: is.ClusterName, Namespace: selection.Namespace}, Reason: string(is.Reason),
			})
		}
		out = append(out, slice)
	}
	return out
}

func sliceName(selection string, index int) string { return fmt.Sprintf("%s-%d", selection, index) }

// put makes a slice as it is to be, and reports whether its name is someone else's.
func (s *session) put(ctx context.Context, want *inventory.PlacementDecision) (taken bool, err error) {
	have, err := s.slice(want.Name)
	if err != nil {
		return false, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want)
	if err != nil {
		return false, err
	}
	object := &unstructured.Unstructured{Object: content}
	uid := want.OwnerReferences[0].UID
	if have == nil {
		if _, err = s.placements.Create(ctx, object, metav1.CreateOptions{}); err == nil {
			return false, nil
		} else if !apierrors.IsAlreadyExists(err) {
			return false, fmt.Errorf("create PlacementDecision %q: %w", want.Name, err)
		}
		live, err := s.placements.Get(ctx, want.Name, metav1.GetOptions{})
		if err != nil {
			return false, fmt.Errorf("get PlacementDecision %q: %w", want.Name, err)
		}
		if have, err = decode(live); err != nil {
			return false, err
		}
	}
	switch owner := ownerOf(have); {
	case owner == nil || owner.Name != want.OwnerReferences[0].Name:
		return true, nil
	case owner.UID != uid:
		return false, cmp.Or(s.prune(ctx, owner.Name, uid, most), fmt.Errorf("PlacementDecision %q of a ClusterSelection of this name that is gone is being deleted", have.Name))
	}
	if same(want, have) {
		return false, nil
	}
	labels := map[string]string{} // those of others stay, as annotations and finalizers do
	maps.Copy(labels, have.Labels)
	maps.Copy(labels, want.Labels)
	object.SetLabels(labels)
	object.SetAnnotations(have.Annotations)
	object.SetFinalizers(have.Finalizers)
	object.SetResourceVersion(have.ResourceVersion)
	if _, err := s.placements.Update(ctx, object, metav1.UpdateOptions{}); err != nil {
		return false, fmt.Errorf("update PlacementDecision %q: %w", want.Name, err)
	}
	return false, nil
}

// same reports whether a slice is as it is to be; others may label it besides.
func same(want, have *inventory.PlacementDecision) bool {
	for key, value := range want.Labels {
		if have.Labels[key] != value {
			return false
		}
	}
	return want.SchedulerName == have.SchedulerName && equality.DeepEqual(want.Decisions, have.Decisions)
}

// slice returns a PlacementDecision of this registry as it is known; nil when there is none.
func (s *session) slice(name string) (*inventory.PlacementDecision, error) {
	object, exists, err := s.published.GetStore().GetByKey(s.Namespace + "/" + name)
	if err != nil || !exists {
		return nil, err
	}
	return decode(object.(*unstructured.Unstructured))
}

func decode(object *unstructured.Unstructured) (*inventory.PlacementDecision, error) {
	out := &inventory.PlacementDecision{}
	return out, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, out)
}

// ownerOf returns the selection that a slice is of; nil when it is of none.
func ownerOf(slice *inventory.PlacementDecision) *metav1.OwnerReference {
	owner := metav1.GetControllerOf(slice)
	if owner == nil || owner.Kind != "ClusterSelection" || owner.APIVersion != operatorv1alpha1.SchemeGroupVersion.String() {
		return nil
	}
	return owner
}

// prune deletes the slices of selections of a name, but for the first of the one with a UID.
// Those of a selection that is gone are deleted by the garbage collector as well, and not
// before the host cluster says so again.
func (s *session) prune(ctx context.Context, name string, uid types.UID, keep int) error {
	for _, object := range s.published.GetStore().List() {
		u := object.(*unstructured.Unstructured)
		if key, _, _ := unstructured.NestedString(u.Object, "metadata", "labels", inventory.DecisionKeyLabel); key != name {
			continue
		}
		slice, err := decode(u)
		if err != nil {
			return err
		}
		owner := ownerOf(slice)
		if owner == nil || owner.Name != name || slice.DeletionTimestamp != nil {
			continue
		}
		if owner.UID == uid {
			index, err := strconv.Atoi(slice.Labels[inventory.DecisionIndexLabel])
			if err == nil && index < keep && slice.Name == sliceName(name, index) {
				continue
			}
		} else if there, err := s.there(ctx, owner); err != nil || there {
			return err
		}
		err = s.placements.Delete(ctx, slice.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &slice.UID, ResourceVersion: &slice.ResourceVersion}})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete PlacementDecision %q: %w", slice.Name, err)
		}
	}
	return nil
}

// there asks the host cluster whether there is the owner of a slice.
func (s *session) there(ctx context.Context, owner *metav1.OwnerReference) (bool, error) {
	live, err := s.objects.Get(ctx, owner.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return false, nil
	}
	return err == nil && live.GetUID() == owner.UID, err
}
