package clusterregistry

import (
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/stage/controller"
)

// made are the objects that no manifest has.
func (s *scope) made() []operatorv1alpha1.ObjectReference {
	reference := func(kind, suffix string) operatorv1alpha1.ObjectReference {
		return operatorv1alpha1.ObjectReference{Kind: kind, Namespace: s.Registry.Namespace, Name: s.Registry.Name + suffix}
	}
	var out []operatorv1alpha1.ObjectReference
	if s.Registry.Spec.Etcd.External == nil {
		out = append(out, identity.Reference(s.Objects), reference("PersistentVolumeClaim", contract.SnapshotsSuffix))
	}
	if s.Registry.Spec.Mode == operatorv1alpha1.ModeIndependent {
		out = append(out, reference("Secret", contract.KubeconfigSuffix))
	}
	if !s.retraction.Complete() {
		out = append(out, controller.Lease(s.Objects))
	}
	return append(out, controller.Made(s.Objects)...)
}
