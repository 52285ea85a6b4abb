package apiservice

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/informers"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Left looks after the registration of a registry whose reconcile has ended before this stage, so
// that nothing may be rendered: what is registered is what the inventory says. It is unregistered
// as in any other reconcile, and nothing else is done. Left is done when there is nothing to say.
// A pause, which the reconcile would have found by then, makes it read-only.
func (s *Stage) Left(ctx context.Context, p pass.Pass) Found {
	if !Has(p.Registry) {
		return Found{}
	}
	there, by, err := s.there(ctx)
	if err != nil {
		return Found{Verdict: verdict.Failed(err)}
	}
	if condition, until := p.Paused(); until != "" && p.Registry.DeletionTimestamp == nil { // else the registration goes first
		s.FreezeBy(condition, until)
	}
	s.left, s.held = true, heldBefore(p)
	v := s.release(ctx, there)
	for _, service := range there {
		if v.Complete() {
			v = reached(s.Objects, service)
		}
	}
	switch {
	case len(there) > 0:
	case by.name != "":
		return s.groupTaken(by)
	case s.Installed():
		v = verdict.Waiting(operatorv1alpha1.ReasonBackendDown, "the registry is not registered with the host cluster, in which deletions of namespaces would hang without a server; it is registered again %s", s.again())
	}
	return Found{Verdict: v, TakenBy: by.name}
}

// again says when a registry that is not registered is so again.
func (s *Stage) again() string {
	const answers = "when a server answers"
	if s.left {
		return answers + ", and what keeps the registry from being reconciled is resolved"
	}
	if s.ReadOnly() {
		return answers + ", and the registry may be changed again"
	}
	return answers
}

// heldBefore says what keeps the registry registered that the reconcile would have found before
// this stage, empty where nothing does: CAs of which what is published may be the only record.
func heldBefore(p pass.Pass) string {
	if p.Registry.DeletionTimestamp != nil {
		return "" // the registration goes first
	}
	if err := p.Authorities.Err; err != nil {
		return "its CAs are not known: " + err.Error()
	}
	if missing := p.Authorities.Missing(p.Registry); missing != "" {
		return "its CAs are not known: " + missing
	}
	return ""
}

// stopped is the verdict on a registry of which all servers are to be stopped. What is registered
// still is released as at any other time.
func (s *Stage) stopped(ctx context.Context) verdict.Verdict {
	there, _, err := s.there(ctx)
	if err != nil {
		return verdict.Failed(err)
	}
	if v := s.release(ctx, there); !v.Complete() {
		return v
	}
	if len(there) > 0 {
		return verdict.Waiting(operatorv1alpha1.ReasonWaiting, "APIService %s is deleted before all servers are stopped", there[0].Name)
	}
	return verdict.Waiting(operatorv1alpha1.ReasonWaiting, "the registry is not registered with the host cluster while all servers are stopped; it is when a server answers again")
}

// there returns the registry's APIServices that the host cluster has, of those in the inventory,
// and who has another one of these.
func (s *Stage) there(ctx context.Context) (out []*apiregistrationv1.APIService, by taker, err error) {
	for _, reference := range s.Registry.Status.Inventory {
		if reference.Kind != "APIService" {
			continue
		}
		service := &apiregistrationv1.APIService{}
		// The cache can't tell whose an APIService is that has lost its labels.
		switch err := s.Live.Get(ctx, client.ObjectKey{Name: reference.Name}, service); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, by, fmt.Errorf("read APIService %s: %w", reference.Name, err)
		case apply.Belongs(service, s.Owner()):
			out = append(out, service)
		case by.name == "":
			by, _ = s.ownerOf(service) // what is not known now keeps nothing registered
		}
	}
	return out, by, nil
}

// decisive are the fields of a registry that decide on whether it is unregistered.
var decisive = [][]string{
	{"metadata"}, {"spec", "mode"}, {"spec", "paused"}, {"spec", "tls"}, {"spec", "etcd", "external"},
	{"status", "inventory"}, {"status", "history"}, {"status", "operation"},
}

// Legible returns what decides on whether a registry is unregistered that the operator can't
// decode, as the error says; nil where that is not what it says, where the registry is not
// registered, and where it is one of these fields.
func Legible(err error) *operatorv1alpha1.ClusterRegistry {
	if out := legible(err); out != nil && Has(out) {
		return out
	}
	return nil
}

// deciding returns another registry as far as it decides here: the cache has nothing but the metadata
// of one that can't be decoded.
func (s *Stage) deciding(ctx context.Context, cached *operatorv1alpha1.ClusterRegistry) (*operatorv1alpha1.ClusterRegistry, error) {
	if !informers.Undecodable(cached) {
		return cached, nil
	}
	out := &operatorv1alpha1.ClusterRegistry{}
	err := informers.Read(ctx, s.Live, client.ObjectKeyFromObject(cached), out)
	if err == nil || apierrors.IsNotFound(err) {
		return out, nil
	}
	if out = legible(err); out != nil {
		return out, nil
	}
	return nil, err
}

func legible(err error) *operatorv1alpha1.ClusterRegistry {
	why := &informers.UndecodableError{}
	if !errors.As(err, &why) {
		return nil
	}
	fields := map[string]any{}
	for _, path := range decisive {
		value, found, err := unstructured.NestedFieldNoCopy(why.Object.Object, path...)
		if found && err == nil {
			err = unstructured.SetNestedField(fields, runtime.DeepCopyJSONValue(value), path...)
		}
		if err != nil {
			return nil
		}
	}
	out := &operatorv1alpha1.ClusterRegistry{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(fields, out) != nil {
		return nil
	}
	return out
}
