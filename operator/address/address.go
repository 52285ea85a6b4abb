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

// nodes returns the addresses of the oldest nodes, which come and go least: those first that
// clients reach. An address from outside is better than one from inside.
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
	nodes := slices.DeleteFunc(list.Items, func(node corev1.Node) bool { return nodeAddress(node) == "" })
	oldest := nodes[:min(maxNodes, len(nodes))]
	if slices.IndexFunc(oldest, serves) < 0 {
		if i := slices.IndexFunc(nodes, serves); i >= 0 { // clients are sent there
			oldest[len(oldest)-1] = nodes[i]
		}
	}
	slices.SortStableFunc(oldest, func(a, b corev1.Node) int {
		switch {
		case serves(a) == serves(b):
			return 0
		case serves(a):
			return -1
		}
		return 1
	})
	var out []string
	for _, node := range oldest {
		out = append(out, nodeAddress(node))
	}
	return out, nil
}

// serves reports whether a node can be expected to forward what comes to its ports: kubelet
// says that it is ready, or has said nothing yet, and it is not being deleted.
func serves(node corev1.Node) bool {
	i := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	return node.DeletionTimestamp == nil && (i < 0 || node.Status.Conditions[i].Status == corev1.ConditionTrue)
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
