package clusterapi

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/hostentry"
)

// reconcile brings the entries for a Cluster's name up to date:
//  1. the Cluster itself is imported, or its entry updated, or it is held;
//  2. other entries for its name are of Clusters that were there before: see leave.
//
// Without a reading of the namespace, nothing is done: the entries stay.
func (c *Controller) reconcile(ctx context.Context, key types.NamespacedName) error {
	n := c.namespaces[key.Namespace]
	if n == nil {
		return nil // not this controller's to say anything of
	}
	view, entries := n.view(), c.entriesOf(key)
	if view.store == nil {
		c.release(key)
		if !view.unserved {
			return nil
		}
		var errs []error
		for _, entry := range entries {
			errs = append(errs, c.keep(ctx, entry, ReasonClusterAPIRemoved))
		}
		return errors.Join(errs...)
	}
	var source *clusterv1.Cluster
	if object, ok, _ := view.store.GetByKey(key.String()); ok {
		source = object.(*clusterv1.Cluster)
	} else {
		c.release(key)
	}
	var errs []error
	taken := ""
	if source != nil {
		var err error
		if taken, err = c.take(ctx, source, view); err != nil {
			errs = append(errs, err)
		}
	}
	for _, entry := range entries {
		if entry.Name == taken || source != nil && entry.Spec.SourceRef.UID == string(source.UID) {
			continue // a second one of a Cluster is a person's
		}
		errs = append(errs, c.leave(ctx, n, key, entry))
	}
	return errors.Join(errs...)
}

// boundTo returns the entry of a Cluster; nil for none.
func (c *Controller) boundTo(source *clusterv1.Cluster) *v1beta1.Cluster {
	for _, entry := range c.entriesOf(keyOf(source)) {
		if entry.Spec.SourceRef.UID == string(source.UID) {
			return entry
		}
	}
	return nil
}

// take brings the entry of a Cluster up to date, and returns its name; empty when it has
// none.
func (c *Controller) take(ctx context.Context, source *clusterv1.Cluster, view view) (string, error) {
	key := keyOf(source)
	c.seen(source.UID)
	entry, chosen := c.boundTo(source), c.selected(source, view.labels)
	switch {
	case entry == nil && (!chosen || moving(source) || source.DeletionTimestamp != nil):
		c.release(key)
		return "", nil
	case entry == nil && undecodable(source) != "":
		return "", c.stay(ctx, source, nil)
	case entry == nil:
		return c.enter(ctx, source, view)
	case moving(source):
		c.release(key)
		return entry.Name, c.keep(ctx, entry, ReasonMoved)
	case !chosen:
		c.release(key)
		return entry.Name, c.unselected(ctx, source, entry)
	case undecodable(source) != "":
		return entry.Name, c.stay(ctx, source, entry)
	}
	wanted, fault := c.contentOf(ctx, source, view.uid)
	if host := c.hostEntry(wanted.url); host != "" { // known only once the Cluster has an address
		wanted.url, fault = "", fmt.Sprintf("it is the host cluster, which is registered as %q: set the label %s=true on the Cluster", host, IgnoreLabel)
	}
	updated, err := c.update(ctx, entry, wanted.fill)
	return entry.Name, c.finish(ctx, wanted, updated, entry.Name, fault, err)
}

// enter makes the entry of a Cluster that has none, or holds the Cluster.
func (c *Controller) enter(ctx context.Context, source *clusterv1.Cluster, view view) (string, error) {
	name, invalid := c.nameOf(source)
	if invalid != "" {
		c.hold(ctx, source, hold{reason: HeldInvalidName, message: invalid})
		return "", nil
	}
	wanted, fault := c.contentOf(ctx, source, view.uid)
	if known := c.entryNamed(name); known != nil {
		if why := c.adoptable(known, wanted); why != "" {
			c.hold(ctx, source, hold{reason: HeldNameTaken, name: name, message: why})
			return "", nil
		}
		adopted, err := c.update(ctx, known, func(entry *v1beta1.Cluster) { wanted.bind(entry); wanted.fill(entry) })
		return name, c.finish(ctx, wanted, adopted, name, fault, err)
	}
	if rival := c.elder(source, name); rival != nil {
		c.hold(ctx, source, hold{reason: HeldNameTaken, name: name, message: fmt.Sprintf("the older Cluster %s gets the name %q: rename one of them, set a clusterAPI.nameTemplate with {namespace}, or the label %s=true on one of them", keyOf(rival), name, IgnoreLabel)})
		return "", nil
	}
	if host := c.hostEntry(wanted.url); host != "" {
		c.hold(ctx, source, hold{reason: HeldHostCluster, name: name, message: fmt.Sprintf("it is the host cluster, which is registered as %q: set the label %s=true on the Cluster", host, IgnoreLabel)})
		return "", nil
	}
	made, err := c.Clusters.Create(ctx, wanted.fresh(name), metav1.CreateOptions{FieldManager: Manager})
	return name, c.finish(ctx, wanted, made, name, fault, err)
}

// finish reports of a Cluster in its entry, which has been written, and settles what is left.
func (c *Controller) finish(ctx context.Context, wanted content, entry *v1beta1.Cluster, name, fault string, err error) error {
	if err == nil {
		_, err = c.write(ctx, entry, reportOf(wanted.source, entry))
		if why := wanted.filling.withheld(entry); why != "" {
			fault = strings.TrimPrefix(fault+"; "+why, "; ")
		}
	}
	return c.settle(ctx, wanted.source, name, fault, err)
}

