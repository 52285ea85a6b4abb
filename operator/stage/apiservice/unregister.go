package apiservice

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Unregister is done when the host no longer lists versions of the API that the desired servers
// lack: this comes before those do. Where no server is to run, that is every version, which what is
// wrong with etcd does not hold up. One that can't be deleted keeps no other one.
func Unregister(ctx context.Context, o *operand.Objects, release string) verdict.Verdict {
	until, writer, why := o.ReadOnlyUntil(), o.Writer(), "a version that "+release+" does not serve"
	if len(o.Rendered.Stages[render.StageEndpoint]) == 0 {
		until, writer = o.ReadOnlyUntil(operatorv1alpha1.ConditionEtcdReady), o.WriterDespite(operatorv1alpha1.ConditionEtcdReady)
		why = "before all servers are stopped: without a server, deletions of namespaces in the host cluster would hang"
	}
	if until != "" {
		return done
	}
	var left []operatorv1alpha1.ObjectReference
	var failed []error
	for _, reference := range o.Registry.Status.Inventory {
		if reference.Kind != "APIService" || slices.ContainsFunc(o.Rendered.Stages[render.StageEndpoint], func(u *unstructured.Unstructured) bool { return u.GetName() == reference.Name }) {
			continue
		}
		gone, err := writer.Delete(ctx, reference, o.Owner())
		if err != nil {
			failed = append(failed, err)
		} else if !gone {
			left = append(left, reference)
		}
	}
	switch {
	case len(failed) > 0:
		return verdict.Failed(errors.Join(failed...))
	case len(left) > 0:
		return verdict.Waiting(operatorv1alpha1.ReasonProgressing, "waiting for %s to be deleted, %s", operand.Names(left), why).In(verdict.Soon).DegradedIf(true)
	}
	return done
}
