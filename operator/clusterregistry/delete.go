package clusterregistry

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/metrics"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operation/membership"
	"github.com/clusterregistry/operator/operator/stage/apiservice"
	"github.com/clusterregistry/operator/operator/stage/restoring"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/verdict"
)

// delete takes a registry down: first its registration with the host, then the
// rest but for what is retained. The finalizer stays until all of it is gone, so
// that a registry of the same name finds the place free.
func (r *Reconciler) delete(ctx context.Context, s *scope) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(s.Registry, operatorv1alpha1.Finalizer) {
		return reconcile.Result{}, nil
	}
	restoring.Report(s.Pass) // when the record is gone, this says whose the claims are
	r.forget(client.ObjectKeyFromObject(s.Registry))
	waits, err := r.takeDown(ctx, s)
	if err != nil {
		waits = err.Error()
	}
	// After what may hurt the host cluster, whatever becomes of it.
	all, failed := r.backupKind.Settle(ctx, r.HostCluster, client.ObjectKeyFromObject(s.Registry), s.Deleting())
	if failed != nil && waits == "" {
		waits = failed.Error()
	}
	err = errors.Join(err, failed)
	gap := s.saving().Gap(all)
	if failed == nil {
		s.saving().TellGap(gap)
	}
	if waits == "" {
		s.disown(ctx)
		return reconcile.Result{}, client.IgnoreNotFound(r.patchFinalizers(ctx, s, controllerutil.RemoveFinalizer))
	}
	conditions := s.Registry.Status.DeepCopy().Conditions[:0]
	progressing, available, ready := s.progressing(nil), s.availableCondition(), s.ready(nil)
	progressing.Message += ": " + waits
	if gap != "" {
		progressing.Message += "; " + gap
	}
	if writeErr := r.writeStatus(ctx, s, append(conditions, progressing, available, ready)); writeErr != nil {
		return reconcile.Result{}, errors.Join(err, client.IgnoreNotFound(writeErr))
	}
	return reconcile.Result{RequeueAfter: verdict.Soon}, err
}

// saveFirst has a registry that is being deleted run on, as if it were not, until its last
// backup is verified, and records that before anything goes.
func (r *Reconciler) saveFirst(ctx context.Context, s *scope) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(s.Registry, operatorv1alpha1.Finalizer) {
		return reconcile.Result{}, nil
	}
	s.savingFirst = true
	r.run(ctx, s)
	s.available = r.available(ctx, s)
	return r.report(ctx, s)
}

// forget drops what the operator holds in memory of a registry that goes.
func (r *Reconciler) forget(key client.ObjectKey) {
	metrics.Delete(key)
	r.outages.End(key)
	r.revisions.Forget(key.String())
	r.comparisons.Forget(key.String())
	r.silences.Forget(key.String())
}

// takeDown returns what it waits for, nothing when all is gone.
func (r *Reconciler) takeDown(ctx context.Context, s *scope) (string, error) {
	registration, rest := s.toDelete(r.registrations())
	if left, err := r.deleteAll(ctx, registration, s.Owner()); err != nil || len(left) > 0 {
		return "waiting for " + operand.Names(left) + " to be deleted", err
	}
	if s.Registry.Spec.Mode == operatorv1alpha1.ModeAggregated && len(registration) > 0 {
		// As long as the host cluster lists an API without a backend, deletions of
		// namespaces fail.
		served, err := r.groupServed(ctx, registration)
		if err != nil || served {
			return "waiting for kube-apiserver to stop listing " + apiservice.Group + " in discovery", err
		}
	}
	if err := s.releaseVolumes(ctx); err != nil {
		return "", err
	}
	left, err := r.deleteAll(ctx, rest, s.Owner())
	if err != nil || len(left) > 0 {
		return "waiting for " + operand.Names(left) + " to be deleted", err
	}
	for _, component := range []string{operand.ComponentController, operand.ComponentServer, operand.ComponentEtcd, operand.ComponentSnapshot, operand.ComponentBackup, operand.ComponentRestore} {
		pods, err := s.Pods(ctx, component)
		if err != nil {
			return "", err
		}
		if len(pods) > 0 {
			return fmt.Sprintf("waiting for pod %s to terminate", pods[0].Name), nil
		}
	}
	if !s.saving().DropsData() {
		return "", nil
	}
	return r.deleteClaims(ctx, s)
}

