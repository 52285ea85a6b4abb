package clusterregistry

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

const (
	// registryGroup is the API group that registries serve.
	registryGroup = v1beta1.GroupName
	// backendGrace is how long the host may fail to reach the servers before it
	// is called down: they may just be on their way.
	backendGrace = time.Minute
)

// apiService is complete when the host itself serves the registry's API. It is
// registered only once a server answers, and never in place of another.
func (r *Reconciler) apiService(ctx context.Context, s *scope) verdict.Verdict {
	services := s.rendered.Stages[render.StageEndpoint]
	for _, service := range services {
		owner, err := r.takenBy(ctx, s, service)
		if err != nil {
			return verdict.Failed(err)
		}
		if owner != "" {
			return verdict.Waiting(operatorv1alpha1.ReasonGroupTaken, "the host cluster already serves %s, from %s, which is left unchanged: remove it, or use mode Independent", registryGroup, owner)
		}
	}
	for _, service := range services {
		registered, err := r.registered(ctx, service)
		if err != nil {
			return verdict.Failed(err)
		}
		serves := s.answering > 0 && (s.installed() || s.results[operatorv1alpha1.ConditionServerReady].Complete())
		if !registered && !serves {
			// As long as no server answers, a registration would make deletions of
			// namespaces hang, and someone may have removed it for that.
			return verdict.Waiting(operatorv1alpha1.ReasonWaiting, "APIService %s does not exist; it is created when a server answers", service.GetName())
		}
		if err := unlessReadOnly(r.apply(ctx, s, service)); err != nil {
			return verdict.Failed(err)
		}
	}
	for _, service := range services {
		current := &apiregistrationv1.APIService{}
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(service), current); apierrors.IsNotFound(err) {
			return verdict.Waiting(operatorv1alpha1.ReasonWaiting, "APIService %s is not registered yet", service.GetName()).In(verdict.Soon)
		} else if err != nil {
			return verdict.Failed(err)
		}
		if v := s.availability(current); !v.Complete() {
			return v
		}
	}
	if v := r.throughHost(ctx, s); !v.Complete() {
		return v
	}
	s.registry.Status.Endpoint = r.hostEndpoint()
	return done
}

// registered reports whether the host has an APIService. It is not asked of the
// cache, which may be behind a deletion.
func (r *Reconciler) registered(ctx context.Context, service *unstructured.Unstructured) (bool, error) {
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(service), &apiregistrationv1.APIService{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// unregister is complete when the host no longer lists versions of the API
// that the desired servers lack: this comes before those do.
func (r *Reconciler) unregister(ctx context.Context, s *scope) verdict.Verdict {
	if s.readOnly {
		return done
	}
	for _, reference := range s.registry.Status.Inventory {
		if reference.Kind != "APIService" || slices.ContainsFunc(s.rendered.Stages[render.StageEndpoint], func(o *unstructured.Unstructured) bool { return o.GetName() == reference.Name }) {
			continue
		}
		gone, err := r.writer(s).Delete(ctx, reference, s.owner())
		if err != nil {
			return verdict.Failed(err)
		}
		if !gone {
			return verdict.Waiting(operatorv1alpha1.ReasonProgressing, "waiting for %s to be deleted, a version that %s does not serve", reference, s.release.Version).In(verdict.Soon).DegradedIf(true)
		}
	}
	return done
}

// takenBy returns who else serves an API version on the host, or nothing.
func (r *Reconciler) takenBy(ctx context.Context, s *scope, wanted *unstructured.Unstructured) (string, error) {
	current := &apiregistrationv1.APIService{}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(wanted), current)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read APIService %s: %w", wanted.GetName(), err)
	}
	switch owner := apply.Owner(current); {
	case apply.Belongs(current, s.owner()):
		return "", nil
	case owner != "":
		return "ClusterRegistry " + owner, nil
	case current.Spec.Service != nil:
		return fmt.Sprintf("APIService %s with the backend Service %s/%s", current.Name, current.Spec.Service.Namespace, current.Spec.Service.Name), nil
	}
	return r.crdsOf(current)
}

// crdsOf names the CRDs behind an APIService that the host manages for them.
func (r *Reconciler) crdsOf(service *apiregistrationv1.APIService) (string, error) {
	served, err := r.Discovery.ServerResourcesForGroupVersion(schema.GroupVersion{Group: service.Spec.Group, Version: service.Spec.Version}.String())
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

// availability returns what the host says of its way to the servers, nil when
// it reaches them.
func (s *scope) availability(service *apiregistrationv1.APIService) verdict.Verdict {
	for _, condition := range service.Status.Conditions {
		if condition.Type != apiregistrationv1.Available || condition.Status == apiregistrationv1.ConditionTrue {
			continue
		}
		down := s.now.Sub(condition.LastTransitionTime.Time)
		if down < backendGrace || !s.installed() {
			return verdict.Waiting(operatorv1alpha1.ReasonNotAvailable, "kube-apiserver does not reach the servers through APIService %s: %s", service.Name, condition.Message).In(min(max(backendGrace-down, verdict.Soon), backstop))
		}
		return verdict.Waiting(operatorv1alpha1.ReasonBackendDown, "kube-apiserver has not reached the servers since %s, and until it does, deletions of namespaces in the host cluster will hang: %s (APIService %s)",
			condition.LastTransitionTime.Format(time.RFC3339), condition.Message, service.Name)
	}
	if len(service.Status.Conditions) == 0 {
		return verdict.Waiting(operatorv1alpha1.ReasonNotAvailable, "kube-apiserver has not checked APIService %s yet", service.Name).In(verdict.Soon)
	}
	return done
}

// throughHost uses the registry's API as its clients do.
func (r *Reconciler) throughHost(ctx context.Context, s *scope) verdict.Verdict {
	for _, version := range s.release.Serves {
		group := schema.GroupVersion{Group: registryGroup, Version: version}
		if _, err := r.Discovery.ServerResourcesForGroupVersion(group.String()); err != nil {
			return verdict.Waiting(operatorv1alpha1.ReasonNotAvailable, "kube-apiserver does not list %s in discovery yet: %s", group, err).In(verdict.Soon)
		}
		clusters := &unstructured.UnstructuredList{}
		clusters.SetGroupVersionKind(group.WithKind("ClusterList"))
		if err := r.listClusters(ctx, clusters); err != nil {
			return verdict.Waiting(operatorv1alpha1.ReasonNotAvailable, "clusters can't be listed through the host cluster: %s", err).In(verdict.Soon)
		}
	}
	return done
}

// listTimeout bounds a list through the host.
const listTimeout = 10 * time.Second

func (r *Reconciler) listClusters(ctx context.Context, into client.ObjectList) error {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	return r.Live.List(ctx, into, client.Limit(1))
}

// hostEndpoint is where clients in the host find it, and whom they trust there.
func (r *Reconciler) hostEndpoint() *operatorv1alpha1.Endpoint {
	return &operatorv1alpha1.Endpoint{URL: "https://kubernetes.default.svc/apis/" + registryGroup, CABundle: r.HostCA}
}
