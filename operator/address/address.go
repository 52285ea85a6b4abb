package address

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
)

// maxNodes bounds how many nodes' addresses are in a certificate. Those who need
// more has a name for them, for server.service.hostnames.
const maxNodes = 8

// Addresses returns the addresses from outside of an independent registry's
// servers, the one for its clients first. There may be none yet,
// and an aggregated one has none.
func Addresses(ctx context.Context, reader client.Reader, registry *operatorv1alpha1.ClusterRegistry) ([]string, error) {
	wanted := registry.Spec.Server.Service
	if registry.Spec.Mode != operatorv1alpha1.ModeIndependent || wanted == nil {
		return nil, nil
	}
	var out []string
	for _, hostname := range wanted.Hostnames {
		out = append(out, string(hostname))
	}
	var more []string
	var err error
	switch wanted.Type {
	case corev1.ServiceTypeLoadBalancer:
		more, err = balancer(ctx, reader, client.ObjectKey{Namespace: registry.Namespace, Name: registry.Name + contract.ServerSuffix})
	case corev1.ServiceTypeNodePort:
		more, err = nodes(ctx, reader)
	}
	for _, address := range more {
		if !slices.Contains(out, address) {
			out = append(out, address)
		}
	}
	return out, err
}

// balancer returns the addresses that a load balancer has got by now.
func balancer(ctx context.Context, reader client.Reader, key client.ObjectKey) ([]string, error) {
	service := &corev1.Service{}
	if err := reader.Get(ctx, key, service); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	var out []string
	for _, ingress := range service.Status.LoadBalancer.Ingress {
		for _, address := range []string{ingress.Hostname, ingress.IP} {
			if address != "" {
				out = append(out, address)
			}
		}
	}
	return out, nil
}

// nodes returns the addresses of the oldest nodes, which come and go least. An
// address from outside is better than one from inside.
func nodes(ctx context.Context, reader client.Reader) ([]string, error) {
	list := &corev1.NodeList{}
	if err := reader.List(ctx, list); err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b corev1.Node) int {
		if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		return slices.Compare([]byte(a.Name), []byte(b.Name))
	})
	var out []string
	for _, node := range list.Items[:min(maxNodes, len(list.Items))] {
		if address := nodeAddress(node); address != "" {
			out = append(out, address)
		}
	}
	return out, nil
}

// nodeAddress returns the best address of a node, empty when it has none.
func nodeAddress(node corev1.Node) string {
	for _, kind := range []corev1.NodeAddressType{corev1.NodeExternalIP, corev1.NodeExternalDNS, corev1.NodeInternalIP} {
		for _, address := range node.Status.Addresses {
			if address.Type == kind {
				return address.Address
			}
		}
	}
	return ""
}
