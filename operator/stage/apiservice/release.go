package apiservice

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/history"
	"github.com/clusterregistry/operator/operator/informers"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/verdict"
)

// despite are the conditions of the parts for whose sake nothing else is changed, and which do not
// keep a registry without a backend registered: namespaces of the host cluster must not hang until
// an etcd is back, nor until a registry may be a part of its API again. They do keep it from being
// registered again: it may be another etcd that is back. A pause keeps it, which says that a person
// acts on it, and so do CAs that are not known, since what is published may be their only record.
var despite = []string{operatorv1alpha1.ConditionEtcdReady, operatorv1alpha1.ConditionAPIServiceReady}

// release unregisters a registry that has no backend: no server is ready, none answers the
// operator, and the host cluster has reached none for longer than Grace. Until one is, no namespace
// of the host cluster could be deleted. It is done where there is nothing to release.
func (s *Stage) release(ctx context.Context, there []*apiregistrationv1.APIService) verdict.Verdict {
	i := slices.IndexFunc(there, func(service *apiregistrationv1.APIService) bool { return silentFor(s.Now, service) >= Grace })
	if i < 0 {
		return done
	}
	switch ready, err := s.ready(ctx); {
	case err != nil:
		return s.kept(there[i], "", fmt.Errorf("it is not known which servers run: %w", err))
	case ready > 0:
		return done
	}
	keeps, err := s.keeps(ctx)
	if err != nil || keeps != "" {
		return s.kept(there[i], keeps, err)
	}
	if err := s.deleteAll(ctx, there); err != nil {
		return s.kept(there[i], "", err)
	}
	if i := slices.IndexFunc(there, terminating); i >= 0 {
		return s.kept(there[i], fmt.Sprintf("APIService %s is deleted, and its finalizers %s keep it", there[i].Name, strings.Join(there[i].Finalizers, ", ")), nil)
	}
	return verdict.Waiting(operatorv1alpha1.ReasonBackendDown, "no server has been ready for a minute: the registry is no longer registered with the host cluster, in which deletions of namespaces would hang; it is registered again %s", s.again()).In(verdict.Soon)
}

func terminating(service *apiregistrationv1.APIService) bool { return service.DeletionTimestamp != nil }

// ready counts the servers that kubelet finds ready, also where their stage was not reached.
func (s *Stage) ready(ctx context.Context) (int, error) {
	if s.Servers.Asked {
		return s.Servers.Ready, nil
	}
	pods, err := s.Pods(ctx, operand.ComponentServer)
	return len(operand.Ready(pods)), err
}

// deleteAll deletes APIServices, and says in one event which. One that is not deleted keeps no
// other one.
func (s *Stage) deleteAll(ctx context.Context, services []*apiregistrationv1.APIService) error {
	var names []string
	var failed []error
	for _, service := range services {
		if terminating(service) {
			continue
		}
		reference := operatorv1alpha1.ObjectReference{Group: apiregistrationv1.GroupName, Kind: "APIService", Name: service.Name}
		if _, err := s.WriterDespite(despite...).Delete(ctx, reference, s.Owner()); err != nil {
			failed = append(failed, err)
			continue
		}
		names = append(names, service.Name)
	}
	if len(names) > 0 {
		s.Event(corev1.EventTypeWarning, operatorv1alpha1.ReasonBackendDown, "Unregister", "no server has been ready for a minute, and deletions of namespaces in the host cluster would hang: deleted APIServices %s, which are created again %s", strings.Join(names, ", "), s.again())
	}
	return errors.Join(failed...)
}

// kept is the verdict on a registry without a backend that can't be unregistered.
func (s *Stage) kept(service *apiregistrationv1.APIService, why string, err error) verdict.Verdict {
	v := reached(s.Objects, service)
	v.Reason = operatorv1alpha1.ReasonBackendDown
	if err != nil {
		v.Err, why = err, err.Error()
	}
	v.Message += "; the registry stays registered: " + why
	return v
}

// keeps says why the registry is not to be unregistered, empty where nothing keeps it.
func (s *Stage) keeps(ctx context.Context) (string, error) {
	switch until := s.ReadOnlyUntil(despite...); {
	case until != "":
		return "nothing is changed until " + until, nil
	case s.held != "":
		return s.held, nil
	case s.Replaced && s.Registry.DeletionTimestamp == nil: // what is published is the only record of the CA that servers may have theirs of
		return "its serving CA is being replaced", nil
	}
	// A CustomResourceDefinition would be served in its place at once, with clusters of its own.
	name := "clusters." + Group
	definition := informers.MetadataOf(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	switch err := s.Live.Get(ctx, client.ObjectKey{Name: name}, definition); {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", err
	}
	return fmt.Sprintf("CustomResourceDefinition %s would be served in its place; delete it if it has no clusters that you need", name), nil
}

// reserved returns the other registry that an APIService is kept for, although it does not exist: one
// that was complete keeps its place in the host cluster's API while it is not registered, as in an
// outage or a recovery.
func (s *Stage) reserved(ctx context.Context, name string) (taker, error) {
	if s.Installed() {
		return taker{}, nil
	}
	all := &operatorv1alpha1.ClusterRegistryList{}
	if err := s.Client.List(ctx, all); err != nil {
		return taker{}, fmt.Errorf("list ClusterRegistries, of which one may have registered %s: %w", name, err)
	}
	for i := range all.Items {
		other, err := s.deciding(ctx, &all.Items[i])
		if err != nil {
			return taker{}, fmt.Errorf("read ClusterRegistry %s/%s, which may have registered %s: %w", all.Items[i].Namespace, all.Items[i].Name, name, err)
		}
		if other.UID != s.Registry.UID && other.DeletionTimestamp == nil && other.Spec.Mode == operatorv1alpha1.ModeAggregated && history.Installed(other) && s.MayAggregate(other.Namespace) {
			return taker{name: fmt.Sprintf("ClusterRegistry %s/%s", other.Namespace, other.Name), absent: true}, nil
		}
	}
	return taker{}, nil
}
