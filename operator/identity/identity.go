// Package identity keeps the record of who a registry's own etcd is (etcd.Record) in the
// ConfigMap <name>-etcd-identity. It outlives the registry together with the data.
package identity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/uuid"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/operand"
)

// Store is the record of one registry, and the way to change it.
type Store struct {
	objects *operand.Objects
	// Record is what is recorded, nil when nothing is. Nothing changes it but Write.
	Record *etcd.Record
	// Err says why the record can't be read.
	Err error
	// unmarked means that the ConfigMap has lost labels by which the operator knows it, or
	// the annotation that retains it.
	unmarked bool
	// made is when the record that was read was first written.
	made time.Time
	// version is the resource version of what was read or written last, empty where there is
	// nothing: what someone else has written since is not overwritten.
	version string
}

// New returns the store of a registry without a record, as with an external etcd.
func New(objects *operand.Objects) *Store { return &Store{objects: objects} }

// Read reads the record of a registry.
func Read(ctx context.Context, objects *operand.Objects) *Store {
	s, stored := New(objects), &corev1.ConfigMap{}
	// Not from the cache: what is behind, or lost its labels, must not look like an
	// etcd that never was.
	err := objects.Live.Get(ctx, objects.Key(contract.IdentitySuffix), stored)
	if apierrors.IsNotFound(err) {
		return s
	}
	if s.Err = err; err != nil {
		return s
	}
	s.version, s.made = stored.ResourceVersion, stored.CreationTimestamp.Time
	if s.Record, err = etcd.ParseRecord(stored.Data); err != nil {
		s.Err = fmt.Errorf("ConfigMap %s, the record of etcd's identity, is damaged: %w", stored.Name, err)
		return s
	}
	s.unmarked = !marked(stored, meta(objects)) && apply.Belongs(stored, objects.Owner())
	return s
}

// Members returns the names of the members that have pods: as many as are recorded, and
// never fewer than members that have an ID, whatever a person has written there; or as many as
// the spec asks for where there is no record yet. With an external etcd, there are none.
func (s *Store) Members() []string {
	registry := s.objects.Registry
	switch {
	case registry.Spec.Etcd.External != nil:
		return nil
	case s.Record == nil:
		return s.names(registry.Spec.Etcd.Replicas)
	}
	members := s.Record.Replicas
	for i, name := range s.names(mostMembers) {
		if s.Record.Members[name] != "" {
			members = max(members, int32(i)+1) //nolint:gosec // G115: it is less than mostMembers
		}
	}
	return s.names(members)
}

// mostMembers is more than any etcd of a registry has.
const mostMembers = 9

// Certified returns the names of the members that certificates are to have: of those that
// there are, and of those that the spec asks for or that are being added, since a member is added
// only when its name is in them.
func (s *Store) Certified() []string {
	members := s.Members()
	wanted := s.objects.Registry.Spec.Etcd.Replicas
	if s.Record != nil {
		wanted = max(wanted, s.Record.Target)
	}
	if len(members) == 0 || len(members) >= int(wanted) {
		return members
	}
	return s.names(wanted)
}

// Endpoints returns the names of the members that the servers use.
func (s *Store) Endpoints() []string {
	members := s.Members()
	if s.Record == nil || len(members) == 0 {
		return members
	}
	return s.names(cmp.Or(s.Record.Endpoints, s.Record.Replicas))
}

// Voters returns the names of the members that have a vote and keep it, whether the servers use
// them or not: all that hold what is to be saved. Before etcd has formed, they are the members.
func (s *Store) Voters() []string {
	members := s.Members()
	if s.Record == nil || len(s.Record.Members) == 0 {
		return members
	}
	return slices.DeleteFunc(members, func(name string) bool {
		return s.Record.Members[name] == "" || name == s.Record.Joining || name == s.Record.Leaving
	})
}

// names returns the names of so many members, in the order of their ordinals.
func (s *Store) names(members int32) []string {
	var out []string
	for ordinal := range members {
		out = append(out, contract.EtcdMember(s.objects.Registry.Name, int(ordinal)))
	}
	return out
}

// Write records an etcd's identity, with the names of its members. It is made for good: the
// finalizer removes it when nothing is to be retained. It fails with a conflict where the
// record was changed since it was read, as by a person or by another leader, and with one that
// exists already where there was none.
func (s *Store) Write(ctx context.Context, record *etcd.Record) error {
	if len(record.Names) != int(record.Replicas) {
		named := *record
		named.Names = s.names(record.Replicas)
		record = &named
	}
	stored := &corev1.ConfigMap{ObjectMeta: meta(s.objects), Data: record.Data(s.Record)}
	stored.APIVersion, stored.Kind = "v1", "ConfigMap"
	object, err := operand.Unstructured(stored)
	if err != nil {
		return err
	}
	if s.version == "" {
		if s.version, err = s.create(ctx, object); err != nil {
			return err
		}
	}
	object.SetResourceVersion(s.version)
	err = s.objects.Apply(ctx, object)
	if notOurs := (*apply.NotOurs)(nil); errors.As(err, &notOurs) {
		return &unlabeled{notOurs, stored.Labels}
	}
	if err != nil {
		return err
	}
	s.Record, s.unmarked, s.version = record, false, s.objects.Applier.Version(object)
	return nil
}

