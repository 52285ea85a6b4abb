package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// An undertaking is what that takes more than one step.
type undertaking struct {
	name string
	// from is the release that the registry begins with, by default the newest, and members is
	// how many its etcd has.
	from    string
	members int64
	// independent is true of one of a registry that its clients reach by an address of its own.
	independent bool
	// bare is true of one that begins without a store of backups.
	bare bool
	// steps is how many phases it enters at least, and by has the one that it is in, by default
	// that of the operation.
	steps int
	by    func(*world) string
	// begins has a person, or an accident, begin it, and is reports whether it is complete.
	begins func(*world)
	is     func(*world) bool
}

// undertakings are all that the operator knows.
var undertakings = slices.Concat(operations, changes)

// operations are those of which the status has the phase.
var operations = []undertaking{
	{name: "from one member to three", members: 1, steps: 3, begins: func(w *world) { w.members(3) }, is: have(3)},
	{name: "from three members to one", members: 3, steps: 5, begins: func(w *world) { w.members(1) }, is: have(1)},
	{name: "a member is replaced", members: 3, steps: 3, begins: func(w *world) { w.replaces(name(1)) }, is: replaced},
	{name: "a member is lost", members: 3, steps: 3, begins: func(w *world) { w.empties(1) }, is: have(3)},
	{name: "volumes of another class", members: 3, steps: 7, begins: func(w *world) {
		w.asks("volumes of another class", func(r *operatorv1alpha1.ClusterRegistry) {
			r.Spec.Etcd.Storage = &operatorv1alpha1.Storage{StorageClassName: "faster"}
		})
	}, is: func(w *world) bool {
		for _, claim := range w.host.list(claimKind, key.namespace) {
			if class, _, _ := unstructured.NestedString(claim.Object, "spec", "storageClassName"); class != "faster" && strings.HasPrefix(claim.name, "data-") {
				return false
			}
		}
		return have(3)(w)
	}},
	{name: "another CA of etcd", members: 3, steps: 6, begins: anotherCA, is: rotated("-etcd-ca")},
	{name: "another CA of one member", members: 1, steps: 6, begins: anotherCA, is: rotated("-etcd-ca")},
	{name: "another CA of the servers", members: 1, steps: 5, begins: func(w *world) {
		w.asks("another CA of the servers", func(r *operatorv1alpha1.ClusterRegistry) { r.Spec.TLS.Rotation.Serving = 2 })
	}, is: rotated("-serving-ca")},
	{name: "a key", members: 1, steps: 5, begins: func(w *world) {
		w.make("v1", "Secret", key.namespace, "keys", map[string]any{"data": map[string]any{"encryption.yaml": encryptionKeys}})
		w.asks("encryption", func(r *operatorv1alpha1.ClusterRegistry) {
			r.Spec.Server.Encryption = &operatorv1alpha1.Encryption{SecretRef: operatorv1alpha1.EncryptionSecretSelector{Name: "keys", Key: "encryption.yaml"}}
		})
	}, is: func(w *world) bool {
		in := w.registry().Status.Encryption
		return in != nil && in.Writes == "secretbox/one" && len(in.Reads) == 1
	}},
	{name: "an upgrade", from: "v0.1.0", members: 3, steps: 6, begins: upgrades, is: upgraded},
	{name: "an upgrade with one member", from: "v0.1.0", members: 1, steps: 6, begins: upgrades, is: upgraded},
	{name: "a defragmentation", members: 3, steps: 6, begins: func(w *world) {
		w.asks("a defragmentation", func(r *operatorv1alpha1.ClusterRegistry) {
			r.Annotations = map[string]string{operatorv1alpha1.AnnotationDefragment: time.Now().UTC().Format(time.RFC3339)}
		})
	}, is: defragmented},
	{name: "a backup", members: 1, steps: 3, begins: func(w *world) { w.backsUp("second") }, is: func(w *world) bool { return w.backedUp("second") }},
	{name: "a recovery with a member", members: 3, steps: 3, begins: func(w *world) { w.loses(2) }, is: recovered(3)},
	{name: "a recovery with a backup", members: 1, steps: 3, begins: func(w *world) { w.loses(1); w.saved = map[string]disk{} }, is: recovered(1)},
}

