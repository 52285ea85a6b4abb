package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// followed is a transport that sends each request as a kubeconfig says at that time: where
// the registry is, which CAs to trust and how to sign in. The operator publishes that in a
// Secret, which a pod has as a file; client-go alone would read it once.
type followed struct {
	path string

	mutex     sync.Mutex
	read      []byte
	server    *url.URL
	transport http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (f *followed) RoundTrip(request *http.Request) (*http.Response, error) {
	server, transport, err := f.now()
	if err != nil {
		return nil, err
	}
	request = request.Clone(request.Context())
	request.Host, request.URL.Scheme, request.URL.Host = "", server.Scheme, server.Host
	request.URL.Path = strings.TrimSuffix(server.Path, "/") + request.URL.Path
	return transport.RoundTrip(request)
}

// now returns what the file says, or said last where it can't be read.
func (f *followed) now() (*url.URL, http.RoundTripper, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	content, err := os.ReadFile(f.path)
	if err == nil && (f.transport == nil || !bytes.Equal(content, f.read)) {
		err = f.use(content)
	}
	if f.transport == nil {
		return nil, nil, fmt.Errorf("read the kubeconfig %q: %w", f.path, err)
	}
	return f.server, f.transport, nil
}

// use takes over what a kubeconfig says.
func (f *followed) use(content []byte) error {
	config, err := clientcmd.RESTConfigFromKubeConfig(content)
	if err != nil {
		return err
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return err
	}
	f.read, f.server, f.transport = content, server, transport
	return nil
}
