package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterregistry/operator/apis/clusterregistry/equality"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/cli/command"
	clusterclient "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/internal/unregistered"
)

// plan is an object on its way into the registry.
type plan struct {
	object *unstructured.Unstructured
	// cluster is what it is to become, nil for a ClusterSet and where the result is known.
	cluster *v1beta1.Cluster
	result  Result
	done    bool
}

// plans decides what can be decided without the registry: what is not a cluster, and of two of
// one name or id the second one.
func (i *importer) plans(objects []*unstructured.Unstructured) []*plan {
	out := make([]*plan, 0, len(objects))
	taken, ids := map[string]string{}, map[string]string{}
	for _, object := range objects {
		p := &plan{object: object}
		out = append(out, p)
		if isSet(object) {
			continue
		}
		entry := entryOf(object, i.template)
		p.result = Result{From: entry.from, Message: entry.note}
		if entry.cluster != nil {
			p.result.Name = command.Plain(entry.cluster.Name)
			if other := taken[entry.cluster.Name]; other != "" && entry.err == nil {
				entry.err = fmt.Errorf("the name is taken by %s of the same source: rename one of them, or see --name-template", other)
			}
			if other := ids[entry.cluster.Spec.ID]; other != "" && entry.err == nil {
				entry.err = fmt.Errorf("its id is that of %s of the same source: it is one cluster with two names; remove one of them", other)
			}
		}
		if entry.err != nil {
			p.result.Result, p.result.Message, p.done = refused, command.Plain(entry.err.Error()), true
			continue
		}
		taken[entry.cluster.Name] = entry.from
		if id := entry.cluster.Spec.ID; id != "" {
			ids[id] = entry.from
		}
		p.cluster = entry.cluster
	}
	return out
}

// enter enters objects: the sets one after the other, and then several clusters at a time. It
// returns what became of each, and ends early only when the registry can't be asked any more.
func (i *importer) enter(ctx context.Context, registry clusterclient.ClusterregistryV1beta1Interface, objects []*unstructured.Unstructured) ([]*plan, error) {
	all := i.plans(objects)
	var entered atomic.Int64
	stop := i.env.Counter(ctx, "Entering "+count(objects), func() int { return int(entered.Load()) }, len(all))
	defer stop()
	var clusters []*plan
	for _, p := range all {
		switch {
		case p.cluster != nil:
			clusters = append(clusters, p)
			continue
		case !p.done:
			result, err := i.enterSet(ctx, registry.ClusterSets(), p.object)
			if err != nil {
				return all, err
			}
			p.result, p.done = result, true
		}
		entered.Add(1)
	}
	if err := i.list(ctx, registry.Clusters(), len(clusters)); err != nil {
		return all, err
	}
	err := i.each(ctx, clusters, func(p *plan) error {
		defer entered.Add(1)
		return i.enterCluster(ctx, registry.Clusters(), p)
	})
	return all, err
}

// results are those of all that is done. Of several at a time, one that waits, or fails, comes
// before many that are done.
func results(all []*plan) []Result {
	out := []Result{}
	for _, p := range all {
		if p.done {
			out = append(out, p.result)
		}
	}
	return out
}

// each calls a function for each cluster in their order, of several at a time, and returns the error
// of the first one that has any. None begins after an error.
func (i *importer) each(ctx context.Context, clusters []*plan, do func(*plan) error) error {
	group, ctx := errgroup.WithContext(ctx)
	errs := make([]error, len(clusters))
	var begun atomic.Int64
	for range max(1, i.workers) {
		group.Go(func() error {
			for {
				n := int(begun.Add(1)) - 1
				if n >= len(clusters) {
					return nil
				}
				if ctx.Err() != nil {
					return ctx.Err()
				}
				if errs[n] = do(clusters[n]); errs[n] != nil {
					return errs[n]
				}
			}
		})
	}
	stopped := group.Wait()
	return cmp.Or(cmp.Or(errs...), stopped)
}

// enterCluster enters one cluster. An error is about the registry.
func (i *importer) enterCluster(ctx context.Context, clusters clusterclient.ClusterInterface, p *plan) error {
	did, err := i.one(ctx, clusters, p.cluster)
	switch {
	case err != nil && fatal(ctx, err):
		return err
	case err != nil:
		p.result.Result, p.result.Message = refused, command.Plain(err.Error())
	default:
		p.result.Result = did
		if did == differs {
			p.result.Message = "it is in the registry with other labels, annotations or spec: compare with \"kubectl get crc " + p.result.Name + " -o yaml\", then use --overwrite"
		}
	}
	p.done = true
	return nil
}

