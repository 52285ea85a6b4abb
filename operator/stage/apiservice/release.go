package apiservice

import (
	"context"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/history"
	"github.com/clusterregistry/operator/operator/informers"
	"github.com/clusterregistry/operator/operator/verdict"
)

// release unregisters a registry that has no backend: no server is ready, none answers the
// operator, and the host cluster has reached none for longer than Grace. Until one is, no namespace
// of the host cluster could be deleted. It is done where there is nothing to release.
func (s *Stage) release(ctx context.Context, there []*apiregistrationv1.APIService) verdict.Verdict {
	i := slices.IndexFunc(there, func(service *apiregistrationv1.APIService) bool { return silentFor(s.Now, service) >= Grace })
	if i < 0 || s.ReadOnly() || !s.Servers.Asked || s.Servers.Ready > 0 {
		return done
	}
	// What is published is the only record of the CA that the servers may still have their
	// certificate of.
	if s.Replaced {
		return done
	}
	if err := s.place(ctx); err != nil {
		return s.kept(there[i], err)
	}
	for _, service := range there {
		reference := operatorv1alpha1.ObjectReference{Group: apiregistrationv1.GroupName, Kind: "APIService", Name: service.Name}
		if _, err := s.Writer().Delete(ctx, reference, s.Owner()); err != nil {
			return s.kept(there[i], err)
		}
	}
	return verdict.Waiting(operatorv1alpha1.ReasonBackendDown, "no server has been ready for a minute: the registry is no longer registered with the host cluster, in which deletions of namespaces would hang; it is registered again when a server answers").In(verdict.Soon)
}

// kept is the verdict on a registry without a backend that can't be unregistered.
func (s *Stage) kept(service *apiregistrationv1.APIService, err error) verdict.Verdict {
	v := reached(s.Objects, service)
	v.Reason, v.Err = operatorv1alpha1.ReasonBackendDown, err
	v.Message += fmt.Sprintf("; the registry can't be unregistered: %s", err)
	return v
}

// place returns an error where the registry would lose its place in the host cluster's API, as to a
// CustomResourceDefinition of its kind: that would be served at once, with clusters of its own.
func (s *Stage) place(ctx context.Context) error {
	name := "clusters." + Group
	definition := informers.MetadataOf(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	switch err := s.Live.Get(ctx, client.ObjectKey{Name: name}, definition); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("CustomResourceDefinition %s would be served in its place: delete it if it has no clusters that you need", name)
}

// reserved returns the other registry that an APIService belongs to, although it does not exist: a
// registry that was complete keeps its place in the host cluster's API while none of its servers
// runs, as in an outage or a recovery.
func (s *Stage) reserved(ctx context.Context, name string) (taker, error) {
	if s.Installed() {
		return taker{}, nil
	}
	all := &operatorv1alpha1.ClusterRegistryList{}
	if err := s.Client.List(ctx, all); err != nil {
		return taker{}, fmt.Errorf("list ClusterRegistries, of which one may have registered %s: %w", name, err)
	}
	for i := range all.Items {
		other := &all.Items[i]
		has := func(reference operatorv1alpha1.ObjectReference) bool {
			return reference.Kind == "APIService" && reference.Name == name
		}
		if other.UID != s.Registry.UID && other.DeletionTimestamp == nil && history.Installed(other) && slices.ContainsFunc(other.Status.Inventory, has) {
			return taker{name: fmt.Sprintf("ClusterRegistry %s/%s, of which no server runs", other.Namespace, other.Name)}, nil
		}
	}
	return taker{}, nil
}
