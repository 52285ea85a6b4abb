package address

import (
	"errors"
	"net/url"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// KnownNodePort returns the node port that clients know and that the spec does not
// name, 0 when there is none. Of the URLs that clients are given, only those of node
// ports have a port: all other Services serve at 443.
func KnownNodePort(registry *operatorv1alpha1.ClusterRegistry) int32 {
	service, endpoint := registry.Spec.Server.Service, registry.Status.Endpoint
	if registry.Spec.Mode != operatorv1alpha1.ModeIndependent || service == nil || service.Type != corev1.ServiceTypeNodePort || service.NodePort != 0 || endpoint == nil {
		return 0
	}
	at, err := url.Parse(endpoint.URL)
	if err != nil {
		return 0
	}
	port, err := strconv.ParseUint(at.Port(), 10, 16)
	if err != nil {
		return 0
	}
	return int32(port)
}

// WithNodePort returns a copy of a Service that asks for a node port, nil without one.
func WithNodePort(service *unstructured.Unstructured, port int32) *unstructured.Unstructured {
	ports, found, err := unstructured.NestedSlice(service.Object, "spec", "ports")
	if port == 0 || err != nil || !found || len(ports) == 0 {
		return nil
	}
	ports[0].(map[string]any)["nodePort"] = int64(port)
	out := service.DeepCopy()
	if unstructured.SetNestedSlice(out.Object, ports, "spec", "ports") != nil {
		return nil
	}
	return out
}

// NodePortRefused returns why the host refuses a Service its node port, nothing when that
// is not what an error is about.
func NodePortRefused(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return ""
	}
	causes := status.Status().Details.Causes
	i := slices.IndexFunc(causes, func(cause metav1.StatusCause) bool { return cause.Field == "spec.ports[0].nodePort" })
	if i < 0 {
		return ""
	}
	return causes[i].Message
}