// fatal reports whether an error is about the registry, and not about one entry.
func fatal(ctx context.Context, err error) bool {
	var dial net.Error
	var request *url.Error
	return ctx.Err() != nil || unregistered.Is(err) || errors.As(err, &dial) || errors.As(err, &request) || apierrors.IsUnauthorized(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
}

// one enters one cluster, and says what it did.
func (i *importer) one(ctx context.Context, clusters clusterclient.ClusterInterface, wanted *v1beta1.Cluster) (string, error) {
	status := wanted.Status
	wanted.Status = nil
	old, err := i.find(ctx, clusters, wanted.Name)
	if err != nil {
		return "", err
	}
	if old == nil {
		if i.dryRun.Client() {
			return created, nil
		}
		made, err := i.waiting(ctx, func() (*v1beta1.Cluster, error) {
			return clusters.Create(ctx, wanted, metav1.CreateOptions{FieldManager: command.FieldManager, DryRun: i.dryRun.Options()})
		})
		if err == nil {
			return created, i.status(ctx, clusters, made, status)
		}
		if i.listed == nil || !apierrors.IsAlreadyExists(err) {
			return "", err
		}
		// Someone has entered it since the list.
		found, missing := clusters.Get(ctx, wanted.Name, metav1.GetOptions{})
		switch {
		case missing != nil && fatal(ctx, missing):
			return "", missing
		case missing != nil:
			return "", err
		}
		old = found
	}
	if sameObject(old.Spec.SourceRef, wanted.Spec.SourceRef) {
		wanted.Spec.SourceRef = old.Spec.SourceRef // which takes a permission of its own to change
	}
	next := old.DeepCopy()
	next.Labels, next.Annotations, next.Spec = keepLabel(old.Labels, wanted.Labels), keepApplied(old.Annotations, wanted.Annotations), wanted.Spec
	if equality.DeepEqual(next, old) {
		if old.Status == nil && status != nil && i.withStatus {
			// An import that ended before it has written the status.
			return updated, i.status(ctx, clusters, old, status)
		}
		return same, nil
	}
	if !i.overwrite {
		return differs, nil
	}
	if err := rebound(old, wanted.Spec.SourceRef); err != nil {
		return "", err
	}
	if i.dryRun.Client() {
		return updated, nil
	}
	made, err := i.waiting(ctx, func() (*v1beta1.Cluster, error) {
		return command.Update(ctx, clusters, old, next, metav1.UpdateOptions{FieldManager: command.FieldManager, DryRun: i.dryRun.Options()})
	})
	if errors.Is(err, command.ErrChanged) {
		return "", fmt.Errorf("%w, and stays as it is now: see \"kubectl get crc %s -o yaml\", then run this again", err, old.Name)
	}
	if err != nil {
		return "", err
	}
	return updated, i.status(ctx, clusters, made, status)
}

// rebound refuses to have an entry of one object become that of another one: of equal names in
// two management clusters, neither is meant to replace the other.
func rebound(old *v1beta1.Cluster, wanted *v1beta1.SourceReference) error {
	is := old.Spec.SourceRef
	if is == nil || wanted == nil || *is == *wanted {
		return nil
	}
	return fmt.Errorf("spec.sourceRef of the entry names another object, %s %s/%s with the UID %q: give this one another name, or delete the entry first, if it is not needed any more", is.Kind, is.Namespace, is.Name, is.UID)
}

// held is how long a registry keeps an id for a request that was cut off, such as the last
// one of an import that was killed, and a little more.
const held = 130 * time.Second

// waiting writes a cluster. It waits while another request holds the cluster's id.
func (i *importer) waiting(ctx context.Context, write func() (*v1beta1.Cluster, error)) (*v1beta1.Cluster, error) {
	for waited := time.Duration(0); ; waited += i.pause {
		made, err := write()
		if !apierrors.IsConflict(err) || waited >= i.held {
			return made, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(i.pause):
		}
	}
}

// status writes the status that a file has, where it is to be written.
func (i *importer) status(ctx context.Context, clusters clusterclient.ClusterInterface, made *v1beta1.Cluster, status *v1beta1.ClusterStatus) error {
	if status == nil || !i.withStatus || i.dryRun != "none" {
		return nil
	}
	if _, err := command.UpdateStatus(ctx, clusters, made, func(next *v1beta1.Cluster) { next.Status = observed(status, next.Generation) }); err != nil {
		return fmt.Errorf("the cluster was entered, and its status was not: %w", err)
	}
	return nil
}