// nameOf returns the name of the entry of a Cluster, or why there is none, for people.
func (c *Controller) nameOf(source *clusterv1.Cluster) (name, invalid string) {
	name, err := c.Name.Name(source.Namespace, source.Name)
	if err != nil {
		invalid = err.Error() + ": set another clusterAPI.nameTemplate, or the label " + IgnoreLabel + "=true on the Cluster"
	}
	return name, invalid
}

// settle holds a Cluster that the registry refuses, or that something of can't be used.
func (c *Controller) settle(ctx context.Context, source *clusterv1.Cluster, name, fault string, err error) error {
	switch {
	case apierrors.IsInvalid(err):
		c.hold(ctx, source, hold{reason: HeldRefused, name: name, message: err.Error()})
		return nil
	case err != nil:
		return err
	case fault != "":
		c.hold(ctx, source, hold{reason: HeldIncomplete, name: name, message: fault})
		return nil
	}
	c.release(keyOf(source))
	return nil
}

// adoptable returns why an entry with the name for a Cluster is not made that one's entry;
// empty when it may be: a person asks for it, or the Cluster was moved and is back.
func (c *Controller) adoptable(entry *v1beta1.Cluster, wanted content) string {
	source := wanted.source
	adopt := fmt.Sprintf("kubectl annotate --overwrite clusters.clusterregistry.k8s.io %s %s=%s", entry.Name, AdoptAnnotation, source.UID)
	key, ours := sourceOf(entry)
	asked := entry.Annotations[AdoptAnnotation] == string(source.UID)
	switch manager := managerOf(entry); {
	case manager != "" && manager != Manager:
		return fmt.Sprintf("cluster %[1]q exists, and %[2]q manages it: delete that one, or set another clusterAPI.nameTemplate, or the label %[3]s=true on the Cluster", entry.Name, manager, IgnoreLabel)
	case ours && c.present(key, entry.Spec.SourceRef.UID):
		return fmt.Sprintf("cluster %q is the entry of the Cluster %s: rename one of them, set a clusterAPI.nameTemplate with {namespace}, or the label %s=true on one of them", entry.Name, key, IgnoreLabel)
	case asked, ours && key == keyOf(source) && isBack(entry, wanted.url):
		return ""
	case ours:
		return fmt.Sprintf("cluster %q is the entry of the Cluster %s with the UID %s, which is gone: if it is for the same cluster, %s; else delete it", entry.Name, key, entry.Spec.SourceRef.UID, adopt)
	}
	return fmt.Sprintf("cluster %q exists, and was not made by this controller: if it is for the same cluster, %s; else delete it, set another clusterAPI.nameTemplate, or the label %s=true on the Cluster", entry.Name, adopt, IgnoreLabel)
}

// isBack reports whether the entry of a Cluster that was moved away is for the cluster at
// an address: who has joined it there has read that cluster's id, and it is the entry's.
func isBack(entry *v1beta1.Cluster, address string) bool {
	c := meta.FindStatusCondition(statusOf(entry).Conditions, v1beta1.ConditionIdentityVerified)
	return entry.Annotations[KeepAnnotation] == ReasonMoved && entry.Spec.ID != "" && address != "" &&
		c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == entry.Generation &&
		slices.ContainsFunc(entry.Spec.Endpoints, func(e v1beta1.Endpoint) bool { return e.Name == endpointName && e.URL == address })
}

// present reports whether a Cluster is known with a UID.
func (c *Controller) present(key types.NamespacedName, uid string) bool {
	n := c.namespaces[key.Namespace]
	if n == nil {
		return false
	}
	store := n.view().store
	if store == nil {
		return false
	}
	source, ok, _ := store.GetByKey(key.String())
	return ok && string(source.(*clusterv1.Cluster).UID) == uid
}

// elder returns another Cluster without an entry that gets a name before this one does.
func (c *Controller) elder(source *clusterv1.Cluster, name string) *clusterv1.Cluster {
	for _, n := range c.namespaces {
		view := n.view()
		for _, other := range view.named(name) {
			if other.UID == source.UID {
				continue
			}
			if order := other.CreationTimestamp.Compare(source.CreationTimestamp.Time); order > 0 || order == 0 && other.UID > source.UID {
				continue
			}
			if other.DeletionTimestamp == nil && !moving(other) && c.selected(other, view.labels) && c.boundTo(other) == nil {
				return other
			}
		}
	}
	return nil
}

// hostEntry returns the name of the host cluster's entry if an address is one of its
// endpoints.
func (c *Controller) hostEntry(address string) string {
	if address == "" {
		return ""
	}
	for _, entry := range sorted(c.entries.ByIndex(byManager, hostentry.Manager)) {
		for _, endpoint := range entry.Spec.Endpoints {
			if hostOf(endpoint.URL) == hostOf(address) {
				return entry.Name
			}
		}
	}
	return ""
}

// hostOf returns the host and port of an https URL, in one form.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	port := u.Port()
	if port == "" {
		port = "443"
	}
	return strings.ToLower(u.Hostname()) + ":" + port
}