// releaseVolumes gives the old volumes of replaced etcd members their reclaim policies back
// when the data goes with the registry. Which they are is in the record of etcd's identity,
// which goes next.
func (s *scope) releaseVolumes(ctx context.Context) error {
	if !s.saving().DropsData() || s.Identity == nil || s.Identity.Record == nil {
		return nil
	}
	for _, volume := range s.Identity.Record.Kept {
		if _, err := membership.Release(ctx, s.Objects, s.Identity.Record, volume); err != nil {
			return err
		}
	}
	return nil
}

// toDelete returns the registration with the host, and all else that goes with
// the registry under its policy. Secrets that cert-manager made are not in the
// inventory, but they go by the Certificates.
//
// What may be registered is looked for whether the inventory has it or not: a status
// may be lost, as in a restore from a backup, and the host must not be left with an
// API that no one serves.
func (s *scope) toDelete(registrations []operatorv1alpha1.ObjectReference) (registration, rest []operatorv1alpha1.ObjectReference) {
	if s.Registry.Spec.Mode == operatorv1alpha1.ModeAggregated {
		registration = registrations
	}
	retained := map[operatorv1alpha1.ObjectReference]bool{}
	for _, reference := range s.retainable() {
		// Backups that stay may need keys of which this is the only copy.
		retained[reference] = !s.saving().DropsData() || s.isKeys(reference) && s.Registry.Spec.DeletionPolicy != operatorv1alpha1.DeletionPolicyDelete
	}
	for _, reference := range s.Registry.Status.Inventory {
		switch {
		case retained[reference]:
		case reference.Kind == "APIService":
			if !slices.Contains(registration, reference) {
				registration = append(registration, reference)
			}
		default:
			rest = append(rest, reference)
			if reference.Kind == "Certificate" {
				rest = append(rest, operatorv1alpha1.ObjectReference{Kind: "Secret", Namespace: reference.Namespace, Name: reference.Name})
			}
		}
	}
	if s.saving().DropsData() {
		// A registry that never came as far as its etcd may have an older one's record,
		// which must not outlive the volumes: it would keep a new etcd from starting.
		if !slices.Contains(rest, identity.Reference(s.Objects)) {
			rest = append(rest, identity.Reference(s.Objects))
		}
		if !slices.Contains(rest, trust.GenerationsReference(s.Objects)) {
			rest = append(rest, trust.GenerationsReference(s.Objects))
		}
		// Another issuer may have taken the place of this CA, whose Certificate is
		// gone then; its key was kept for a return to it.
		for _, n := range s.Authorities.ServingGenerations() {
			rest = append(rest, operatorv1alpha1.ObjectReference{Kind: "Secret", Namespace: s.Registry.Namespace, Name: s.Name(contract.Generation(contract.ServingCASuffix, n))})
		}
	}
	return registration, rest
}

// registrations are the APIServices of every version that any release serves.
func (r *Reconciler) registrations() []operatorv1alpha1.ObjectReference {
	var out []operatorv1alpha1.ObjectReference
	for _, release := range r.Releases {
		for _, version := range release.Serves {
			reference := operatorv1alpha1.ObjectReference{Group: apiregistrationv1.GroupName, Kind: "APIService", Name: version + "." + apiservice.Group}
			if !slices.Contains(out, reference) {
				out = append(out, reference)
			}
		}
	}
	return out
}

// retainable are snapshots and the objects, beside the claims, without which the
// data is of no use: who etcd's members are, whom they trust, and whom clients do.
func (s *scope) retainable() []operatorv1alpha1.ObjectReference {
	var out []operatorv1alpha1.ObjectReference
	for _, reference := range s.Registry.Status.Inventory {
		issues := reference.Kind == "Issuer" || (reference.Kind == "Certificate" || reference.Kind == "Secret") && contract.IsCA(reference.Name)
		records := reference == identity.Reference(s.Objects) || reference == trust.GenerationsReference(s.Objects)
		if issues || s.isKeys(reference) || records || reference.Kind == "PersistentVolumeClaim" {
			out = append(out, reference)
		}
	}
	return out
}

