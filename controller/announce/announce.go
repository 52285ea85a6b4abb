// Package announce tells the operator how the functions of the controller are, in an
// annotation of the Lease that the leader holds.
//
// The Lease is where the operator can read it reliably: through the host cluster, which
// both need anyway, without a connection to the pod; and its spec says whether the one
// who says so still leads.
package announce

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/clusterregistry/operator/internal/contract"
)

const (
	// retry is the time between two attempts to write.
	retry = 10 * time.Second
	// recheck is the time between two readings of what was written: a Lease that is
	// deleted is made again by the election, without the annotation.
	recheck = 30 * time.Second
)

// Announcer writes the state of functions to a Lease, when it changes.
type Announcer struct {
	leases       coordinationv1.LeaseInterface
	name, holder string
	clock        clock.Clock

	mu        sync.Mutex
	functions map[string]contract.FunctionStatus
	changed   chan struct{}
}

// New returns an announcer for a Lease and who holds it. Without leases it only logs.
func New(leases coordinationv1.LeaseInterface, name, holder string, c clock.Clock) *Announcer {
	return &Announcer{leases: leases, name: name, holder: holder, clock: c, functions: map[string]contract.FunctionStatus{}, changed: make(chan struct{}, 1)}
}

// Say sets how a function is. The message is for people.
func (a *Announcer) Say(function string, state contract.FunctionState, message string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before, known := a.functions[function]
	if known && before.State == state && before.Message == message {
		return
	}
	now := contract.FunctionStatus{State: state, Message: message, Since: before.Since}
	if !known || before.State != state {
		now.Since = a.clock.Now().UTC().Truncate(time.Second)
	}
	a.functions[function] = now
	klog.InfoS("A function of the controller has changed its state", "function", function, "state", state, "message", message)
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

// Run writes what is said until ctx ends, and again when it is lost.
func (a *Announcer) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.changed:
		case <-a.clock.After(recheck):
		}
		for {
			err := a.write(ctx)
			if err == nil {
				break
			}
			if ctx.Err() == nil && !apierrors.IsNotFound(err) { // the Lease is about to be made
				klog.ErrorS(err, "The state of the controller could not be written to its Lease", "lease", a.name)
			}
			select {
			case <-ctx.Done():
				return nil
			case <-a.clock.After(retry):
			}
		}
	}
}

// write writes what was said to the Lease, unless that has it or another one holds it.
func (a *Announcer) write(ctx context.Context) error {
	a.mu.Lock()
	status := contract.ControllerStatus{Holder: a.holder, Functions: maps.Clone(a.functions)}
	a.mu.Unlock()
	if a.leases == nil || len(status.Functions) == 0 {
		return nil
	}
	content, err := json.Marshal(status)
	if err != nil {
		return err
	}
	lease, err := a.leases.Get(ctx, a.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if lease.Annotations[contract.ControllerStatusAnnotation] == string(content) {
		return nil
	}
	if holder := lease.Spec.HolderIdentity; holder != nil && *holder != "" && *holder != a.holder {
		return nil // this process is about to lose the lead, and the other one says how it is
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{contract.ControllerStatusAnnotation: string(content)}}})
	if err != nil {
		return err
	}
	_, err = a.leases.Patch(ctx, a.name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
