package visible

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterregistry/operator/apiserver/visibility"
)

const (
	// ahead is how many events are read ahead of their confirmation, at most. A watch that
	// begins with all clusters reads a record for each so many.
	ahead = 1000
	// jitter spreads the rechecks of watches that began together.
	jitter = 0.2
)

// Watch reports changes of the clusters that the caller sees, until that changes.
func (r *REST) Watch(ctx context.Context, options *internalversion.ListOptions) (watch.Interface, error) {
	if options == nil {
		options = &internalversion.ListOptions{}
	}
	view, err := r.policy.View(ctx)
	if err != nil {
		return nil, err
	}
	since, confirmed, err := r.policy.Confirm(ctx, view)
	if err == nil && !confirmed {
		view, since, err = r.policy.Settle(ctx, view)
	}
	if err != nil {
		return nil, err
	}
	version, err := r.Storage.Versioner().ParseResourceVersion(options.ResourceVersion)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if version > 0 && version < since {
		if initial := options.SendInitialEvents; initial == nil || !*initial {
			return ended(expired()), nil
		}
		// As List does: the watch cache may be behind the record.
		options = options.DeepCopy()
		options.ResourceVersion = ""
	}
	below, err := r.through(view).Watch(ctx, options)
	if err != nil {
		return nil, nameless(view, err)
	}
	if view.Forever() {
		return below, nil
	}
	w := &watcher{policy: r.policy, view: view, below: below, arrived: make(chan watch.Event, ahead), events: make(chan watch.Event)}
	w.ctx, w.cancel = context.WithCancel(ctx)
	go w.read()
	go w.run()
	return w, nil
}

// ended is a watch that reports an error and nothing else, as the store's own does when it
// can't begin where it was asked to.
func ended(err *apierrors.StatusError) watch.Interface {
	events := make(chan watch.Event, 1)
	events <- failed(err)
	close(events)
	return watch.NewProxyWatcher(events)
}

func failed(err *apierrors.StatusError) watch.Event {
	status := err.Status()
	return watch.Event{Type: watch.Error, Object: &status}
}

// watcher delivers events while the caller sees what it saw when the watch began. Each is
// confirmed after it came, see package visibility; one confirmation covers all that have come.
type watcher struct {
	policy *visibility.Policy
	view   visibility.View
	below  watch.Interface
	// arrived are the events that are not confirmed yet, events those that are.
	arrived, events chan watch.Event
	ctx             context.Context
	cancel          func()
}

// Stop ends the watch.
func (w *watcher) Stop() { w.cancel() }

// ResultChan returns the events.
func (w *watcher) ResultChan() <-chan watch.Event { return w.events }

// deliver hands events over, and reports whether it could.
func (w *watcher) deliver(events ...watch.Event) bool {
	for _, event := range events {
		select {
		case w.events <- event:
		case <-w.ctx.Done():
			return false
		}
	}
	return true
}

// read takes what the store reports, while what came before is confirmed and delivered.
func (w *watcher) read() {
	defer close(w.arrived)
	defer w.below.Stop()
	for {
		select {
		case <-w.ctx.Done():
			return
		case event, open := <-w.below.ResultChan():
			if !open {
				return
			}
			select {
			case <-w.ctx.Done():
				return
			case w.arrived <- event:
			}
		}
	}
}

func (w *watcher) run() {
	defer w.cancel()
	defer close(w.events)
	timer := time.NewTimer(w.period())
	defer timer.Stop()
	doubts := 0
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-timer.C:
			timer.Reset(w.period())
			end := w.settle()
			if end == nil {
				doubts = 0
				continue
			}
			// A review that fails once is repeated: the host cluster may be restarting.
			if doubts++; apierrors.IsResourceExpired(end) || doubts > 1 {
				w.deliver(failed(end))
				return
			}
		case first, open := <-w.arrived:
			if !open {
				return
			}
			events := w.collect(first)
			if end := w.confirm(); end != nil {
				w.deliver(failed(end))
				return
			}
			if !w.deliver(events...) {
				return
			}
		}
	}
}

// period returns when to look again at what the caller sees.
func (w *watcher) period() time.Duration {
	return wait.Jitter(w.policy.Periods.Recheck, jitter)
}

// collect returns an event with all others that have arrived.
func (w *watcher) collect(first watch.Event) []watch.Event {
	events := []watch.Event{first}
	for range len(w.arrived) {
		events = append(events, <-w.arrived)
	}
	return events
}

// confirm returns an error when the caller sees something else than when the watch began,
// as the record says.
func (w *watcher) confirm() *apierrors.StatusError {
	_, confirmed, err := w.policy.Confirm(w.ctx, w.view)
	switch {
	case err != nil:
		return statusOf(err)
	case confirmed:
		return nil
	}
	return w.settle()
}

// settle does so as reviews say, and has the record say the same.
func (w *watcher) settle() *apierrors.StatusError {
	now, _, err := w.policy.Settle(w.ctx, w.view)
	switch {
	case err != nil:
		return statusOf(err)
	case !now.Same(w.view):
		return expired()
	}
	return nil
}

// statusOf returns an error as a watch reports it.
func statusOf(err error) *apierrors.StatusError {
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		return status
	}
	return apierrors.NewServiceUnavailable(err.Error() + "; watch again")
}
