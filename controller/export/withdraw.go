package export

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/controller/export/format"
	"github.com/clusterregistry/operator/internal/contract"
)

// bound finds the RoleBinding that lets this program write in the namespace, which becomes the
// owner of what is written. It goes when the export does, when the namespace is closed, and with
// the registry; who is then not there any more to take objects back need not be: the host cluster
// deletes what a binding owned.
func (p *publisher) bound(ctx context.Context) *verdict {
	before, name := p.owner.Load(), contract.ExportsBinding(p.Source.Namespace, p.Registry, p.kind.Rights)
	for _, name := range []string{name, name + contract.ByAdministrator} {
		found, err := p.Bindings.RoleBindings(p.Namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			continue
		case apierrors.IsForbidden(err):
			return &verdict{state: contract.FunctionRefused, message: fmt.Sprintf("The controller may not read RoleBinding %s of namespace %q, with which what it writes there goes: %v. Install the operator's manifests of this release.", name, p.Namespace, err)}
		case err != nil:
			return &verdict{state: contract.FunctionFailing, passing: true, message: fmt.Sprintf("RoleBinding %s of namespace %q can't be read: %v.", name, p.Namespace, err)}
		}
		p.owner.Store(&metav1.OwnerReference{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding", Name: name, UID: found.UID})
		if before == nil || before.UID != found.UID {
			p.again()
		}
		return nil
	}
	p.owner.Store(nil)
	return nil
}

// retire deletes, once, what this registry has published in the namespace in formats that it has
// there no longer, and whose kind another one has: the binding of before is still there.
func (s *session) retire(ctx context.Context) error {
	if s.retired || !s.kind.Private {
		return nil
	}
	var formats []string
	for _, p := range s.publishers {
		if p.Namespace == s.Namespace {
			formats = append(formats, p.kind.Name)
		}
	}
	slices.Sort(formats)
	selector := fmt.Sprintf("%s=%s,%[3]s,%[3]s notin (%[4]s)", contract.NamespaceLabel(s.Registry), s.Source.Namespace, format.FormatLabel, strings.Join(formats, ","))
	left, err := s.objects.List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return fmt.Errorf("list what exports of before have left: %w", err)
	}
	for _, object := range left.Items {
		uid, version := object.GetUID(), object.GetResourceVersion()
		err := s.objects.Delete(ctx, object.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete %s, which an export of before has left: %w", object.GetName(), err)
		}
	}
	s.retired = true
	return nil
}