// defragmented reports whether all members were that a person has asked for, those that are new, or
// that a recovery has begun again with, included.
func defragmented(w *world) bool {
	r := w.registry()
	asked, err := time.Parse(time.RFC3339, r.Annotations[operatorv1alpha1.AnnotationDefragment])
	must(err)
	for _, m := range r.Status.Etcd.Members {
		if m.DefragmentedTime == nil || m.DefragmentedTime.Time.Before(asked) {
			return false
		}
	}
	for _, m := range w.etcd.last().members {
		if m.id < added && !w.etcd.defragmented[m.id] { // others are new
			return false
		}
	}
	return true
}

const encryptionKeys = "YXBpVmVyc2lvbjogYXBpc2VydmVyLmNvbmZpZy5rOHMuaW8vdjEKa2luZDogRW5jcnlwdGlvbkNvbmZpZ3VyYXRpb24KcmVzb3VyY2VzOgotIHJlc291cmNlczogW2NsdXN0ZXJzLmNsdXN0ZXJyZWdpc3RyeS5rOHMuaW9dCiAgcHJvdmlkZXJzOgogIC0gc2VjcmV0Ym94OgogICAgICBrZXlzOgogICAgICAtIG5hbWU6IG9uZQogICAgICAgIHNlY3JldDogTURFeU16UTFOamM0T1dGaVkyUmxaakF4TWpNME5UWTNPRGxoWW1Oa1pXWT0K"

func have(members int) func(*world) bool {
	return func(w *world) bool {
		all, serving := w.number()
		return all == members && serving == members
	}
}

func upgrades(w *world) {
	w.asks("an upgrade", func(r *operatorv1alpha1.ClusterRegistry) { r.Spec.Version = "v0.2.0" })
}

func upgraded(w *world) bool { return w.registry().Status.Version == "v0.2.0" }

func anotherCA(w *world) {
	w.asks("another CA of etcd", func(r *operatorv1alpha1.ClusterRegistry) { r.Spec.TLS.Rotation.Etcd = 2 })
}

// replaces has a person have another member take the place of one.
func (w *world) replaces(member string) {
	for _, m := range w.etcd.last().members {
		if m.name == member {
			w.asks("another member as "+member, func(r *operatorv1alpha1.ClusterRegistry) {
				metav1.SetMetaDataAnnotation(&r.ObjectMeta, operatorv1alpha1.AnnotationReplaceMember, fmt.Sprintf("%x", m.id))
			})
		}
	}
}

func replaced(w *world) bool {
	asked := w.registry().Annotations[operatorv1alpha1.AnnotationReplaceMember]
	for _, m := range w.etcd.last().members {
		if fmt.Sprintf("%x", m.id) == asked {
			return false
		}
	}
	return have(3)(w)
}

// rotated reports whether the first CA signs nothing any more.
func rotated(suffix string) func(*world) bool {
	return func(w *world) bool {
		return w.host.objects[id{certificateKind, key.namespace, key.name + suffix}] == nil && w.host.objects[id{certificateKind, key.namespace, key.name + suffix + "-2"}] != nil
	}
}

// recovered reports whether etcd was recovered, and has so many members again.
func recovered(members int) func(*world) bool {
	return func(w *world) bool { return w.registry().Status.Recovered != nil && have(members)(w) }
}

var backupKind = schema.GroupKind{Group: operatorv1alpha1.GroupName, Kind: "ClusterRegistryBackup"}

// stores has the registry have a store of backups, and some be taken on a schedule.
func (w *world) stores(schedule string) {
	w.make("v1", "PersistentVolumeClaim", key.namespace, "backups", map[string]any{"spec": map[string]any{}})
	w.asks("a store of backups", func(r *operatorv1alpha1.ClusterRegistry) {
		r.Spec.Backup = &operatorv1alpha1.Backup{Schedule: schedule, Verify: operatorv1alpha1.VerifyAlways, Retention: operatorv1alpha1.BackupRetention{KeepLast: 7},
			Store: operatorv1alpha1.BackupStore{PersistentVolumeClaim: &operatorv1alpha1.VolumeStore{ClaimName: "backups"}}}
	})
}

// backsUp has a person ask for a backup.
func (w *world) backsUp(name string) {
	w.note("a person asks for backup %s", name)
	w.make(operatorv1alpha1.SchemeGroupVersion.String(), backupKind.Kind, key.namespace, name, map[string]any{"spec": map[string]any{"registryRef": map[string]any{"name": key.name}, "deletionPolicy": "Retain"}})
}

// backedUp reports whether there is that backup, verified.
func (w *world) backedUp(name string) bool {
	phase, _, _ := unstructured.NestedString(w.host.objects[id{backupKind, key.namespace, name}].Object, "status", "phase")
	return phase == string(operatorv1alpha1.BackupCompleted)
}
