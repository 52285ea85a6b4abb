// Command storage-provisioner gives the local cluster dynamic volumes: one
// folder per claim on the node that the scheduler chose, as a "local"
// PersistentVolume that only that node can mount.
//
// It runs as a DaemonSet. Each instance serves the claims of its own node, so
// making and removing a folder is a plain file operation, and a claim of a
// stopped node waits until the node returns, as it does with real local disks.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

const (
	// provisionerName is the StorageClass's provisioner field.
	provisionerName = "storage.clusterregistry.local/node-folder"
	// selectedNode is where the scheduler writes its choice
	// (k8s.io/component-helpers, storage/volume).
	selectedNode = "volume.kubernetes.io/selected-node"
)

// provisioner implements controller.Provisioner, Qualifier and DeletionGuard
// for one node.
type provisioner struct {
	node string
	root string
}

func (p provisioner) ShouldProvision(_ context.Context, claim *corev1.PersistentVolumeClaim) bool {
	return claim.Annotations[selectedNode] == p.node
}

func (p provisioner) ShouldDelete(_ context.Context, volume *corev1.PersistentVolume) bool {
	return hostname(volume) == p.node
}

func (p provisioner) Provision(_ context.Context, options controller.ProvisionOptions) (*corev1.PersistentVolume, controller.ProvisioningState, error) {
	if mode := options.PVC.Spec.VolumeMode; mode != nil && *mode == corev1.PersistentVolumeBlock {
		return nil, controller.ProvisioningFinished, errors.New("volumeMode Block is not offered here; use Filesystem")
	}
	for _, mode := range options.PVC.Spec.AccessModes {
		if mode != corev1.ReadWriteOnce && mode != corev1.ReadWriteOncePod {
			return nil, controller.ProvisioningFinished, fmt.Errorf("accessMode %s is not offered here: a volume lives on one node; use ReadWriteOnce", mode)
		}
	}
	folder := filepath.Join(p.root, options.PVName)
	if err := os.Mkdir(folder, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, controller.ProvisioningFinished, err
	}
	// Mkdir is subject to the umask; pods write under any user.
	if err := os.Chmod(folder, 0o777); err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: options.PVName},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: *options.StorageClass.ReclaimPolicy,
			AccessModes:                   options.PVC.Spec.AccessModes,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: options.PVC.Spec.Resources.Requests[corev1.ResourceStorage]},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: folder}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{p.node}}},
			}}}},
		},
	}, controller.ProvisioningFinished, nil
}

func (p provisioner) Delete(_ context.Context, volume *corev1.PersistentVolume) error {
	if volume.Spec.Local == nil || filepath.Dir(volume.Spec.Local.Path) != p.root {
		return &controller.IgnoredError{Reason: "the volume is not a folder under " + p.root}
	}
	return os.RemoveAll(volume.Spec.Local.Path)
}

// hostname returns the node that volume is bound to, or "".
func hostname(volume *corev1.PersistentVolume) string {
	if volume.Spec.NodeAffinity == nil || volume.Spec.NodeAffinity.Required == nil {
		return ""
	}
	for _, term := range volume.Spec.NodeAffinity.Required.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			if e.Key == corev1.LabelHostname && len(e.Values) == 1 {
				return e.Values[0]
			}
		}
	}
	return ""
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "storage-provisioner:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	p := provisioner{node: os.Getenv("NODE_NAME"), root: os.Getenv("VOLUMES")}
	if p.node == "" || p.root == "" {
		return errors.New("NODE_NAME and VOLUMES (the folder for volumes on the node) must be set")
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := (expander{client, p}).watch(ctx); err != nil {
		return err
	}
	// Every instance works alone: the node decides whose claim it is.
	controller.NewProvisionController(ctx, client, provisionerName, p,
		controller.LeaderElection(false), controller.MetricsPort(0)).Run(ctx)
	return nil
}
