package transfer

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterregistry/operator/apis/clusterregistry/equality"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/cli/command"
	clusterclient "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/internal/unregistered"
)

// isSet reports whether an object is a ClusterSet of the version that import reads.
func isSet(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind() == v1beta1.SchemeGroupVersion.WithKind("ClusterSet")
}

// setsFirst returns objects in an order in which they can be entered: a cluster is refused
// while its set is not there.
func setsFirst(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	var sets, others []*unstructured.Unstructured
	for _, object := range objects {
		if isSet(object) {
			sets = append(sets, object)
		} else {
			others = append(others, object)
		}
	}
	return slices.Concat(sets, others)
}

// setsOf returns the sets that clusters are in, as they are exported. A set is asked for by its
// name, since not everyone may list all of them.
func setsOf(ctx context.Context, sets clusterclient.ClusterSetInterface, clusters []v1beta1.Cluster) ([]item, error) {
	names := map[string]bool{}
	for _, cluster := range clusters {
		names[cluster.Spec.ClusterSet] = true
	}
	delete(names, "")
	var out []item
	for _, name := range slices.Sorted(maps.Keys(names)) {
		set, err := sets.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		out = append(out, item{
			APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "ClusterSet",
			Metadata: metadata{Name: set.Name, Labels: set.Labels, Annotations: withoutApplied(set.Annotations)}, Spec: set.Spec,
		})
	}
	return out, nil
}

// enterSet enters a ClusterSet, and says what it did. An error is about the registry.
func (i *importer) enterSet(ctx context.Context, sets clusterclient.ClusterSetInterface, object *unstructured.Unstructured) (Result, error) {
	result := Result{From: nameOf(object), Name: command.Plain(object.GetName())}
	did, err := i.oneSet(ctx, sets, object)
	switch {
	case err != nil && fatal(ctx, err):
		return result, err
	case err != nil:
		result.Result, result.Message = refused, command.Plain(err.Error())
	case did == differs:
		result.Result, result.Message = differs, "it is in the registry with other labels, annotations or spec: compare with \"kubectl get crset "+result.Name+" -o yaml\", then use --overwrite"
	default:
		result.Result = did
	}
	return result, nil
}

func (i *importer) oneSet(ctx context.Context, sets clusterclient.ClusterSetInterface, object *unstructured.Unstructured) (string, error) {
	read := &v1beta1.ClusterSet{}
	if err := decode(object, read); err != nil {
		return "", err
	}
	wanted := &v1beta1.ClusterSet{ObjectMeta: metav1.ObjectMeta{Name: read.Name, Labels: read.Labels, Annotations: withoutApplied(read.Annotations)}, Spec: read.Spec}
	old, err := sets.Get(ctx, wanted.Name, metav1.GetOptions{})
	switch {
	case unregistered.Is(err):
		return "", i.env.Explain("get the set", command.OfRegistry, err)
	case apierrors.IsNotFound(err) && i.dryRun.Client():
		return created, nil
	case apierrors.IsNotFound(err):
		_, err = sets.Create(ctx, wanted, metav1.CreateOptions{FieldManager: command.FieldManager, DryRun: i.dryRun.Options()})
		return created, err
	case err != nil:
		return "", err
	}
	next := old.DeepCopy()
	next.Labels, next.Annotations, next.Spec = wanted.Labels, keepApplied(old.Annotations, wanted.Annotations), wanted.Spec
	switch {
	case equality.DeepEqual(next, old):
		return same, nil
	case !i.overwrite:
		return differs, nil
	case i.dryRun.Client():
		return updated, nil
	}
	_, err = sets.Update(ctx, next, metav1.UpdateOptions{FieldManager: command.FieldManager, DryRun: i.dryRun.Options()})
	if apierrors.IsConflict(err) {
		return "", fmt.Errorf("someone else has changed it at the same time, and it stays as it is now: see \"kubectl get crset %s -o yaml\", then run this again", old.Name)
	}
	return updated, err
}

// withoutApplied returns annotations without what "kubectl apply" keeps there.
func withoutApplied(annotations map[string]string) map[string]string {
	out := maps.Clone(annotations)
	delete(out, lastApplied)
	return out
}

// keepApplied returns the annotations that are wanted, with what "kubectl apply" keeps in those
// that there are.
func keepApplied(old, wanted map[string]string) map[string]string {
	before, is := old[lastApplied]
	if !is {
		return wanted
	}
	out := map[string]string{lastApplied: before}
	maps.Copy(out, wanted)
	return out
}

// withoutLabel returns the labels of a cluster without the one that the server keeps by its set.
func withoutLabel(labels map[string]string) map[string]string {
	out := maps.Clone(labels)
	delete(out, v1beta1.ClusterSetLabel)
	return out
}

// keepLabel returns the labels that are wanted, with the one that the server keeps as it is.
func keepLabel(old, wanted map[string]string) map[string]string {
	set, is := old[v1beta1.ClusterSetLabel]
	if !is {
		return wanted
	}
	out := map[string]string{v1beta1.ClusterSetLabel: set}
	maps.Copy(out, wanted)
	return out
}
