package framework

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"

	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
)

// Forward gives use an address on loopback that leads to a port of a pod, in any
// namespace.
func (e *Env) Forward(ctx context.Context, namespace, pod string, port int, use func(address string) error) error {
	transport, upgrader, err := spdy.RoundTripperFor(e.Config)
	if err != nil {
		return err
	}
	url := e.Kubernetes.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward").URL()
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ready := make(chan struct{})
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", port)}, ctx.Done(), ready, io.Discard, io.Discard)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case err := <-ended:
		return fmt.Errorf("forward a port to pod %s: %w", pod, err)
	case <-ctx.Done(): // asking for it may hang
		return ctx.Err()
	case <-ready:
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		return err
	}
	return use(fmt.Sprintf("127.0.0.1:%d", ports[0].Local))
}

// ServedSerial returns the serial number of the certificate that a pod of the
// test's namespace shows at a port.
func (e *Env) ServedSerial(ctx context.Context, pod string, port int) (serial string, err error) {
	err = e.Forward(ctx, e.Namespace, pod, port, func(address string) error {
		dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}} //nolint:gosec // it is only looked at
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		serial = conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.String()
		return conn.Close()
	})
	return serial, err
}
