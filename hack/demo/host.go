package main

import (
	"encoding/base64"
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
)

// entry is a Cluster, filled with its address and its CA.
const entry = `# The host of the registry, from the kubeconfig that reaches it. How to sign in
# is not among it: the registry holds pointers, never credentials.
apiVersion: clusterregistry.k8s.io/v1alpha1
kind: Cluster
metadata:
  name: host
  labels: {region: here, tier: gold}
spec:
  kubernetesApiEndpoints:
    serverEndpoints:
    - serverAddress: %q
    caBundle: %s
`

// hostEntry returns the registry's entry for the cluster that config reaches: its
// address and its CA, nothing that lets anybody in.
func hostEntry(config *rest.Config) ([]byte, error) {
	loaded := rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(loaded); err != nil {
		return nil, fmt.Errorf("$KUBECONFIG: %w", err)
	}
	if len(loaded.CAData) == 0 {
		return nil, errors.New("$KUBECONFIG names no CA for its cluster, so there is none to register")
	}
	return fmt.Appendf(nil, entry, loaded.Host, base64.StdEncoding.EncodeToString(loaded.CAData)), nil
}
