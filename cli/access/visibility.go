package access

import (
	"cmp"
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/cli/hostcluster"
)

const (
	// visibleAll has whoever passes the gate see all clusters.
	visibleAll = "All"
	// visibleSets has the decision asked.
	visibleSets = "ClusterSets"
)

// visibility is what the ClusterRegistry of an aggregated registry says about who sees
// which clusters.
type visibility struct {
	// value is one of the two, empty when it is not known.
	value string
	// registry is the ClusterRegistry, as namespace/name.
	registry string
	// unknown says why the value is not known.
	unknown string
	// host reports whether the context is that of a host cluster.
	host bool
}

// readVisibility asks the host cluster. An error is one of the kubeconfig.
//
// The field is read from the object as it is: this program also works with operators
// whose API has it in another release than its own.
func readVisibility(ctx context.Context, env *command.Env) (visibility, error) {
	host, err := env.Host()
	if err != nil {
		return visibility{}, err
	}
	list, err := host.Resource(hostcluster.Resource).Namespace(env.Namespace()).List(ctx, metav1.ListOptions{})
	switch {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return visibility{unknown: "this context has no ClusterRegistries, so it is that of an independent registry: spec.server.authorization.visibility of its ClusterRegistry, in its host cluster, says it"}, nil
	case apierrors.IsForbidden(err):
		return visibility{host: true, unknown: "you may not list ClusterRegistries here: name a namespace with -n, or ask for list on clusterregistries.operator.clusterregistry.io"}, nil
	case err != nil:
		return visibility{unknown: command.Plain(env.Explain("list the ClusterRegistries", command.OfHost, err).Error())}, nil
	}
	out := visibility{host: true, unknown: "you see no aggregated ClusterRegistry here: without -n, those of all namespaces are read"}
	for i := range list.Items {
		value, is := visibilityOf(&list.Items[i])
		switch name := list.Items[i].GetNamespace() + "/" + list.Items[i].GetName(); {
		case !is:
		case out.value != "" && out.value != value:
			return visibility{host: true, unknown: "the ClusterRegistries " + out.registry + " and " + name + " differ in it, and only one can be aggregated: name its namespace with -n"}, nil
		default:
			out = visibility{value: value, registry: name, host: true}
		}
	}
	return out, nil
}

// visibilityOf returns what a ClusterRegistry says, and whether it is aggregated.
func visibilityOf(registry *unstructured.Unstructured) (string, bool) {
	if mode, _, _ := unstructured.NestedString(registry.Object, "spec", "mode"); mode != string(operatorv1alpha1.ModeAggregated) {
		return "", false
	}
	value, _, _ := unstructured.NestedString(registry.Object, "spec", "server", "authorization", "visibility")
	return cmp.Or(value, visibleAll), true
}
