// Package removal takes a registry down that is deleted: first its registration with the host
// cluster, then the rest but for what is retained. What is left elsewhere of one that is gone is
// removed as well.
package removal

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/pages"
	"github.com/clusterregistry/operator/operator/inventory"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operation/membership"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/stage/apiservice"
	"github.com/clusterregistry/operator/operator/version"
)

// Removal is that of one registry, in one reconcile.
type Removal struct {
	pass.Pass
	// Discovery asks the host cluster what it serves.
	Discovery discovery.DiscoveryInterface
	// Releases are those that can run.
	Releases []version.Release
	// Data is true where the data goes with the registry.
	Data bool
}

// TakeDown deletes what goes with the registry, and returns what it waits for, nothing when all
// is gone.
func (r Removal) TakeDown(ctx context.Context) (string, error) {
	registration, rest := inventory.Goes(r.Pass, r.Data, r.registrations())
	if left, err := deleteAll(ctx, r.HostCluster, registration, r.Owner()); err != nil || len(left) > 0 {
		return "waiting for " + operand.Names(left) + " to be deleted", err
	}
	if r.Registry.Spec.Mode == operatorv1alpha1.ModeAggregated && len(registration) > 0 {
		// As long as the host cluster lists an API without a backend, deletions of
		// namespaces fail.
		served, err := r.groupServed(ctx, registration)
		if err != nil || served {
			return "waiting for kube-apiserver to stop listing " + apiservice.Group + " in discovery", err
		}
	}
	if err := r.releaseVolumes(ctx); err != nil {
		return "", err
	}
	left, err := deleteAll(ctx, r.HostCluster, rest, r.Owner())
	if err != nil || len(left) > 0 {
		return "waiting for " + operand.Names(left) + " to be deleted", err
	}
	for _, component := range []string{operand.ComponentController, operand.ComponentServer, operand.ComponentEtcd, operand.ComponentSnapshot, operand.ComponentBackup, operand.ComponentRestore} {
		pods, err := r.Pods(ctx, component)
		if err != nil {
			return "", err
		}
		if len(pods) > 0 {
			return fmt.Sprintf("waiting for pod %s to terminate", pods[0].Name), nil
		}
	}
	if !r.Data {
		return "", nil
	}
	return r.deleteClaims(ctx)
}

// releaseVolumes gives the old volumes of replaced etcd members their reclaim policies back
// when the data goes with the registry. Which they are is in the record of etcd's identity,
// which goes next.
func (r Removal) releaseVolumes(ctx context.Context) error {
	if !r.Data || r.Identity == nil || r.Identity.Record == nil {
		return nil
	}
	for _, volume := range r.Identity.Record.Kept {
		if _, err := membership.Release(ctx, r.Objects, r.Identity.Record, volume); err != nil {
			return err
		}
	}
	return nil
}

// registrations are the APIServices of every version that any release serves.
func (r Removal) registrations() []operatorv1alpha1.ObjectReference {
	var out []operatorv1alpha1.ObjectReference
	for _, served := range version.Served(r.Releases) {
		out = append(out, operatorv1alpha1.ObjectReference{Group: apiregistrationv1.GroupName, Kind: "APIService", Name: served + "." + apiservice.Group})
	}
	return out
}

// deleteAll deletes objects of a registry and returns those that are still there. One that can't
// be deleted keeps no other one: what lets the controller work elsewhere is among them.
func deleteAll(ctx context.Context, host operand.HostCluster, references []operatorv1alpha1.ObjectReference, owner string) ([]operatorv1alpha1.ObjectReference, error) {
	var left []operatorv1alpha1.ObjectReference
	var failed []error
	for _, reference := range references {
		gone, err := host.Applier.Delete(ctx, reference, owner)
		if err != nil {
			failed = append(failed, err)
		} else if !gone {
			left = append(left, reference)
		}
	}
	return left, errors.Join(failed...)
}

// groupServed reports whether the host still lists a version that was
// registered, unless someone else has registered it since.
func (r Removal) groupServed(ctx context.Context, registration []operatorv1alpha1.ObjectReference) (bool, error) {
	groups, err := r.Discovery.ServerGroups()
	if err != nil {
		return true, fmt.Errorf("ask the host cluster which APIs it serves: %w", err)
	}
	for _, group := range groups.Groups {
		for _, listed := range group.Versions {
			name := listed.Version + "." + group.Name
			if !slices.ContainsFunc(registration, func(reference operatorv1alpha1.ObjectReference) bool { return reference.Name == name }) {
				continue
			}
			// This registry's own is gone by now.
			err := r.Live.Get(ctx, client.ObjectKey{Name: name}, &apiregistrationv1.APIService{})
			if err != nil {
				return true, client.IgnoreNotFound(err)
			}
		}
	}
	return false, nil
}

// atOnceDeleted is about how many claims are deleted in one reconcile: anyone in a namespace may
// make many.
const atOnceDeleted = 100

// deleteClaims deletes etcd's volumes, and waits until there is none.
func (r Removal) deleteClaims(ctx context.Context) (string, error) {
	claims := &metav1.PartialObjectMetadataList{}
	claims.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaimList"))
	var names []string
	var failed error
	err := pages.Each(ctx, r.Live, claims, func(page *metav1.PartialObjectMetadataList) bool {
		for i := range page.Items {
			claim := &corev1.PersistentVolumeClaim{}
			claim.Namespace, claim.Name = page.Items[i].Namespace, page.Items[i].Name
			names = append(names, claim.Name)
			if err := r.Client.Delete(ctx, claim); client.IgnoreNotFound(err) != nil {
				failed = fmt.Errorf("delete PersistentVolumeClaim %s: %w", claim.Name, err)
				return false
			}
		}
		return len(names) < atOnceDeleted
	}, client.InNamespace(r.Registry.Namespace), client.MatchingLabels{
		operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy, operatorv1alpha1.LabelInstance: r.Registry.Name})
	switch {
	case err != nil:
		return "", fmt.Errorf("list the claims of etcd: %w", err)
	case failed != nil:
		return "", failed
	case len(names) > 0:
		return fmt.Sprintf("waiting for PersistentVolumeClaim %s to be deleted", names[0]), nil
	}
	return "", nil
}
