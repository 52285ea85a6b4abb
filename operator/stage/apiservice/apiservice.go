package apiservice

import (
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
// registered only once a server answers, and never in place of another.
func (s *Stage) Run(ctx context.Context) Found {
	services := s.Rendered.Stages[render.StageEndpoint]
	for _, service := range services {
		owner, err := s.takenBy(ctx, service)
		if err != nil {
			return Found{Verdict: verdict.Failed(err)}
		}
		if owner != "" {
			v := verdict.Waiting(operatorv1alpha1.ReasonGroupTaken, "the host cluster already serves %s, from %s, which is left unchanged: remove it, or use mode Independent", Group, owner)
			return Found{Verdict: v, TakenBy: owner}
		}
	}
	return Found{Verdict: s.register(ctx, services)}
}

// register registers the servers with the host cluster, which no one else is.
func (s *Stage) register(ctx context.Context, services []*unstructured.Unstructured) verdict.Verdict {
	for _, service := range services {
		registered, err := s.registered(ctx, service)
		if err != nil {
			return verdict.Failed(err)
		}
		serves := s.Answering > 0 && (s.Installed() || s.Servers.Complete())
		if !registered && !serves {
			// As long as no server answers, a registration would make deletions of
			// namespaces hang, and someone may have removed it for that.
			return verdict.Waiting(operatorv1alpha1.ReasonWaiting, "APIService %s does not exist; it is created when a server answers", service.GetName())
		}
		if err := apply.IgnoreReadOnly(s.Apply(ctx, service)); err != nil {
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
	if v := s.throughHost(ctx); !v.Complete() {
		return v
	}
	// Where clients in the host cluster find it, and whom they trust there.
	s.Registry.Status.Endpoint = &operatorv1alpha1.Endpoint{URL: "https://kubernetes.default.svc/apis/" + Group, CABundle: s.HostCA}
	return done
}

// registered reports whether the host has an APIService. It is not asked of the
// cache, which may be behind a deletion.
func (s *Stage) registered(ctx context.Context, service *unstructured.Unstructured) (bool, error) {
	err := s.Live.Get(ctx, client.ObjectKeyFromObject(service), &apiregistrationv1.APIService{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// takenBy returns who else serves an API version on the host, or nothing.
func (s *Stage) takenBy(ctx context.Context, wanted *unstructured.Unstructured) (string, error) {
	current := &apiregistrationv1.APIService{}
	err := s.Live.Get(ctx, client.ObjectKeyFromObject(wanted), current)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read APIService %s: %w", wanted.GetName(), err)
	}
	switch owner := apply.Owner(current); {
	case apply.Belongs(current, s.Owner()):
		return "", nil
	case owner != "":
		return "ClusterRegistry " + owner, nil
	case current.Spec.Service != nil:
		return fmt.Sprintf("APIService %s with the backend Service %s/%s", current.Name, current.Spec.Service.Namespace, current.Spec.Service.Name), nil
	}
	return s.crdsOf(current)
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

// throughHost uses the registry's API as its clients do.
func (s *Stage) throughHost(ctx context.Context) verdict.Verdict {
	for _, version := range s.Release.Serves {
		group := schema.GroupVersion{Group: Group, Version: version}
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
