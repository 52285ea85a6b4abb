package operand

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/internal/diagnose"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/history"
	"github.com/clusterregistry/operator/operator/render"
)

// The components of a registry that have pods, as the label of each names them.
const (
	ComponentEtcd       = render.ComponentEtcd
	ComponentServer     = render.ComponentServer
	ComponentSnapshot   = render.ComponentSnapshot
	ComponentController = render.ComponentController
	ComponentBackup     = render.ComponentBackup
	ComponentRestore    = render.ComponentRestore
)

// CAKey is the key of a Secret with CA certificates.
const CAKey = "ca.crt"

// HostCluster is the way to the host cluster. All fields are required.
type HostCluster struct {
	// Client reads the operator's own objects through a cache and writes; Live reads all
	// others of the host cluster.
	Client  client.Client
	Live    client.Reader
	Applier *apply.Applier
	Events  events.EventRecorder
}

// Objects are the objects of one registry in one reconcile.
type Objects struct {
	HostCluster
	// Registry has its defaults filled in. Its status is what this reconcile has found:
	// each stage writes the part that is its own.
	Registry *operatorv1alpha1.ClusterRegistry
	// Before is the status as it was read, with the inventory as it was written since.
	Before operatorv1alpha1.ClusterRegistryStatus
	// Secrets are those that this reconcile has read; nil where each is read whenever it is
	// needed.
	Secrets *Secrets
	// Now is when the reconcile began.
	Now time.Time
	// Terminating means that the registry's namespace is being deleted.
	Terminating bool
	// Rendered is what the registry is to consist of, nil until that is known.
	Rendered *render.Result

	frozen []frozen
}

// Installed reports whether the registry was complete once.
func (o *Objects) Installed() bool { return history.Installed(o.Registry) }

// Owner is the registry as its objects name it.
func (o *Objects) Owner() string { return o.Registry.Namespace + "/" + o.Registry.Name }

// Name returns the name of one of the registry's objects, from its suffix in
// internal/contract.
func (o *Objects) Name(suffix string) string { return o.Registry.Name + suffix }

// Key returns the key of one of the registry's objects.
func (o *Objects) Key(suffix string) client.ObjectKey {
	return client.ObjectKey{Namespace: o.Registry.Namespace, Name: o.Name(suffix)}
}

// Named returns the key of an object of the registry's namespace, whosever it is.
func (o *Objects) Named(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: o.Registry.Namespace, Name: name}
}

// Names lists objects for a person: some of them where there are many.
func Names(references []operatorv1alpha1.ObjectReference) string {
	var out []string
	for _, reference := range references {
		out = append(out, reference.String())
	}
	const most = 5
	if len(out) > most {
		out = append(out[:most], fmt.Sprintf("%d more", len(references)-most))
	}
	return strings.Join(out, ", ")
}

// Meta returns the metadata of an object that is not rendered from a manifest.
func (o *Objects) Meta(suffix, component string) metav1.ObjectMeta {
	labels := render.Labels(o.Registry)
	labels[operatorv1alpha1.LabelComponent] = component
	return metav1.ObjectMeta{Namespace: o.Registry.Namespace, Name: o.Name(suffix), Labels: labels}
}

// ServerName is the DNS name that the servers' certificate is valid for at least: that of
// their Service.
func (o *Objects) ServerName() string {
	return fmt.Sprintf("%s.%s.svc", o.Name(contract.ServerSuffix), o.Registry.Namespace)
}

// Diagnoser explains what is not ready.
func (o *Objects) Diagnoser() diagnose.Diagnoser {
	return diagnose.Diagnoser{Live: o.Live, Client: o.Client}
}

// Event emits an event about the registry, of a type of corev1. Of events with the same
// reason and action at the same state, the recorder keeps only the first.
func (o *Objects) Event(kind, reason, action, format string, args ...any) {
	if o.Terminating {
		return // the host cluster lets nothing be created there, not even an event
	}
	note := fmt.Sprintf(format, args...)
	const most = 1000 // an event's note ends at 1 KiB
	if len(note) > most {
		note = note[:most] + "..."
	}
	o.Events.Eventf(o.Registry, nil, kind, reason, action, "%s", note)
}

// frozen is why nothing may be changed any more: what ends it, and the condition of the part that
// has found it, if one has.
type frozen struct{ by, until string }
