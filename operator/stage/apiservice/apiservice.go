package apiservice

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Run is done when the host itself serves the registry's API. It is
// registered only once a server answers, and never in place of another. The versions
// that a CustomResourceDefinition leaves free are registered beside it, so that what
// is in the custom resources can be copied before the definition is deleted.
func (s *Stage) Run(ctx context.Context) Found {
	var open []free
	var taken []string
	definition := taker{}
	for _, service := range s.Rendered.Stages[render.StageEndpoint] {
		owner, current, err := s.takenBy(ctx, service)
		switch {
		case err != nil:
			return Found{Verdict: verdict.Failed(err)}
		case owner.name == "":
			open = append(open, free{service, current})
		case !owner.definition:
			return s.groupTaken(owner)
		default:
			definition, taken = owner, append(taken, versionOf(service))
		}
	}
	switch {
	case len(s.Rendered.Stages[render.StageEndpoint]) == 0:
		return Found{Verdict: s.stopped(ctx)}
	case len(taken) == 0:
		return Found{Verdict: s.register(ctx, open)}
	case len(open) == 0:
		return s.groupTaken(definition)
	}
	return s.beside(ctx, definition, taken, open)
}

// free is the APIService of a version that no one else serves.
type free struct {
	*unstructured.Unstructured
	// current is what the host cluster has, nil where it has none.
	current *apiregistrationv1.APIService
}

// taker is who serves an API version on the host cluster, with an empty name where no one
// does.
type taker struct {
	name string
	// definition is true for a CustomResourceDefinition.
	definition bool
	// absent is true for a registry that is not registered, and keeps its place.
	absent bool
}

// groupTaken is what is found where someone else serves the API group.
func (s *Stage) groupTaken(by taker) Found {
	if by.absent {
		v := verdict.Waiting(operatorv1alpha1.ReasonGroupTaken, "the place of %s in the host cluster's API is kept for %s, which is not registered at the moment: delete that one, or use mode Independent", Group, by.name)
		return Found{Verdict: v, TakenBy: by.name}
	}
	v := verdict.Waiting(operatorv1alpha1.ReasonGroupTaken, "the host cluster already serves %s, from %s, which is left unchanged: remove it, or use mode Independent", Group, by.name)
	return Found{Verdict: v, TakenBy: by.name}
}

// beside registers the versions that a CustomResourceDefinition does not serve.
func (s *Stage) beside(ctx context.Context, definition taker, taken []string, open []free) Found {
	var versions []string
	for _, service := range open {
		versions = append(versions, versionOf(service))
	}
	added, state := strings.Join(versions, ", "), "is registered beside it"
	if v := s.register(ctx, open); v.Err != nil {
		return Found{Verdict: v, TakenBy: definition.name}
	} else if !v.Complete() {
		state = "is to be registered beside it: " + v.Message
	}
	v := verdict.Waiting(operatorv1alpha1.ReasonGroupTaken, "the host cluster already serves %s of %s, from %s, which is left unchanged; %s %s. Copy its clusters with kubectl registry import, and delete it: then %s is registered, too. Or use mode Independent",
		strings.Join(taken, ", "), Group, definition.name, added, state, strings.Join(taken, ", "))
	return Found{Verdict: v, TakenBy: definition.name}
}

// versionOf returns the API version that an APIService registers.
func versionOf(service client.Object) string {
	version, _, _ := strings.Cut(service.GetName(), ".")
	return version
}

// register registers the servers with the host cluster, which no one else is.
func (s *Stage) register(ctx context.Context, services []free) verdict.Verdict {
	var there []*apiregistrationv1.APIService
	var missing []string
	var unapplied error
	for _, service := range services {
		if service.current == nil {
			missing = append(missing, service.GetName())
			continue
		}
		there = append(there, service.current)
		// What leads the host cluster elsewhere is repaired first.
		if service.current.DeletionTimestamp == nil {
			unapplied = cmp.Or(unapplied, apply.IgnoreReadOnly(s.Apply(ctx, service.Unstructured)))
		}
	}
	if v := s.release(ctx, there); !v.Complete() {
		return v
	}
	if unapplied != nil {
		return verdict.Failed(unapplied)
	}
	if v := s.mayRegister(there, missing); !v.Complete() {
		return v
	}
	for _, service := range services {
		if service.current != nil {
			continue
		}
		if err := apply.IgnoreReadOnly(s.Apply(ctx, service.Unstructured)); err != nil {
			return verdict.Failed(err)
		}
	}
	for _, service := range services {
		current := &apiregistrationv1.APIService{}
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(service), current); apierrors.IsNotFound(err) {
			return verdict.Waiting(operatorv1alpha1.ReasonWaiting, "APIService %s is not registered yet", service.GetName()).In(verdict.Soon)
		} else if err != nil {
			return verdict.Failed(err)
		}
		if v := reached(s.Objects, current); !v.Complete() {
			return v
		}
	}
	if v := s.throughHost(ctx, services); !v.Complete() {
		return v
	}
	// Where clients in the host cluster find it, and whom they trust there.
	s.Registry.Status.Endpoint = &operatorv1alpha1.Endpoint{URL: "https://kubernetes.default.svc/apis/" + Group, CABundle: s.HostCA}
	return done
}

