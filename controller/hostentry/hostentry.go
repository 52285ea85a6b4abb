// Package hostentry registers the host cluster in its own registry: an entry with the
// UID of kube-system as its id, the address that clients use, its version, and how many
// nodes it has.
//
// An entry that is not this package's is never taken over: it belongs here when its
// manager is [Manager] and its id is the host cluster's.
package hostentry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	typed "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/internal/contract"
)

const (
	// Manager is spec.manager.name of the entry.
	Manager = "clusterregistry-controller"
	// endpointName is the endpoint that is this package's; others in the entry stay.
	endpointName = "host"
	// retry is the time until the next look after an error that may pass by itself.
	retry = 10 * time.Second
)

// Config is what a [Registrar] needs.
type Config struct {
	// Name is that of the entry.
	Name string
	// URL and CABundle are the host cluster's address and its CA, in PEM. Without a URL
	// both are taken from kube-public/cluster-info, if that is there.
	URL      string
	CABundle []byte
	// Address is the URL by which this program reaches the host cluster's API server.
	Address string
	// Host is the host cluster, and Clusters the registry.
	Host     kubernetes.Interface
	Clusters typed.ClusterInterface
	// Period is the time between two looks at the host cluster.
	Period time.Duration
	Clock  clock.Clock
	// Say is told how it goes.
	Say func(state contract.FunctionState, message string)
}

// Registrar keeps the entry of the host cluster.
type Registrar struct {
	Config
	published atomic.Pointer[v1beta1.Endpoint]
	// verify returns why an endpoint does not lead to the host cluster, or why the server
	// at another URL can't stand for it; see [handshake].
	verify func(ctx context.Context, endpoint *v1beta1.Endpoint, at string) error
}

// New returns a registrar that does nothing yet.
func New(config Config) *Registrar { return &Registrar{Config: config, verify: handshake} }

// Refusal is why the host cluster is not registered, for a person to resolve.
type Refusal struct{ message string }

func (r *Refusal) Error() string { return r.message }

// Own reports whether an endpoint is the one that this registrar has published: for
// that one alone the host cluster's own addresses may be dialed. Ranges of clients don't
// matter, any other change does.
func (r *Registrar) Own(cluster string, endpoint v1beta1.Endpoint) bool {
	published := r.published.Load()
	endpoint.ClientCIDRs = nil
	return published != nil && cluster == r.Name && reflect.DeepEqual(*published, endpoint)
}

// Run keeps the entry until ctx ends.
func (r *Registrar) Run(ctx context.Context) {
	for {
		refusal, wait := &Refusal{}, r.Period
		switch err := r.Sync(ctx); {
		case err == nil:
			r.Say(contract.FunctionRunning, "")
		case ctx.Err() != nil:
			return
		case errors.As(err, &refusal):
			r.Say(contract.FunctionRefused, refusal.message)
		default:
			r.Say(contract.FunctionFailing, err.Error())
			wait = min(retry, r.Period)
		}
		select {
		case <-ctx.Done():
			return
		case <-r.Clock.After(wait):
		}
	}
}

// Sync brings the entry up to date once. It writes only what has changed.
func (r *Registrar) Sync(ctx context.Context) error {
	system, err := r.Host.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read the UID of the host cluster's namespace kube-system: %w", err)
	}
	endpoint, err := r.endpoint(ctx)
	if err != nil {
		return err
	}
	id := string(system.UID)
	cluster, err := r.Clusters.Get(ctx, r.Name, metav1.GetOptions{})
	absent := apierrors.IsNotFound(err)
	if err != nil && !absent {
		return err
	}
	// Without an endpoint that leads here, the rest is still reported.
	endpoint, unverified := r.verified(ctx, cluster, endpoint)
	if absent {
		cluster, err = r.create(ctx, id, endpoint)
	} else {
		cluster, err = r.update(ctx, cluster, id, endpoint)
	}
	if err != nil {
		return err
	}
	if endpoint != nil {
		r.published.Store(endpoint)
	}
	return errors.Join(r.report(ctx, cluster), unverified)
}

// verified returns an endpoint if the entry has it already, or if a server answers there
// with a certificate that its CA has signed. Where there is no connection from here, it
// is enough that the host cluster's API server has a certificate for the endpoint. Else
// it returns nil, and why.
func (r *Registrar) verified(ctx context.Context, entry *v1beta1.Cluster, endpoint *v1beta1.Endpoint) (*v1beta1.Endpoint, error) {
	if endpoint == nil {
		return nil, nil
	}
	for _, have := range entry.Spec.Endpoints {
		if have.Name == endpointName && have.URL == endpoint.URL && bytes.Equal(have.CABundle, endpoint.CABundle) {
			return endpoint, nil
		}
	}
	err := r.verify(ctx, endpoint, endpoint.URL)
	unreached := unreached(err)
	if unreached && r.Address != "" {
		// Firewalls, and load balancers that don't let pods back in, say nothing against an
		// address: whoever has the CA is led nowhere but to who shows this certificate.
		if beside := r.verify(ctx, endpoint, r.Address); beside == nil {
			return endpoint, nil
		} else if err = fmt.Errorf("it can't be reached from here (%w), and the certificate of the host cluster's API server was not verified in its place: %w", err, beside); ctx.Err() != nil {
			return nil, err
		}
	}
	switch {
	case err == nil:
		return endpoint, nil
	case unreached:
		return nil, fmt.Errorf("%s is not published as the address of the host cluster: %w; if clients reach it, add it to cluster %q yourself, as the endpoint %q with this url and caBundle; else correct registerHost.url and registerHost.caBundle, or kube-public/cluster-info", endpoint.URL, err, r.Name, endpointName)
	}
	return nil, fmt.Errorf("%s is not published as the address of the host cluster: %w; correct registerHost.url and registerHost.caBundle, or kube-public/cluster-info", endpoint.URL, err)
}

