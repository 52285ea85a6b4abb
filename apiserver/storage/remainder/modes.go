package remainder

import (
	"slices"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// modes are the interactive modes other than the default, by the name of the access.
type modes map[string]clusterregistry.InteractiveMode

// takeModes empties all modes of a cluster that is to be stored, and returns those
// that have to be stored beside it. It shares nothing that it changes.
func takeModes(cluster *clusterregistry.Cluster) modes {
	taken, copied := modes{}, false
	for i, access := range cluster.Spec.Access {
		if access.Exec == nil || access.Exec.InteractiveMode == "" {
			continue
		}
		if access.Exec.InteractiveMode != clusterregistry.InteractiveIfAvailable {
			taken[access.Name] = access.Exec.InteractiveMode
		}
		if !copied {
			cluster.Spec.Access, copied = slices.Clone(cluster.Spec.Access), true
		}
		exec := *access.Exec
		exec.InteractiveMode = ""
		cluster.Spec.Access[i].Exec = &exec
	}
	return taken
}

// addTo gives each program of a cluster that was read its mode: what is stored with
// it, as a later release may do, else what is stored beside it, else the default.
// Modes of access that a server of v0.3.0 has removed are dropped.
func (m modes) addTo(cluster *clusterregistry.Cluster) {
	for _, access := range cluster.Spec.Access {
		if access.Exec == nil || access.Exec.InteractiveMode != "" && access.Exec.InteractiveMode != clusterregistry.InteractiveIfAvailable {
			continue
		}
		access.Exec.InteractiveMode = clusterregistry.InteractiveIfAvailable
		if mode, ok := m[access.Name]; ok {
			access.Exec.InteractiveMode = mode
		}
	}
}
