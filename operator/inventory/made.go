package inventory

import (
	"slices"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/stage/controller"
	"github.com/clusterregistry/operator/operator/trust"
)

// made are the objects that no manifest has.
func made(p pass.Pass) []operatorv1alpha1.ObjectReference {
	reference := func(kind, suffix string) operatorv1alpha1.ObjectReference {
		return operatorv1alpha1.ObjectReference{Kind: kind, Namespace: p.Registry.Namespace, Name: p.Registry.Name + suffix}
	}
	var out []operatorv1alpha1.ObjectReference
	if p.Registry.Spec.Etcd.External == nil {
		out = append(out, identity.Reference(p.Objects), reference("PersistentVolumeClaim", contract.SnapshotsSuffix))
	}
	if p.Registry.Spec.Mode == operatorv1alpha1.ModeIndependent {
		out = append(out, reference("Secret", contract.KubeconfigSuffix))
	}
	out = append(out, trust.GenerationsReference(p.Objects))
	for _, reference := range p.Registry.Status.Inventory {
		// The Secret of a CA that is no longer in use goes after its Certificate, for which
		// cert-manager would make it again.
		certificate := operatorv1alpha1.ObjectReference{Group: certmanagerv1.SchemeGroupVersion.Group, Kind: certmanagerv1.CertificateKind, Namespace: reference.Namespace, Name: reference.Name}
		if reference.Kind == "Secret" && contract.IsCA(reference.Name) && slices.Contains(p.Registry.Status.Inventory, certificate) {
			out = append(out, reference)
		}
	}
	return append(out, controller.Made(p.Objects)...)
}
