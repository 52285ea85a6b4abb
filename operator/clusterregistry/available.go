package clusterregistry

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/version"
)

// availableGrace is how long reads must have failed, while some server answers the
// operator itself, before the registry counts as not available: a read may have met
// the one server of several that is gone, or a host that was slow for a moment.
const availableGrace = backendGrace

// errNotAsked is the error of a read that could not be tried, as while the
// administrator's certificate is missing. It says nothing about the servers.
var errNotAsked = errors.New("it can't be verified whether clients are served")

// availability is whether clients are served now: the condition, and when to
// reconcile again at the latest, zero when nothing waits.
type availability struct {
	condition metav1.Condition
	after     time.Duration
}

// available reads from the registry as its clients do. Other conditions say whether
// the registry is as its spec says; this one does not depend on what they found, so that
// it stays True in a change or a failure that clients do not notice.
func (r *Reconciler) available(ctx context.Context, s *scope) availability {
	was := meta.FindStatusCondition(s.before.Conditions, operatorv1alpha1.ConditionAvailable)
	// One that could not be asked for a while was known before.
	known := was != nil && (was.Status != metav1.ConditionUnknown || was.Reason == operatorv1alpha1.ReasonSecretInvalid)
	if part := s.firstUnusable(); part != "" && !known && !s.installed() {
		return availability{condition: isAvailable(metav1.ConditionUnknown, operatorv1alpha1.ReasonWaiting, "Waiting for "+part)}
	}
	key, problem := client.ObjectKeyFromObject(s.registry), r.read(ctx, s)
	if problem == nil {
		r.outages.end(key)
		return availability{condition: isAvailable(metav1.ConditionTrue, operatorv1alpha1.ReasonAvailable, "clients are served "+s.where())}
	}
	since := r.outages.begin(key, s.now)
	asked, brief := !errors.Is(problem, errNotAsked), s.now.Sub(since) < availableGrace
	switch {
	case asked && s.serversAsked && s.answering == 0:
		return availability{isAvailable(metav1.ConditionFalse, operatorv1alpha1.ReasonNotAvailable, fmt.Sprintf("no server answers, and clients are not served: %s", problem)), backstop}
	case known && was.Status == metav1.ConditionTrue && brief:
		return availability{isAvailable(was.Status, was.Reason, was.Message), verdict.Soon}
	case !asked && known:
		return availability{isAvailable(metav1.ConditionUnknown, operatorv1alpha1.ReasonSecretInvalid, problem.Error()), backstop}
	case !asked:
		return availability{isAvailable(metav1.ConditionUnknown, operatorv1alpha1.ReasonWaiting, problem.Error()), backstop}
	case !known && (brief || !s.aggregatedBefore()):
		return availability{isAvailable(metav1.ConditionUnknown, operatorv1alpha1.ReasonWaiting, fmt.Sprintf("no read has succeeded yet: %s", problem)), backstop}
	}
	message := "clients are not served"
	if s.serversAsked {
		message += fmt.Sprintf(", although %d servers answer the operator", s.answering)
	}
	return availability{isAvailable(metav1.ConditionFalse, operatorv1alpha1.ReasonNotAvailable, fmt.Sprintf("%s: %s", message, problem)), backstop}
}

// aggregatedBefore reports whether the registry was complete once in mode Aggregated: its
// clients were served through the host, which the operator itself stands on, whatever an
// earlier operator has noted of it.
func (s *scope) aggregatedBefore() bool {
	return s.installed() && s.registry.Spec.Mode == operatorv1alpha1.ModeAggregated
}

func isAvailable(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: operatorv1alpha1.ConditionAvailable, Status: status, Reason: reason, Message: message}
}

// firstUnusable returns the first part that a registry which was never complete still
// needs before clients can be served, nothing when there is none.
func (s *scope) firstUnusable() string {
	for _, kind := range s.parts() {
		if v, reached := s.results[kind]; !reached || !v.Usable() {
			return kind
		}
	}
	return ""
}

// where says where clients are served.
func (s *scope) where() string {
	if endpoint := s.registry.Status.Endpoint; endpoint != nil {
		return "at " + endpoint.URL
	}
	return "in the host cluster, at https://" + s.serverName()
}

// read lists clusters through the host or at the registry's Service, in every version
// of the API that clients can rely on now. It returns why that fails.
func (r *Reconciler) read(ctx context.Context, s *scope) error {
	aggregated := s.registry.Spec.Mode == operatorv1alpha1.ModeAggregated
	if v, reached := s.results[operatorv1alpha1.ConditionAPIServiceReady]; aggregated && reached && v.Complete() {
		return nil // that stage has just done the same
	}
	reader, err := r.client(ctx, s)
	if err != nil {
		return fmt.Errorf("%w: %w", errNotAsked, err)
	}
	try := func(served string) error {
		if aggregated {
			if err := r.registration(ctx, s, served+"."+registryGroup); err != nil {
				return err
			}
		}
		return reader.Read(ctx, served)
	}
	versions := s.reliable(r.Releases)
	for _, served := range versions {
		if err := try(served); err != nil {
			return err
		}
	}
	if len(versions) > 0 {
		return nil
	}
	// What runs is not of any release that this operator knows.
	problem := errors.New("no version of the API is known")
	tried := map[string]bool{}
	for _, release := range r.Releases {
		for _, served := range release.Serves {
			if tried[served] {
				continue
			}
			tried[served] = true
			if problem = try(served); problem == nil {
				return nil
			}
		}
	}
	return problem
}

// reliable are the versions of the API that clients can rely on now: in an upgrade
// those of both releases. There are none where it is not known which release runs.
func (s *scope) reliable(releases []version.Release) []string {
	if s.upgrade != nil {
		return version.ServesBoth(s.upgrade.From, s.upgrade.To)
	}
	if len(s.release.Serves) > 0 {
		return s.release.Serves
	}
	if s.registry.Status.Operation != nil {
		return nil // an upgrade of another operator may have taken a version away
	}
	running, _ := version.Find(releases, s.registry.Status.Version)
	return running.Serves
}

// registration returns why the host does not lead to the registry by an APIService.
func (r *Reconciler) registration(ctx context.Context, s *scope, name string) error {
	service := &apiregistrationv1.APIService{}
	// Not from the cache, which has no managed fields to tell whose it is.
	switch err := r.Live.Get(ctx, client.ObjectKey{Name: name}, service); {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("APIService %s does not exist", name)
	case err != nil:
		return err
	case !apply.Belongs(service, s.owner()):
		return fmt.Errorf("APIService %s does not belong to the registry", name)
	}
	if v := s.availability(service); !v.Complete() {
		return errors.New(v.Message)
	}
	return nil
}

// outages remembers since when the reads of each registry fail. The zero value is
// ready to use.
type outages struct {
	lock  sync.Mutex
	since map[client.ObjectKey]time.Time
}

// begin returns since when reads fail: now, unless they did before.
func (o *outages) begin(registry client.ObjectKey, now time.Time) time.Time {
	o.lock.Lock()
	defer o.lock.Unlock()
	if o.since == nil {
		o.since = map[client.ObjectKey]time.Time{}
	}
	if _, failing := o.since[registry]; !failing {
		o.since[registry] = now
	}
	return o.since[registry]
}

// end forgets a registry whose reads succeed, or that is gone.
func (o *outages) end(registry client.ObjectKey) {
	o.lock.Lock()
	defer o.lock.Unlock()
	delete(o.since, registry)
}
