package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

const (
	// inventory is the namespace of inventoryFile, in which the fleet is published.
	inventory     = "inventory"
	inventoryFile = "hack/demo/inventory.yaml"
	// inventoryModule has the CRD of ClusterProfiles.
	inventoryModule = "sigs.k8s.io/cluster-inventory-api"
)

// open installs the CRD of ClusterProfiles, as its module has it in the version that the
// product requires, and opens a namespace to the registry.
func open(ctx context.Context, s shell) error {
	crd, err := profileCRD(ctx)
	if err != nil {
		return err
	}
	s.say("Programs that know no registry read ClusterProfiles. Here is their CRD, and a namespace that is open to the registry by its label.")
	for _, args := range [][]string{
		{"kubectl", "apply", "-f", crd},
		{"kubectl", "apply", "-f", inventoryFile},
	} {
		if err := s.run(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// profileCRD returns the file with the CRD of ClusterProfiles. Called in the top directory of
// the repository, whose go.mod says which version it is; go.sum has its checksum.
func profileCRD(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, cmp.Or(os.Getenv("GO"), "go"), "mod", "download", "-json", inventoryModule) //nolint:gosec // as make calls it
	var module struct{ Dir, Error string }
	out, err := cmd.Output()
	if failed := json.Unmarshal(out, &module); err == nil {
		err = failed
	}
	if module.Error != "" {
		err = errors.New(module.Error)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w; ClusterProfiles are in that module", cmd, err)
	}
	file := filepath.Join(module.Dir, "config", "crd", "bases", "multicluster.x-k8s.io_clusterprofiles.yaml")
	_, err = os.Stat(file)
	return file, err
}

// publish shows the fleet as others read it.
func (f fleet) publish(ctx context.Context, s shell) error {
	s.say("The same clusters, for programs that read ClusterProfiles, such as Kueue and Argo CD.")
	wait := []string{"kubectl", "wait", "--namespace=" + inventory, "--for=create", "--timeout=2m", "clusterprofile/host"}
	for _, m := range f.members {
		wait = append(wait, "clusterprofile/"+m.name)
	}
	if err := s.run(ctx, wait...); err != nil {
		return err
	}
	return s.run(ctx, "kubectl", "get", "clusterprofiles", "-A")
}
