package address

import (
	"context"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Port returns the port at which a Service is reached from outside, which is that of
// the nodes if it has one of those; 0 when there is none yet.
func Port(ctx context.Context, reader client.Reader, key client.ObjectKey) (int32, error) {
	service := &corev1.Service{}
	err := reader.Get(ctx, key, service)
	if apierrors.IsNotFound(err) || err == nil && len(service.Spec.Ports) == 0 {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if service.Spec.Type == corev1.ServiceTypeNodePort {
		return service.Spec.Ports[0].NodePort, nil
	}
	return service.Spec.Ports[0].Port, nil
}

// URL returns where clients reach a registry at an address, a name or an IP address.
func URL(address string, port int32) string {
	if port == 443 {
		return "https://" + bracketed(address)
	}
	return "https://" + net.JoinHostPort(address, strconv.Itoa(int(port)))
}

// bracketed writes an address as a URL wants it: one of IPv6 in brackets.
func bracketed(address string) string {
	if ip := net.ParseIP(address); ip != nil && ip.To4() == nil {
		return "[" + address + "]"
	}
	return address
}
