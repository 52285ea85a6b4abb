package apiservice

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Unregister is done when the host no longer lists versions of the API that the desired servers
// lack: this comes before those do. Where no server is to run, that is every version.
func Unregister(ctx context.Context, o *operand.Objects, release string) verdict.Verdict {
	if o.ReadOnly() {
		return done
	}
	why := "a version that " + release + " does not serve"
	if len(o.Rendered.Stages[render.StageEndpoint]) == 0 {
		why = "before all servers are stopped: without a server, deletions of namespaces in the host cluster would hang"
	}
	for _, reference := range o.Registry.Status.Inventory {
		if reference.Kind != "APIService" || slices.ContainsFunc(o.Rendered.Stages[render.StageEndpoint], func(u *unstructured.Unstructured) bool { return u.GetName() == reference.Name }) {
			continue
		}
		gone, err := o.Writer().Delete(ctx, reference, o.Owner())
		if err != nil {
			return verdict.Failed(err)
		}
		if !gone {
			return verdict.Waiting(operatorv1alpha1.ReasonProgressing, "waiting for %s to be deleted, %s", reference, why).In(verdict.Soon).DegradedIf(true)
		}
	}
	return done
}
