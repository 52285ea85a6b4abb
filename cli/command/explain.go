package command

import (
	"errors"
	"fmt"
	"net"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/clusterregistry/operator/internal/unregistered"
)

// Registry and host cluster, as Explain names them.
const (
	OfRegistry = "registry"
	OfHost     = "host cluster"
)

// Explain returns the error of a request to the registry or the host cluster with
// what to do about it.
func (e *Env) Explain(action, side string, err error) error {
	if err == nil {
		return nil
	}
	text := strings.TrimSpace(Plain(err.Error()))
	where := fmt.Sprintf("the %s (context %s)", side, Plain(e.Context()))
	var dial *net.OpError
	switch {
	case meta.IsNoMatchError(err), unregistered.Is(err):
		if side == OfHost {
			return fmt.Errorf("%s: %s has no ClusterRegistries: the operator is not installed there; name the context of the host cluster with --context", action, where)
		}
		return fmt.Errorf("%s: %s does not serve clusterregistry.k8s.io/v1beta1: name the context of a registry with --context; a registry of which no server runs is not served either, and \"kubectl registry status\" says so", action, where)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: %w; docs/reference/plugin.md lists the rights that each command needs", action, err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s: %s does not accept the credentials of the kubeconfig: sign in again, or name another context with --context", action, where)
	case apierrors.IsServiceUnavailable(err):
		return fmt.Errorf("%s: %s is not available: %s; ask it again later, or see \"kubectl registry status\"", action, where, text)
	case DeniedPlugin(text):
		return fmt.Errorf("%s: %s; the policy is in your kuberc", action, text)
	case errors.As(err, &dial):
		return fmt.Errorf("%s: %s can't be reached: %s; check the address in the kubeconfig and the network", action, where, text)
	}
	return fmt.Errorf("%s: %w", action, err)
}

// DeniedPlugin reports whether client-go has not run a credential plugin because of
// the kuberc's policy. Its errors have no type.
func DeniedPlugin(text string) bool {
	return strings.Contains(text, " not allowed: policy set to ") || strings.Contains(text, "credential plugin allowlist")
}
