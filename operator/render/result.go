package render

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// root is the directory of the embedded manifests, and of them in memory.
const root = "registry"

// Stage is a step of an installation. Its objects are applied together, when the
// stage before is complete.
type Stage string

// The stages, in their order.
const (
	// StageCertificates is CAs, issuers and certificates, and the Service, whose
	// address is in one of them.
	StageCertificates Stage = "certificates"
	// StageEtcd is the trust bundle and etcd.
	StageEtcd Stage = "etcd"
	// StageSnapshot is the snapshot of etcd that is taken before an upgrade.
	StageSnapshot Stage = "snapshot"
	// StageBackup is the Job of a registry's backups, and what it needs.
	StageBackup Stage = "backup"
	// StageRestore is what it takes to begin with a backup: the Job that looks it up.
	StageRestore Stage = "restore"
	// StageServer is the API servers and their permissions.
	StageServer Stage = "server"
	// StageController is the controller and its permissions, of a release that has one
	// and a registry that asks for one of its functions.
	StageController Stage = "controller"
	// StageEndpoint is the registration with the host.
	StageEndpoint Stage = "endpoint"
)

// Result is a rendered registry.
type Result struct {
	// Stages are the objects, by stage. Within one, what others refer to is first.
	Stages map[Stage][]*unstructured.Unstructured

	lacks map[*unstructured.Unstructured]string
}

// Objects returns all objects, in the order of the stages.
func (r *Result) Objects() []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, stage := range []Stage{StageRestore, StageCertificates, StageEtcd, StageSnapshot, StageBackup, StageServer, StageController, StageEndpoint} {
		out = append(out, r.Stages[stage]...)
	}
	return out
}
