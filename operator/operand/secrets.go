package operand

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
)

// Secrets are those that one reconcile has read, by their names, nil for one that there is not.
// They go with the reconcile: the operator keeps no Secret for longer.
type Secrets struct {
	mu   sync.Mutex
	read map[string]*corev1.Secret
}

// get returns a Secret, and whether it was read.
func (s *Secrets) get(name string) (secret *corev1.Secret, read bool) {
	if s == nil {
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	secret, read = s.read[name]
	return secret.DeepCopy(), read
}

func (s *Secrets) keep(name string, secret *corev1.Secret) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.read == nil {
		s.read = map[string]*corev1.Secret{}
	}
	s.read[name] = secret.DeepCopy()
}

// forget has a Secret be read again.
func (s *Secrets) forget(name string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.read, name)
}

// rereading is a Writer after which a Secret is read again that it may have changed.
type rereading struct {
	apply.Writer
	secrets *Secrets
}

// ApplyFrom implements apply.Writer.
func (w rereading) ApplyFrom(ctx context.Context, first, wanted *unstructured.Unstructured) error {
	if wanted.GetKind() == secretKind {
		defer w.secrets.forget(wanted.GetName())
	}
	return w.Writer.ApplyFrom(ctx, first, wanted)
}

// Delete implements apply.Writer.
func (w rereading) Delete(ctx context.Context, reference operatorv1alpha1.ObjectReference, owner string) (gone bool, err error) {
	if reference.Kind == secretKind {
		defer w.secrets.forget(reference.Name)
	}
	return w.Writer.Delete(ctx, reference, owner)
}

const secretKind = "Secret"
