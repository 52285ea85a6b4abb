package clusterapi

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/internal/decode"
)

// undecodableMark is an annotation of what is held, never of what is stored: that of a Cluster
// which can be decoded is dropped.
const undecodableMark = "operator.clusterregistry.io/undecodable"

// undecodable says why no more than the metadata of a Cluster is known; empty when all is.
func undecodable(source *clusterv1.Cluster) string { return source.Annotations[undecodableMark] }

// clusterOf decodes a Cluster. Of one that can't be decoded, it returns the metadata, which the
// host cluster checks itself, and marks it.
func clusterOf(tree *unstructured.Unstructured) (*clusterv1.Cluster, error) {
	out := &clusterv1.Cluster{}
	err := decode.Into(tree.Object, out)
	broken := (*decode.FieldError)(nil)
	if !errors.As(err, &broken) {
		delete(out.Annotations, undecodableMark)
		return out, err
	}
	out = &clusterv1.Cluster{}
	if err := decode.Into(map[string]any{"metadata": tree.Object["metadata"]}, out); err != nil {
		return nil, fmt.Errorf("decode the metadata of a Cluster: %w", err)
	}
	metav1.SetMetaDataAnnotation(&out.ObjectMeta, undecodableMark, short(fmt.Sprintf("the controller can't decode its field %s: correct that field, or remove it (%s)", broken.Field, broken)))
	return out, nil
}

// stay holds a Cluster that can't be decoded. Its entry, if it has one, stays as it is and says
// so: what Cluster API said of the cluster last is all that is known of it.
func (c *Controller) stay(ctx context.Context, source *clusterv1.Cluster, entry *v1beta1.Cluster) error {
	name, why := "", undecodable(source)
	if entry != nil {
		name = entry.Name
		last := gone(entry, joined(metav1.ConditionUnknown, ReasonUndecodable, fmt.Sprintf("The entry stays as it is. Of Cluster %s, %s.", keyOf(source), why)))
		last.others = slices.DeleteFunc(slices.Clone(ownConditions(entry)), func(is metav1.Condition) bool { return is.Type == v1beta1.ConditionJoined })
		if _, err := c.write(ctx, entry, last); err != nil {
			return err
		}
	}
	c.hold(ctx, source, hold{reason: HeldUndecodable, name: name, message: why})
	return nil
}