// create makes the first record and returns its resource version. It is not applied: of two
// operators that find none, one would write over what the other has begun, such as a restore.
func (s *Store) create(ctx context.Context, object *unstructured.Unstructured) (string, error) {
	if err := s.objects.Enlist(ctx, object); err != nil {
		return "", err
	}
	created := object.DeepCopy()
	if err := s.objects.Client.Create(ctx, created, apply.FieldOwner); err != nil {
		return "", fmt.Errorf("create %s, the record of etcd's identity, which is read again: %w", apply.Reference(object), err)
	}
	return created.GetResourceVersion(), nil
}

// Remember records the newest revision of etcd, if there is a record and that is news.
func (s *Store) Remember(ctx context.Context, revision int64) error {
	if s.Err != nil || s.Record == nil {
		return s.Err
	}
	record, isNew := s.Record.Remember(revision, s.objects.Now)
	if !isNew {
		return nil
	}
	if err := s.Write(ctx, record); err != nil {
		return fmt.Errorf("record etcd's newest revision: %w", err)
	}
	return nil
}

// WriteRelease records the release whose servers write, or will. It does nothing where
// there is no record, as with an external etcd.
func (s *Store) WriteRelease(ctx context.Context, release string) error {
	if s.Record == nil || s.Record.Release == release {
		return nil
	}
	record := *s.Record
	record.Release = release
	return s.Write(ctx, &record)
}

// Lineage returns the ID of the data, by which its backups are known. It is recorded before
// it is returned, and once for all: two operators can't both do that, since the record is
// written only as it was read. It is empty where there is no etcd of its own that has formed.
func (s *Store) Lineage(ctx context.Context) (string, error) {
	if s.Err != nil {
		return "", s.Err
	}
	if s.Record == nil || s.Record.ClusterID == "" {
		return "", nil
	}
	if s.Record.Lineage == "" {
		record := *s.Record
		record.Lineage = string(uuid.NewUUID())
		if err := s.Write(ctx, &record); err != nil {
			return "", err
		}
	}
	return s.Record.Lineage, nil
}

// Adopt has a record in the inventory that an earlier registry of this name has left, which
// was never applied for this one, and restores its labels and annotations, and the names of
// its members where a person has removed them, before any pod needs them. It does nothing in a read-only reconcile.
func (s *Store) Adopt(ctx context.Context) error {
	switch inventory := s.objects.Registry.Status.Inventory; {
	case s.objects.ReadOnly():
		return nil
	case s.unmarked, len(s.Record.Names) == 0:
		return s.Write(ctx, s.Record)
	case slices.Contains(inventory, Reference(s.objects)):
		return nil
	default:
		return s.objects.WriteInventory(ctx, append(slices.Clone(inventory), Reference(s.objects)))
	}
}

// unlabeled is the error of a record that does not say that it is this registry's, as one
// that a person has restored from a backup. Deleting it is the one thing not to do.
type unlabeled struct {
	*apply.NotOurs
	// made are the labels of a record of this registry.
	made map[string]string
}

// Error says which labels to add.
func (e *unlabeled) Error() string {
	has := "does not have the labels by which the operator knows its objects"
	if e.Owner != "" {
		has = "has the labels of ClusterRegistry " + e.Owner
	}
	add := ""
	for _, label := range []string{operatorv1alpha1.LabelManagedBy, operatorv1alpha1.LabelNamespace, operatorv1alpha1.LabelInstance} {
		add += " " + label + "=" + e.made[label]
	}
	return fmt.Sprintf("%s, the record of etcd's identity, %s, as after it was restored by hand; never delete it: it keeps an empty etcd from taking the place of this one. If it is of this registry's etcd, label it: kubectl -n %s label --overwrite configmap %s%s",
		e.Object, has, e.Object.Namespace, e.Object.Name, add)
}

// Reference refers to the record of a registry.
func Reference(objects *operand.Objects) operatorv1alpha1.ObjectReference {
	return operatorv1alpha1.ObjectReference{Kind: "ConfigMap", Namespace: objects.Registry.Namespace, Name: objects.Name(contract.IdentitySuffix)}
}

// meta returns the metadata of the record.
func meta(objects *operand.Objects) metav1.ObjectMeta {
	meta := objects.Meta(contract.IdentitySuffix, operand.ComponentEtcd)
	meta.Annotations = map[string]string{operatorv1alpha1.AnnotationRetain: "true"}
	return meta
}

// marked reports whether a record has the labels and annotations that it was made with.
func marked(record *corev1.ConfigMap, made metav1.ObjectMeta) bool {
	return labels.SelectorFromSet(made.Labels).Matches(labels.Set(record.Labels)) &&
		labels.SelectorFromSet(made.Annotations).Matches(labels.Set(record.Annotations))
}
