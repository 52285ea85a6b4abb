package accidents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/client/clientset/versioned"
	"github.com/clusterregistry/operator/e2e/framework"
)

const (
	// rate is how many requests clients send in a second, and pending how many may be
	// under way: a machine that is busy for a moment must not be given more than it
	// could ever make up for. At 200 in a second, two processors have nothing left for
	// what follows an accident: 1 % of requests took 15 s, and a namespace two minutes.
	rate    = 60
	pending = 2 * rate
	// late is how long 99 % of requests may take while an accident is repaired, where
	// none may fail.
	late = 5 * time.Second
	// population is how many clusters there are about at a time, and watchers how many
	// clients watch them.
	population = 200
	watchers   = 2
	// patience is how long a registry may take until it is Ready again, or says what it
	// needs. A mounted Secret takes up to two minutes to come to the pods.
	patience = 6 * time.Minute
)

// site is a registry under load, to which accidents happen.
type site struct {
	e        *framework.Env
	registry *operatorv1alpha1.ClusterRegistry
	load     *framework.Load
	results  []result
	// corporate is an issuer besides the registry's own.
	corporate *framework.Authority
}

// newSite installs a registry and starts the load.
func newSite(t *testing.T, sample string, change func(*operatorv1alpha1.ClusterRegistrySpec)) *site {
	t.Helper()
	e := framework.New(t).WithOperator()
	registry := e.Sample(sample)
	if change != nil {
		change(&registry.Spec)
	}
	e.Install(registry)
	e.WaitReady(registry)
	corporate := framework.NewAuthority(t, "corporate")
	load := framework.StartLoad(t, clients(t, e, registry, corporate), rate, framework.Watchers(watchers), framework.Population(population), framework.Pending(pending), framework.Rewritten())
	s := &site{e: e, registry: registry, load: load, corporate: corporate}
	s.settle(t)
	return s
}

// clients returns how clients connect that are no administrators of the host, whom
// servers ask the host about. Those of an independent registry have been told of the
// issuer that its certificate will be from.
func clients(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry, corporate *framework.Authority) *rest.Config {
	config := rest.CopyConfig(e.RegistryConfig(registry))
	if registry.Spec.Mode != operatorv1alpha1.ModeAggregated {
		config.CAData = slices.Concat(config.CAData, corporate.PEM)
		return config
	}
	e.Apply("clients.yaml", map[string]string{"Name": e.Namespace})
	config.Impersonate = rest.ImpersonationConfig{UserName: e.Namespace}
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	e.Eventually("the clients' role to be in force", func(ctx context.Context) error {
		_, err := client.ClusterregistryV1alpha1().Clusters().List(ctx, metav1.ListOptions{})
		return err
	})
	return config
}

// all lets the given kinds of damage happen to all parts of the registry.
func (s *site) all(t *testing.T, which ...string) {
	for _, damage := range which {
		references, err := parts(t.Context(), s.e.Client, s.registry)
		if err != nil {
			t.Fatal(err)
		}
		for _, reference := range references {
			before, err := readObject(t.Context(), s.e.Client, reference)
			if err != nil {
				t.Errorf("%s %s is not there any more: %v", damage, reference, err)
				continue
			}
			for _, a := range damages(s.e.Client, reference, before, damage) {
				// Each test has another namespace.
				a.name = damage + " " + reference.Kind + " " + strings.ReplaceAll(reference.Name, s.registry.Namespace, "NAMESPACE")
				s.happens(t, a)
			}
		}
	}
}

// happens lets one accident happen, waits until all is well, and notes what
// became of it.
func (s *site) happens(t *testing.T, a accident) {
	t.Run(a.name, func(t *testing.T) {
		e := s.e.In(t)
		outage := expected(a)
		if outage != nil && outage.host && s.registry.Spec.Mode == operatorv1alpha1.ModeAggregated {
			e.HostMaySuffer(outage.reason)
		}
		s.load.Mark(a.name)
		r := result{accident: a, began: time.Now()}
		if err := a.cause(t.Context()); err != nil {
			t.Fatal(err)
		}
		if a.object.Kind == "Secret" {
			s.nudge(e)
		}
		if !s.await(t, a, &r) {
			t.Errorf("the registry is not well after %s:\n%s", patience, r.saw())
			r.repaired = true
			if err := a.repair(t.Context()); err != nil {
				t.Error(err)
			}
			e.WaitReady(s.registry)
		}
		r.phase, r.took = s.load.Phase(), time.Since(r.began)
		s.results = append(s.results, r)
		t.Logf("%s\n%s", r.line(), r.phase)
		limit := time.Duration(0)
		if outage != nil {
			limit = outage.limit
		} else if err := r.phase.Stalled(); err != nil {
			t.Error(err)
		} else if r.phase.P99 > late {
			t.Errorf("99 %% of requests are to take less than %s: %s", late, r.phase)
		}
		if r.phase.Failed > 0 && r.phase.Outage >= limit {
			t.Errorf("%d of %d requests failed, for %s, and %s are allowed:\n%s", r.phase.Failed, r.phase.Requests, r.phase.Outage, limit, strings.Join(r.phase.Examples, "\n"))
		}
	})
}

// await waits until the registry is well, and does what a person has to where that
// is expected. It returns false when neither comes.
func (s *site) await(t *testing.T, a accident, r *result) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		err := s.well(ctx, a)
		if err == nil {
			// What follows an accident may be late.
			s.settle(t)
			if err = s.well(ctx, a); err == nil {
				return true
			}
		}
		r.note(s.registry.Status.Conditions, err)
		if text := asks(a, s.registry); text != "" && !r.repaired {
			r.repaired, r.asked = true, text
			if err := a.repair(ctx); err != nil {
				t.Fatal(err)
			}
			s.nudge(s.e.In(t))
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}

// well returns why a registry is not as it was before an accident, or nil.
func (s *site) well(ctx context.Context, a accident) error {
	if err := s.e.Client.Get(ctx, client.ObjectKeyFromObject(s.registry), s.registry); err != nil {
		return err
	}
	if err := a.mended(ctx); err != nil {
		return fmt.Errorf("%s: %w", a.object, err)
	}
	ready := meta.FindStatusCondition(s.registry.Status.Conditions, operatorv1alpha1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != s.registry.Generation {
		return errors.New("it is not Ready")
	}
	_, err := s.e.PodsOf(ctx, s.registry)
	return err
}

// nudge has the operator reconcile now, by an edit that changes nothing: Secrets
// are not watched, and it would otherwise take up to ten minutes.
func (s *site) nudge(e *framework.Env) {
	e.Change(s.registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) { spec.Server.ProgressDeadlineSeconds++ })
}

// settle lets the load run for some seconds' worth of requests.
func (s *site) settle(t *testing.T) {
	t.Helper()
	for range 3 {
		s.load.Settle(t)
	}
}

// end stops the load, and compares what is stored with what was acknowledged.
func (s *site) end(t *testing.T) {
	t.Helper()
	report := s.load.Stop()
	t.Logf("%d accidents: %d requests, %d failed\n%s", len(s.results), report.Sent, len(report.Failed), table(s.results))
	for _, phase := range report.Phases {
		if phase.Name == report.Phases[0].Name && phase.Failed > 0 {
			t.Errorf("%d requests failed before there was any accident:\n%s", phase.Failed, strings.Join(phase.Examples, "\n"))
		}
	}
	s.e.Compare(s.registry, report)
}