// mayRegister is done when what is missing may be registered. As long as no server answers, it
// would make deletions of namespaces hang, and someone may have removed it for that.
func (s *Stage) mayRegister(there []*apiregistrationv1.APIService, missing []string) verdict.Verdict {
	serves := s.Servers.Answering > 0 && (s.Installed() || s.Servers.Complete())
	switch {
	case len(missing) == 0:
		return done
	case !s.MayAggregate(s.Registry.Namespace): // within a phase of an upgrade, all else is still changed
		return verdict.Waiting(operatorv1alpha1.ReasonAggregationNotAllowed, "APIService %s does not exist, and is not created: mode Aggregated is not allowed in namespace %s", missing[0], s.Registry.Namespace).In(verdict.Vigil)
	case serves && !s.ReadOnly():
		return done
	case serves:
		return verdict.Waiting(operatorv1alpha1.ReasonWaiting, "APIService %s does not exist, and nothing is made until %s", missing[0], s.ReadOnlyUntil()).In(verdict.Vigil)
	case len(there) == 0 && s.Installed():
		return verdict.Waiting(operatorv1alpha1.ReasonBackendDown, "no server answers the operator, and the registry is not registered with the host cluster, in which deletions of namespaces would hang; APIService %s is created when a server answers", missing[0])
	}
	return verdict.Waiting(operatorv1alpha1.ReasonWaiting, "APIService %s does not exist; it is created when a server answers", missing[0])
}

// takenBy returns who else serves an API version on the host, and else the registry's own
// APIService, nil where the host has none. The cache is not asked, which may be behind a deletion.
func (s *Stage) takenBy(ctx context.Context, wanted *unstructured.Unstructured) (by taker, own *apiregistrationv1.APIService, err error) {
	current := &apiregistrationv1.APIService{}
	err = s.Live.Get(ctx, client.ObjectKeyFromObject(wanted), current)
	if apierrors.IsNotFound(err) {
		by, err = s.reserved(ctx, wanted.GetName())
		return by, nil, err
	}
	if err != nil {
		return taker{}, nil, fmt.Errorf("read APIService %s: %w", wanted.GetName(), err)
	}
	if apply.Belongs(current, s.Owner()) {
		return taker{}, current, nil
	}
	by, err = s.ownerOf(current)
	return by, nil, err
}

// ownerOf returns who has an APIService that is not the registry's own.
func (s *Stage) ownerOf(service *apiregistrationv1.APIService) (taker, error) {
	switch owner := apply.Owner(service); {
	case owner != "":
		return taker{name: "ClusterRegistry " + owner}, nil
	case service.Spec.Service != nil:
		return taker{name: fmt.Sprintf("APIService %s with the backend Service %s/%s", service.Name, service.Spec.Service.Namespace, service.Spec.Service.Name)}, nil
	}
	name, err := s.crdsOf(service)
	return taker{name: name, definition: true}, err
}

// crdsOf names the CRDs behind an APIService that the host manages for them.
func (s *Stage) crdsOf(service *apiregistrationv1.APIService) (string, error) {
	served, err := s.Discovery.ServerResourcesForGroupVersion(schema.GroupVersion{Group: service.Spec.Group, Version: service.Spec.Version}.String())
	if err != nil && !apierrors.IsNotFound(err) {
		return "", err
	}
	var names []string
	if served != nil {
		for _, resource := range served.APIResources {
			if !strings.Contains(resource.Name, "/") {
				names = append(names, resource.Name+"."+service.Spec.Group)
			}
		}
	}
	if len(names) == 0 {
		return "a CustomResourceDefinition of that group", nil
	}
	return "CustomResourceDefinition " + strings.Join(names, ", "), nil
}

// throughHost uses the registry's API as its clients do, in the versions that are registered.
func (s *Stage) throughHost(ctx context.Context, services []free) verdict.Verdict {
	for _, service := range services {
		group := schema.GroupVersion{Group: Group, Version: versionOf(service)}
		if _, err := s.Discovery.ServerResourcesForGroupVersion(group.String()); err != nil {
			return verdict.Waiting(operatorv1alpha1.ReasonNotAvailable, "kube-apiserver does not list %s in discovery yet: %s", group, err).In(verdict.Soon)
		}
		clusters := &unstructured.UnstructuredList{}
		clusters.SetGroupVersionKind(group.WithKind("ClusterList"))
		if err := s.listClusters(ctx, clusters); err != nil {
			return verdict.Waiting(operatorv1alpha1.ReasonNotAvailable, "clusters can't be listed through the host cluster: %s", err).In(verdict.Soon)
		}
	}
	return done
}

// listTimeout bounds a list through the host.
const listTimeout = 10 * time.Second

func (s *Stage) listClusters(ctx context.Context, into client.ObjectList) error {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	return s.Live.List(ctx, into, client.Limit(1))
}
