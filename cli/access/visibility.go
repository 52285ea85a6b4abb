package access

import (
	"cmp"
	"context"
	"fmt"

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
	// value is that of the servers, one of the two, empty when it is not known.
	value string
	// differs says that the spec has another one, which the servers don't have (yet).
	differs string
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
		value, wanted, is := visibilityOf(&list.Items[i])
		switch name := list.Items[i].GetNamespace() + "/" + list.Items[i].GetName(); {
		case !is:
		case out.value != "" && out.value != value:
			return visibility{host: true, unknown: "the ClusterRegistries " + out.registry + " and " + name + " differ in it, and only one can be aggregated: name its namespace with -n"}, nil
		default:
			out = visibility{value: value, registry: name, host: true}
			if wanted != value {
				out.differs = fmt.Sprintf("the ClusterRegistry %s asks for the visibility %s, and its servers have %s: its condition Ready says why", name, wanted, value)
			}
		}
	}
	return out, nil
}

// visibilityOf returns the visibility that the servers of a ClusterRegistry have, by its
// status, that of its spec, and whether it is aggregated. The two differ where a release does
// not have it, and where it is not approved that all clusters are shown again.
func visibilityOf(registry *unstructured.Unstructured) (value, wanted string, is bool) {
	if mode, _, _ := unstructured.NestedString(registry.Object, "spec", "mode"); mode != string(operatorv1alpha1.ModeAggregated) {
		return "", "", false
	}
	wanted, _, _ = unstructured.NestedString(registry.Object, "spec", "server", "authorization", "visibility")
	value = visibleAll
	if hides, _, _ := unstructured.NestedMap(registry.Object, "status", "visibility"); hides != nil {
		value = visibleSets
	}
	return value, cmp.Or(wanted, visibleAll), true
}
