package clusterprofile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/internal/contract"
)

// errEarly says that a profile differs and may not be written yet: it is looked at again then.
var errEarly = errors.New("the last write is too short a time ago")

// writes is when a profile was last written.
type writes struct {
	// stamp is what the profile says of that, by the clock of the API server, and last when
	// it was by the clock of this process, which is not later than now.
	stamp, last time.Time
}

// create makes the profile of a cluster. It is created rather than applied, so that one that
// another has made meanwhile is not changed; what applies afterwards owns the rest.
func (s *session) create(ctx context.Context, cluster *v1beta1.Cluster) error {
	known := s.verifier.proof(cluster)
	if _, why := offered(cluster, s.Target); why == nil && !known.asked {
		return nil // it comes back once its endpoint was asked, and is written once then
	}
	want := s.of(cluster, s.Target, known)
	// One that is deleted over and over is not made again each time at once.
	if is, before := s.writes[want.Name]; before {
		if wait := is.last.Add(s.Period).Sub(s.Clock.Now()); wait > 0 {
			s.queue.AddAfter(want.Name, wait)
			return nil
		}
	}
	created, err := s.profiles.Create(ctx, s.object(want, map[string]any{
		"labels": map[string]any{ManagerLabel: s.Manager(), contract.NamespaceLabel(s.Registry): s.Source.Namespace},
	}, map[string]any{"spec": map[string]any{"clusterManager": map[string]any{"name": s.Manager()}}}), metav1.CreateOptions{FieldManager: FieldManager})
	if apierrors.IsAlreadyExists(err) {
		s.queue.AddAfter(want.Name, soonest) // the informer is about to show whose it is
		return nil
	}
	s.Metrics.wrote(s.Namespace, err)
	if err != nil {
		return fmt.Errorf("create it: %w", err)
	}
	s.writes[want.Name] = writes{last: s.Clock.Now()}
	have, err := decode(created)
	if err != nil {
		return err
	}
	have.ResourceVersion = ""
	if !sameMain(want, have) {
		if err := s.applyMain(ctx, want, have); err != nil {
			return err
		}
	}
	return s.applyStatus(ctx, want, have)
}

// update writes one part of a profile that differs, if the last write was long enough ago;
// else, and for the other part, it comes back. The error is errEarly then.
func (s *session) update(ctx context.Context, want, have *profile) error {
	main, status := owned(have.ManagedFields, ""), owned(have.ManagedFields, "status")
	statusDiffers := status == nil || !sameStatus(want.Status, have.Status) || surplus(status, want)
	mainDiffers := !sameMain(want, have) || main != nil && surplus(main, want)
	if !statusDiffers && !mainDiffers {
		return nil
	}
	_, before := s.writes[want.Name]
	wait := s.wait(want.Name, have)
	if status == nil && !before {
		wait = 0 // whoever made it was stopped before it had a status
	}
	if wait > 0 {
		s.queue.AddAfter(want.Name, wait)
		return errEarly
	}
	if at := extraCA(want.Status, have.Status); at >= 0 {
		return s.dropCA(ctx, have, at)
	}
	if statusDiffers {
		return s.applyStatus(ctx, want, have) // of which the informer hears: the rest comes next
	}
	return s.applyMain(ctx, want, have)
}

// wait returns how long a profile may not be written yet. Writes of other controllers
// count, at the time when this one sees them: a clock that is ahead delays nothing
// forever.
func (s *session) wait(name string, have *profile) time.Duration {
	now, is := s.Clock.Now(), s.writes[name]
	if stamp := written(have.ManagedFields); !stamp.Equal(is.stamp) {
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

// applyMain applies labels and spec to a profile, if it is still the one that was seen.
func (s *session) applyMain(ctx context.Context, want, have *profile) error {
	shown := map[string]any{}
	for key, value := range want.Labels {
		shown[key] = value
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&want.Spec)
	if err != nil {
		return err
	}
	return s.apply(ctx, want, have, map[string]any{"labels": shown}, map[string]any{"spec": content})
}

// applyStatus applies the status to a profile, if it is still the one that was seen.
func (s *session) applyStatus(ctx context.Context, want, have *profile) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&want.Status)
	if err != nil {
		return err
	}
	return s.apply(ctx, want, have, nil, map[string]any{"status": content}, "status")
}

// dropCA takes the CA of a provider out of a profile, if it is still the one that was seen: to
// apply a status without it leaves one that someone else has set.
func (s *session) dropCA(ctx context.Context, have *profile, at int) error {
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/resourceVersion", "value": have.ResourceVersion},
		{"op": "remove", "path": fmt.Sprintf("/status/accessProviders/%d/cluster/certificate-authority-data", at)},
	})
	if err != nil {
		return err
	}
	s.begin(have.Name)
	_, err = s.profiles.Patch(ctx, have.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: FieldManager}, "status")
	s.Metrics.wrote(s.Namespace, err)
	if err != nil {
		return fmt.Errorf("take out a CA that is not of the entry: %w", err)
	}
	return nil
}

// begin notes that a profile is about to be written. It counts although it fails: no one knows
// whether it was written.
func (s *session) begin(name string) {
	is := s.writes[name]
	is.last = s.Clock.Now()
	s.writes[name] = is
}

func (s *session) apply(ctx context.Context, want, have *profile, metadata, content map[string]any, subresources ...string) error {
	all := map[string]any{"uid": string(have.UID)}
	if have.ResourceVersion != "" {
		all["resourceVersion"] = have.ResourceVersion
	}
	for key, value := range metadata {
		all[key] = value
	}
	s.begin(want.Name)
	_, err := s.profiles.Apply(ctx, want.Name, s.object(want, all, content), metav1.ApplyOptions{FieldManager: FieldManager, Force: true}, subresources...)
	s.Metrics.wrote(s.Namespace, err)
	if err != nil {
		return fmt.Errorf("apply it: %w", err)
	}
	return nil
}

// object returns a ClusterProfile with what is in the two maps.
func (s *session) object(p *profile, metadata, content map[string]any) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{"metadata": metadata}}
	for key, value := range content {
		out.Object[key] = value
	}
	out.SetGroupVersionKind(kind)
	out.SetName(p.Name)
	out.SetNamespace(s.Namespace)
	return out
}