// deleteAll deletes objects of a registry and returns those that are still there.
func (r *Reconciler) deleteAll(ctx context.Context, references []operatorv1alpha1.ObjectReference, owner string) ([]operatorv1alpha1.ObjectReference, error) {
	var left []operatorv1alpha1.ObjectReference
	for _, reference := range references {
		gone, err := r.Applier.Delete(ctx, reference, owner)
		if err != nil {
			return nil, err
		}
		if !gone {
			left = append(left, reference)
		}
	}
	return left, nil
}

// groupServed reports whether the host still lists a version that was
// registered, unless someone else has registered it since.
func (r *Reconciler) groupServed(ctx context.Context, registration []operatorv1alpha1.ObjectReference) (bool, error) {
	groups, err := r.Discovery.ServerGroups()
	if err != nil {
		return true, fmt.Errorf("ask the host cluster which APIs it serves: %w", err)
	}
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			name := version.Version + "." + group.Name
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

// atOnceRead bounds how many claims are read at once: anyone in a namespace may make
// many.
const atOnceRead = 100

// deleteClaims deletes etcd's volumes, and waits until there is none.
func (r *Reconciler) deleteClaims(ctx context.Context, s *scope) (string, error) {
	claims := &corev1.PersistentVolumeClaimList{}
	err := r.Live.List(ctx, claims, client.InNamespace(s.Registry.Namespace), client.Limit(atOnceRead), client.MatchingLabels{
		operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy, operatorv1alpha1.LabelInstance: s.Registry.Name})
	if err != nil {
		return "", fmt.Errorf("list the claims of etcd: %w", err)
	}
	for i := range claims.Items {
		if err := r.Client.Delete(ctx, &claims.Items[i]); client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("delete PersistentVolumeClaim %s: %w", claims.Items[i].Name, err)
		}
	}
	if len(claims.Items) > 0 {
		return fmt.Sprintf("waiting for PersistentVolumeClaim %s to be deleted", claims.Items[0].Name), nil
	}
	return "", nil
}

// sweep removes what is left elsewhere of a registry that is gone, which happens
// when someone removed the finalizer or the CRD. What is in its namespace goes
// by owner references, or is retained. Every such object brings the registry
// here that it names, at the operator's start, too, and so does an APIService that
// leads to it.
func (r *Reconciler) sweep(ctx context.Context, key client.ObjectKey) error {
	r.forget(key)
	services := &apiregistrationv1.APIServiceList{}
	if err := r.Client.List(ctx, services); err != nil {
		return err
	}
	var left []operatorv1alpha1.ObjectReference
	for i := range services.Items {
		service := &services.Items[i]
		if owner := apply.Owner(service); owner == key.String() || owner == "" && apply.Backend(service) == key.String()+contract.ServerSuffix {
			left = append(left, operatorv1alpha1.ObjectReference{Group: apiregistrationv1.GroupName, Kind: "APIService", Name: service.Name})
		}
	}
	labels := client.MatchingLabels{operatorv1alpha1.LabelNamespace: key.Namespace, operatorv1alpha1.LabelInstance: key.Name}
	for _, kind := range []string{"ClusterRoleBinding", "RoleBinding"} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kind + "List"))
		if err := r.Client.List(ctx, list, labels); err != nil {
			return err
		}
		for i := range list.Items {
			left = append(left, operatorv1alpha1.ObjectReference{Group: rbacv1.GroupName, Kind: kind, Namespace: list.Items[i].Namespace, Name: list.Items[i].Name})
		}
	}
	_, err := r.deleteAll(ctx, left, key.String())
	_, failed := r.backupKind.Settle(ctx, r.HostCluster, key, fmt.Sprintf("there is no ClusterRegistry %s in this namespace", key.Name))
	return errors.Join(err, failed)
}