// create makes the entry, unless another has the id.
func (r *Registrar) create(ctx context.Context, id string, endpoint *v1beta1.Endpoint) (*v1beta1.Cluster, error) {
	if err := r.free(ctx, id); err != nil {
		return nil, err
	}
	cluster := &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: r.Name}, Spec: v1beta1.ClusterSpec{ID: id, Manager: &v1beta1.Manager{Name: Manager}}}
	setEndpoint(&cluster.Spec, endpoint)
	created, err := r.Clusters.Create(ctx, cluster, metav1.CreateOptions{FieldManager: Manager})
	if apierrors.IsInvalid(err) { // another has got the id meanwhile, or the address is refused
		if taken := r.free(ctx, id); taken != nil {
			return nil, taken
		}
	}
	if err != nil {
		return nil, fmt.Errorf("create cluster %q: %w", r.Name, err)
	}
	return created, nil
}

// free returns a refusal when an entry has the id.
func (r *Registrar) free(ctx context.Context, id string) error {
	others, err := r.Clusters.List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.id", id).String()})
	if err != nil {
		return fmt.Errorf("look for clusters with the id of the host cluster: %w", err)
	}
	for _, other := range others.Items {
		if other.Spec.ID != id || other.Name == r.Name {
			continue
		}
		if other.Spec.Manager != nil && other.Spec.Manager.Name == Manager {
			// It is not deleted here: what people have added to it, and all that refers to
			// its name, would go because of what may be a typing error.
			return &Refusal{fmt.Sprintf("The host cluster can't be registered as %[1]q: this controller has registered it as %[2]q before, with the id %[3]s. To keep that name, set registerHost.name to %[2]q. To rename it, save what you have added to cluster %[2]q and delete it: kubectl delete clusters.clusterregistry.k8s.io %[2]s", r.Name, other.Name, id)}
		}
		return &Refusal{fmt.Sprintf("The host cluster can't be registered as %[1]q: cluster %[2]q has its id %[3]s already, and was not made by this controller. Keep that one and unset registerHost, or delete it: kubectl delete clusters.clusterregistry.k8s.io %[2]s", r.Name, other.Name, id)}
	}
	return nil
}

// update brings the spec of the entry up to date, if the entry is this package's.
func (r *Registrar) update(ctx context.Context, cluster *v1beta1.Cluster, id string, endpoint *v1beta1.Endpoint) (*v1beta1.Cluster, error) {
	manager := ""
	if cluster.Spec.Manager != nil {
		manager = cluster.Spec.Manager.Name
	}
	if manager != Manager || cluster.Spec.ID != id {
		return nil, &Refusal{fmt.Sprintf("Cluster %q exists and is not this controller's entry of the host cluster: its id is %q and its manager %q, and not %q and %q. Delete it, or set another registerHost.name.", r.Name, cluster.Spec.ID, manager, id, Manager)}
	}
	wanted := cluster.DeepCopy()
	setEndpoint(&wanted.Spec, endpoint)
	if reflect.DeepEqual(wanted.Spec, cluster.Spec) {
		return cluster, nil
	}
	// The update fails if someone else has changed the entry meanwhile; the next look
	// at it makes up for that.
	updated, err := r.Clusters.Update(ctx, wanted, metav1.UpdateOptions{FieldManager: Manager})
	if err != nil {
		return nil, fmt.Errorf("update cluster %q: %w", r.Name, err)
	}
	return updated, nil
}

// setEndpoint puts the endpoint in the place that is its own. Nil, for one that is not
// known now, changes nothing: clients still use what was published.
func setEndpoint(spec *v1beta1.ClusterSpec, endpoint *v1beta1.Endpoint) {
	at := slices.IndexFunc(spec.Endpoints, func(e v1beta1.Endpoint) bool { return e.Name == endpointName })
	switch {
	case at < 0 && endpoint != nil:
		spec.Endpoints = append(spec.Endpoints, *endpoint)
	case endpoint == nil:
	case at >= 0 && !reflect.DeepEqual(spec.Endpoints[at], *endpoint):
		// What people have added, such as the ranges of clients, stays.
		spec.Endpoints[at].URL, spec.Endpoints[at].CABundle = endpoint.URL, endpoint.CABundle
	}
}

// endpoint returns where clients reach the host cluster; nil when that is not known.
func (r *Registrar) endpoint(ctx context.Context) (*v1beta1.Endpoint, error) {
	if r.URL != "" {
		return &v1beta1.Endpoint{Name: endpointName, URL: r.URL, CABundle: r.CABundle}, nil
	}
	info, err := r.Host.CoreV1().ConfigMaps(metav1.NamespacePublic).Get(ctx, "cluster-info", metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the address of the host cluster from kube-public/cluster-info: %w", err)
	}
	config, err := clientcmd.Load([]byte(info.Data["kubeconfig"]))
	if err != nil {
		klog.FromContext(ctx).Error(err, "The kubeconfig in kube-public/cluster-info can't be read: the host cluster is registered without an address")
		return nil, nil
	}
	for _, cluster := range config.Clusters {
		if len(config.Clusters) == 1 && useful(cluster.Server) {
			return &v1beta1.Endpoint{Name: endpointName, URL: cluster.Server, CABundle: cluster.CertificateAuthorityData}, nil
		}
	}
	return nil, nil
}

// useful reports whether an address leads others to the host cluster.
func useful(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || u.Hostname() == "localhost" {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err != nil || !ip.IsLoopback() && !ip.IsUnspecified()
}
