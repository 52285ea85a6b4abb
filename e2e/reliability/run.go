package reliability

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/e2e/history"
	"github.com/clusterregistry/operator/operator/version"
)

// rates are how many requests clients send in a second: in "make test", which shares a small
// computer with what it tests, and for what is published.
const (
	coreRate = 50
	fullRate = 200
)

// stage is a registry that goes through a cell.
type stage struct {
	t        *testing.T
	e        *framework.Env
	registry *operatorv1alpha1.ClusterRegistry
	recorder *history.Recorder
	// rate is how many requests clients send in a second.
	rate int
	// replaced is the member that the operation replaces.
	replaced operatorv1alpha1.EtcdMember
	// fragmented has the IDs of the members that the operation defragments: a file that was
	// defragmented within the hour is left alone.
	fragmented map[string]bool
	// generation is that of the CA that the operation makes.
	generation int32
	// members is how many there were before the operation.
	members int32
	// pokes counts what had the operator reconcile.
	pokes int
}

// newest is the last release, and before the one before it, from which it is reached.
func newest(t *testing.T) version.Release { return releases(t)[len(releases(t))-1] }
func before(t *testing.T) version.Release { return releases(t)[len(releases(t))-2] }

func releases(t *testing.T) []version.Release {
	t.Helper()
	all, err := version.Releases()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// run takes a registry that is Ready through a cell, and returns what became of it. Unless
// the cell has failed, the registry is then as it was before.
func (c cell) run(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry, rate int) result {
	s := &stage{t: t, e: e, registry: registry, rate: rate}
	for _, prepare := range []func(*stage){c.fault.prepare, c.operation.prepare} {
		if prepare != nil {
			prepare(s)
		}
	}
	r := c.measure(s)
	for _, undo := range []func(*stage){c.operation.undo, c.fault.undo} {
		if undo != nil {
			undo(s)
		}
	}
	return r
}

// measure has the fault strike during the operation, while clients are recorded.
func (c cell) measure(s *stage) result {
	began := time.Now()
	s.record(c)
	s.settle()
	if c.operation.begin != nil {
		c.operation.begin(s)
	}
	fault := c.fault.strike(s)
	fault.heal()
	s.complete()
	if fault.over != nil {
		fault.over()
		s.complete()
	}
	s.settle()
	h, figures, err := s.recorder.Stop(s.t.Context())
	if err != nil {
		s.t.Fatalf("%s: %v", figures, err)
	}
	problems := history.Check(h)
	s.e.WaitSameData(s.registry)
	if c.operation.check != nil {
		c.operation.check(s)
	}
	r := c.result(figures, problems, fault.at, time.Since(began))
	c.judge(s.t, r, figures, problems)
	return r
}

// record has clients begin.
func (s *stage) record(c cell) {
	s.t.Helper()
	transport, server, err := framework.Transport(s.e.RegistryConfig(s.registry), s.rate)
	if err != nil {
		s.t.Fatal(err)
	}
	now := time.Now()
	s.t.Logf("seed %d chooses what clients ask for", now.UnixNano())
	s.recorder, err = history.Start(s.t.Context(), transport, server, "c"+strconv.FormatInt(now.Unix(), 36), history.Options{
		Rate: s.rate, Clients: s.rate / 2, Watchers: 4, Timeout: time.Minute, Rewritten: c.operation.name == upgrade.name, Seed: uint64(now.UnixNano())}) //nolint:gosec // any number will do
	if err != nil {
		s.t.Fatal(err)
	}
}

// complete waits until no operation is under way, all members are there, and the registry is
// Ready. Each phase of an operation may take as long as a wait may in all.
func (s *stage) complete() {
	s.t.Helper()
	for phase := s.phase(); ; {
		s.e.Eventually("no operation to be under way, or another phase of one", func(ctx context.Context) error {
			if err := s.e.Get(ctx, s.registry.Name, s.registry); err != nil {
				return err
			}
			if now := s.phase(); now != "" && now == phase || s.registry.Status.ObservedGeneration != s.registry.Generation {
				return fmt.Errorf("the operation is %+v, and generation %d of %d is observed", s.registry.Status.Operation, s.registry.Status.ObservedGeneration, s.registry.Generation)
			}
			if n := s.registry.Spec.Etcd.Replicas; s.phase() == "" && s.registry.Status.Etcd.Ready != fmt.Sprintf("%d/%d", n, n) {
				return fmt.Errorf("etcd is %+v, of %d members", s.registry.Status.Etcd, n)
			}
			return nil
		})
		if phase = s.phase(); phase == "" {
			break
		}
	}
	s.e.WaitReady(s.registry)
}

// phase is that of the operation that is under way, empty where there is none.
func (s *stage) phase() string {
	if s.registry.Status.Operation == nil {
		return ""
	}
	return fmt.Sprintf("%s, %s", s.registry.Status.Operation.Type, s.registry.Status.Operation.Phase)
}

// settle waits until clients were acknowledged some seconds' worth of writes.
func (s *stage) settle() {
	s.t.Helper()
	enough := 2 * s.rate
	before := s.recorder.Acknowledged()
	s.e.Eventually("writes to be acknowledged", func(context.Context) error {
		if now := s.recorder.Acknowledged(); now < before+enough {
			return fmt.Errorf("%d were, %d before", now, before)
		}
		return nil
	})
}

// quiet waits until requests no longer fail.
func (s *stage) quiet() {
	s.t.Helper()
	s.e.Eventually("requests no longer to fail", func(context.Context) error {
		before := s.recorder.Failures()
		s.settle()
		if now := s.recorder.Failures(); now > before {
			return fmt.Errorf("%d more failed", now-before)
		}
		return nil
	})
}

// poke has the operator reconcile the registry now, and not within two minutes.
func (s *stage) poke(ctx context.Context) {
	s.pokes++
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = s.e.Namespace, s.registry.Name+"-etcd-0"
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"touched":"%d"}}}`, s.pokes)
	if err := s.e.Client.Patch(ctx, pod, client.RawPatch(types.MergePatchType, patch)); err != nil {
		s.t.Logf("pod %s can't be touched: %v", pod.Name, err) // it may be the one that is replaced
	}
}
