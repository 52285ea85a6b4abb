// Package inventory decides what of a registry's objects stays, and what goes: where the registry
// no longer consists of it, and where the registry is deleted.
package inventory

import (
	"slices"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/trust"
)

// Goes returns the registration with the host, and all else that goes with a registry that is
// deleted, by whether its data goes, too. Secrets that cert-manager made are not in the
// inventory, but they go by the Certificates.
//
// What may be registered is looked for whether the inventory has it or not: a status
// may be lost, as in a restore from a backup, and the host must not be left with an
// API that no one serves.
func Goes(p pass.Pass, data bool, registrations []operatorv1alpha1.ObjectReference) (registration, rest []operatorv1alpha1.ObjectReference) {
	if p.Registry.Spec.Mode == operatorv1alpha1.ModeAggregated {
		registration = registrations
	}
	retained := map[operatorv1alpha1.ObjectReference]bool{}
	for _, reference := range retainable(p) {
		// Backups that stay may need keys of which this is the only copy.
		retained[reference] = !data || isKeys(p, reference) && p.Registry.Spec.DeletionPolicy != operatorv1alpha1.DeletionPolicyDelete
	}
	for _, reference := range p.Registry.Status.Inventory {
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
	if data {
		// A registry that never came as far as its etcd may have an older one's record,
		// which must not outlive the volumes: it would keep a new etcd from starting.
		if !slices.Contains(rest, identity.Reference(p.Objects)) {
			rest = append(rest, identity.Reference(p.Objects))
		}
		if !slices.Contains(rest, trust.GenerationsReference(p.Objects)) {
			rest = append(rest, trust.GenerationsReference(p.Objects))
		}
		// Another issuer may have taken the place of this CA, whose Certificate is
		// gone then; its key was kept for a return to it.
		for _, n := range p.Authorities.ServingGenerations() {
			rest = append(rest, operatorv1alpha1.ObjectReference{Kind: "Secret", Namespace: p.Registry.Namespace, Name: p.Name(contract.Generation(contract.ServingCASuffix, n))})
		}
	}
	return registration, rest
}

// retainable are snapshots and the objects, beside the claims, without which the
// data is of no use: who etcd's members are, whom they trust, and whom clients do.
func retainable(p pass.Pass) []operatorv1alpha1.ObjectReference {
	var out []operatorv1alpha1.ObjectReference
	for _, reference := range p.Registry.Status.Inventory {
		issues := reference.Kind == "Issuer" || (reference.Kind == "Certificate" || reference.Kind == "Secret") && contract.IsCA(reference.Name)
		records := reference == identity.Reference(p.Objects) || reference == trust.GenerationsReference(p.Objects)
		if issues || isKeys(p, reference) || records || reference.Kind == "PersistentVolumeClaim" {
			out = append(out, reference)
		}
	}
	return out
}
