package clusterapi

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Served says whether Cluster API is in the host cluster.
type Served string

const (
	// ServedYes means that Clusters are served, and none is missing because their CRD goes.
	ServedYes Served = "Yes"
	// ServedNo means that Cluster API is not there.
	ServedNo Served = "No"
	// ServedOther means that it is there in other versions alone.
	ServedOther Served = "Other"
	// ServedEnding means that the CRD is being deleted, and takes all Clusters with it.
	ServedEnding Served = "Ending"
)

// Source is Cluster API in the host cluster.
type Source interface {
	// Served asks the host cluster; an error means that it isn't known.
	Served(ctx context.Context) (Served, error)
	// Get, List and Watch are those of Clusters in a namespace. Of a Cluster that can't be
	// decoded, they return the metadata, with the annotation by which undecodable knows it.
	Get(ctx context.Context, namespace, name string) (*clusterv1.Cluster, error)
	List(ctx context.Context, namespace string, options metav1.ListOptions) (*clusterv1.ClusterList, error)
	Watch(ctx context.Context, namespace string, options metav1.ListOptions) (watch.Interface, error)
}

const resource = "clusters"

type source struct {
	// clusters are read as trees: a typed list with one Cluster that can't be decoded, such as
	// one that was stored under another schema, could not be read at all.
	clusters  dynamic.NamespaceableResourceInterface
	discovery discovery.DiscoveryInterface
}

// NewSource returns Cluster API in the cluster of a configuration.
func NewSource(config *rest.Config) (Source, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	found, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return &source{clusters: client.Resource(clusterv1.GroupVersion.WithResource(resource)), discovery: found}, nil
}

// Served is read from discovery: a CRD that is being deleted lets nothing be created.
func (s *source) Served(ctx context.Context) (Served, error) {
	found := &metav1.APIResourceList{}
	err := s.discovery.RESTClient().Get().AbsPath("/apis/" + clusterv1.GroupVersion.String()).Do(ctx).Into(found)
	switch {
	case apierrors.IsNotFound(err):
		return s.others(ctx)
	case err != nil:
		return "", err
	}
	for _, r := range found.APIResources {
		if r.Name == resource && slices.Contains(r.Verbs, "create") {
			return ServedYes, nil
		} else if r.Name == resource {
			return ServedEnding, nil
		}
	}
	return ServedNo, nil
}

// others says whether Cluster API is there in another version.
func (s *source) others(ctx context.Context) (Served, error) {
	err := s.discovery.RESTClient().Get().AbsPath("/apis/" + clusterv1.GroupVersion.Group).Do(ctx).Error()
	switch {
	case apierrors.IsNotFound(err):
		return ServedNo, nil
	case err != nil:
		return "", err
	}
	return ServedOther, nil
}

func (s *source) Get(ctx context.Context, namespace, name string) (*clusterv1.Cluster, error) {
	tree, err := s.clusters.Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return clusterOf(tree)
}

func (s *source) List(ctx context.Context, namespace string, options metav1.ListOptions) (*clusterv1.ClusterList, error) {
	trees, err := s.clusters.Namespace(namespace).List(ctx, options)
	if err != nil {
		return nil, err
	}
	out := &clusterv1.ClusterList{ListMeta: metav1.ListMeta{ResourceVersion: trees.GetResourceVersion(), Continue: trees.GetContinue(), RemainingItemCount: trees.GetRemainingItemCount()}}
	for i := range trees.Items {
		item, err := clusterOf(&trees.Items[i])
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, *item)
	}
	return out, nil
}

func (s *source) Watch(ctx context.Context, namespace string, options metav1.ListOptions) (watch.Interface, error) {
	trees, err := s.clusters.Namespace(namespace).Watch(ctx, options)
	if err != nil {
		return nil, err
	}
	events := make(chan watch.Event)
	out := watch.NewProxyWatcher(events)
	go func() {
		defer close(events)
		defer trees.Stop()
		for {
			select {
			case <-out.StopChan():
				return
			case event, told := <-trees.ResultChan():
				if !told {
					return
				}
				select {
				case events <- decoded(event):
				case <-out.StopChan():
					return
				}
			}
		}
	}()
	return out, nil
}

// decoded returns the event of a Cluster that was read as a tree.
func decoded(event watch.Event) watch.Event {
	tree, is := event.Object.(*unstructured.Unstructured)
	if !is {
		return event // the error with which a watch ends
	}
	cluster, err := clusterOf(tree)
	if err != nil {
		status := apierrors.NewInternalError(err).Status()
		return watch.Event{Type: watch.Error, Object: &status}
	}
	event.Object = cluster
	return event
}

// trimSource drops what no entry follows from before a Cluster is kept in memory.
func trimSource(object any) (any, error) {
	full, ok := object.(*clusterv1.Cluster)
	if !ok {
		return object, nil
	}
	kept := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: full.Namespace, Name: full.Name, UID: full.UID, ResourceVersion: full.ResourceVersion, Labels: full.Labels,
		CreationTimestamp: full.CreationTimestamp, DeletionTimestamp: full.DeletionTimestamp, Annotations: map[string]string{},
	}}
	for _, key := range []string{CAAnnotation, moveAnnotation, undecodableMark} {
		if value, ok := full.Annotations[key]; ok {
			kept.Annotations[key] = value
		}
	}
	kept.Spec.Paused, kept.Spec.ControlPlaneEndpoint = full.Spec.Paused, full.Spec.ControlPlaneEndpoint
	kept.Spec.InfrastructureRef, kept.Spec.ControlPlaneRef = full.Spec.InfrastructureRef, full.Spec.ControlPlaneRef
	kept.Spec.Topology.Version = full.Spec.Topology.Version
	kept.Status.Conditions = full.Status.Conditions
	if full.Status.ControlPlane != nil {
		kept.Status.ControlPlane = &clusterv1.ClusterControlPlaneStatus{Versions: full.Status.ControlPlane.Versions}
	}
	return kept, nil
}
