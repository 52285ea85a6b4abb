package clusterapi

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/clusterregistry/operator/apis/clusterregistry/equality"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/hostentry"
	"github.com/clusterregistry/operator/internal/controlplane"
)

const (
	// endpointName is the endpoint that is this package's; others in the entry stay.
	endpointName = "cluster-api"
	sourceKind   = "Cluster"
	// maxCA bounds what is read of a ConfigMap, in bytes: the registry takes no more.
	maxCA = 64 << 10

	bySource  = "source"
	byManager = "manager"
)

func indexBySource(object any) ([]string, error) {
	if entry, ok := object.(*v1beta1.Cluster); ok {
		if key, ours := sourceOf(entry); ours {
			return []string{key.String()}, nil
		}
	}
	return nil, nil
}

// indexByManager finds the entries of the controller's functions without a walk over all.
func indexByManager(object any) ([]string, error) {
	if entry, ok := object.(*v1beta1.Cluster); ok {
		if name := managerOf(entry); name == Manager || name == hostentry.Manager {
			return []string{name}, nil
		}
	}
	return nil, nil
}

func managerOf(entry *v1beta1.Cluster) string {
	if entry.Spec.Manager == nil {
		return ""
	}
	return entry.Spec.Manager.Name
}

// sourceOf returns which Cluster an entry is for, and whether it is this package's.
func sourceOf(entry *v1beta1.Cluster) (types.NamespacedName, bool) {
	ref := entry.Spec.SourceRef
	if managerOf(entry) != Manager || ref == nil || ref.Kind != sourceKind || !strings.HasPrefix(ref.APIVersion, clusterv1.GroupVersion.Group+"/") {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, true
}

// trimEntry drops what no decision follows from before an entry is kept in memory: anyone
// who can write one can make these parts large.
func trimEntry(object any) (any, error) {
	if entry, ok := object.(*v1beta1.Cluster); ok {
		entry.Spec.Taints = nil
		if _, ours := sourceOf(entry); !ours {
			entry.Spec.Access, entry.ManagedFields, entry.Status = nil, nil, nil
		}
		trimAccess(entry)
	}
	return object, nil
}

// entriesOf returns the entries for a Cluster's name, the oldest first: more than one when
// a person has made another.
func (c *Controller) entriesOf(key types.NamespacedName) []*v1beta1.Cluster {
	return sorted(c.entries.ByIndex(bySource, key.String()))
}

// ours returns all entries of this package.
func (c *Controller) ours() []*v1beta1.Cluster {
	return sorted(c.entries.ByIndex(byManager, Manager))
}

func sorted(objects []any, _ error) (out []*v1beta1.Cluster) {
	for _, object := range objects {
		out = append(out, object.(*v1beta1.Cluster))
	}
	slices.SortFunc(out, func(a, b *v1beta1.Cluster) int {
		if order := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); order != 0 {
			return order
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out
}

// entryNamed returns the entry with a name; nil for none.
func (c *Controller) entryNamed(name string) *v1beta1.Cluster {
	object, ok, _ := c.entries.GetByKey(name)
	if !ok {
		return nil
	}
	return object.(*v1beta1.Cluster)
}

// content is what a Cluster says for the spec and metadata of its entry.
type content struct {
	source *clusterv1.Cluster
	// namespace is the UID of the Cluster's namespace.
	namespace types.UID
	labels    map[string]string
	// url is empty while the Cluster has no address.
	url string
	// ca is nil when no ConfigMap says it; caKnown is false when one does that can't be
	// read now.
	ca      []byte
	caKnown bool
	// filling is what the Cluster's namespace was granted.
	filling filling
}

// contentOf returns what a Cluster says, and what of it can't be used, for people.
func (c *Controller) contentOf(ctx context.Context, source *clusterv1.Cluster, namespace types.UID) (content, string) {
	out := content{source: source, namespace: namespace, labels: map[string]string{}}
	for key, value := range source.Labels {
		if c.Labels.Allows(key) {
			out.labels[key] = value
		}
	}
	var faults []string
	var err error
	if out.url, err = controlplane.URL(source.Spec.ControlPlaneEndpoint.Host, int64(source.Spec.ControlPlaneEndpoint.Port)); err != nil {
		faults = append(faults, err.Error())
	}
	if out.ca, err = c.authorities(ctx, source); err != nil {
		faults = append(faults, err.Error())
	}
	out.caKnown = err == nil
	out.filling = c.fillingOf(source)
	return out, strings.Join(faults, "; ")
}

// authorities returns the CA certificates in the ConfigMap that a Cluster names; nil when
// it names none.
func (c *Controller) authorities(ctx context.Context, source *clusterv1.Cluster) ([]byte, error) {
	name := source.Annotations[CAAnnotation]
	if name == "" {
		return nil, nil
	}
	found, err := c.Host.CoreV1().ConfigMaps(source.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("the ConfigMap of the annotation %s can't be read: %w", CAAnnotation, err)
	}
	rest := []byte(found.Data["ca.crt"])
	if len(rest) > maxCA {
		return nil, fmt.Errorf("ca.crt of the ConfigMap %q has more than %d bytes", name, maxCA)
	}
	var out bytes.Buffer
	for block, rest := pem.Decode(rest); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("ca.crt of the ConfigMap %q has a %s: put certificates there alone", name, strings.ToLower(block.Type))
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return nil, fmt.Errorf("ca.crt of the ConfigMap %q: %w", name, err)
		}
		if err := pem.Encode(&out, &pem.Block{Type: block.Type, Bytes: block.Bytes}); err != nil {
			return nil, err
		}
	}
	if out.Len() == 0 {
		return nil, fmt.Errorf("the ConfigMap %q has no certificate in PEM under ca.crt", name)
	}
	return out.Bytes(), nil
}

// fresh is a new entry of a name with the content.
func (d content) fresh(name string) *v1beta1.Cluster {
	entry := &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	d.bind(entry)
	d.fill(entry)
	return entry
}

// bind makes an entry one of the Cluster's.
func (d content) bind(entry *v1beta1.Cluster) {
	entry.Spec.Manager = &v1beta1.Manager{Name: Manager}
	entry.Spec.SourceRef = &v1beta1.SourceReference{
		APIVersion: clusterv1.GroupVersion.String(), Kind: sourceKind, Namespace: d.source.Namespace, Name: d.source.Name, UID: string(d.source.UID),
	}
	delete(entry.Annotations, AdoptAnnotation)
}

// fill brings an entry that is the Cluster's up to date. What others have added stays, and
// so does an address when the Cluster has none any more: clients still use it.
func (d content) fill(entry *v1beta1.Cluster) {
	mine := written(entry)
	if entry.Annotations == nil {
		entry.Annotations = map[string]string{}
	}
	entry.Annotations[NamespaceAnnotation] = string(d.namespace)
	if why := entry.Annotations[KeepAnnotation]; messages[why] != "" { // a person's own reason stays
		delete(entry.Annotations, KeepAnnotation)
	}
	for key := range entry.Labels {
		if _, ok := d.labels[key]; !ok && key != v1beta1.ClusterSetLabel && mine.Has(fieldpath.MakePathOrDie("metadata", "labels", key)) {
			delete(entry.Labels, key)
		}
	}
	if entry.Labels == nil && len(d.labels) > 0 {
		entry.Labels = map[string]string{}
	}
	maps.Copy(entry.Labels, d.labels)
	d.lead(entry, mine)
	d.filling.fillIn(entry, mine) // which depends on where the entry leads
}

// lead brings the endpoint of an entry up to date.
func (d content) lead(entry *v1beta1.Cluster, mine *fieldpath.Set) {
	at := slices.IndexFunc(entry.Spec.Endpoints, func(e v1beta1.Endpoint) bool { return e.Name == endpointName })
	if at < 0 && d.url != "" {
		entry.Spec.Endpoints = append(slices.Clip(entry.Spec.Endpoints), v1beta1.Endpoint{Name: endpointName})
		at = len(entry.Spec.Endpoints) - 1
	}
	if at < 0 {
		return
	}
	endpoint := &entry.Spec.Endpoints[at]
	if d.url != "" {
		endpoint.URL = d.url
	}
	switch {
	case len(d.ca) > 0:
		endpoint.CABundle = d.ca
	case d.caKnown && len(endpoint.CABundle) > 0 && mine.Has(caPath):
		endpoint.CABundle = nil
	}
}

var caPath = fieldpath.MakePathOrDie("spec", "endpoints", fieldpath.KeyByFields("name", endpointName), "caBundle")

// written returns the fields of an entry whose values this package has written last.
func written(entry *v1beta1.Cluster) *fieldpath.Set {
	return fieldsOf(entry, func(m metav1.ManagedFieldsEntry) bool {
		return m.Manager == Manager && m.Operation == metav1.ManagedFieldsOperationUpdate && m.Subresource == ""
	})
}

// fieldsOf returns the fields of those managers that a function chooses. What can't be
// read owns nothing.
func fieldsOf(entry *v1beta1.Cluster, chosen func(metav1.ManagedFieldsEntry) bool) *fieldpath.Set {
	out := &fieldpath.Set{}
	for _, m := range entry.ManagedFields {
		set := &fieldpath.Set{}
		if m.FieldsV1 == nil || !chosen(m) || set.FromJSON(m.FieldsV1.GetRawReader()) != nil {
			continue
		}
		out = out.Union(set)
	}
	return out
}

// update changes an entry as it is in the registry now, if that is still the one with the
// UID; it writes only when that changes something.
func (c *Controller) update(ctx context.Context, known *v1beta1.Cluster, change func(*v1beta1.Cluster)) (*v1beta1.Cluster, error) {
	wanted := known.DeepCopy()
	if change(wanted); same(known, wanted) {
		return known, nil
	}
	now, err := c.Clusters.Get(ctx, known.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if now.UID != known.UID || !sameSource(now, known) {
		return nil, apierrors.NewConflict(v1beta1.Resource("clusters"), known.Name, fmt.Errorf("it has been made again, or is for another object now"))
	}
	wanted = now.DeepCopy()
	if change(wanted); same(now, wanted) {
		return now, nil
	}
	return c.Clusters.Update(ctx, wanted, metav1.UpdateOptions{FieldManager: Manager})
}

func same(a, b *v1beta1.Cluster) bool {
	return equality.DeepEqual(a.Spec, b.Spec) && equality.DeepEqual(a.Labels, b.Labels) && equality.DeepEqual(a.Annotations, b.Annotations)
}

func sameSource(a, b *v1beta1.Cluster) bool {
	return managerOf(a) == managerOf(b) && equality.DeepEqual(a.Spec.SourceRef, b.Spec.SourceRef)
}
