package operandtest

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Mapped knows which kinds there are, as the client that is a fake does not.
type Mapped struct {
	client.Client
	// Kinds are those that there are.
	Kinds meta.RESTMapper
}

// RESTMapper returns the kinds.
func (m Mapped) RESTMapper() meta.RESTMapper { return m.Kinds }
