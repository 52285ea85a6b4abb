package export

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterregistry/operator/controller/export/format"
)

// errEarly says that an object differs and may not be written yet: it is looked at again then.
var errEarly = errors.New("the last write is too short a time ago")

// writes is when an object was last written.
type writes struct {
	// stamp is what the object says of that, by the clock of the API server, and last when
	// it was by the clock of this process, which is not later than now.
	stamp, last time.Time
}

// create makes the object of a cluster. It is created rather than applied, so that one that
// another has made meanwhile is not changed; what applies afterwards owns the rest.
func (s *session) create(ctx context.Context, name string, want format.Object) error {
	// One that is deleted over and over is not made again each time at once.
	if is, before := s.writes[name]; before {
		if left := is.last.Add(s.Period).Sub(s.Clock.Now()); left > 0 {
			s.queue.AddAfter(name, left)
			return nil
		}
	}
	metadata, content := want.New()
	created, err := s.objects.Create(ctx, s.object(name, metadata, content), metav1.CreateOptions{FieldManager: format.FieldManager})
	if apierrors.IsAlreadyExists(err) {
		return s.taken(name)
	}
	s.Metrics.wrote(s.Target, err)
	if err != nil {
		return fmt.Errorf("create it: %w", err)
	}
	s.writes[name] = writes{last: s.Clock.Now()}
	created.SetResourceVersion("")
	changes, err := want.Changes(created)
	if err != nil {
		return err
	}
	// Last what consumers wait for: they find all of the rest then.
	for _, change := range slices.Backward(changes) {
		if err := s.apply(ctx, name, change, created); err != nil {
			return err
		}
	}
	return nil
}

// taken holds an object that another has made. The informer is about to show whose it is, where
// it shows those of others.
func (s *session) taken(name string) error {
	if s.kind.Private {
		s.held[name] = "lacks the labels " + s.kind.Selector
		s.queue.AddAfter(name, recheck)
		return nil
	}
	s.queue.AddAfter(name, soonest)
	return nil
}

// update writes one part of an object that differs, if the last write was long enough ago;
// else, and for the other parts, it comes back. The error is errEarly then.
func (s *session) update(ctx context.Context, name string, want format.Object, have *unstructured.Unstructured) error {
	changes, err := want.Changes(have)
	if err != nil || len(changes) == 0 {
		return err
	}
	_, before := s.writes[name]
	left := s.left(name, have)
	if format.Owned(have.GetManagedFields(), changes[0].Subresource) == nil && !before {
		left = 0 // whoever made it was stopped before it had this part
	}
	if left > 0 {
		s.queue.AddAfter(name, left)
		return errEarly
	}
	return s.apply(ctx, name, changes[0], have) // of which the informer hears: the rest comes next
}

// left returns how long an object may not be written yet. Writes of other controllers
// count, at the time when this one sees them: a clock that is ahead delays nothing
// forever.
func (s *session) left(name string, have *unstructured.Unstructured) time.Duration {
	now, is := s.Clock.Now(), s.writes[name]
	if stamp := format.Written(have.GetManagedFields()); !stamp.Equal(is.stamp) {
		is.stamp = stamp
		if stamp.After(now) {
			stamp = now
		}
		if stamp.After(is.last) {
			is.last = stamp
		}
		s.writes[name] = is
	}
	return is.last.Add(s.Period).Sub(now)
}

// begin notes that an object is about to be written. It counts although it fails: no one knows
// whether it was written.
func (s *session) begin(name string) {
	is := s.writes[name]
	is.last = s.Clock.Now()
	s.writes[name] = is
}

// apply makes a change, if the object is still the one that was seen.
func (s *session) apply(ctx context.Context, name string, change format.Change, have *unstructured.Unstructured) error {
	var subresources []string
	if change.Subresource != "" {
		subresources = []string{change.Subresource}
	}
	s.begin(name)
	if change.Patch != nil {
		return s.patch(ctx, change, have, subresources)
	}
	metadata := map[string]any{"uid": string(have.GetUID())}
	if version := have.GetResourceVersion(); version != "" {
		metadata["resourceVersion"] = version
	}
	maps.Copy(metadata, change.Metadata)
	_, err := s.objects.Apply(ctx, have.GetName(), s.object(name, metadata, change.Content), metav1.ApplyOptions{FieldManager: format.FieldManager, Force: true}, subresources...)
	s.Metrics.wrote(s.Target, err)
	if err != nil {
		return fmt.Errorf("apply it: %w", err)
	}
	return nil
}

// patch makes a change by a patch.
func (s *session) patch(ctx context.Context, change format.Change, have *unstructured.Unstructured, subresources []string) error {
	body, err := json.Marshal(append([]map[string]any{{"op": "test", "path": "/metadata/resourceVersion", "value": have.GetResourceVersion()}}, change.Patch...))
	if err != nil {
		return err
	}
	_, err = s.objects.Patch(ctx, have.GetName(), types.JSONPatchType, body, metav1.PatchOptions{FieldManager: format.FieldManager}, subresources...)
	s.Metrics.wrote(s.Target, err)
	if err != nil {
		return fmt.Errorf("take out what is not of the entry: %w", err)
	}
	return nil
}

// object returns the object of a cluster with what is in the two maps.
func (s *session) object(name string, metadata, content map[string]any) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{"metadata": metadata}}
	maps.Copy(out.Object, content)
	out.SetGroupVersionKind(s.kind.GroupVersionKind)
	out.SetName(s.kind.Prefix + name)
	out.SetNamespace(s.Namespace)
	return out
}
