package diagnose

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Diagnoser reads what explains a problem beside the object that has it. It is meant
// for when something is wrong, and reads nothing otherwise. What can't be read explains
// nothing: that is no problem of its own.
type Diagnoser struct {
	// Live reads events and CertificateRequests, which no cache has.
	Live client.Reader
	// Client reads PersistentVolumeClaims, through a cache if there is one.
	Client client.Reader
}
