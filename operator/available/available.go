// Package available finds out whether clients are served now, by reading as they do.
package available

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/servers"
	"github.com/clusterregistry/operator/operator/stage/apiservice"
	"github.com/clusterregistry/operator/operator/verdict"
)

// grace is how long reads must have failed, while some server answers the
// operator itself, before the registry counts as not available: a read may have met
// the one server of several that is gone, or a host that was slow for a moment.
const grace = apiservice.Grace

// errNotAsked is the error of a read that could not be tried, as while the
// administrator's certificate is missing. It says nothing about the servers.
var errNotAsked = errors.New("it can't be verified whether clients are served")

// Found is whether clients are served now.
type Found struct {
	// Condition is Available, without its generation and time.
	Condition metav1.Condition
	// After is when to reconcile again at the latest, zero when nothing waits.
	After time.Duration
}

// Check finds out whether clients are served. Access and Outages are required.
type Check struct {
	servers.Access
	Outages *Outages
	// Awaits is the first part that a registry which was never complete still needs before
	// clients can be served, nothing when there is none.
	Awaits string
	// Verified is true when the reconcile has read through the host cluster already.
	Verified bool
	// Servers is what the stage of the servers found.
	Servers pass.Servers
	// Serving are the CAs that the servers' certificate may be signed by, in PEM.
	Serving []byte
	// Versions are the versions of the API that clients can rely on now; there are none
	// where it is not known which release runs. Then one of Known must be served.
	Versions, Known []string
}

// Run reads from the registry as its clients do. Other conditions say whether
// the registry is as its spec says; this one does not depend on what they found, so that
// it stays True in a change or a failure that clients do not notice.
func (s *Check) Run(ctx context.Context) Found {
	was := meta.FindStatusCondition(s.Before.Conditions, operatorv1alpha1.ConditionAvailable)
	// One that could not be asked for a while was known before.
	known := was != nil && (was.Status != metav1.ConditionUnknown || was.Reason == operatorv1alpha1.ReasonSecretInvalid)
	if s.Awaits != "" && !known && !s.Installed() {
		return Found{Condition: Condition(metav1.ConditionUnknown, operatorv1alpha1.ReasonWaiting, "Waiting for "+s.Awaits)}
	}
	key, problem := client.ObjectKeyFromObject(s.Registry), s.read(ctx)
	if problem == nil {
		s.Outages.End(key)
		return Found{Condition: Condition(metav1.ConditionTrue, operatorv1alpha1.ReasonAvailable, "clients are served "+s.where())}
	}
	since := s.Outages.begin(key, s.Now)
	// Once, a busy operator may be to blame.
	again := s.Now.Sub(since) >= verdict.Soon
	asked, brief := !errors.Is(problem, errNotAsked), s.Now.Sub(since) < grace
	switch {
	case asked && s.Servers.Asked && s.Servers.Answering == 0 && (again || known && was.Status == metav1.ConditionFalse):
		return Found{Condition(metav1.ConditionFalse, operatorv1alpha1.ReasonNotAvailable, fmt.Sprintf("no server answers, and clients are not served: %s", problem)), verdict.Backstop}
	case known && was.Status == metav1.ConditionTrue && brief:
		return Found{Condition(was.Status, was.Reason, was.Message), verdict.Soon}
	case !asked && known:
		return Found{Condition(metav1.ConditionUnknown, operatorv1alpha1.ReasonSecretInvalid, problem.Error()), verdict.Backstop}
	case !asked:
		return Found{Condition(metav1.ConditionUnknown, operatorv1alpha1.ReasonWaiting, problem.Error()), verdict.Backstop}
	case !known && (brief || !s.aggregatedBefore()):
		return Found{Condition(metav1.ConditionUnknown, operatorv1alpha1.ReasonWaiting, fmt.Sprintf("no read has succeeded yet: %s", problem)), verdict.Backstop}
	}
	message := "clients are not served"
	if s.Servers.Asked {
		message += fmt.Sprintf(", although %d of %d servers answer the operator", s.Servers.Answering, s.Registry.Spec.Server.Replicas)
	}
	return Found{Condition(metav1.ConditionFalse, operatorv1alpha1.ReasonNotAvailable, fmt.Sprintf("%s: %s", message, problem)), verdict.Backstop}
}

// aggregatedBefore reports whether the registry was complete once in mode Aggregated: its
// clients were served through the host, which the operator itself stands on, whatever the
// condition was.
func (s *Check) aggregatedBefore() bool {
	return s.Installed() && s.Registry.Spec.Mode == operatorv1alpha1.ModeAggregated
}

// Condition returns the condition Available.
func Condition(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: operatorv1alpha1.ConditionAvailable, Status: status, Reason: reason, Message: message}
}

// where says where clients are served.
func (s *Check) where() string {
	if endpoint := s.Registry.Status.Endpoint; endpoint != nil {
		return "at " + endpoint.URL
	}
	return "in the host cluster, at https://" + s.ServerName()
}

// read lists clusters through the host or at the registry's Service, in every version
// of the API that clients can rely on now. It returns why that fails.
func (s *Check) read(ctx context.Context) error {
	aggregated := s.Registry.Spec.Mode == operatorv1alpha1.ModeAggregated
	if s.Verified {
		return nil
	}
	reader, err := s.RegistryClient(ctx, s.Serving)
	if err != nil {
		return fmt.Errorf("%w: %w", errNotAsked, err)
	}
	try := func(served string) error {
		if aggregated {
			if err := apiservice.Unregistered(ctx, s.Objects, served+"."+apiservice.Group); err != nil {
				return err
			}
		}
		return reader.Read(ctx, served)
	}
	for _, served := range s.Versions {
		if err := try(served); err != nil {
			return err
		}
	}
	if len(s.Versions) > 0 {
		return nil
	}
	// What runs is not of any release that this operator knows.
	problem := errors.New("no version of the API is known")
	for _, served := range s.Known {
		if problem = try(served); problem == nil {
			return nil
		}
	}
	return problem
}
